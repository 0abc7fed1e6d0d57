/* The headers.
 *
 * The original's header bytes are taken as what is expected; each field that may
 * differ is checked by its own rule and then copied from the relinked image.  At
 * the end both must be equal in every byte, so a field without a rule cannot
 * have changed.  Rules are from the PE/COFF specification, "Optional Header" and
 * "Section Table"; the checksum's sum is that of ImageHlp's CheckSumMappedFile
 * (Microsoft Learn): 16-bit words added with end-around carry, without the field
 * itself, plus the file's size.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

enum {
	ROW_VIRTUAL_SIZE = 8,
	ROW_RAW_SIZE = 16,
	ROW_RAW_OFFSET = 20,
	ROW_ZERO_FROM = 24, /* relocations and line numbers: none in images */
	ROW_ZERO_TO = 36,
	ADDED_SECTIONS_MAX = 4,
	FILE_ALIGNMENT_MIN = 512,
	FILE_ALIGNMENT_MAX = 65536,
};

/* The headers under comparison. */
struct heads {
	struct verifier *v;
	const struct pe_headers *old_head, *new_head;
	uint8_t *expected;    /* owned; `size` bytes */
	const uint8_t *found; /* the relinked image's, `size` bytes */
	uint32_t size;        /* of the relinked image's headers */
	uint32_t added;       /* sections behind the original's */
	bool aligned;         /* the file alignment has changed */
};

static uint64_t align_up(uint64_t value, uint32_t alignment)
{
	return alignment ? (value + alignment - 1) / alignment * alignment : value;
}

