/* Assembling a PE file.
 *
 * The headers are emitted as they were, with the fields that changed.  Raw data
 * follows in the order of the original file, each section at the next multiple of
 * the file alignment, then the overlay (mingw images keep their COFF symbol and
 * string tables there).  Every file offset that the format holds is moved along:
 * PointerToRawData of sections and debug entries, PointerToSymbolTable.  A
 * certificate table is dropped, since no signature survives a changed byte
 * (PE/COFF specification, "The Attribute Certificate Table").
 */
#include "layout/image_file.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "pe/coff_symbols.h"

enum {
	DEBUG_SIZE = 16, /* of SizeOfData in a debug entry */
	SECTION_LIMIT = 96, /* what Windows' loader takes; PE/COFF specification, "COFF File Header" */
	PAGE_BYTES = 4096,
	HUGE_PAGE_BYTES = 1 << 21,
	LARGE_OUTPUT = 8 << 20, /* from here on one huge page more is little */
};

static uint64_t align_up(uint64_t value, uint32_t alignment)
{
	return (value + alignment - 1) / alignment * alignment;
}

/* Where the data of the sections ends in the original. */
static uint32_t sections_end(const struct image *image)
{
	uint32_t end = image->headers.size_of_headers;

	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (section->raw_size && section->raw.v + section->raw_size > end)
			end = section->raw.v + section->raw_size;
	}
	return end < image->size ? end : (uint32_t)image->size;
}

/* The section whose data begins first at or behind `off`, or NULL. */
static const struct section *next_raw(const struct image *image, uint32_t off)
{
	const struct section *next = NULL;

	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (section->raw_size && section->raw.v >= off &&
		    (!next || section->raw.v < next->raw.v))
			next = section;
	}
	return next;
}

static enum status check_zero(const struct image *image, uint64_t from, uint64_t to,
			      struct diag *diag)
{
	for (uint64_t i = from; i < to; i++)
		if (image->bytes[i])
			return diag_fail(diag, STATUS_UNSUPPORTED,
					 "the bytes at file offset 0x%llx are no "
					 "section's, and no overlay",
					 (unsigned long long)i);
	return STATUS_OK;
}

/* What stands between the sections' data, or behind the certificate, would be lost. */
static enum status check_stray_bytes(const struct image *image, uint32_t overlay_end,
				     struct diag *diag)
{
	struct data_directory certificate = image->directories[DIRECTORY_CERTIFICATE];
	uint64_t symbols = image->headers.symbol_table.v +
			   (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;
	uint32_t at = image->headers.size_of_headers;
	const struct section *next;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && (next = next_raw(image, at))) {
		status = check_zero(image, at, next->raw.v, diag);
		at = next->raw.v + next->raw_size;
	}
	if (status == STATUS_OK && overlay_end < image->size)
		status = check_zero(image, (uint64_t)certificate.rva.v + certificate.size,
				    image->size, diag);
	if (status == STATUS_OK && coff_symbols_present(image) && symbols > overlay_end)
		status = diag_fail(diag, STATUS_MALFORMED,
				   "the symbol table reaches into the signature");
	return status;
}

static enum status take_overlay(struct image_file *file, struct diag *diag)
{
	const struct image *image = file->source;
	struct data_directory *certificate = &file->directories[DIRECTORY_CERTIFICATE];
	uint32_t begin = sections_end(image), end = (uint32_t)image->size;
	enum status status;

	if (certificate->size) {
		file->had_certificate = true;
		/* Its "RVA" is a file offset; it stands at the file's end. */
		if (certificate->rva.v && certificate->rva.v < begin)
			return diag_fail(diag, STATUS_MALFORMED,
					 "the signature begins before the sections' data "
					 "ends");
		if (certificate->rva.v >= begin && certificate->rva.v < end)
			end = certificate->rva.v;
	}
	status = check_stray_bytes(image, end, diag);
	if (status != STATUS_OK)
		return status;
	*certificate = (struct data_directory){0};
	file->overlay_off = file_off_of(begin);
	file->overlay_size = end - begin;
	file->overlay = malloc((size_t)file->overlay_size + 1);
	if (!file->overlay)
		return diag_no_memory(diag);
	return STATUS_OK;
}

static enum status take_section(struct image_file *file, const struct section *section,
				struct diag *diag)
{
	struct file_section taken = {.rva = section->rva, .virtual_size = section->virtual_size,
				     .characteristics = section->characteristics,
				     .data_size = section->raw_size, .old_raw = section->raw};

