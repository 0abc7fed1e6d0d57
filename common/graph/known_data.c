/* Data of formats that hold no RVA of code, for the net of hidden references.
 *
 * The net takes every word for an RVA that nobody explains.  In big images nearly all of
 * its catch comes from a few big pieces of data that were made before the image was
 * linked, so that nothing in them can know where a function stands:
 *
 *   resources      what the resource compiler made (PE/COFF specification, "The .rsrc
 *                  Section"), when a section begins with the directory
 *   ICU data       "common data" of ICU, linked in as an array: a header with the magic
 *                  bytes da 27 and the format "CmnD", a table of contents, and items
 *                  each with a header of its own (ICU, udata.h and "ICU Data").  Observed:
 *                  30 MB in node.exe 22, where a third of all pinned functions was named
 *                  by it alone
 *
 * The tables of the image itself are known from their readers (table_bytes.c).
 *
 * Where a format is claimed, all of it is checked; nothing behind the last item's header
 * is counted.
 */
#include "graph/discovery.h"

enum {
	ICU_ALIGNMENT = 16,
	ICU_MAGIC = 0x27da,         /* at +2 */
	ICU_FORMAT_AT = 12,
	ICU_COMMON = 0x446e6d43,    /* "CmnD" */
	ICU_HEADER_MIN = 24,
	ICU_ITEM_BYTES = 8,         /* of the table of contents: name, data */
};

/* The data of resources too, when they have a section of their own. */
static void add_resources(struct discovery *d)
{
	const struct data_directory *resources =
		&d->image->directories[DIRECTORY_RESOURCE];
	const struct section *section = image_section_at(d->image, resources->rva);

	if (resources->rva.v && section && section->rva.v == resources->rva.v &&
	    !(section->characteristics & SECTION_EXECUTE) &&
	    resources->size <= section->virtual_size)
		table_bytes_keep(d, resources->rva, resources->size);
}

static bool has_icu_magic(const uint8_t *bytes, uint32_t size, uint32_t at)
{
	return at < size && size - at >= ICU_HEADER_MIN &&
	       load_u16(bytes + at + 2) == ICU_MAGIC;
}

/* Bytes of the common data at `at` up to its last item's header; 0 when it is none.  No
 * more than `*left` items are looked at, over all that may be such data. */
static uint32_t icu_size(const uint8_t *bytes, uint32_t size, uint32_t at, uint32_t *left)
{
	uint32_t toc = at + load_u16(bytes + at), count, last = 0;

	if (toc > size || size - toc < 4)
		return 0;
	count = load_u32(bytes + toc);
	if (count == 0 || count > (size - toc - 4) / ICU_ITEM_BYTES || count > *left)
		return 0;
	*left -= count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t item = load_u32(bytes + toc + 4 + ICU_ITEM_BYTES * i + 4);

		if (item <= last || item >= size - toc ||
		    !has_icu_magic(bytes, size, toc + item))
			return 0;
		last = item;
	}
	return toc + last + ICU_HEADER_MIN - at;
}

static void add_icu_data(struct discovery *d, const struct section *section)
{
	uint32_t size = section->raw_size < section->virtual_size ? section->raw_size
								  : section->virtual_size;
	const uint8_t *bytes = image_bytes(d->image, section->rva, size);
	uint32_t at = 0, left = size / ICU_ITEM_BYTES;

	while (bytes && size - at >= ICU_HEADER_MIN) {
		uint32_t known = 0;

		if (load_u32(bytes + at + ICU_FORMAT_AT) == ICU_COMMON &&
		    has_icu_magic(bytes, size, at))
			known = icu_size(bytes, size, at, &left);
		if (known)
			table_bytes_keep(d, rva_add(section->rva, at), known);
		at += known > ICU_ALIGNMENT ? known / ICU_ALIGNMENT * ICU_ALIGNMENT
					    : ICU_ALIGNMENT;
		if (at > size)
			return;
	}
}

void known_data_add(struct discovery *d)
{
	add_resources(d);
	for (uint32_t i = 0; i < d->image->section_count; i++)
		if (!(d->image->sections[i].characteristics & SECTION_EXECUTE) &&
		    d->image->sections[i].raw_size > 0)
			add_icu_data(d, &d->image->sections[i]);
}
