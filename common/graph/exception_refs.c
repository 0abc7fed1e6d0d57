/* Unwind information and exception data: references, and code that only they
 * lead to.
 *
 * What the data behind a handler means is decided by the data, never by the
 * handler's name: a handler is a local copy, a thunk or an import as the linker
 * liked it.  For each handler all its users are tried in each form: when the data
 * of every one is valid in one form, and in no other, the handler is of that form.
 * Otherwise its users are in doubt, because their data may hold addresses that we
 * would not find.
 *
 *     scope table  __C_specific_handler, __GSHandlerCheck_SEH
 *     LSDA         __gxx_personality_seh0 and others of the Itanium ABI
 *     FuncInfo     __CxxFrameHandler3, __GSHandlerCheck_EH; Rust's personality
 *     FuncInfo4    __CxxFrameHandler4, __GSHandlerCheck_EH4
 *     cookie       __GSHandlerCheck
 *     labels       handlers of OpenSSL's assembly
 *
 * The GS forms have the place of the cookie behind the data of the form that they
 * call; it holds no address.
 *
 * Cost: each datum is read twice, however many rows share it.  A table of an image that
 * is made to share parts of data in many ways would be read again and again; a budget
 * ends that.  What is read in vain, as data of a form that it has not, is paid for too, and
 * what the verifier will read for each row that shares it.
 */
#include "graph/exception_pass.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/key_sort.h"
#include "base/rva_list.h"

enum { BUDGET_PER_BYTE = 16 }; /* of the file */

typedef bool (*walk_function)(struct exception_pass *, const struct handler_user *,
			      uint32_t);

/* By enum handler_form. */
static const walk_function walks[HANDLER_FORM_COUNT] = {
	[HANDLER_SCOPES] = scope_table_walk, [HANDLER_LSDA] = lsda_walk,
	[HANDLER_FRAME3] = frame3_walk,      [HANDLER_FRAME4] = frame4_walk,
	[HANDLER_COOKIE] = cookie_walk,      [HANDLER_LABELS] = label_walk,
};

static int compare_users(const void *a, const void *b)
{
	const struct handler_user *x = a, *y = b;

	if (x->handler.v != y->handler.v)
		return x->handler.v < y->handler.v ? -1 : 1;
	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	if (x->data.v != y->data.v)
		return x->data.v < y->data.v ? -1 : 1;
	return (x->function->begin.v > y->function->begin.v) -
	       (x->function->begin.v < y->function->begin.v);
}

/* The users from `users` on that have the same first word. */
static uint32_t same_word(const struct handler_user *users, uint32_t count)
{
	uint32_t end = 1;

	while (end < count && users[end].word == users->word)
		end++;
	return end;
}

/* Walks the data of all users of a handler; false when some is not of the form. */
static bool walk_all(struct exception_pass *pass, walk_function walk,
		     const struct handler_user *users, uint32_t count)
{
	bool valid = true;

	for (uint32_t i = 0, n; i < count && valid; i += n) {
		n = same_word(users + i, count - i);
		valid = pass->budget > 0 && walk(pass, users + i, n);
		arena_reset(&pass->scratch);
	}
	return valid;
}

/* Whether all users' data may be that form's empty one, which means nothing.  A scope
 * table may be empty (observed: clang 14 with -fasync-exceptions), but not that of every
 * user. */
static bool says_nothing(enum handler_form form, const struct handler_user *users,
			 uint32_t count)
{
	return form == HANDLER_SCOPES && users[count - 1].word == 0;
}

/* The one form that every user's data has. */
static enum handler_form classify(struct exception_pass *pass,
				  const struct handler_user *users, uint32_t count)
{
	enum handler_form found = HANDLER_UNKNOWN;

	pass->adding = false;
	if (!exception_pass_is_code(pass, users->handler))
		return HANDLER_UNKNOWN;
	for (unsigned form = 0; form < HANDLER_FORM_COUNT; form++) {
		if (!walks[form] || says_nothing((enum handler_form)form, users, count) ||
		    !walk_all(pass, walks[form], users, count))
			continue;
		if (found != HANDLER_UNKNOWN)
			return HANDLER_UNKNOWN;
		found = (enum handler_form)form;
	}
	return found;
}

