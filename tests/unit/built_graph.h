/* Graphs discovered in images made in memory.
 *
 *     struct built_graph t;
 *     built_graph_init(&t);                  a text section is open
 *     f = CODE(&t, "\x31\xc0\xc3");          code, then padding up to 16 bytes
 *     built_graph_row(&t, f, 3);             a row of the function table
 *     built_graph_export(&t, f);             something leads to it
 *     ...  more sections by image_builder
 *     built_graph_discover(&t);
 *     assert_int_equal(PINS(&t, f), 0);
 *     built_graph_release(&t);
 *
 * Rows are put in the order of their begins.  The function table, its unwind
 * information and the exports get sections of their own at the end.
 */
#ifndef APPULSE_TESTS_BUILT_GRAPH_H
#define APPULSE_TESTS_BUILT_GRAPH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "image_builder.h"

enum { BUILT_ROW_MAX = 16, BUILT_EXPORT_MAX = 32, BUILT_RELOC_MAX = 32 };

struct built_row {
	struct rva begin, end;
	struct rva unwind; /* 0: unwind information without codes is made for it */
};

struct built_graph {
	struct image_builder b;
	struct built_row rows[BUILT_ROW_MAX];
	uint32_t row_count;
	struct rva exports[BUILT_EXPORT_MAX], export_sites[BUILT_EXPORT_MAX];
	uint32_t export_count;
	struct rva relocs[BUILT_RELOC_MAX];
	uint32_t reloc_count;
	struct discovery_options options;
	struct built_image built;
	struct graph graph; /* valid when `status` is STATUS_OK */
	enum status status;
	struct diag diag;
};

static inline void built_graph_init(struct built_graph *t)
{
	memset(t, 0, sizeof(*t));
	image_builder_init(&t->b);
	image_builder_section(&t->b, ".text", BUILT_CODE);
}

/* Code, then int3 up to a multiple of 16. */
static inline struct rva built_graph_code(struct built_graph *t, const char *bytes,
					  size_t size)
{
	struct rva begin = image_builder_put(&t->b, bytes, size);

	while (image_builder_here(&t->b).v % 16)
		image_builder_put(&t->b, "\xcc", 1);
	return begin;
}

#define CODE(t, bytes) built_graph_code(t, bytes, sizeof(bytes) - 1)
/* Bytes without padding behind. */
#define BARE(t, bytes) image_builder_put(&(t)->b, bytes, sizeof(bytes) - 1)

/* Makes the PC-relative field of 4 bytes at `field`, the instruction's end, mean `target`.
 */
static inline void built_graph_point(struct built_graph *t, struct rva field,
				     struct rva target)
{
	store_u32(image_builder_at(&t->b, field), target.v - field.v - 4);
}

static inline void built_graph_row(struct built_graph *t, struct rva begin, uint32_t size)
{
	t->rows[t->row_count++] = (struct built_row){begin, rva_add(begin, size), {0}};
}

static inline void built_graph_export(struct built_graph *t, struct rva target)
{
	t->exports[t->export_count++] = target;
}

/* A relocated pointer to `target` at the end of the last section. */
static inline struct rva built_graph_pointer(struct built_graph *t, struct rva target)
{
	return t->relocs[t->reloc_count++] = image_builder_va(&t->b, target);
}

/* An entry of a jump table: the difference to `base`. */
static inline struct rva built_graph_entry(struct built_graph *t, struct rva target,
					   struct rva base)
{
	return image_builder_u32(&t->b, target.v - base.v);
}

static inline void built_graph_put_rows(struct built_graph *t)
{
	struct rva rows;

	image_builder_section(&t->b, ".xdata", BUILT_CONST);
	image_builder_u32(&t->b, 0);
	for (uint32_t i = 0; i < t->row_count; i++)
		if (t->rows[i].unwind.v == 0)
			t->rows[i].unwind = image_builder_u32(&t->b, 1);
	rows = image_builder_section(&t->b, ".pdata", BUILT_CONST);
	for (uint32_t i = 0; i < t->row_count; i++) {
		image_builder_u32(&t->b, t->rows[i].begin.v);
		image_builder_u32(&t->b, t->rows[i].end.v);
		image_builder_u32(&t->b, t->rows[i].unwind.v);
	}
	image_builder_directory(&t->b, DIRECTORY_EXCEPTION, rows, 12 * t->row_count);
}