static bool all_zero(const uint8_t *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Takes a field's new value as expected; its rule has been checked. */
static void accept(struct heads *h, uint32_t offset, uint32_t size)
{
	if (offset < h->size && size <= h->size - offset)
		memcpy(h->expected + offset, h->found + offset, size);
}

static enum status fail_field(struct heads *h, uint32_t offset, uint64_t expected,
			      uint64_t found, const char *name)
{
	return verify_differs(h->v, rva_of(offset), expected, found, "header field '%s'",
			      name);
}

static enum status check_shape(struct heads *h)
{
	const struct pe_headers *a = h->old_head, *b = h->new_head;
	uint32_t old_count = h->v->old_image->section_count;
	uint32_t new_count = h->v->new_image->section_count;

	if (a->pe.v != b->pe.v || a->section_table.v != b->section_table.v ||
	    a->optional.v != b->optional.v || a->directories.v != b->directories.v)
		return verify_differs(h->v, rva_of(0), a->pe.v, b->pe.v,
				      "the headers stand at another place");
	if (new_count < old_count || new_count - old_count > ADDED_SECTIONS_MAX)
		return fail_field(h, a->pe.v + 4 + FILE_HEADER_SECTION_COUNT, old_count,
				  new_count, "NumberOfSections");
	h->added = new_count - old_count;
	accept(h, a->pe.v + 4 + FILE_HEADER_SECTION_COUNT, 2);
	return STATUS_OK;
}

static enum status check_entry(struct heads *h)
{
	uint32_t at = h->old_head->optional.v + OPTIONAL_ENTRY;
	struct rva expected = h->old_head->entry;

	if (expected.v)
		expected = verify_map(h->v, expected);
	if (h->new_head->entry.v != expected.v)
		return fail_field(h, at, expected.v, h->new_head->entry.v,
				  "AddressOfEntryPoint");
	accept(h, at, 4);
	return STATUS_OK;
}

/* The raw sizes of the added sections that have `flag`. */
static uint64_t added_sizes(const struct verifier *v, uint32_t flag)
{
	const struct image *image = v->new_image;
	uint64_t sum = 0;

	for (uint32_t i = v->old_image->section_count; i < image->section_count; i++)
		if (image->sections[i].characteristics & flag)
			sum += image->sections[i].raw_size;
	return sum;
}

/* SizeOfCode and SizeOfInitializedData grow by the added sections. */
static enum status check_sum(struct heads *h, uint32_t offset, uint32_t flag,
			     const char *name)
{
	uint32_t at = h->old_head->optional.v + offset;
	/* Nothing goes by these fields, so they may hold anything before. */
	uint32_t expected =
		(uint32_t)(load_u32(h->expected + at) + added_sizes(h->v, flag));

	if (load_u32(h->found + at) != expected)
		return fail_field(h, at, expected, load_u32(h->found + at), name);
	accept(h, at, 4);
	return STATUS_OK;
}

static enum status check_alignment(struct heads *h)
{
	uint32_t at = h->old_head->optional.v + OPTIONAL_FILE_ALIGNMENT;
	uint32_t is = h->new_head->file_alignment;

	h->aligned = is != h->old_head->file_alignment;
	if (h->aligned && (is < FILE_ALIGNMENT_MIN || is > FILE_ALIGNMENT_MAX ||
			   (is & (is - 1)) != 0 || is > h->new_head->section_alignment))
		return fail_field(h, at, h->old_head->file_alignment, is, "FileAlignment");
	accept(h, at, 4);
	return STATUS_OK;
}

static enum status check_image_sizes(struct heads *h)
{
	const struct image *old_image = h->v->old_image, *image = h->v->new_image;
	const struct section *last = &image->sections[image->section_count - 1];
	const struct section *old_last = &old_image->sections[old_image->section_count - 1];
	uint32_t optional = h->old_head->optional.v;
	uint64_t end = align_up((uint64_t)last->rva.v + last->virtual_size,
				h->new_head->section_alignment);
	uint32_t headers = h->new_head->size_of_headers;

	/* Some images are longer than their last section asks for. */
	if (last->rva.v == old_last->rva.v &&
	    h->new_head->size_of_image == h->old_head->size_of_image)
		end = h->old_head->size_of_image;
	if (h->new_head->size_of_image != end)
		return fail_field(h, optional + OPTIONAL_SIZE_OF_IMAGE, end,
				  h->new_head->size_of_image, "SizeOfImage");
	accept(h, optional + OPTIONAL_SIZE_OF_IMAGE, 4);
	if (headers != h->old_head->size_of_headers &&
	    (headers < h->old_head->size_of_headers ||
	     headers % h->new_head->file_alignment != 0 ||
	     headers > image->sections[0].rva.v))
		return fail_field(h, optional + OPTIONAL_SIZE_OF_HEADERS,
				  h->old_head->size_of_headers, headers, "SizeOfHeaders");
	accept(h, optional + OPTIONAL_SIZE_OF_HEADERS, 4);
	return STATUS_OK;
}

/* Whether the range lies in the data of a section that the original has not. */
static bool in_added_section(const struct verifier *v, struct data_directory directory)
{
	for (uint32_t i = v->old_image->section_count; i < v->new_image->section_count;
	     i++) {
		const struct section *section = &v->new_image->sections[i];

		if (rva_in(directory.rva, section->rva, verify_data_size(section)))
			return directory.size <= verify_data_size(section) -
							 (directory.rva.v - section->rva.v);
	}
	return false;
}

/* The bound import table may be gone where a section header needs its room: it
 * only speeds up loading, and for other builds of the DLLs not even that. */
static bool bound_imports_gone(struct heads *h, struct data_directory was,
			       struct data_directory is)
{
	if (h->added == 0 || is.rva.v != 0 || is.size != 0 || was.rva.v >= h->size ||
	    was.size > h->size - was.rva.v ||
	    was.rva.v < h->old_head->section_table.v +
				h->v->old_image->section_count * SECTION_HEADER_BYTES)
		return false;
	memset(h->expected + was.rva.v, 0, was.size);
	return true;
}

/* Relocations may need another size, and another place when they grow; the
 * function table may move as a whole; the certificate is gone. */
static enum status check_directories(struct heads *h)
{
	const struct data_directory *was = h->v->old_image->directories;
	const struct data_directory *is = h->v->new_image->directories;
	uint32_t at = h->old_head->directories.v;

	for (uint32_t i = 0; i < h->old_head->directory_count; i++, at += 8) {
		bool stays = was[i].rva.v == is[i].rva.v;
		bool moves = in_added_section(h->v, is[i]);

		if (i == DIRECTORY_CERTIFICATE && all_zero(h->found + at, 8))
			accept(h, at, 8);
		else if (i == DIRECTORY_CERTIFICATE)
			return fail_field(h, at, 0, is[i].rva.v, "certificate directory");
		else if (i == DIRECTORY_RELOCATION && was[i].rva.v && (stays || moves))
			accept(h, at, 8);
		else if (i == DIRECTORY_EXCEPTION && moves && was[i].size == is[i].size)
			accept(h, at, 8);
		else if (i == DIRECTORY_BOUND_IMPORT && was[i].size &&
			 bound_imports_gone(h, was[i], is[i]))
			accept(h, at, 8);
	}
	return STATUS_OK;
}

static enum status check_symbol_table(struct heads *h)
{
	uint32_t at = h->old_head->pe.v + 4 + FILE_HEADER_SYMBOL_TABLE;

	if (!h->old_head->symbol_table.v != !h->new_head->symbol_table.v)
		return fail_field(h, at, h->old_head->symbol_table.v,
				  h->new_head->symbol_table.v, "PointerToSymbolTable");
	if (coff_symbols_present(h->v->old_image) && coff_symbols_present(h->v->new_image))
		accept(h, at, 4);
	return STATUS_OK;
}

/* A section of the original: the place in the file may change, and its size there
 * as far as the alignment asks for it.  A virtual size of 0 means the raw size
 * (observed: Windows' loader), so it may be spelt out. */
static enum status check_section(struct heads *h, uint32_t index)
{
	const struct section *was = &h->v->old_image->sections[index];
	const struct section *is = &h->v->new_image->sections[index];
	uint32_t at = is->header.v, alignment = h->new_head->file_alignment;

	if (is->raw_size && is->raw.v % alignment != 0 && is->raw.v != was->raw.v)
		return fail_field(h, at + ROW_RAW_OFFSET, was->raw.v, is->raw.v,
				  "PointerToRawData");
	accept(h, at + ROW_RAW_OFFSET, 4);
	if (is->raw_size != was->raw_size &&
	    is->raw_size != align_up(was->raw_size, alignment))
		return fail_field(h, at + ROW_RAW_SIZE, align_up(was->raw_size, alignment),
				  is->raw_size, "SizeOfRawData");
	accept(h, at + ROW_RAW_SIZE, 4);
	if (load_u32(h->expected + at + ROW_VIRTUAL_SIZE) == 0 &&
	    is->virtual_size == was->virtual_size)
		accept(h, at + ROW_VIRTUAL_SIZE, 4);
	return STATUS_OK;
}

/* A name of printable characters, filled up with zeros. */
static bool is_name(const uint8_t *name)
{
	uint32_t length = 0;

	while (length < 8 && name[length] > ' ' && name[length] <= '~')
		length++;
	return length > 0 && all_zero(name + length, 8 - length);
}

/* What a section of ours may be: code, or data that is only read. */
static bool is_known_kind(uint32_t characteristics)
{
	return characteristics == (SECTION_CODE | SECTION_EXECUTE | SECTION_READ) ||
	       (characteristics & ~(uint32_t)SECTION_DISCARDABLE) ==
		       (SECTION_INITIALIZED | SECTION_READ);
}

/* A section that the original has not: in a free row, well-formed, never both
 * writable and executable. */
static enum status check_added_section(struct heads *h, uint32_t index)
{
	const struct section *section = &h->v->new_image->sections[index];
	const struct section *before = section - 1;
	uint32_t at = section->header.v, flags = section->characteristics;
	uint64_t rva = align_up((uint64_t)before->rva.v + before->virtual_size,
				h->new_head->section_alignment);

	if (at > h->size || h->size - at < SECTION_HEADER_BYTES)
		return verify_fail(h->v, rva_of(at), "a section header leaves the headers");
	if (!all_zero(h->expected + at, SECTION_HEADER_BYTES))
		return verify_fail(h->v, rva_of(at),
				   "a new section header covers other data");
	if (section->rva.v < rva || section->rva.v % h->new_head->section_alignment != 0)
		return verify_differs(h->v, rva_of(at), rva, section->rva.v,
				      "the address of the new section '%s'", section->name);
	if ((flags & SECTION_WRITE) && (flags & SECTION_EXECUTE))
		return verify_fail(h->v, rva_of(at),
				   "the new section '%s' is writable and executable",
				   section->name);
	if (!is_known_kind(flags) || !is_name(h->found + at) ||
	    !all_zero(h->found + at + ROW_ZERO_FROM, ROW_ZERO_TO - ROW_ZERO_FROM) ||
	    section->raw.v % h->new_head->file_alignment != 0 ||
	    section->raw_size % h->new_head->file_alignment != 0)
		return verify_fail(h->v, rva_of(at), "the new section '%s' is malformed",
				   section->name);
	accept(h, at, SECTION_HEADER_BYTES);
	return STATUS_OK;
}

static enum status check_sections(struct heads *h)
{
	uint32_t count = h->v->old_image->section_count;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < count + h->added && status == STATUS_OK; i++)
		status = i < count ? check_section(h, i) : check_added_section(h, i);
	return status;
}

