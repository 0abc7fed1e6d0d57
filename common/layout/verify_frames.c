/* Exception data, read from the bytes of both images.
 *
 * For each row of the function table with a handler: what its data says in the output
 * must be what it said, of the same code.  This asks none of the graph's references, so
 * that a field which discovery has missed is found here.  What it takes from discovery is
 * the form of a handler's data, and the output's must have been found to be the same.
 *
 * Much is relative to a function's begin, or says from where to where in it; so whatever
 * is named must stand as far from the begin as it did.
 */
#include "layout/verify_frames.h"

#include <stdlib.h>

#include "pe/lsda.h"
#include "pe/scope_table.h"

enum { LABEL_WORDS = 2 }; /* that are labels always */

/* A handler's use in either image, as it must be found in the output. */
struct known_use {
	struct rva data, begin, handler;
	uint8_t form;
};

enum status verify_frames_moved(struct verifier *v, struct rva site, struct rva was,
				struct rva is, const char *what)
{
	struct rva expected = verify_map(v, was);

	if (is.v != expected.v)
		return verify_differs(v, site, expected.v, is.v, "%s", what);
	return STATUS_OK;
}

enum status verify_frames_same(struct verifier *v, struct rva site, int64_t was, int64_t is,
			       const char *what)
{
	if (was != is)
		return verify_differs(v, site, (uint64_t)was, (uint64_t)is, "%s", what);
	return STATUS_OK;
}

enum status verify_frames_rigid(struct verifier *v, struct rva begin, uint32_t offset)
{
	struct rva to = verify_map(v, begin);

	if (verify_map(v, rva_add(begin, offset)).v != to.v + offset)
		return verify_fail(v, to,
				   "a function that is one for its exception data has "
				   "come apart");
	return STATUS_OK;
}

static enum status check_scope(struct verifier *v, const struct scope_record *was,
			       const struct scope_record *is)
{
	bool executes = was->handler.v == SCOPE_HANDLER_EXECUTE;
	enum status status = verify_frames_moved(v, is->site, was->begin, is->begin,
						 "the begin of a scope");

	if (status == STATUS_OK)
		status = verify_frames_same(v, is->site, was->end.v - was->begin.v,
					    is->end.v - is->begin.v, "the size of a scope");
	if (status == STATUS_OK)
		status = verify_frames_rigid(v, was->begin, was->end.v - 1 - was->begin.v);
	if (status == STATUS_OK && executes)
		status = verify_frames_same(v, is->site, was->handler.v, is->handler.v,
					    "the filter of a scope");
	if (status == STATUS_OK && !executes)
		status = verify_frames_moved(v, is->site, was->handler, is->handler,
					     "the filter of a scope");
	if (status == STATUS_OK)
		status = verify_frames_moved(v, is->site, was->target, is->target,
					     "the target of a scope");
	return status;
}

static enum status check_scopes(struct verifier *v, const struct handler_use *use)
{
	struct scope_table was, is;
	struct arena arena = {0};
	enum status status =
		scope_table_read(v->old_image, &arena, use->data, &was, v->diag);

	if (status == STATUS_OK)
		status = scope_table_read(v->new_image, &arena, use->data, &is, v->diag);
	if (status == STATUS_OK)
		status = verify_frames_same(v, use->data, was.count, is.count,
					    "the number of scopes");
	for (uint32_t i = 0; status == STATUS_OK && i < was.count; i++)
		status = check_scope(v, &was.data[i], &is.data[i]);
	arena_release(&arena);
	return verify_unreadable(v, status);
}

/* Its bytes are compared with all others; what they count from must hold. */
static enum status check_lsda(struct verifier *v, const struct handler_use *use)
{
	const struct runtime_function *row = &v->old_graph->tables.functions.data[use->row];
	uint32_t size = row->end.v - row->begin.v;
	struct arena arena = {0};
	struct lsda was;
	enum status status =
		lsda_read(v->old_image, &arena, use->data, row->begin, size, &was,
			  NULL, v->diag);

	if (status == STATUS_OK && was.has_lp_start)
		status = verify_frames_moved(v, row->begin, row->begin, row->begin,
					     "a function with an @LPStart");
	for (uint32_t i = 0; status == STATUS_OK && i < was.site_count && !was.has_lp_start;
	     i++)
		status = verify_frames_rigid(v, row->begin,
					     (uint32_t)was.sites[i].landing_pad);
	arena_release(&arena);
	return verify_unreadable(v, status);
}

/* Each word names the same place in the function, or is the same number. */
static enum status check_labels(struct verifier *v, const struct handler_use *use)
{
	const struct runtime_function *row = &v->old_graph->tables.functions.data[use->row];
	struct rva to = verify_map(v, row->begin);
	enum status status =
		verify_frames_rigid(v, row->begin, row->end.v - 1 - row->begin.v);

	/* Behind the data stands other unwind information, whose fields are proven. */
	for (uint32_t at = 0; status == STATUS_OK && at < LABEL_WORDS * 4; at += 4) {
		struct rva site = rva_add(use->data, at);
		const uint8_t *was = image_bytes(v->old_image, site, 4);
		const uint8_t *is = image_bytes(v->new_image, site, 4);

		if (!was || !is)
			return verify_fail(v, site, "a label cannot be read");
		status = verify_frames_same(v, site, load_u32(was) - row->begin.v,
					    load_u32(is) - to.v, "a label for a handler");
	}
	return status;
}

/* Nobody knows what the data says. */
static enum status check_unknown(struct verifier *v, const struct handler_use *use)
{
	struct rva begin = v->old_graph->tables.functions.data[use->row].begin;

	return verify_frames_moved(v, begin, begin, begin,
				   "a function with unknown exception data");
}

