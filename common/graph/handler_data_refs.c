/* The forms of exception data that stand in the unwind information itself: scope tables,
 * exception tables of the Itanium ABI, places of security cookies, labels.
 *
 * A landing pad is relative to its function's begin, so it moves with it; a scope
 * table's fields are RVAs and are references.  A scope may span several rows of the
 * function table, those that are chained to the function's; they are joined then.
 *
 * A cookie's place is one small number, so nearly any data could begin with one.  It must
 * lie in the frame that the unwind codes describe, for every user; and what stands behind,
 * up to the next unwind information, must not name a place in the user.  What names other
 * functions is the business of the net for hidden references.
 *
 * Handlers of hand-written assembly look up where in their function the fault was, by RVAs
 * of labels in it (observed: OpenSSL's perlasm, for which the first words are two labels,
 * and up to two more are labels or numbers).  The data must end where other unwind
 * information begins, so that all of it is seen; each word that names code must name the
 * function, or its end.  All words move with the function then, or are numbers.
 */
#include "graph/exception_pass.h"
#include "pe/gs_data.h"
#include "pe/lsda.h"
#include "pe/scope_table.h"

enum {
	COOKIE_BYTES = 8,
	LOOK_BEHIND_BYTES = 64, /* behind a cookie's place */
	LABEL_WORDS = 2,        /* words that are labels always */
	LABEL_DATA_BYTES = 32,  /* at most */
	WORD_BYTES = 4,
	SCOPE_FIELDS = 15, /* words of a scope that may be references */
};

/* Whether `record` can be one of this function's (winnt.h, SCOPE_TABLE_AMD64). */
static bool walk_scope(struct exception_pass *pass, const struct handler_user *user,
		       const struct scope_record *record)
{
	const struct function_part *part =
		exception_pass_part_at(pass, user->function, record->begin);
	bool executes = record->handler.v == SCOPE_HANDLER_EXECUTE;

	if (!part || record->end.v <= record->begin.v || record->end.v > part->run_end.v ||
	    (!executes && !exception_pass_is_code(pass, record->handler)) ||
	    (record->target.v == 0 ? executes
				   : !exception_pass_is_code(pass, record->target)))
		return false;
	if (record->end.v > part->end.v)
		exception_pass_join(pass, part->begin, rva_of(record->end.v - 1));
	return true;
}

static void add_scope(struct exception_pass *pass, const struct scope_record *record)
{
	exception_pass_name(pass, record->site, record->begin);
	exception_pass_ref(pass, rva_add(record->site, 4), record->end, REF_RVA_END, false);
	if (record->handler.v != SCOPE_HANDLER_EXECUTE)
		exception_pass_ref(pass, rva_add(record->site, 8), record->handler, REF_RVA,
				   true);
	if (record->target.v)
		exception_pass_ref(pass, rva_add(record->site, 12), record->target, REF_RVA,
				   false);
}

bool scope_table_walk(struct exception_pass *pass, const struct handler_user *users,
		      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool shared = i > 0 && users[i].data.v == users[i - 1].data.v;
		struct scope_table table;

		if (scope_table_read(pass->d->image, &pass->scratch, users[i].data, &table,
				     NULL) != STATUS_OK ||
		    !exception_pass_spend(pass,
					  4 + (uint64_t)SCOPE_RECORD_BYTES * table.count))
			return false;
		for (uint32_t k = 0; k < table.count; k++) {
			if (!walk_scope(pass, &users[i], &table.data[k]))
				return false;
			if (!shared)
				add_scope(pass, &table.data[k]);
		}
		if (!shared) {
			exception_pass_keep(pass, users[i].data, WORD_BYTES);
			exception_pass_rows(pass, rva_add(users[i].data, WORD_BYTES),
					    SCOPE_RECORD_BYTES * table.count,
					    SCOPE_RECORD_BYTES, SCOPE_FIELDS);
		}
		arena_reset(&pass->scratch);
	}
	return true;
}

/* Landing pads of another place than the function itself are not met in images
 * of mingw (observed: GCC 12.2, clang 14); they pin. */
