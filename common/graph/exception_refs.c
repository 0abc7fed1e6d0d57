/* Unwind information and exception data: references, and code that only they
 * lead to.
 *
 * What the data behind a handler means is decided by the data, never by the
 * handler's name: a handler is a local copy, a thunk or an import as the linker
 * liked it.  For each handler all its users are tried: when every one has a
 * valid scope table, it is __C_specific_handler or one of that form; when every
 * one has a valid LSDA, it is a personality of the Itanium ABI.  Otherwise its
 * users are in doubt, because their data may hold addresses that we would not
 * find.
 *
 * A landing pad is relative to its function's begin, so it moves with it; a
 * scope table's fields are RVAs and are references.
 */
#include "graph/discovery.h"
#include "pe/lsda.h"
#include "pe/scope_table.h"

/* A function and the handler that its unwind information names. */
struct handler_user {
	const struct runtime_function *function;
	struct rva handler, data;
};

enum handler_form { FORM_UNKNOWN, FORM_SCOPE_TABLE, FORM_LSDA };

/* Whether `rva` is where an instruction may begin in `function`. */
static bool inside(const struct runtime_function *function, uint64_t rva)
{
	return rva >= function->begin.v && rva < function->end.v;
}

static bool is_code(const struct discovery *d, struct rva rva)
{
	return discovery_range(d, rva) != NULL;
}

/* Whether `record` can be one of this function's (winnt.h, SCOPE_TABLE_AMD64). */
static bool scope_record_fits(const struct discovery *d, const struct handler_user *user,
			      const struct scope_record *record)
{
	const struct runtime_function *f = user->function;

	return record->begin.v < record->end.v && inside(f, record->begin.v) &&
	       record->end.v <= f->end.v &&
	       (record->handler.v == SCOPE_HANDLER_EXECUTE ||
		is_code(d, record->handler)) &&
	       (record->target.v == 0 ? record->handler.v != SCOPE_HANDLER_EXECUTE
				      : is_code(d, record->target));
}

static bool read_scope_table(const struct discovery *d, const struct handler_user *user,
			     struct scope_table *ret_table)
{
	if (scope_table_read(d->image, user->data, ret_table, NULL) != STATUS_OK ||
	    ret_table->count == 0)
		return false; /* no compiler writes an empty one */
	for (uint32_t i = 0; i < ret_table->count; i++)
		if (!scope_record_fits(d, user, &ret_table->data[i]))
			return false;
	return true;
}

static bool read_lsda(const struct discovery *d, const struct handler_user *user,
		      struct lsda *ret_lsda)
{
	const struct runtime_function *f = user->function;

	return lsda_read(d->image, user->data, f->begin, f->end.v - f->begin.v, ret_lsda,
			 NULL) == STATUS_OK;
}

/* The form that every user's data has. */
static enum handler_form classify(const struct discovery *d,
				  const struct handler_user *users, uint32_t count)
{
	bool scope = true, lsda = true;

	for (uint32_t i = 0; i < count && (scope || lsda); i++) {
		struct scope_table table;
		struct lsda area;

		scope = scope && read_scope_table(d, &users[i], &table);
		lsda = lsda && read_lsda(d, &users[i], &area);
	}
	if (scope)
		return FORM_SCOPE_TABLE;
	return lsda ? FORM_LSDA : FORM_UNKNOWN;
}

static void add_code_rva(struct discovery *d, struct rva site, struct rva target,
			 enum ref_kind kind, bool enters)
{
	struct ref ref = {.site = site,
			  .target = target,
			  .kind = (uint8_t)kind,
			  .size = 4,
			  .enters = enters};

	discovery_ref(d, ref);
	if (kind == REF_RVA)
		discovery_enter(d, target, false);
}

static void add_scope_table(struct discovery *d, const struct handler_user *user)
{
	struct scope_table table = {0};

	if (!read_scope_table(d, user, &table))
		return; /* classify has read it before */
	table_bytes_hold(d, user->data, 4 + SCOPE_RECORD_BYTES * table.count, 4);
	for (uint32_t i = 0; i < table.count; i++) {
		const struct scope_record *record = &table.data[i];

		add_code_rva(d, record->site, record->begin, REF_RVA, false);
		add_code_rva(d, rva_add(record->site, 4), record->end, REF_RVA_END, false);
		if (record->handler.v != SCOPE_HANDLER_EXECUTE)
			add_code_rva(d, rva_add(record->site, 8), record->handler, REF_RVA,
				     true);
		if (record->target.v)
			add_code_rva(d, rva_add(record->site, 12), record->target, REF_RVA,
				     false);
	}
}

