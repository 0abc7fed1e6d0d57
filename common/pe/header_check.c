/* What the Windows loader would refuse, or what two readers could understand
 * in two ways, is refused here once, so that all code behind it may rely on
 * the invariants of image.h: offsets of headers inside the file, sections in
 * ascending order that overlap nowhere, raw data inside the file.
 *
 * Stricter than the loader in one point: raw data must begin at a multiple of
 * the file alignment, as the specification says; the loader rounds down to 512
 * bytes, and tools disagree about such files.  More lenient in others: sizes of
 * raw data need not be aligned, sections may leave gaps in memory, and images
 * with a section alignment below a page pass (drivers).
 *
 * Sources: PE/COFF specification, "MS-DOS Stub", "COFF File Header", "Optional
 * Header", "Section Table".
 */
#include "pe/header_check.h"

#include <stdlib.h>
#include <string.h>

enum {
	DOS_HEADER_BYTES = 64,
	DOS_NEW_HEADER = 60, /* offset of the field that leads to the PE signature */
	SIGNATURE_BYTES = 4,
	IMAGE_BASE_ALIGNMENT = 0x10000,
	FILE_ALIGNMENT_MAX = 0x10000,
};
#define IMAGE_SIZE_MAX 0x80000000u

static bool is_power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

static enum status find_signature(struct image *image, struct diag *diag)
{
	uint32_t pe;

	if (image->size > UINT32_MAX)
		return diag_fail(diag, STATUS_UNSUPPORTED, "the file is larger than 4 GiB");
	if (image->size < DOS_HEADER_BYTES || memcmp(image->bytes, "MZ", 2) != 0)
		return diag_fail(diag, STATUS_NOT_PE, "not a PE image: no MZ header");
	pe = load_u32(image->bytes + DOS_NEW_HEADER);
	if (pe > image->size - SIGNATURE_BYTES ||
	    memcmp(image->bytes + pe, "PE\0\0", SIGNATURE_BYTES) != 0)
		return diag_fail(diag, STATUS_NOT_PE, "not a PE image: no PE signature");
	if (pe < DOS_HEADER_BYTES)
		return diag_fail(diag, STATUS_MALFORMED,
				 "the PE header lies inside the MS-DOS header");
	image->headers.pe = file_off_of(pe);
	return STATUS_OK;
}

/* Reads the file header and finds where the optional header and the section
 * table lie. */
static enum status read_file_header(struct image *image, uint32_t *ret_optional_size,
				    struct diag *diag)
{
	struct pe_headers *h = &image->headers;
	uint32_t file_header = h->pe.v + SIGNATURE_BYTES;
	struct reader r = reader_of(image->bytes, image->size);
	uint32_t optional_size;
	uint64_t table_end;

	read_skip(&r, file_header);
	h->machine = read_u16(&r);
	image->section_count = read_u16(&r);
	h->time_date_stamp = read_u32(&r);
	h->symbol_table = file_off_of(read_u32(&r));
	h->symbol_count = read_u32(&r);
	optional_size = read_u16(&r);
	h->characteristics = read_u16(&r);
	if (r.failed)
		return diag_fail(diag, STATUS_MALFORMED, "the file header is cut off");
	if (h->machine == MACHINE_ARM64EC || h->machine == MACHINE_ARM64X)
		return diag_fail(diag, STATUS_MACHINE,
				 "an image for %s (machine 0x%x), only x86-64 (0x%x) is "
				 "handled",
				 h->machine == MACHINE_ARM64X ? "ARM64X" : "ARM64EC",
				 h->machine, MACHINE_AMD64);
	if (h->machine != MACHINE_AMD64)
		return diag_fail(diag, STATUS_MACHINE,
				 "an image for machine 0x%x, only x86-64 (0x%x) is handled",
				 h->machine, MACHINE_AMD64);
	if (!(h->characteristics & FILE_EXECUTABLE_IMAGE))
		return diag_fail(diag, STATUS_MALFORMED,
				 "the file header does not say that this is an image");
	if (image->section_count == 0 || image->section_count > SECTION_COUNT_MAX)
		return diag_fail(diag, STATUS_MALFORMED, "an image of %u sections",
				 image->section_count);
	h->optional = file_off_of(file_header + FILE_HEADER_BYTES);
	table_end = (uint64_t)h->optional.v + optional_size +
		    (uint64_t)image->section_count * SECTION_HEADER_BYTES;
	if (table_end > image->size)
		return diag_fail(diag, STATUS_MALFORMED, "the section table is cut off");
	h->section_table = file_off_of(h->optional.v + optional_size);
	*ret_optional_size = optional_size;
	return STATUS_OK;
}