/* Nobody knows what the data says of the function, and of what is chained to it. */
static void doubt_user(struct exception_pass *pass, const struct handler_user *user)
{
	uint32_t count, first = exception_pass_parts(pass, user->function, &count);

	for (uint32_t i = first; i < first + count; i++)
		exception_pass_doubt(pass, pass->parts.data[i].begin);
}

/* The bytes of data that stands alone, for struct handler_use. */
static uint32_t size_of_data(const struct exception_pass *pass, struct rva data)
{
	enum { MOST_BYTES = 64, WORD_BYTES = 4 };
	uint32_t size = exception_pass_next_info(pass, data) - data.v;
	const uint8_t *bytes = image_bytes(pass->d->image, data, size);

	if (size > MOST_BYTES || (size && !bytes))
		return UNKNOWN_SIZE;
	for (uint32_t i = 0; i + WORD_BYTES <= size; i += WORD_BYTES) {
		struct rva word = rva_of(load_u32(bytes + i));

		if (!exception_pass_is_code(pass, word) &&
		    image_section_at(pass->d->image, word))
			return UNKNOWN_SIZE;
	}
	return size;
}

static void add_handler(struct exception_pass *pass, const struct handler_user *users,
			uint32_t count)
{
	enum handler_form form = classify(pass, users, count);
	struct discovery *d = pass->d;
	bool added;

	pass->adding = true;
	added = form != HANDLER_UNKNOWN && walk_all(pass, walks[form], users, count);
	for (uint32_t i = 0; i < count; i++) {
		struct handler_use use = {
			.row = (uint32_t)(users[i].function -
					  d->graph->tables.functions.data),
			.handler = users[i].handler,
			.data = users[i].data,
			.form = (uint8_t)(added ? form : HANDLER_UNKNOWN),
			.size = size_of_data(pass, users[i].data),
		};

		if (!vec_push(&d->graph->handlers, use))
			d->out_of_memory = true;
		if (!added)
			doubt_user(pass, &users[i]);
	}
}

/* The row of its function's begin: that at the end of the chain. */
static struct rva root_of(const struct exception_pass *pass,
			  const struct runtime_function *row)
{
	struct rva root = row->begin, unwind = row->unwind;
	struct unwind_info info;

	/* function_table_read has proven that chains end. */
	while (unwind_info_read(pass->d->image, unwind, &info, NULL) == STATUS_OK &&
	       (info.flags & UNWIND_CHAININFO)) {
		root = info.chained.begin;
		unwind = info.chained.unwind;
	}
	return root;
}

static int compare_parts(const void *a, const void *b)
{
	const struct function_part *x = a, *y = b;

	if (x->root.v != y->root.v)
		return x->root.v < y->root.v ? -1 : 1;
	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

/* Says of each part where the parts beside it begin and end. */
static void find_runs(struct exception_pass *pass)
{
	struct function_part *parts = pass->parts.data;

	for (uint32_t i = 0, end; i < pass->parts.len; i = end) {
		for (end = i + 1; end < pass->parts.len &&
				  parts[end].root.v == parts[i].root.v &&
				  parts[end].begin.v == parts[end - 1].end.v;)
			end++;
		for (uint32_t k = i; k < end; k++) {
			parts[k].run_begin = parts[i].begin;
			parts[k].run_end = parts[end - 1].end;
		}
	}
}

static void list_parts(struct exception_pass *pass)
{
	const struct function_table *table = &pass->d->graph->tables.functions;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct runtime_function *row = &table->data[i];
		struct function_part part = {.begin = row->begin, .end = row->end};

		if (row->begin.v == row->end.v)
			continue;
		part.root = root_of(pass, row);
		if (!vec_push(&pass->parts, part) ||
		    !vec_push(&pass->unwind_infos, row->unwind))
			pass->d->out_of_memory = true;
	}
	if (!key_sort_by(pass->parts.data, pass->parts.len, sizeof(*pass->parts.data),
			 offsetof(struct function_part, root) + offsetof(struct rva, v),
			 compare_parts)) {
		pass->d->out_of_memory = true;
		return;
	}
	rvas_sort(pass->unwind_infos.data, pass->unwind_infos.len);
	find_runs(pass);
}