/* Sums 32-bit words: as 2^16 is 1 modulo 2^16 - 1, folding at the end gives what
 * adding 16-bit words with end-around carry gives. */
static uint32_t checksum(const uint8_t *bytes, size_t size, size_t field)
{
	uint64_t sum = 0;
	size_t i = 0;

	for (; i + 4 <= size; i += 4)
		sum += load_u32(bytes + i);
	for (unsigned shift = 0; i < size; i++, shift += 8)
		sum += (uint64_t)bytes[i] << shift;
	/* The field counts as 0; it may stand across two of the words above. */
	for (unsigned k = 0; k < 4; k++)
		sum -= (uint64_t)bytes[field + k] << 8 * ((field + k) % 4);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)(sum + size);
}

static enum status check_checksum(struct heads *h)
{
	uint32_t at = h->new_head->optional.v + OPTIONAL_CHECKSUM;
	uint32_t sum = checksum(h->v->new_image->bytes, h->v->new_image->size, at);

	if (h->new_head->checksum != sum)
		return fail_field(h, at, sum, h->new_head->checksum, "CheckSum");
	accept(h, at, 4);
	return STATUS_OK;
}

static enum status check_all(struct heads *h)
{
	static enum status (*const checks[])(struct heads *) = {
		check_shape,       check_entry,        check_alignment, check_image_sizes,
		check_directories, check_symbol_table, check_sections,
	};
	enum status status = STATUS_OK;