	memcpy(taken.name, file->source->bytes + section->header.v, sizeof(taken.name));
	taken.data = malloc((size_t)taken.data_size + 1);
	memory_prefer_huge(taken.data, taken.data_size);
	if (!taken.data || !vec_push(&file->sections, taken)) {
		free(taken.data);
		return diag_no_memory(diag);
	}
	return STATUS_OK;
}

enum status image_file_init(struct image_file *file, const struct image *image,
			    struct diag *diag)
{
	enum status status = STATUS_OK;

	memset(file, 0, sizeof(*file));
	file->source = image;
	file->file_alignment = image->headers.file_alignment;
	file->headers_size = image->headers.size_of_headers;
	memcpy(file->directories, image->directories, sizeof(file->directories));
	file->headers = malloc((size_t)file->headers_size + 1);
	if (!file->headers)
		return diag_no_memory(diag);
	memcpy(file->headers, image->bytes, file->headers_size);
	for (uint32_t i = 0; i < image->section_count && status == STATUS_OK; i++)
		status = take_section(file, &image->sections[i], diag);
	if (status == STATUS_OK)
		status = take_overlay(file, diag);
	if (status != STATUS_OK)
		image_file_release(file);
	return status;
}

void image_file_release(struct image_file *file)
{
	for (uint32_t i = 0; i < file->sections.len; i++)
		free(file->sections.data[i].data);
	vec_release(&file->sections);
	free(file->headers);
	free(file->overlay);
	memset(file, 0, sizeof(*file));
}

