#include "layout/rewrite.h"

#include <assert.h>
#include <stdlib.h>

#include "pe/load_config.h"

enum { STATE_ROW_BYTES = 8 };

static struct rva new_place(const struct rewrite *rewrite, struct rva rva)
{
	return rewrite->layout ? layout_map(rewrite->graph, rewrite->layout, rva) : rva;
}

static struct rva new_end(const struct rewrite *rewrite, struct rva end)
{
	return rewrite->layout ? layout_map_end(rewrite->graph, rewrite->layout, end) : end;
}

/* Padding that a moved block covers in part would be no whole instructions any
 * more, so all padding of the code becomes int3 when a block moves. */
static void fill_padding(const struct rewrite *rewrite)
{
	const struct graph *graph = rewrite->graph;
	uint32_t moved = 0;

	for (uint32_t i = 0; i < graph->blocks.len; i++)
		moved += rewrite->layout->begins[i].v != graph->blocks.data[i].begin.v;
	for (uint32_t r = 0, block = 0; moved && r < graph->range_count; r++) {
		const struct code_range *range = &graph->ranges[r];
		uint8_t *bytes = image_file_at(rewrite->file, range->begin, range->size);

		for (uint32_t at = 0; at < range->size; at++) {
			uint32_t rva = range->begin.v + at;

			while (block < graph->blocks.len &&
			       graph->blocks.data[block].begin.v +
					       graph->blocks.data[block].size <= rva)
				block++;
			if (block < graph->blocks.len &&
			    graph->blocks.data[block].begin.v <= rva)
				at += graph->blocks.data[block].size -
				      (rva - graph->blocks.data[block].begin.v) - 1;
			else if ((range->map[at] & CODE_STATE) == CODE_PADDING)
				bytes[at] = 0xcc;
		}
	}
}

void rewrite_blocks(const struct rewrite *rewrite)
{
	const struct graph *graph = rewrite->graph;
	const struct layout *layout = rewrite->layout;

	/* First all holes, since a block may move onto another's old place. */
	fill_padding(rewrite);
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];

		if (layout->begins[i].v != block->begin.v)
			memset(image_file_at(rewrite->file, block->begin, block->size), 0xcc,
			       block->size);
	}
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];

		if (layout->begins[i].v != block->begin.v)
			memcpy(image_file_at(rewrite->file, layout->begins[i], block->size),
			       image_bytes(graph->image, block->begin, block->size), block->size);
	}
}

/* Where a reference shall lead. */
static struct rva new_target(const struct rewrite *rewrite, const struct ref *ref)
{
	if (ref->kind == REF_RVA_END)
		return new_end(rewrite, ref->target);
	if (ref->enters && rewrite->thunks) {
		uint32_t function = graph_function_starting(rewrite->graph, ref->target);

		if (function != NO_FUNCTION && rewrite->thunks[function].v)
			return rewrite->thunks[function];
	}
	return new_place(rewrite, ref->target);
}

static int64_t encode(const struct rewrite *rewrite, const struct ref *ref, struct rva site,
		      struct rva target)
{
	uint64_t image_base = rewrite->graph->image->headers.image_base;

	switch (ref->kind) {
	case REF_BRANCH:
	case REF_ADDRESS:
	case REF_MEMORY:
		return rva_diff(target, rva_add(site, (uint32_t)ref->size + ref->tail));
	case REF_VA64:
	case REF_VA32:
		return (int64_t)(image_base + target.v);
	case REF_TABLE:
		return rva_diff(target, new_place(rewrite, ref->base));
	case REF_SELF:
		return rva_diff(target, site);
	default:
		return target.v;
	}
}

static enum status write_ref(const struct rewrite *rewrite, const struct ref *ref,
			     struct diag *diag)
{
	struct rva site = new_place(rewrite, ref->site);
	int64_t value = encode(rewrite, ref, site, new_target(rewrite, ref));
	uint8_t *field = image_file_at(rewrite->file, site, ref->size);
	bool relative = ref->kind == REF_BRANCH || ref->kind == REF_ADDRESS ||
			ref->kind == REF_MEMORY || ref->kind == REF_DISPLACEMENT;

