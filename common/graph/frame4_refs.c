/* The exception data of __CxxFrameHandler4 (pe/cxx_frame4.h).
 *
 * Each function and each catch funclet has a FuncInfo4 of its own, and nearly all in it
 * counts from the begin of its row of the function table, which moves as one.  References
 * are the actions, the funclets, the begins of separated segments, and continuations that
 * are RVAs.  Where control goes on behind a catch is code that only this data leads to.
 *
 * A row that is chained to this one uses the same data.  Whether the system counts from
 * the chained row's begin or from the first's is no matter when they move together, so
 * all parts that stand side by side are joined; when one stands elsewhere, all stay.
 * Linkers share the unwind information of functions that are alike, so one FuncInfo4 may
 * have many users.
 */
#include "graph/exception_pass.h"
#include "pe/cxx_frame4.h"

enum { RVA_BYTES = 4 };

/* One walk over one FuncInfo4. */
struct frame4_pass {
	struct exception_pass *pass;
	struct cxx_frame4 frame;
	const struct handler_user *users;
	uint32_t user_count;
	int64_t states; /* how many there are */
};

/* The bytes of a list between its references must stay what they are: begins with one. */
struct frame4_bytes {
	struct rva from; /* up to here all is noted */
	size_t spent;    /* up to here it has been paid for, from the list's begin */
};

/* Pays for what was read of a list since the last time, so that a list which turns out to
 * be none is paid for as well; `readers` look into it on their own. */
static bool spend_read(struct frame4_pass *f, const struct frame4_list *list,
		       struct frame4_bytes *bytes, uint32_t readers)
{
	uint64_t read = list->r.pos - bytes->spent;

	bytes->spent = list->r.pos;
	return exception_pass_spend(f->pass, read * readers);
}

/* Notes what stands before a reference. */
static void pass_field(struct frame4_pass *f, struct frame4_bytes *bytes, struct rva site)
{
	exception_pass_keep(f->pass, bytes->from, site.v - bytes->from.v);
	bytes->from = rva_add(site, RVA_BYTES);
}

static void add_field(struct frame4_pass *f, struct frame4_bytes *bytes, struct rva site,
		      struct rva target, bool enters)
{
	pass_field(f, bytes, site);
	exception_pass_ref(f->pass, site, target, REF_RVA, enters);
}

/* Whether all of a list was read. */
static bool finish_list(struct frame4_pass *f, const struct frame4_list *list,
			const struct frame4_bytes *bytes)
{
	struct rva end = rva_add(list->rva, (uint32_t)list->r.pos);

	if (!frame4_list_complete(list))
		return false;
	exception_pass_keep(f->pass, bytes->from, end.v - bytes->from.v);
	return true;
}

static bool walk_unwinds(struct frame4_pass *f)
{
	struct frame4_bytes bytes = {f->frame.unwinds};
	struct frame4_list list;
	struct frame4_unwind row;
	uint32_t first = 0;

	if (f->frame.unwinds.v == 0)
		return true;
	list = frame4_list_at(f->pass->d->image, f->frame.unwinds);
	first = (uint32_t)list.r.pos;
	f->states = list.left;
	while (frame4_next_unwind(&list, &row)) {
		/* State -1 is where the count begins, which may have two bytes. */
		if (!spend_read(f, &list, &bytes, 1) || row.distance == 0 ||
		    row.distance > row.offset ||
		    (row.distance < row.offset && row.offset - row.distance < first))
			return false;
		if (row.site.v == 0)
			continue;
		if (!exception_pass_is_code(f->pass, row.action))
			return false;
		add_field(f, &bytes, row.site, row.action, true);
	}
	return finish_list(f, &list, &bytes);
}

/* Where control goes on behind a catch: in the function, relative to its begin. */
static bool walk_relative(struct frame4_pass *f, uint32_t offset)
{
	for (uint32_t i = 0; i < f->user_count; i++) {
		const struct runtime_function *function = f->users[i].function;
		struct rva target = rva_add(function->begin, offset);
		const struct function_part *part =
			exception_pass_part_at(f->pass, function, function->begin);

		if (offset >= part->run_end.v - function->begin.v)
			return false;
		exception_pass_enter(f->pass, target);
	}
	return exception_pass_spend(f->pass, f->user_count);
}

static bool walk_catches(struct frame4_pass *f, struct rva catches)
{
	struct frame4_list list = frame4_list_at(f->pass->d->image, catches);
	struct frame4_bytes bytes = {catches};
	struct frame4_catch row;

	if (list.left == 0)
		return false;
	while (frame4_next_catch(&list, &row)) {
		if (!spend_read(f, &list, &bytes, f->user_count) ||
		    !exception_pass_is_row(f->pass, row.funclet) ||
		    (row.type.v && !image_section_at(f->pass->d->image, row.type)))
			return false;
		add_field(f, &bytes, row.site, row.funclet, false);
		for (unsigned i = 0; i < row.count; i++) {
			struct rva target = rva_of(row.continuations[i]);

			if (!row.absolute) {
				if (!walk_relative(f, row.continuations[i]))
					return false;
				continue;
			}
			if (!exception_pass_is_code(f->pass, target))
				return false;
			add_field(f, &bytes, row.sites[i], target, false);
		}
	}
	return finish_list(f, &list, &bytes);
}