	for (size_t i = 0; status == STATUS_OK && i < sizeof(checks) / sizeof(checks[0]);
	     i++)
		status = checks[i](h);
	if (status == STATUS_OK)
		status = check_sum(h, OPTIONAL_SIZE_OF_CODE, SECTION_CODE, "SizeOfCode");
	if (status == STATUS_OK)
		status = check_sum(h, OPTIONAL_SIZE_OF_INITIALIZED_DATA,
				   SECTION_INITIALIZED, "SizeOfInitializedData");
	if (status == STATUS_OK)
		status = check_checksum(h);
	return status;
}

enum status verify_headers(struct verifier *v)
{
	const struct image *old_image = v->old_image, *image = v->new_image;
	uint32_t old_size = old_image->headers.size_of_headers;
	struct heads h = {
		.v = v,
		.old_head = &old_image->headers,
		.new_head = &image->headers,
		.found = image->bytes,
		.size = image->headers.size_of_headers,
	};
	enum status status;

	if (old_size > old_image->size || h.size > image->size || h.size < old_size)
		return verify_differs(v, rva_of(0), old_size, h.size,
				      "header field 'SizeOfHeaders'");
	h.expected = calloc(1, h.size ? h.size : 1);
	if (!h.expected)
		return diag_no_memory(v->diag);
	memcpy(h.expected, old_image->bytes, old_size);
	status = check_all(&h);
	for (uint32_t i = 0; status == STATUS_OK && i < h.size; i++)
		if (h.expected[i] != h.found[i])
			status = verify_differs(v, rva_of(i), h.expected[i], h.found[i],
						"a header byte has changed");
	free(h.expected);
	return status;
}