	assert(field);
	if (relative && (value < INT32_MIN || value > INT32_MAX))
		return diag_fail_at(diag, STATUS_MALFORMED, ref->site,
				    "a displacement does not fit its field");
	if (ref->size == 8)
		store_u64(field, (uint64_t)value);
	else
		store_u32(field, (uint32_t)value);
	return STATUS_OK;
}

enum status rewrite_refs(const struct rewrite *rewrite, struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < rewrite->graph->refs.len && status == STATUS_OK; i++)
		status = write_ref(rewrite, &rewrite->graph->refs.data[i], diag);
	return status;
}

void rewrite_symbols(const struct rewrite *rewrite)
{
	const struct coff_symbols *symbols = &rewrite->graph->tables.symbols;

	for (uint32_t i = 0; i < symbols->count; i++) {
		const struct coff_symbol *symbol = &symbols->data[i];
		struct rva to = new_place(rewrite, symbol->rva);
		uint32_t section = image_file_section_at(rewrite->file, to);
		/* Value and SectionNumber stand side by side (PE/COFF specification,
		 * "COFF Symbol Table"). */
		uint8_t *fields = image_file_at_offset(rewrite->file, symbol->value, 6);

		if (to.v == symbol->rva.v || section == UINT32_MAX || !fields)
			continue;
		store_u32(fields, to.v - rewrite->file->sections.data[section].rva.v);
		store_u16(fields + 4, (uint16_t)(section + 1));
	}
}

static int compare_rows(const void *a, const void *b)
{
	uint32_t x = load_u32(a), y = load_u32(b);

	return x < y ? -1 : x > y;
}

/* Rows of length zero may begin where another does: the end decides. */
static int compare_functions(const void *a, const void *b)
{
	int order = compare_rows(a, b);

	return order ? order : compare_rows((const uint8_t *)a + 4, (const uint8_t *)b + 4);
}

/* Sorts `count` rows of `stride` bytes. */
static enum status sort_rows(struct image_file *file, struct rva rva, uint32_t count,
			     uint32_t stride, int (*compare)(const void *, const void *),
			     struct diag *diag)
{
	uint8_t *rows;

	if (count == 0)
		return STATUS_OK;
	rows = image_file_at(file, rva, count * stride);
	if (!rows)
		return diag_fail_at(diag, STATUS_MALFORMED, rva, "a table leaves its section");
	qsort(rows, count, stride, compare);
	return STATUS_OK;
}

/* Sorts the rows of a state map by where their instructions stand now.  Rows that say
 * nothing about any instruction go to the end and repeat the last one's state: behind it
 * no code looks itself up in this map, and a search by bisection still ends. */
static enum status sort_state_map(const struct rewrite *rewrite,
				  const struct state_map *map, struct diag *diag)
{
	const struct graph *graph = rewrite->graph;
	uint8_t *rows =
		image_file_at(rewrite->file, map->rva, map->count * STATE_ROW_BYTES);
	const uint8_t *old =
		image_bytes(graph->image, map->rva, map->count * STATE_ROW_BYTES);
	uint32_t ref = graph_ref_from(graph, map->rva), kept = 0;

	if (!rows || !old)
		return diag_fail_at(diag, STATUS_MALFORMED, map->rva,
				    "a table leaves its section");
	if (memcmp(rows, old, (size_t)map->count * STATE_ROW_BYTES) == 0)
		return STATUS_OK;
	for (uint32_t i = 0; i < map->count; i++) {
		uint32_t site = map->rva.v + i * STATE_ROW_BYTES;

		while (ref < graph->refs.len && graph->refs.data[ref].site.v < site)
			ref++;
		if (ref < graph->refs.len && graph->refs.data[ref].site.v == site)
			memmove(rows + (size_t)kept++ * STATE_ROW_BYTES,
				rows + (size_t)i * STATE_ROW_BYTES, STATE_ROW_BYTES);
	}
	qsort(rows, kept, STATE_ROW_BYTES, compare_rows);
	for (uint32_t i = kept; kept && i < map->count; i++) {
		uint8_t *row = rows + (size_t)i * STATE_ROW_BYTES;

		store_u32(row, load_u32(row - STATE_ROW_BYTES) + 1);
		store_u32(row + 4, load_u32(row - STATE_ROW_BYTES + 4));
	}
	return STATUS_OK;
}