static bool walk_tries(struct frame4_pass *f)
{
	struct frame4_bytes bytes = {f->frame.tries};
	struct frame4_list list;
	struct frame4_try row;

	if (f->frame.tries.v == 0)
		return true;
	list = frame4_list_at(f->pass->d->image, f->frame.tries);
	while (frame4_next_try(&list, &row))
		if (!spend_read(f, &list, &bytes, f->user_count) || row.high < row.low ||
		    row.catch_high <= row.high || row.catch_high >= f->states ||
		    !walk_catches(f, row.catches))
			return false;
	return finish_list(f, &list, &bytes);
}

/* The states of `size` bytes of code.  What is noexcept may have one state that the
 * unwind map has not: in there nothing is unwound (observed: OpenConsole.exe). */
static bool walk_states(struct frame4_pass *f, struct rva states, uint32_t size)
{
	struct frame4_list list = frame4_list_at(f->pass->d->image, states);
	int64_t limit = f->states + !!(f->frame.header & FRAME4_NO_EXCEPT);
	struct frame4_bytes bytes = {states};
	struct frame4_state row = {0};

	while (frame4_next_state(&list, &row))
		if (!spend_read(f, &list, &bytes, 1) || row.offset >= size ||
		    row.state < -1 || row.state >= limit)
			return false;
	return finish_list(f, &list, &bytes);
}

/* The system looks for the segment by the begin of its row. */
static bool walk_segments(struct frame4_pass *f)
{
	struct frame4_list list = frame4_list_at(f->pass->d->image, f->frame.states);
	struct frame4_bytes bytes = {f->frame.states};
	struct frame4_segment row;

	while (frame4_next_segment(&list, &row)) {
		const struct runtime_function *segment =
			discovery_table_entry(f->pass->d, row.begin);

		if (!spend_read(f, &list, &bytes, 1) || !segment ||
		    segment->begin.v != row.begin.v ||
		    !walk_states(f, row.states, segment->end.v - segment->begin.v))
			return false;
		pass_field(f, &bytes, row.site);
		exception_pass_name(f->pass, row.site, row.begin);
	}
	return finish_list(f, &list, &bytes);
}

static bool has_segment(struct frame4_pass *f, struct rva begin)
{
	struct frame4_list list = frame4_list_at(f->pass->d->image, f->frame.states);
	struct frame4_segment row;
	bool found = false;

	while (!found && frame4_next_segment(&list, &row))
		found = row.begin.v == begin.v;
	return found && exception_pass_spend(f->pass, list.r.pos);
}

static bool walk_user(struct frame4_pass *f, const struct handler_user *user)
{
	uint32_t count, first = exception_pass_parts(f->pass, user->function, &count);
	const struct function_part *part =
		exception_pass_part_at(f->pass, user->function, user->function->begin);
	bool separated = f->frame.header & FRAME4_SEPARATED;
	uint32_t size = part->run_end.v - user->function->begin.v;

	if (separated ? !has_segment(f, user->function->begin)
		      : f->frame.states.v && !walk_states(f, f->frame.states, size))
		return false;
	if (count == 1)
		return true;
	for (uint32_t i = first; i < first + count; i++)
		if (f->pass->parts.data[i].run_begin.v != part->run_begin.v) {
			exception_pass_doubt(f->pass, user->function->begin);
			exception_pass_doubt(f->pass, f->pass->parts.data[i].begin);
		}
	exception_pass_join(f->pass, part->run_begin, rva_of(part->run_end.v - 1));
	return true;
}

bool frame4_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count)
{
	struct frame4_pass f = {.pass = pass, .users = users, .user_count = count};

	if (cxx_frame4_read(pass->d->image, rva_of(users->word), &f.frame, NULL) !=
		    STATUS_OK ||
	    image_section_at(pass->d->image, f.frame.rva) == NULL ||
	    !exception_pass_spend(pass, f.frame.size) || !walk_unwinds(&f) ||
	    !walk_tries(&f))
		return false;
	if (f.frame.states.v == 0 && !(f.frame.header & FRAME4_NO_EXCEPT))
		return false;
	if ((f.frame.header & FRAME4_SEPARATED) && !walk_segments(&f))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!walk_user(&f, &users[i]))
			return false;
	exception_pass_keep(pass, f.frame.rva, f.frame.size);
	return true;
}