uint32_t image_file_section_at(const struct image_file *file, struct rva rva)
{
	uint32_t low = 0, high = file->sections.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (file->sections.data[middle].rva.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && rva_in(rva, file->sections.data[low - 1].rva,
				 file->sections.data[low - 1].virtual_size)
		       ? low - 1
		       : UINT32_MAX;
}

/* The memory was allocated before; the kernel gives it when it is first written. */
static uint8_t *editable_data(struct image_file *file, struct file_section *section)
{
	if (!section->edited && section->data_size)
		memcpy(section->data, file->source->bytes + section->old_raw.v,
		       section->data_size);
	section->edited = true;
	return section->data;
}

static uint8_t *editable_overlay(struct image_file *file)
{
	if (!file->overlay_edited)
		memcpy(file->overlay, file->source->bytes + file->overlay_off.v,
		       file->overlay_size);
	file->overlay_edited = true;
	return file->overlay;
}

uint8_t *image_file_at(struct image_file *file, struct rva rva, uint32_t size)
{
	uint32_t index = image_file_section_at(file, rva);
	struct file_section *section;
	uint32_t offset;

	if (index == UINT32_MAX) {
		if (rva.v > file->headers_size || file->headers_size - rva.v < size)
			return NULL;
		return file->headers + rva.v;
	}
	section = &file->sections.data[index];
	offset = rva.v - section->rva.v;
	if (offset > section->data_size || section->data_size - offset < size)
		return NULL;
	return editable_data(file, section) + offset;
}

static bool holds(uint32_t begin, uint32_t length, uint32_t off, uint32_t size)
{
	return off >= begin && off - begin <= length && length - (off - begin) >= size;
}

uint8_t *image_file_at_offset(struct image_file *file, struct file_off off, uint32_t size)
{
	for (uint32_t i = 0; i < file->sections.len; i++) {
		struct file_section *section = &file->sections.data[i];

		if (section->old_raw.v && holds(section->old_raw.v, section->data_size, off.v, size))
			return editable_data(file, section) + (off.v - section->old_raw.v);
	}
	if (holds(file->overlay_off.v, file->overlay_size, off.v, size))
		return editable_overlay(file) + (off.v - file->overlay_off.v);
	return off.v <= file->headers_size && file->headers_size - off.v >= size
		       ? file->headers + off.v
		       : NULL;
}

enum status image_file_add_section(struct image_file *file, const char *name, uint32_t size,
				   uint8_t fill, uint32_t characteristics,
				   struct rva *ret_rva, struct diag *diag)
{
	const struct file_section *last = &file->sections.data[file->sections.len - 1];
	uint64_t rva = align_up((uint64_t)last->rva.v + last->virtual_size,
				file->source->headers.section_alignment);
	struct file_section section = {.virtual_size = size, .characteristics = characteristics,
				       .data_size = size, .edited = true};

	assert(size > 0 && strlen(name) <= sizeof(section.name));
	if (file->sections.len >= SECTION_LIMIT || rva + size > UINT32_MAX / 2)
		return diag_fail(diag, STATUS_NO_ROOM, "no room for one more section");
	section.rva = rva_of((uint32_t)rva);
	memcpy(section.name, name, strlen(name));
	section.data = malloc(size);
	if (!section.data || !vec_push(&file->sections, section)) {
		free(section.data);
		return diag_no_memory(diag);
	}
	memset(section.data, fill, size);
	*ret_rva = section.rva;
	return STATUS_OK;
}

/* Where each part of the original file goes. */
struct file_plan {
	uint32_t *raw;          /* new PointerToRawData of each section */
	uint32_t headers_size;  /* bytes, aligned */
	uint32_t data;          /* where the first section's data begins, or the overlay */
	uint32_t overlay;       /* new offset */
	size_t size;            /* bytes of the file */
};

/* Sections by their place in the original file, new ones last. */
static int compare_places(const struct file_section *a, const struct file_section *b)
{
	uint32_t x = a->old_raw.v ? a->old_raw.v : UINT32_MAX;
	uint32_t y = b->old_raw.v ? b->old_raw.v : UINT32_MAX;

	return x < y ? -1 : x > y;
}

static void sort_places(const struct image_file *file, uint32_t *order)
{
	for (uint32_t i = 0; i < file->sections.len; i++) {
		uint32_t at = i;

		while (at > 0 && compare_places(&file->sections.data[order[at - 1]],
						&file->sections.data[i]) > 0) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
}

/* An image whose sections need no page of their own is mapped as one piece: its data
 * must stand in the file where it stands in memory (PE/COFF specification, "Optional
 * Header Windows-Specific Fields", SectionAlignment and FileAlignment). */
static enum status check_low_alignment(const struct image_file *file,
				       const struct file_plan *plan, struct diag *diag)
{
	if (file->source->headers.section_alignment >= PAGE_BYTES)
		return STATUS_OK;
	for (uint32_t i = 0; i < file->sections.len; i++)
		if (file->sections.data[i].data_size &&
		    plan->raw[i] != file->sections.data[i].rva.v)
			return diag_fail_at(diag, STATUS_NO_ROOM, file->sections.data[i].rva,
					    "no room in an image whose sections stand in the "
					    "file as in memory");
	return STATUS_OK;
}

static enum status plan_file(const struct image_file *file, struct file_plan *plan,
			     struct diag *diag)
{
	const struct pe_headers *headers = &file->source->headers;
	uint32_t table_end = headers->section_table.v + file->sections.len * SECTION_HEADER_BYTES;
	uint32_t order[SECTION_LIMIT];
	uint64_t at = headers->size_of_headers;

	assert(file->sections.len <= SECTION_LIMIT);
	if (table_end > at || file->file_alignment != headers->file_alignment)
		at = align_up(table_end > at ? table_end : at, file->file_alignment);
	if (at > file->sections.data[0].rva.v)
		return diag_fail(diag, STATUS_NO_ROOM,
				 "no room for the section table before the first section");
	plan->headers_size = (uint32_t)at;
	plan->raw = calloc(file->sections.len, sizeof(*plan->raw));
	if (!plan->raw)
		return diag_no_memory(diag);
	sort_places(file, order);
	for (uint32_t i = 0; i < file->sections.len; i++) {
		const struct file_section *section = &file->sections.data[order[i]];

		if (section->data_size == 0)
			continue;
		at = align_up(at, file->file_alignment);
		plan->raw[order[i]] = (uint32_t)at;
		at += align_up(section->data_size, file->file_alignment);
	}
	plan->overlay = (uint32_t)at;
	plan->data = plan->overlay;
	for (uint32_t i = 0; i < file->sections.len; i++)
		if (file->sections.data[i].data_size && plan->raw[i] < plan->data)
			plan->data = plan->raw[i];
	plan->size = at + file->overlay_size;
	if (plan->size > INT32_MAX)
		return diag_fail(diag, STATUS_NO_ROOM, "the output would exceed 2 GiB");
	return check_low_alignment(file, plan, diag);
}

/* The new place of a byte that stood at `off`. */
static uint32_t moved_offset(const struct image_file *file, const struct file_plan *plan,
			     uint32_t off)
{
	for (uint32_t i = 0; i < file->sections.len; i++) {
		const struct file_section *section = &file->sections.data[i];

		if (section->old_raw.v && holds(section->old_raw.v, section->data_size, off, 1))
			return plan->raw[i] + (off - section->old_raw.v);
	}
	if (off >= file->overlay_off.v)
		return plan->overlay + (off - file->overlay_off.v);
	return off;
}

/* The debug entries' pointers to their raw data. */
static void move_debug_offsets(struct image_file *file, const struct file_plan *plan)
{
	struct data_directory *debug = &file->directories[DIRECTORY_DEBUG];

	for (uint32_t at = 0; at + DEBUG_ENTRY_BYTES <= debug->size; at += DEBUG_ENTRY_BYTES) {
		uint8_t *entry = image_file_at(file, rva_add(debug->rva, at), DEBUG_ENTRY_BYTES);

		if (entry && load_u32(entry + DEBUG_SIZE) && load_u32(entry + 24))
			store_u32(entry + 24, moved_offset(file, plan, load_u32(entry + 24)));
	}
}

/* What stands between the section table and the end of the headers makes way for
 * new rows only when it is the bound import table, which is no longer true. */
static enum status clear_table_room(struct image_file *file, struct diag *diag)
{
	const struct pe_headers *headers = &file->source->headers;
	struct data_directory *bound = &file->directories[DIRECTORY_BOUND_IMPORT];
	uint32_t old_end = headers->section_table.v +
			   file->source->section_count * SECTION_HEADER_BYTES;
	uint32_t new_end = headers->section_table.v + file->sections.len * SECTION_HEADER_BYTES;

	if (new_end == old_end)
		return STATUS_OK;
	if (bound->size && bound->rva.v >= old_end && bound->rva.v < file->headers_size &&
	    bound->size <= file->headers_size - bound->rva.v) {
		memset(file->headers + bound->rva.v, 0, bound->size);
		*bound = (struct data_directory){0};
	}
	for (uint32_t i = old_end; i < new_end && i < file->headers_size; i++)
		if (file->headers[i])
			return diag_fail(diag, STATUS_NO_ROOM,
					 "no room for one more section header");
	return STATUS_OK;
}

static void write_section_row(uint8_t *row, const struct file_section *section, uint32_t raw,
			      uint32_t file_alignment)
{
	memcpy(row, section->name, sizeof(section->name));
	store_u32(row + 8, section->virtual_size);
	store_u32(row + 12, section->rva.v);
	store_u32(row + 16, (uint32_t)align_up(section->data_size, file_alignment));
	store_u32(row + 20, raw);
	store_u32(row + 36, section->characteristics);
}

/* SizeOfCode and SizeOfInitializedData grow by what was added (PE/COFF
 * specification, "Optional Header Standard Fields"). */
static void add_sizes(const struct image_file *file, uint8_t *optional)
{
	uint32_t code = load_u32(optional + OPTIONAL_SIZE_OF_CODE);
	uint32_t data = load_u32(optional + OPTIONAL_SIZE_OF_INITIALIZED_DATA);

	for (uint32_t i = file->source->section_count; i < file->sections.len; i++) {
		const struct file_section *section = &file->sections.data[i];
		uint32_t size = (uint32_t)align_up(section->data_size, file->file_alignment);

		if (section->characteristics & SECTION_CODE)
			code += size;
		else
			data += size;
	}
	store_u32(optional + OPTIONAL_SIZE_OF_CODE, code);
	store_u32(optional + OPTIONAL_SIZE_OF_INITIALIZED_DATA, data);
}

static void write_headers(const struct image_file *file, const struct file_plan *plan,
			  uint8_t *bytes)
{
	const struct pe_headers *headers = &file->source->headers;
	const struct file_section *last = &file->sections.data[file->sections.len - 1];
	uint8_t *coff = bytes + headers->pe.v + 4, *optional = bytes + headers->optional.v;

	memcpy(bytes, file->headers, file->headers_size);
	memset(bytes + file->headers_size, 0, plan->data - file->headers_size);
	store_u16(coff + FILE_HEADER_SECTION_COUNT, (uint16_t)file->sections.len);
	if (coff_symbols_present(file->source))
		store_u32(coff + FILE_HEADER_SYMBOL_TABLE,
			  moved_offset(file, plan, headers->symbol_table.v));
	store_u32(optional + OPTIONAL_FILE_ALIGNMENT, file->file_alignment);
	store_u32(optional + OPTIONAL_SIZE_OF_HEADERS, plan->headers_size);
	store_u32(optional + OPTIONAL_SIZE_OF_IMAGE,
		  (uint32_t)align_up((uint64_t)last->rva.v + last->virtual_size,
				     headers->section_alignment));
	add_sizes(file, optional);
	/* A row that says nothing may hold anything: what has not changed stays. */
	for (uint32_t i = 0; i < headers->directory_count; i++) {
		if (i != DIRECTORY_CERTIFICATE &&
		    memcmp(&file->directories[i], &file->source->directories[i],
			   sizeof(file->directories[i])) == 0)
			continue;
		store_u32(bytes + headers->directories.v + 8 * i, file->directories[i].rva.v);
		store_u32(bytes + headers->directories.v + 8 * i + 4, file->directories[i].size);
	}
	for (uint32_t i = 0; i < file->sections.len; i++)
		write_section_row(bytes + headers->section_table.v + i * SECTION_HEADER_BYTES,
				  &file->sections.data[i], plan->raw[i], file->file_alignment);
}

/* The checksum of a file whose CheckSum field holds 0 (observed: what Windows'
 * CheckSumMappedFile and GNU ld compute; the specification names only the field):
 * 16-bit words added with end-around carry, plus the size.  Summing 32-bit words and
 * folding once at the end gives the same, since 2^16 is 1 modulo 2^16 - 1. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
	uint64_t sum = 0;
	size_t at = 0;

	for (; size - at >= 4; at += 4)
		sum += load_u32(bytes + at);
	for (unsigned shift = 0; at < size; at++, shift += 8)
		sum += (uint32_t)bytes[at] << shift;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum + (uint32_t)size;
}

/* What is edited, or else the original's, of which little is read after that. */
static void write_data(const struct image_file *file, const struct file_plan *plan,
		       uint8_t *bytes)
{
	const uint8_t *source = file->source->bytes;

	for (uint32_t i = 0; i < file->sections.len; i++) {
		const struct file_section *section = &file->sections.data[i];
		uint64_t padded = align_up(section->data_size, file->file_alignment);

		if (section->data_size == 0)
			continue;
		memcpy(bytes + plan->raw[i],
		       section->edited ? section->data : source + section->old_raw.v,
		       section->data_size);
		memset(bytes + plan->raw[i] + section->data_size, 0,
		       padded - section->data_size);
		mapped_file_forget(&file->source->file, section->old_raw.v,
				   section->data_size);
	}
	memcpy(bytes + plan->overlay,
	       file->overlay_edited ? file->overlay : source + file->overlay_off.v,
	       file->overlay_size);
	mapped_file_forget(&file->source->file, file->overlay_off.v, file->overlay_size);
}

/* Memory that is written whole, from begin to end: huge pages spare a large output
 * thousands of page faults.  free() gives it back. */
static uint8_t *output_alloc(size_t size)
{
	size_t aligned = align_up(size, HUGE_PAGE_BYTES);
	uint8_t *bytes;

	if (size < LARGE_OUTPUT)
		return malloc(size);
	bytes = aligned_alloc(HUGE_PAGE_BYTES, aligned);
	if (bytes)
		madvise(bytes, aligned, MADV_HUGEPAGE);
	return bytes;
}

enum status image_file_emit(struct image_file *file, uint8_t **ret_bytes, size_t *ret_size,
			    struct diag *diag)
{
	size_t checksum_off = file->source->headers.optional.v + OPTIONAL_CHECKSUM;
	struct file_plan plan = {0};
	uint8_t *bytes = NULL;
	enum status status = clear_table_room(file, diag);

	if (status == STATUS_OK)
		status = plan_file(file, &plan, diag);
	if (status != STATUS_OK)
		goto out;
	bytes = output_alloc(plan.size);
	if (!bytes) {
		status = diag_no_memory(diag);
		goto out;
	}
	move_debug_offsets(file, &plan);
	write_headers(file, &plan, bytes);
	write_data(file, &plan, bytes);
	store_u32(bytes + checksum_off, 0);
	store_u32(bytes + checksum_off, checksum(bytes, plan.size));
	*ret_bytes = bytes;
	*ret_size = plan.size;
out:
	free(plan.raw);
	return status;
}
