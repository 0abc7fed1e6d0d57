/* The verifier's list of steps.
 *
 * A relinked image that is wrong in one byte can crash a program months later
 * on one machine, and no test run of the image tells.  So every output is
 * proven to be the original, moved.  The proof must not repeat the writer's
 * mistakes: it uses none of its code, reads the output from its bytes, finds
 * the functions of the output again, and takes nothing as said.  What it shares
 * with the rest are the readers of pe/ and the instruction decoder.
 *
 * What the steps over headers and tables find counts before what discovery says, so that a
 * damaged table is named as such, and not by what discovery stumbled over.  The two run
 * side by side: the output of discovery does not depend on the steps, nor they on it.
 *
 * Cost: discovery of the output, one pass over the original's code, and
 * merges over sorted arrays.  The output's code is not decoded here again: its
 * bytes are the original's but for PC-relative fields, and such a field never
 * changes how an instruction decodes.  Memory: two bits a byte of the image, and
 * some 60 bytes a move.
 */
#include "layout/verify_state.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/task.h"

/* Bytes of a bitmap of the image, of which little is written where debug sections are most
 * of it. */
static size_t bitmap_size(const struct verifier *v)
{
	return ((size_t)v->span / 64 + 1) * sizeof(*v->proven);
}

static enum status make_bitmaps(struct verifier *v)
{
	v->proven = memory_sparse(bitmap_size(v));
	v->lost = memory_sparse(bitmap_size(v));
	memory_prefer_huge(v->proven, bitmap_size(v));
	memory_prefer_huge(v->lost, bitmap_size(v));
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

/* Discovery of the output, which runs beside the steps that do without it.  It has a view
 * of the image with memory of its own, so that the two only read what they share. */
struct rediscovery {
	struct verifier *v;
	struct image view;
	struct bare_code *bare;
	struct discovery_options options;
	enum status status;
	struct diag diag;
	struct task task;
};

static void discover(void *job)
{
	struct rediscovery *r = job;

	r->status = graph_discover(&r->v->new_graph, &r->view, &r->options, &r->diag);
}

static enum status start_discovery(struct verifier *v, struct rediscovery *r)
{
	enum status status = list_bare_code(v, &r->bare, &r->options.bare_count);

	if (status != STATUS_OK)
		return status;
	r->v = v;
	r->view = *v->new_image;
	arena_init(&r->view.arena);
	r->options.bare = r->bare;
	r->options.facts_only = true;
	diag_init(&r->diag);
	task_start(&r->task, discover, r);
	return STATUS_OK;
}

static enum status finish_discovery(struct verifier *v, struct rediscovery *r)
{
	task_wait(&r->task);
	if (r->status == STATUS_OK)
		return STATUS_OK;
	if (v->diag)
		*v->diag = r->diag;
	return verify_unreadable(v, r->status);
}

typedef enum status (*step)(struct verifier *v);

static enum status run(struct verifier *v, const step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum status status = steps[i](v);

		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

static enum status run_steps(struct verifier *v, struct rediscovery *r)
{
	static const step first[] = {
		verify_headers, /* every header field, the section table, the checksum */
		verify_loose_bytes, /* what no section holds: overlays */
		verify_symbols,     /* the COFF symbol table */
		verify_unwind,      /* the function table and unwind information */
		verify_code,        /* each instruction */
	};
	static const step then[] = {
		verify_relocations, /* base relocations and the words under them */
		verify_tables,      /* exports, imports, TLS, guard tables, debug entries */
		verify_volatile,    /* volatile metadata */
		verify_dynamic,     /* dynamic value relocations */
		verify_references,  /* each other field that means code */
		verify_absolute,    /* without relocations: whatever may be an address */
		verify_frames,      /* exception data: states, funclets, scopes */
		verify_functions,   /* each function, where discovery finds it */
		verify_rediscovered, /* no reference that the original has not */
		verify_bytes,        /* all other bytes */
	};
	/* Functions and references of the output, found afresh meanwhile. */
	enum status status = start_discovery(v, r);

	if (status == STATUS_OK)
		status = run(v, first, sizeof(first) / sizeof(first[0]));
	/* Discovery of the output needs most memory at its end; the original's pages are
	 * read again from the file. */
	mapped_file_forget(&v->old_image->file, 0, v->old_image->file.size);
	/* What the first steps say counts, whatever discovery stumbled over. */
	task_wait(&r->task);
	if (status == STATUS_OK)
		status = finish_discovery(v, r);
	if (status == STATUS_OK)
		status = run(v, then, sizeof(then) / sizeof(then[0]));
	return status;
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
	struct rediscovery discovery = {.status = STATUS_NO_MEMORY};
	enum status status;

	memset(ret_report, 0, sizeof(*ret_report));
	status = make_bitmaps(&v);
	if (status == STATUS_OK)
		status = verify_moves(&v, moves, move_count);
	if (status == STATUS_OK)
		status = run_steps(&v, &discovery);
	if (discovery.status == STATUS_OK)
		graph_release(&v.new_graph);
	arena_release(&discovery.view.arena);
	free(discovery.bare);
	verify_moves_release(&v);
	memory_sparse_free(v.proven, bitmap_size(&v));
	memory_sparse_free(v.lost, bitmap_size(&v));
	if (status != STATUS_OK)
		diag_set_file(diag, relinked->path);
	return status;
}