static void load_optional_header(struct image *image)
{
	struct pe_headers *h = &image->headers;
	const uint8_t *p = image->bytes + h->optional.v;

	h->entry = rva_of(load_u32(p + OPTIONAL_ENTRY));
	h->image_base = load_u64(p + OPTIONAL_IMAGE_BASE);
	h->section_alignment = load_u32(p + OPTIONAL_SECTION_ALIGNMENT);
	h->file_alignment = load_u32(p + OPTIONAL_FILE_ALIGNMENT);
	h->size_of_image = load_u32(p + OPTIONAL_SIZE_OF_IMAGE);
	h->size_of_headers = load_u32(p + OPTIONAL_SIZE_OF_HEADERS);
	h->checksum = load_u32(p + OPTIONAL_CHECKSUM);
	h->subsystem = load_u16(p + OPTIONAL_SUBSYSTEM);
	h->dll_characteristics = load_u16(p + OPTIONAL_DLL_CHARACTERISTICS);
	h->directory_count = load_u32(p + OPTIONAL_DIRECTORY_COUNT);
	h->directories = file_off_of(h->optional.v + OPTIONAL_DIRECTORIES);
}

static enum status check_sizes(const struct image *image, struct diag *diag)
{
	const struct pe_headers *h = &image->headers;
	uint64_t table_end = (uint64_t)h->section_table.v +
			     image->section_count * SECTION_HEADER_BYTES;

	if (!is_power_of_two(h->file_alignment) || h->file_alignment > FILE_ALIGNMENT_MAX)
		return diag_fail(diag, STATUS_MALFORMED, "a file alignment of 0x%x",
				 h->file_alignment);
	if (!is_power_of_two(h->section_alignment) ||
	    h->section_alignment < h->file_alignment)
		return diag_fail(diag, STATUS_MALFORMED, "a section alignment of 0x%x",
				 h->section_alignment);
	if (h->size_of_image > IMAGE_SIZE_MAX)
		return diag_fail(diag, STATUS_MALFORMED, "an image size of 0x%x",
				 h->size_of_image);
	if (h->size_of_headers < table_end || h->size_of_headers > image->size ||
	    h->size_of_headers > h->size_of_image)
		return diag_fail(diag, STATUS_MALFORMED, "a header size of 0x%x",
				 h->size_of_headers);
	if (h->image_base % IMAGE_BASE_ALIGNMENT ||
	    h->image_base > UINT64_MAX - h->size_of_image)
		return diag_fail(diag, STATUS_MALFORMED, "an image base of 0x%llx",
				 (unsigned long long)h->image_base);
	if (h->entry.v >= h->size_of_image)
		return diag_fail(diag, STATUS_MALFORMED,
				 "the entry point 0x%x lies outside the image", h->entry.v);
	return STATUS_OK;
}

static enum status read_optional_header(struct image *image, uint32_t size,
					struct diag *diag)
{
	struct pe_headers *h = &image->headers;
	const uint8_t *p = image->bytes + h->optional.v;

	if (size < OPTIONAL_DIRECTORIES)
		return diag_fail(diag, STATUS_MALFORMED, "the optional header is cut off");
	if (load_u16(p) != OPTIONAL_MAGIC_PE32_PLUS)
		return diag_fail(diag, STATUS_MALFORMED,
				 "an optional header with magic 0x%x, not PE32+ (0x%x)",
				 load_u16(p), OPTIONAL_MAGIC_PE32_PLUS);
	load_optional_header(image);
	if (h->directory_count > DIRECTORY_COUNT ||
	    size - OPTIONAL_DIRECTORIES < h->directory_count * 8)
		return diag_fail(diag, STATUS_MALFORMED, "%u data directories",
				 h->directory_count);
	for (uint32_t i = 0; i < h->directory_count; i++) {
		const uint8_t *row = p + OPTIONAL_DIRECTORIES + i * 8;

		if (load_u32(row) != 0)
			image->directories[i] = (struct data_directory){
				rva_of(load_u32(row)), load_u32(row + 4)};
	}
	return check_sizes(image, diag);
}

static void load_section(const struct image *image, uint32_t index,
			 struct section *ret_section)
{
	uint32_t header = image->headers.section_table.v + index * SECTION_HEADER_BYTES;
	const uint8_t *p = image->bytes + header;