/* Landing pads of another place than the function itself are not met in images
 * of mingw (observed: GCC 12.2, clang 14); they pin. */
static void add_lsda(struct discovery *d, const struct handler_user *user)
{
	const struct runtime_function *f = user->function;
	struct lsda area = {0};

	if (!read_lsda(d, user, &area))
		return;
	table_bytes_keep(d, user->data, area.size);
	if (area.has_lp_start) {
		discovery_doubt(d, f->begin, PIN_UNKNOWN_HANDLER);
		return;
	}
	for (uint32_t i = 0; i < area.site_count; i++) {
		int64_t pad = (int64_t)f->begin.v + area.sites[i].landing_pad;

		if (pad < 0 || !inside(f, (uint64_t)pad))
			discovery_doubt(d, f->begin, PIN_UNKNOWN_HANDLER);
		else
			discovery_enter(d, rva_of((uint32_t)pad), false);
	}
}

static int compare_users(const void *a, const void *b)
{
	const struct handler_user *x = a, *y = b;

	if (x->handler.v != y->handler.v)
		return x->handler.v < y->handler.v ? -1 : 1;
	if (x->function->begin.v != y->function->begin.v)
		return x->function->begin.v < y->function->begin.v ? -1 : 1;
	return 0;
}

static void add_handler(struct discovery *d, const struct handler_user *users,
			uint32_t count)
{
	enum handler_form form = classify(d, users, count);

	for (uint32_t i = 0; i < count; i++) {
		if (form == FORM_SCOPE_TABLE)
			add_scope_table(d, &users[i]);
		else if (form == FORM_LSDA)
			add_lsda(d, &users[i]);
		else
			discovery_doubt(d, users[i].function->begin, PIN_UNKNOWN_HANDLER);
	}
}

/* A handler that the assembler was led to put into a data section never runs, since data
 * is not executed in 64-bit processes (observed: OpenSSL 3.0 in node.exe 18, whose
 * rsaz-2k-avx512 has its handler behind `.data`). */
static enum status add_handler_in_data(struct discovery *d,
				       const struct runtime_function *function,
				       const struct unwind_info *info)
{
	if (!image_section_at(d->image, info->handler))
		return diag_fail_at(d->diag, STATUS_MALFORMED, info->handler_site,
				    "an exception handler lies outside all sections");
	discovery_doubt(d, function->begin, PIN_UNKNOWN_HANDLER);
	return STATUS_OK;
}

/* The references of one UNWIND_INFO, and its handler's user if it has one. */
static enum status add_unwind_info(struct discovery *d,
				   const struct runtime_function *function,
				   struct handler_user *ret_user, bool *ret_has_user)
{
	struct unwind_info info;
	enum status status = unwind_info_read(d->image, function->unwind, &info, d->diag);

	*ret_has_user = false;
	if (status != STATUS_OK)
		return status;
	if (info.flags & UNWIND_CHAININFO) {
		add_code_rva(d, info.chained.site, info.chained.begin, REF_RVA, false);
		add_code_rva(d, rva_add(info.chained.site, 4), info.chained.end,
			     REF_RVA_END, false);
	} else if (info.flags & (UNWIND_EHANDLER | UNWIND_UHANDLER)) {
		if (!is_code(d, info.handler))
			return add_handler_in_data(d, function, &info);
		add_code_rva(d, info.handler_site, info.handler, REF_RVA, true);
		*ret_user =
			(struct handler_user){function, info.handler, info.handler_data};
		*ret_has_user = true;
	}
	return STATUS_OK;
}

enum status exception_refs_add(struct discovery *d)
{
	const struct function_table *table = &d->graph->tables.functions;
	VEC(struct handler_user) users = {0};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < table->count && status == STATUS_OK; i++) {
		struct handler_user user;
		bool has_user;

		if (table->data[i].begin.v == table->data[i].end.v)
			continue;
		status = add_unwind_info(d, &table->data[i], &user, &has_user);
		if (status == STATUS_OK && has_user && !vec_push(&users, user))
			status = diag_no_memory(d->diag);
	}
	if (status == STATUS_OK && users.len > 0)
		qsort(users.data, users.len, sizeof(*users.data), compare_users);
	for (uint32_t i = 0, end; status == STATUS_OK && i < users.len; i = end) {
		for (end = i + 1; end < users.len &&
				  users.data[end].handler.v == users.data[i].handler.v;)
			end++;
		add_handler(d, users.data + i, end - i);
	}
	vec_release(&users);
	return status;
}