/* The references of one UNWIND_INFO, and its handler's user if it has one. */
static enum status add_unwind_info(struct exception_pass *pass,
				   const struct runtime_function *function,
				   struct handler_user *ret_user, bool *ret_has_user)
{
	struct discovery *d = pass->d;
	const uint8_t *word;
	struct unwind_info info;
	enum status status = unwind_info_read(d->image, function->unwind, &info, d->diag);

	uint64_t size;

	*ret_has_user = false;
	if (status != STATUS_OK)
		return status;
	/* What an unknown code says may not hold elsewhere. */
	if (unwind_info_frame_size(d->image, &info, &size, NULL) != STATUS_OK)
		exception_pass_doubt(pass, function->begin);
	if (info.flags & UNWIND_CHAININFO) {
		exception_pass_name(pass, info.chained.site, info.chained.begin);
		exception_pass_ref(pass, rva_add(info.chained.site, 4), info.chained.end,
				   REF_RVA_END, false);
	} else if (info.flags & (UNWIND_EHANDLER | UNWIND_UHANDLER)) {
		if (!exception_pass_is_code(pass, info.handler) &&
		    !image_section_at(d->image, info.handler))
			return diag_fail_at(
				d->diag, STATUS_MALFORMED, info.handler_site,
				"an exception handler lies outside all sections");
		/* A handler that the assembler was led to put into a data section never
		 * runs, since data is not executed in 64-bit processes (observed: OpenSSL
		 * 3.0 in node.exe 18, whose rsaz-2k-avx512 has its handler behind `.data`).
		 * It does not move, and what its users' data means is not known. */
		if (exception_pass_is_code(pass, info.handler))
			exception_pass_ref(pass, info.handler_site, info.handler, REF_RVA,
					   true);
		word = image_bytes(d->image, info.handler_data, 4);
		*ret_user = (struct handler_user){function, info.handler, info.handler_data,
						  word ? load_u32(word) : 0};
		*ret_has_user = true;
	}
	return STATUS_OK;
}

/* All rows' unwind information; handlers are left for later. */
static enum status add_rows(struct exception_pass *pass, struct handler_user *users,
			    uint32_t *ret_count)
{
	const struct function_table *table = &pass->d->graph->tables.functions;

	pass->adding = true;
	for (uint32_t i = 0; i < table->count; i++) {
		enum status status;
		bool has_user;

		if (table->data[i].begin.v == table->data[i].end.v)
			continue;
		status = add_unwind_info(pass, &table->data[i], &users[*ret_count],
					 &has_user);
		if (status != STATUS_OK)
			return status;
		*ret_count += has_user;
	}
	return STATUS_OK;
}

enum status exception_refs_add(struct discovery *d)
{
	struct exception_pass pass = {.d = d,
				      .budget = (uint64_t)d->image->size * BUDGET_PER_BYTE};
	uint32_t rows = d->graph->tables.functions.count, count = 0;
	struct handler_user *users = calloc((size_t)rows + 1, sizeof(*users));
	enum status status;

	if (!users)
		return diag_no_memory(d->diag);
	list_parts(&pass);
	status = add_rows(&pass, users, &count);
	if (status == STATUS_OK && count > 0)
		qsort(users, count, sizeof(*users), compare_users);
	for (uint32_t i = 0, end; status == STATUS_OK && i < count; i = end) {
		for (end = i + 1;
		     end < count && users[end].handler.v == users[i].handler.v;)
			end++;
		add_handler(&pass, users + i, end - i);
	}
	if (status == STATUS_OK)
		state_maps_add(&pass);
	arena_release(&pass.scratch);
	vec_release(&pass.parts);
	vec_release(&pass.unwind_infos);
	vec_release(&pass.units);
	vec_release(&pass.maps);
	free(users);
	return status;
}