static uint32_t word_of(const struct image *image, struct rva data)
{
	const uint8_t *word = image_bytes(image, data, 4);

	return word ? load_u32(word) : 0;
}

/* `shared`: the user before it has the same data. */
static enum status check_use(struct verifier *v, const struct handler_use *use, bool shared)
{
	struct rva begin = v->old_graph->tables.functions.data[use->row].begin;
	struct rva info = rva_of(word_of(v->old_image, use->data));

	switch (use->form) {
	case HANDLER_UNKNOWN:
		return check_unknown(v, use);
	case HANDLER_SCOPES:
		return shared ? STATUS_OK : check_scopes(v, use);
	case HANDLER_LSDA:
		return check_lsda(v, use);
	case HANDLER_FRAME3:
		return shared ? STATUS_OK : verify_frame3(v, info);
	case HANDLER_FRAME4:
		return verify_frame4(v, info, begin, shared);
	case HANDLER_LABELS:
		return shared ? STATUS_OK : check_labels(v, use);
	default:
		return STATUS_OK; /* a cookie's place: a number */
	}
}

static bool has_info(const struct handler_use *use)
{
	return use->form == HANDLER_FRAME3 || use->form == HANDLER_FRAME4;
}

/* Whether two users have the same data: the same table, or the same FuncInfo. */
static bool same_data(const struct verifier *v, const struct handler_use *a,
		      const struct handler_use *b)
{
	if (a->form != b->form)
		return false;
	if (has_info(a))
		return word_of(v->old_image, a->data) == word_of(v->old_image, b->data);
	return a->data.v == b->data.v;
}

static int compare_uses(const void *a, const void *b)
{
	const struct known_use *x = a, *y = b;

	if (x->data.v != y->data.v)
		return x->data.v < y->data.v ? -1 : 1;
	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

/* The uses as the output must have them; with `v` those of the original. */
static struct known_use *list_uses(const struct graph *graph, const struct verifier *v)
{
	struct known_use *uses = calloc((size_t)graph->handlers.len + 1, sizeof(*uses));

	for (uint32_t i = 0; uses && i < graph->handlers.len; i++) {
		const struct handler_use *use = &graph->handlers.data[i];
		struct rva begin = graph->tables.functions.data[use->row].begin;

		uses[i] = (struct known_use){
			.data = use->data,
			.begin = v ? verify_map(v, begin) : begin,
			.handler = v ? verify_map(v, use->handler) : use->handler,
			.form = use->form,
		};
	}
	if (uses)
		qsort(uses, graph->handlers.len, sizeof(*uses), compare_uses);
	return uses;
}

static enum status compare_known(struct verifier *v, const struct known_use *was,
				 const struct known_use *is)
{
	if (was->data.v != is->data.v || was->begin.v != is->begin.v ||
	    was->handler.v != is->handler.v)
		return verify_fail(v, is->begin,
				   "discovery finds another exception handler");
	/* Data that is not understood may seem to be something elsewhere. */
	if (was->form != is->form && was->form != HANDLER_UNKNOWN)
		return verify_differs(v, is->begin, was->form, is->form,
				      "the form of a handler's data");
	return STATUS_OK;
}

static enum status check_forms(struct verifier *v)
{
	uint32_t count = v->old_graph->handlers.len;
	struct known_use *was = list_uses(v->old_graph, v);
	struct known_use *is = list_uses(&v->new_graph, NULL);
	enum status status = STATUS_OK;

	if (!was || !is)
		status = diag_no_memory(v->diag);
	if (status == STATUS_OK)
		status = verify_frames_same(v, rva_of(0), count, v->new_graph.handlers.len,
					    "the number of exception handlers");
	for (uint32_t i = 0; status == STATUS_OK && i < count; i++)
		status = compare_known(v, &was[i], &is[i]);
	free(was);
	free(is);
	return status;
}

/* What the parts of functions look up in the data of the row that they are chained to. */
static enum status check_parts(struct verifier *v)
{
	const struct function_table *table = &v->old_graph->tables.functions;
	const struct graph *graph = v->old_graph;
	struct known_use *uses = list_uses(graph, v);
	enum status status = uses ? STATUS_OK : diag_no_memory(v->diag);

	for (uint32_t i = 0; status == STATUS_OK && i < table->count; i++) {
		const struct runtime_function *row = &table->data[i];
		struct rva root = row->begin, unwind = row->unwind;
		struct known_use key = {0}, *use;
		struct unwind_info info;

		/* function_table_read has proven that chains end. */
		while ((status = unwind_info_read(v->old_image, unwind, &info, v->diag)) ==
			       STATUS_OK &&
		       (info.flags & UNWIND_CHAININFO)) {
			root = info.chained.begin;
			unwind = info.chained.unwind;
		}
		if (status != STATUS_OK || info.flags == 0 || row->begin.v == row->end.v)
			continue;
		key.data = info.handler_data;
		key.begin = verify_map(v, root);
		use = bsearch(&key, uses, graph->handlers.len, sizeof(*uses), compare_uses);
		if (use && use->form == HANDLER_FRAME3)
			status = verify_states3(v, rva_of(word_of(v->old_image, use->data)),
						row);
		else if (use && use->form == HANDLER_FRAME4)
			status = verify_part4(v, root, row);
	}
	free(uses);
	return status;
}

enum status verify_frames(struct verifier *v)
{
	const struct graph *graph = v->old_graph;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < graph->handlers.len; i++) {
		const struct handler_use *use = &graph->handlers.data[i];

		status = check_use(v, use, i > 0 && same_data(v, &use[-1], use));
	}
	if (status == STATUS_OK)
		status = check_parts(v);
	return status == STATUS_OK ? check_forms(v) : status;
}