static void add_pads(struct exception_pass *pass, const struct runtime_function *f,
		     const struct lsda *area)
{
	if (area->has_lp_start) {
		exception_pass_doubt(pass, f->begin);
		return;
	}
	for (uint32_t i = 0; i < area->site_count; i++)
		exception_pass_enter(
			pass, rva_of(f->begin.v + (uint32_t)area->sites[i].landing_pad));
}

bool lsda_walk(struct exception_pass *pass, const struct handler_user *users,
	       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct runtime_function *f = users[i].function;
		uint32_t read;
		struct lsda area;
		enum status status = lsda_read(pass->d->image, &pass->scratch,
					       users[i].data, f->begin,
					       f->end.v - f->begin.v, &area, &read, NULL);

		if (!exception_pass_spend(pass, read) || status != STATUS_OK)
			return false;
		add_pads(pass, f, &area);
		if (i == 0 || users[i].data.v != users[i - 1].data.v)
			exception_pass_keep(pass, users[i].data, area.size);
		arena_reset(&pass->scratch);
	}
	return true;
}

/* Whether words between the data and the next unwind information name a place in the
 * function. */
static bool names_itself(const struct exception_pass *pass,
			 const struct runtime_function *f, struct rva behind)
{
	uint32_t limit = exception_pass_next_info(pass, behind);

	for (uint32_t at = behind.v; at - behind.v < LOOK_BEHIND_BYTES && limit - at >= 4;
	     at += 4) {
		const uint8_t *word = image_bytes(pass->d->image, rva_of(at), 4);

		if (!word)
			return false;
		if (load_u32(word) >= f->begin.v && load_u32(word) < f->end.v)
			return true;
	}
	return false;
}

bool cookie_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct runtime_function *f = users[i].function;
		struct unwind_info info;
		struct gs_data gs;
		uint64_t frame;

		if (!exception_pass_spend(pass, LOOK_BEHIND_BYTES) ||
		    unwind_info_read(pass->d->image, f->unwind, &info, NULL) != STATUS_OK ||
		    unwind_info_frame_size(pass->d->image, &info, &frame, NULL) !=
			    STATUS_OK ||
		    gs_data_read(pass->d->image, users[i].data, &gs, NULL) != STATUS_OK ||
		    gs.offset + (uint64_t)COOKIE_BYTES > frame ||
		    names_itself(pass, f, rva_add(users[i].data, gs.size)))
			return false;
		if (i == 0 || users[i].data.v != users[i - 1].data.v)
			exception_pass_keep(pass, users[i].data, gs.size);
	}
	return true;
}

/* One word of such data; false when it is neither a label of the function nor a number. */
static bool walk_label(struct exception_pass *pass, const struct runtime_function *f,
		       struct rva site, bool must_be_label, bool shared)
{
	const uint8_t *bytes = image_bytes(pass->d->image, site, WORD_BYTES);
	struct rva label;

	if (!bytes)
		return false;
	label = rva_of(load_u32(bytes));
	if (label.v >= f->begin.v && label.v < f->end.v) {
		if (!shared)
			exception_pass_ref(pass, site, label, REF_RVA, false);
		return true;
	}
	if (label.v == f->end.v) {
		if (!shared)
			exception_pass_ref(pass, site, label, REF_RVA_END, false);
		return true;
	}
	return !must_be_label && !exception_pass_is_code(pass, label);
}

bool label_walk(struct exception_pass *pass, const struct handler_user *users,
		uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct rva data = users[i].data;
		uint32_t size = exception_pass_next_info(pass, data) - data.v;
		bool shared = i > 0 && users[i - 1].data.v == data.v;

		if (size > LABEL_DATA_BYTES || size % WORD_BYTES ||
		    size < LABEL_WORDS * WORD_BYTES ||
		    !exception_pass_spend(pass, LABEL_DATA_BYTES))
			return false;
		for (uint32_t at = 0; at < size; at += WORD_BYTES)
			if (!walk_label(pass, users[i].function, rva_add(data, at),
					at < LABEL_WORDS * WORD_BYTES, shared))
				return false;
		if (!shared)
			exception_pass_rows(pass, data, size, WORD_BYTES, 1);
	}
	return true;
}
