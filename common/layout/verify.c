/* The verifier's list of steps.
 *
 * A relinked image that is wrong in one byte can crash a program months later
 * on one machine, and no test run of the image tells.  So every output is
 * proven to be the original, moved.  The proof must not repeat the writer's
 * mistakes: it uses none of its code, reads the output from its bytes, finds
 * the functions of the output again, and takes nothing as said.  What it shares
 * with the rest are the readers of pe/ and the instruction decoder.
 *
 * The cheap steps over headers and tables come first, so that a damaged table
 * is named as such before discovery stumbles over it.
 *
 * Cost: discovery of the output, one pass over the original's code, and
 * merges over sorted arrays.  The output's code is not decoded here again: its
 * bytes are the original's but for PC-relative fields, and such a field never
 * changes how an instruction decodes.  Memory: two bits a byte of the image, and
 * some 40 bytes a move.
 */
#include "layout/verify_state.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static enum status make_bitmaps(struct verifier *v)
{
	size_t words = (size_t)v->span / 64 + 1;

	v->proven = calloc(words, sizeof(*v->proven));
	v->lost = calloc(words, sizeof(*v->lost));
	return v->proven && v->lost ? STATUS_OK : diag_no_memory(v->diag);
}

/* Where bare code must stand in the output: between such code no gap need be left, so
 * that without this the output could be cut in other ways. */
static enum status list_bare_code(struct verifier *v, struct bare_code **ret_bare,
				  uint32_t *ret_count)
{
	const struct graph *was = v->old_graph;
	struct bare_code *bare = calloc((size_t)was->functions.len + 1, sizeof(*bare));
	uint32_t *order = NULL, count = 0;
	enum status status;

	if (!bare)
		return diag_no_memory(v->diag);
	status = verify_new_order(v, was->functions.data, offsetof(struct function, begin),
				  sizeof(*was->functions.data), was->functions.len,
				  "a function", &order);
	for (uint32_t i = 0; status == STATUS_OK && i < was->functions.len; i++) {
		const struct function *f = &was->functions.data[order[i]];

		struct rva begin = verify_map(v, f->begin);

		if (f->kind == FUNCTION_LEAF || f->kind == FUNCTION_ISLAND)
			bare[count++] = (struct bare_code){begin, rva_add(begin, f->size)};
	}
	free(order);
	*ret_bare = bare;
	*ret_count = count;
	return status;
}

static enum status discover(struct verifier *v)
{
	struct discovery_options options = {0};
	struct bare_code *bare = NULL;
	enum status status = list_bare_code(v, &bare, &options.bare_count);

	options.bare = bare;
	if (status == STATUS_OK) {
		status = graph_discover(&v->new_graph, v->new_image, &options, v->diag);
		if (status != STATUS_OK)
			status = verify_unreadable(v, status);
	}
	free(bare);
	if (status != STATUS_OK)
		return status;
	v->discovered = true;
	return STATUS_OK;
}

static enum status run_steps(struct verifier *v)
{
	static enum status (*const steps[])(struct verifier *) = {
		verify_headers, /* every header field, the section table, the checksum */
		verify_loose_bytes, /* what no section holds: overlays */
		verify_symbols,     /* the COFF symbol table */
		verify_unwind,      /* the function table and unwind information */
		verify_code,        /* each instruction */
		discover,           /* functions and references of the output, afresh */
		verify_relocations, /* base relocations and the words under them */
		verify_tables,      /* exports, imports, TLS, guard tables, debug entries */
		verify_volatile,    /* volatile metadata */
		verify_dynamic,     /* dynamic value relocations */
		verify_references,  /* each other field that means code */
		verify_frames,      /* exception data: states, funclets, scopes */
		verify_functions,   /* each function, where discovery finds it */
		verify_rediscovered, /* no reference that the original has not */
		verify_bytes,        /* all other bytes */
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		enum status status = steps[i](v);

		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/* Nothing stands behind, whatever SizeOfImage says. */
static uint32_t end_of_sections(const struct image *image)
{
	return section_end(&image->sections[image->section_count - 1]).v;
}

enum status verify_relink(const struct graph *old_graph, struct image *relinked,
			  const struct move *moves, uint32_t move_count,
			  struct verify_report *ret_report, struct diag *diag)
{
	struct verifier v = {
		.old_graph = old_graph,
		.old_image = old_graph->image,
		.new_image = relinked,
		.report = ret_report,
		.diag = diag,
		.span = end_of_sections(old_graph->image),
	};
	enum status status;

	memset(ret_report, 0, sizeof(*ret_report));
	status = make_bitmaps(&v);
	if (status == STATUS_OK)
		status = verify_moves(&v, moves, move_count);
	if (status == STATUS_OK)
		status = run_steps(&v);
	if (v.discovered)
		graph_release(&v.new_graph);
	verify_moves_release(&v);
	free(v.proven);
	free(v.lost);
	if (status != STATUS_OK)
		diag_set_file(diag, relinked->path);
	return status;
}