	*ret_section = (struct section){
		.virtual_size = load_u32(p + SECTION_VIRTUAL_SIZE),
		.rva = rva_of(load_u32(p + SECTION_VIRTUAL_ADDRESS)),
		.raw_size = load_u32(p + SECTION_RAW_SIZE),
		.raw = file_off_of(load_u32(p + SECTION_RAW_POINTER)),
		.characteristics = load_u32(p + SECTION_CHARACTERISTICS),
		.header = file_off_of(header),
	};
	memcpy(ret_section->name, p, 8);
	if (ret_section->virtual_size == 0)
		ret_section->virtual_size = ret_section->raw_size;
	/* Old GNU linkers give .bss a raw size without a place in the file. */
	if (ret_section->raw.v == 0 || ret_section->raw_size == 0) {
		ret_section->raw = file_off_of(0);
		ret_section->raw_size = 0;
	}
}

/* Checks one section against the end in memory of what stands before it. */
static enum status check_section(const struct image *image, const struct section *section,
				 uint64_t before_end, struct diag *diag)
{
	const struct pe_headers *h = &image->headers;
	uint64_t end = (uint64_t)section->rva.v + section->virtual_size;

	if (section->rva.v < before_end)
		return diag_fail_at(diag, STATUS_OVERLAP, section->rva,
				    "section '%s' overlaps what stands before it, or is "
				    "out of order", section->name);
	if (section->virtual_size == 0 || end > h->size_of_image)
		return diag_fail_at(diag, STATUS_MALFORMED, section->rva,
				    "section '%s' of 0x%x bytes, in an image of 0x%x",
				    section->name, section->virtual_size, h->size_of_image);
	if (section->rva.v % h->section_alignment)
		return diag_fail_at(diag, STATUS_MALFORMED, section->rva,
				    "section '%s' is not aligned to 0x%x", section->name,
				    h->section_alignment);
	if (section->raw_size == 0)
		return STATUS_OK;
	if (section->raw.v % h->file_alignment)
		return diag_fail_at(diag, STATUS_MALFORMED, section->rva,
				    "the raw data of section '%s' at 0x%x is not aligned "
				    "to 0x%x", section->name, section->raw.v,
				    h->file_alignment);
	if ((uint64_t)section->raw.v + section->raw_size > image->size)
		return diag_fail_at(diag, STATUS_MALFORMED, section->rva,
				    "the raw data of section '%s' leaves the file",
				    section->name);
	return STATUS_OK;
}

/* By place in the file, sections without raw data first. */
static int compare_raw(const void *a, const void *b)
{
	const struct section *x = a, *y = b;

	return (x->raw.v > y->raw.v) - (x->raw.v < y->raw.v);
}

static enum status check_raw_overlap(const struct image *image, struct diag *diag)
{
	struct section by_raw[SECTION_COUNT_MAX];
	uint64_t end = image->headers.size_of_headers;

	memcpy(by_raw, image->sections, image->section_count * sizeof(by_raw[0]));
	qsort(by_raw, image->section_count, sizeof(by_raw[0]), compare_raw);
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &by_raw[i];

		if (section->raw_size == 0)
			continue;
		if (section->raw.v < end)
			return diag_fail_at(diag, STATUS_OVERLAP, section->rva,
					    "the raw data of section '%s' overlaps the "
					    "headers or another section's", section->name);
		end = (uint64_t)section->raw.v + section->raw_size;
	}
	return STATUS_OK;
}

static enum status read_sections(struct image *image, struct diag *diag)
{
	uint64_t end = image->headers.size_of_headers;

	image->sections = arena_array(&image->arena, image->section_count,
				      sizeof(*image->sections));
	if (!image->sections)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < image->section_count; i++) {
		struct section *section = &image->sections[i];
		enum status status;

		load_section(image, i, section);
		status = check_section(image, section, end, diag);
		if (status != STATUS_OK)
			return status;
		end = (uint64_t)section->rva.v + section->virtual_size;
	}
	return check_raw_overlap(image, diag);
}

enum status header_check(struct image *image, struct diag *diag)
{
	uint32_t optional_size = 0;
	enum status status = find_signature(image, diag);

	if (status == STATUS_OK)
		status = read_file_header(image, &optional_size, diag);
	if (status == STATUS_OK)
		status = read_optional_header(image, optional_size, diag);
	if (status == STATUS_OK)
		status = read_sections(image, diag);
	return status;
}
