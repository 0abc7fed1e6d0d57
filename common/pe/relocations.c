/* Base relocations come in blocks, one for each page of 4 KiB: the page's RVA,
 * the block's size in bytes, and 16-bit entries, type in the upper four bits,
 * offset in the page in the lower twelve.
 *
 * Linkers write them in ascending order, so sorting is a check that nearly
 * always finds nothing to do.  Two relocations of one word, or of words that
 * overlap, would add the base twice into some bytes: no linker means that, and
 * no rewriting tool could keep it, so they are refused.
 */
#include "pe/relocations.h"

#include <stdlib.h>

enum {
	BLOCK_HEADER_BYTES = 8,
	ENTRY_BYTES = 2,
	PAGE_BYTES = 4096,
};

static uint32_t width(uint8_t type)
{
	return type == RELOC_DIR64 ? 8 : 4;
}

/* Goes to the next block; `ret_entries` covers its entries.  False at the end
 * and on failure, which sets `r->failed`. */
static bool next_block(struct reader *r, struct rva *ret_page, struct reader *ret_entries)
{
	uint32_t size;
	const uint8_t *entries;

	if (reader_left(r) == 0)
		return false;
	*ret_page = rva_of(read_u32(r));
	size = read_u32(r);
	if (size < BLOCK_HEADER_BYTES || size % ENTRY_BYTES)
		r->failed = true;
	entries = read_bytes(r, size - BLOCK_HEADER_BYTES);
	if (!entries)
		return false;
	*ret_entries = reader_of(entries, size - BLOCK_HEADER_BYTES);
	return true;
}

static enum status count_entries(const struct data_directory *directory, struct reader r,
				 uint32_t *ret_count, struct diag *diag)
{
	struct reader entries;
	struct rva page;
	uint32_t count = 0;

	while (next_block(&r, &page, &entries))
		while (reader_left(&entries))
			if (read_u16(&entries) >> 12 != RELOC_ABSOLUTE)
				count++;
	if (r.failed)
		return diag_fail_at(diag, STATUS_MALFORMED, directory->rva,
				    "a block of base relocations leaves the table");
	*ret_count = count;
	return STATUS_OK;
}

static enum status read_entry(const struct image *image, struct rva page, uint16_t entry,
			      struct reloc *ret_reloc, struct diag *diag)
{
	struct reloc reloc = {rva_add(page, entry & 0xfff), (uint8_t)(entry >> 12)};

	if (reloc.type != RELOC_DIR64 && reloc.type != RELOC_HIGHLOW)
		return diag_fail_at(diag, STATUS_MALFORMED, reloc.site,
				    "a base relocation of type %u", reloc.type);
	if (!image_section_at(image, reloc.site) ||
	    !image_bytes(image, reloc.site, width(reloc.type)))
		return diag_fail_at(diag, STATUS_MALFORMED, reloc.site,
				    "a base relocation outside the sections' data");
	*ret_reloc = reloc;
	return STATUS_OK;
}

static int compare_sites(const void *a, const void *b)
{
	const struct reloc *x = a, *y = b;

	return (x->site.v > y->site.v) - (x->site.v < y->site.v);
}

static enum status sort_relocs(struct relocations *relocations, struct diag *diag)
{
	struct reloc *data = relocations->data;
	bool sorted = true;

	for (uint32_t i = 1; i < relocations->count; i++)
		sorted &= data[i - 1].site.v < data[i].site.v;
	if (!sorted)
		qsort(data, relocations->count, sizeof(*data), compare_sites);
	for (uint32_t i = 1; i < relocations->count; i++)
		if (data[i].site.v - data[i - 1].site.v < width(data[i - 1].type))
			return diag_fail_at(diag, STATUS_MALFORMED, data[i].site,
					    "base relocations that overlap");
	return STATUS_OK;
}

enum status relocations_read(struct image *image, struct relocations *ret_relocations,
			     struct diag *diag)
{
	const struct data_directory *directory = &image->directories[DIRECTORY_RELOCATION];
	const uint8_t *table = image_bytes(image, directory->rva, directory->size);
	struct reader r = reader_of(table, directory->size), entries;
	struct relocations result = {0};
	uint32_t count = 0;
	struct rva page;
	enum status status;

	if (directory->rva.v == 0 || directory->size == 0) {
		*ret_relocations = result;
		return STATUS_OK;
	}
	if (!table)
		return diag_fail_at(diag, STATUS_MALFORMED, directory->rva,
				    "the base relocations leave the file's data");
	status = count_entries(directory, r, &count, diag);
	if (status != STATUS_OK)
		return status;
	result.data = arena_array(&image->arena, count, sizeof(*result.data));
	if (!result.data)
		return diag_no_memory(diag);
	while (next_block(&r, &page, &entries))
		while (reader_left(&entries)) {
			uint16_t entry = read_u16(&entries);

			if (entry >> 12 == RELOC_ABSOLUTE)
				continue;
			status = read_entry(image, page, entry,
					    &result.data[result.count++], diag);
			if (status != STATUS_OK)
				return status;
		}
	status = sort_relocs(&result, diag);
	if (status == STATUS_OK)
		*ret_relocations = result;
	return status;
}

static uint32_t page_of(struct reloc reloc)
{
	return reloc.site.v / PAGE_BYTES;
}

/* Bytes of the block for `count` relocations, padded to 4. */
static uint64_t block_bytes(uint32_t count)
{
	return BLOCK_HEADER_BYTES + (((uint64_t)count * ENTRY_BYTES + 3) & ~(uint64_t)3);
}

/* How many relocations from `relocs` on lie in the page of the first. */
static uint32_t page_run(const struct reloc *relocs, uint32_t count)
{
	uint32_t run = 1;

	while (run < count && page_of(relocs[run]) == page_of(relocs[0]))
		run++;
	return run;
}

enum status relocations_encode(const struct reloc *relocs, uint32_t count,
			       uint8_t **ret_bytes, uint32_t *ret_size, struct diag *diag)
{
	uint64_t size = 0;
	uint8_t *bytes, *p;
	uint32_t run;

	for (uint32_t i = 0; i < count; i += run) {
		run = page_run(relocs + i, count - i);
		size += block_bytes(run);
	}
	if (size > UINT32_MAX)
		return diag_fail(diag, STATUS_NO_ROOM, "%u base relocations are too many",
				 count);
	p = bytes = calloc(size ? size : 1, 1);
	if (!bytes)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < count; i += run) {
		run = page_run(relocs + i, count - i);
		store_u32(p, page_of(relocs[i]) * PAGE_BYTES);
		store_u32(p + 4, (uint32_t)block_bytes(run));
		for (uint32_t k = 0; k < run; k++)
			store_u16(p + BLOCK_HEADER_BYTES + (size_t)k * ENTRY_BYTES,
				  (uint16_t)(relocs[i + k].type << 12 |
					     relocs[i + k].site.v % PAGE_BYTES));
		p += block_bytes(run);
	}
	*ret_bytes = bytes;
	*ret_size = (uint32_t)size;
	return STATUS_OK;
}
