/* Nothing in the headers of an image leads to the list: the C start-up code has
 * its two ends as symbols, and stripped images have no symbols.  But its shape
 * is so special that a scan of the read-only data (debug data aside, which is
 * discardable) finds it: three words 0, 0, 1 and then entries of which the first
 * is the RVA of an import address table slot, the second lies in the image and
 * the third is a width in bits.  A list ends with the first entry that is none.
 *
 * A false find needs a slot's RVA behind the three words by chance; what it
 * would cost is that a word that only looks like an RVA is taken for one.
 *
 * The scan looks at one word in four bytes: 1 to 2 ms for a megabyte of data.
 * Images without imports are not scanned: they have no slots.
 */
#include "pe/pseudo_relocs.h"

#include <stdlib.h>

#include "base/vec.h"

enum {
	WORD_BYTES = 4,
	LIST_HEADER_BYTES = 12,
	ENTRY_BYTES = 12,
	LIST_VERSION = 1, /* the third word, for the format called version 2 */
};

struct scan {
	const struct image *image;
	uint32_t *slots; /* owned: RVAs of the import slots, ascending */
	VEC(struct pseudo_reloc) found; /* owned */
};

static int compare_words(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool is_slot(const struct scan *scan, uint32_t rva)
{
	return bsearch(&rva, scan->slots, scan->image->import_count, sizeof(rva),
		       compare_words) != NULL;
}

/* Reads an entry at `site`; false when it is none. */
static bool read_entry(const struct scan *scan, struct rva site,
		       struct pseudo_reloc *ret_entry)
{
	const uint8_t *p = image_bytes(scan->image, site, ENTRY_BYTES);
	uint32_t bits;

	if (!p)
		return false;
	bits = load_u32(p + 8);
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return false;
	if (!is_slot(scan, load_u32(p)) ||
	    !image_bytes(scan->image, rva_of(load_u32(p + 4)), bits / 8) ||
	    !image_section_at(scan->image, rva_of(load_u32(p + 4))))
		return false;
	*ret_entry = (struct pseudo_reloc){
		.symbol = rva_of(load_u32(p)),
		.target = rva_of(load_u32(p + 4)),
		.bits = bits,
		.site = site,
	};
	return true;
}

/* Reads the list whose header is at `rva`, if it is one; `ret_size` gets its
 * bytes, or 0. */
static bool read_list(struct scan *scan, struct rva rva, uint32_t *ret_size)
{
	struct pseudo_reloc entry;
	uint32_t size = LIST_HEADER_BYTES;

	while (read_entry(scan, rva_add(rva, size), &entry)) {
		if (!vec_push(&scan->found, entry))
			return false;
		size += ENTRY_BYTES;
	}
	*ret_size = size > LIST_HEADER_BYTES ? size : 0;
	return true;
}

static bool scan_section(struct scan *scan, const struct section *section)
{
	struct reader r = image_reader(scan->image, section->rva);
	uint32_t list;

	for (size_t i = 0; i + LIST_HEADER_BYTES + ENTRY_BYTES <= r.size; i += WORD_BYTES) {
		if (load_u64(r.data + i) != 0 || load_u32(r.data + i + 8) != LIST_VERSION)
			continue;
		if (!read_list(scan, rva_add(section->rva, (uint32_t)i), &list))
			return false;
		i += list ? list - WORD_BYTES : 0;
	}
	return true;
}

static bool scan_image(struct scan *scan)
{
	const struct image *image = scan->image;

	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (!(section->characteristics &
		      (SECTION_WRITE | SECTION_EXECUTE | SECTION_DISCARDABLE)) &&
		    !scan_section(scan, section))
			return false;
	}
	return true;
}

enum status pseudo_relocs_read(struct image *image, struct pseudo_relocs *ret_relocs,
			       struct diag *diag)
{
	struct scan scan = {.image = image};
	struct pseudo_relocs result = {0};
	bool done = true;

	if (image->import_count) {
		scan.slots = calloc(image->import_count, sizeof(*scan.slots));
		done = scan.slots != NULL;
	}
	for (uint32_t i = 0; done && i < image->import_count; i++)
		scan.slots[i] = image->imports[i].slot.v;
	if (done && image->import_count) {
		qsort(scan.slots, image->import_count, sizeof(*scan.slots), compare_words);
		done = scan_image(&scan);
	}
	if (done)
		result.data = arena_array(&image->arena, scan.found.len,
					  sizeof(*result.data));
	if (result.data) {
		for (uint32_t i = 0; i < scan.found.len; i++)
			result.data[i] = scan.found.data[i];
		result.count = scan.found.len;
		*ret_relocs = result;
	}
	vec_release(&scan.found);
	free(scan.slots);
	return result.data ? STATUS_OK : diag_no_memory(diag);
}