enum status rewrite_sort_tables(const struct rewrite *rewrite, struct diag *diag)
{
	const struct image_tables *tables = &rewrite->graph->tables;
	const struct guard_table *guards[] = {
		&tables->config.functions,
		&tables->config.long_jumps,
		&tables->config.eh_continuations,
	};
	enum status status = STATUS_OK;

	if (tables->functions.count)
		status = sort_rows(rewrite->file, tables->functions.data[0].site,
				   tables->functions.count, RUNTIME_FUNCTION_BYTES, compare_functions,
				   diag);
	for (unsigned i = 0; i < sizeof(guards) / sizeof(guards[0]) && status == STATUS_OK; i++)
		status = sort_rows(rewrite->file, guards[i]->rva, guards[i]->count,
				   4 + guards[i]->extra, compare_rows, diag);
	if (status == STATUS_OK)
		status = sort_rows(rewrite->file, tables->volatiles.accesses,
				   tables->volatiles.access_count, 4, compare_rows, diag);
	for (uint32_t i = 0; i < rewrite->graph->state_maps.len && status == STATUS_OK; i++)
		status = sort_state_map(rewrite, &rewrite->graph->state_maps.data[i], diag);
	return status;
}

static int compare_relocs(const void *a, const void *b)
{
	const struct reloc *x = a, *y = b;

	return x->site.v < y->site.v ? -1 : x->site.v > y->site.v;
}

/* Puts the encoded table into the file and points its directory there.  A table without
 * relocations stays a table, of one empty block: an image without any table counts as one
 * whose relocations were stripped. */
static enum status store_relocations(struct image_file *file, const uint8_t *bytes,
				     uint32_t size, struct diag *diag)
{
	static const uint8_t empty[8] = {0, 0, 0, 0, 8}; /* of page 0, with 8 bytes */
	struct data_directory *directory = &file->directories[DIRECTORY_RELOCATION];
	uint8_t *old = image_file_at(file, directory->rva, directory->size);
	enum status status = STATUS_OK;

	/* None, and none needed. */
	if (!old && size == 0)
		return STATUS_OK;
	if (old)
		memset(old, 0, directory->size);
	if (size == 0 && directory->size >= sizeof(empty)) {
		bytes = empty;
		size = sizeof(empty);
	}
	if (size > directory->size) {
		status = image_file_add_section(
			file, ".reloc", size, 0,
			SECTION_INITIALIZED | SECTION_DISCARDABLE | SECTION_READ,
			&directory->rva, diag);
		if (status != STATUS_OK)
			return status;
		old = image_file_at(file, directory->rva, size);
	}
	directory->size = size;
	memcpy(old, bytes, size);
	return STATUS_OK;
}

enum status rewrite_relocations(const struct rewrite *rewrite, const struct reloc *more,
				uint32_t count, struct diag *diag)
{
	const struct image *image = rewrite->graph->image;
	const struct relocations *old = &rewrite->graph->tables.relocs;
	struct reloc *relocs;
	enum status status;
	uint8_t *bytes = NULL;
	uint32_t size = 0;

	if (!image_has_relocations(image) && !image_may_lie_anywhere(image))
		return STATUS_OK;
	relocs = calloc((size_t)old->count + count + 1, sizeof(*relocs));
	if (!relocs)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < old->count; i++) {
		relocs[i] = old->data[i];
		relocs[i].site = new_place(rewrite, relocs[i].site);
	}
	if (count)
		memcpy(relocs + old->count, more, count * sizeof(*more));
	qsort(relocs, old->count + count, sizeof(*relocs), compare_relocs);
	status = relocations_encode(relocs, old->count + count, &bytes, &size, diag);
	if (status == STATUS_OK)
		status = store_relocations(rewrite->file, bytes, size, diag);
	free(bytes);
	free(relocs);
	return status;
}