/* By ordinal only (PE/COFF specification, "Export Directory Table"). */
static inline void built_graph_put_exports(struct built_graph *t)
{
	struct rva directory = image_builder_section(&t->b, ".edata", BUILT_CONST);
	struct rva words = rva_add(directory, 40);

	for (int i = 0; i < 3; i++)
		image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, words.v + 4 * t->export_count);
	image_builder_u32(&t->b, 1);
	image_builder_u32(&t->b, t->export_count);
	image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, words.v);
	image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, 0);
	for (uint32_t i = 0; i < t->export_count; i++)
		t->export_sites[i] = image_builder_u32(&t->b, t->exports[i].v);
	image_builder_string(&t->b, "made.dll");
	image_builder_directory(&t->b, DIRECTORY_EXPORT, directory, 40);
}

/* One block for each relocation (PE/COFF specification, ".reloc Section"). */
static inline void built_graph_put_relocs(struct built_graph *t)
{
	struct rva blocks =
		image_builder_section(&t->b, ".reloc", BUILT_CONST | 0x02000000);

	for (uint32_t i = 0; i < t->reloc_count; i++) {
		image_builder_u32(&t->b, t->relocs[i].v & ~0xfffu);
		image_builder_u32(&t->b, 12);
		image_builder_u16(&t->b,
				  (uint16_t)(RELOC_DIR64 << 12 | (t->relocs[i].v & 0xfff)));
		image_builder_u16(&t->b, 0);
	}
	image_builder_directory(&t->b, DIRECTORY_RELOCATION, blocks, 12 * t->reloc_count);
}

/* Finishes the image and discovers its graph; relocations must ascend. */
static inline enum status built_graph_try(struct built_graph *t)
{
	if (t->row_count)
		built_graph_put_rows(t);
	if (t->export_count)
		built_graph_put_exports(t);
	if (t->reloc_count)
		built_graph_put_relocs(t);
	built_image_open(&t->built, &t->b);
	t->status = t->built.status;
	t->diag = t->built.diag;
	if (t->status == STATUS_OK) {
		diag_init(&t->diag);
		t->status =
			graph_discover(&t->graph, &t->built.image, &t->options, &t->diag);
	}
	return t->status;
}

static inline void built_graph_discover(struct built_graph *t)
{
	char text[2048];

	if (built_graph_try(t) == STATUS_OK)
		return;
	diag_format(&t->diag, text, sizeof(text));
	fprintf(stderr, "%s\n", text);
	abort();
}

static inline void built_graph_release(struct built_graph *t)
{
	if (t->status == STATUS_OK)
		graph_release(&t->graph);
	built_image_close(&t->built);
	image_builder_release(&t->b);
}

static inline const struct function *built_graph_function(const struct built_graph *t,
							  struct rva rva)
{
	uint32_t id = graph_function_at(&t->graph, rva);

	return id == NO_FUNCTION ? NULL : &t->graph.functions.data[id];
}

static inline const struct block *built_graph_block(const struct built_graph *t,
						    struct rva rva)
{
	uint32_t id = graph_block_at(&t->graph, rva);

	return id == NO_BLOCK ? NULL : &t->graph.blocks.data[id];
}

/* The reference whose field is at `site`, or NULL. */
static inline const struct ref *built_graph_ref(const struct built_graph *t,
						struct rva site)
{
	uint32_t i = graph_ref_from(&t->graph, site);

	return i < t->graph.refs.len && t->graph.refs.data[i].site.v == site.v
		       ? &t->graph.refs.data[i]
		       : NULL;
}

/* The set of pins of the function at `rva`, UINT32_MAX when there is none. */
static inline uint32_t built_graph_pins(const struct built_graph *t, struct rva rva)
{
	const struct function *function = built_graph_function(t, rva);

	return function ? function->pins : UINT32_MAX;
}

#define PINS(t, rva) built_graph_pins(t, rva)
#define PIN(reason) (1u << PIN_##reason)

/* Where a reference at `site` leads, 0 when there is none. */
static inline uint32_t built_graph_leads(const struct built_graph *t, struct rva site)
{
	const struct ref *ref = built_graph_ref(t, site);

	return ref ? ref->target.v : 0;
}

#define LEADS(t, site) built_graph_leads(t, site)

#endif
