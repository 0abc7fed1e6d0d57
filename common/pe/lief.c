/* Headers, sections and imports, read by LIEF from a skeleton of the file.
 *
 * LIEF 0.9.0 cannot be shown an untrusted or a big file.  Its C API lets C++
 * exceptions out, which end the process; it follows every directory (exports,
 * TLS, load configuration, relocations, debug data, resources, signature,
 * symbols) with few checks; it copies the content of each section three times
 * and computes its entropy (0.8 s for a DLL of 26 MB).
 *
 * So it gets a small file in memory (memfd) that has what we ask it for:
 *
 *     MS-DOS header     64 bytes, no stub, no Rich header
 *     PE headers        the file's; of the directories only the import one, no
 *                       symbol table, alignments cut to a page
 *     section table     first the windows, then the file's own rows
 *     windows           whole pages
 *
 * A window is a run of pages that the walk of import_check.c has touched, as a
 * section of its own at its true RVA.  LIEF turns an RVA into an offset by the
 * first section that holds it, so it reads the import tables where they are in
 * the image, byte for byte, while the true sections have their names, RVAs,
 * sizes and flags but no raw data.  Without windows an import table at the end
 * of a big .rdata would drag the whole section along.  Windows have a raw size
 * of 0 too: LIEF reads them by offset all the same, and then copies nothing.
 *
 * One field is patched: a lookup table that is missing (0) is replaced by the
 * address table, which has the same words in the file; LIEF would read only the
 * first symbol otherwise.
 *
 * What the skeleton had to change comes from the checked header instead: where
 * things lie in the file (raw data, symbol table, headers), the alignments, and
 * the data directories, which LIEF would follow if it were told.  What LIEF
 * answers is compared in number with what import_check counted, so that a
 * version that skips something is noticed.
 *
 * Cost: 0.2 to 0.7 ms to open a DLL with up to some hundred imports, whatever its
 * size (libstdc++-6.dll has 23 MB).  What is left: memory that runs out inside of
 * LIEF still ends the process.
 *
 * Rejected: a sparse memory file with everything in its place (LIEF reads a file
 * whole, hole or not); blanking tables in a copy of the file (as long as the
 * file, and unsafe with the next version of LIEF); a process of its own for LIEF,
 * which stands the exceptions but costs a protocol.
 *
 * Sources: observed with LIEF 0.9.0 (Debian 12), and its source of that version:
 * src/PE/Parser.tcc, src/PE/Binary.cpp (rva_to_offset), api/c/PE.
 */
#include "pe/lief.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* LIEF/types.h makes `bool` an int for C, but the library fills in C++ bools of
 * one byte and leaves the rest of the int as it was.  Its guard keeps it out, so
 * that stdbool.h's type of one byte stands in the structures. */
#define LIEF_C_TYPES_H_
#include <LIEF/PE.h>
#include <LIEF/version.h>

#include "pe/import_check.h"

enum {
	PE_OFFSET = 64,
	OPTIONAL_OFFSET = PE_OFFSET + 4 + FILE_HEADER_BYTES,
	OPTIONAL_BYTES = OPTIONAL_DIRECTORIES + DIRECTORY_COUNT * 8,
	TABLE_OFFSET = OPTIONAL_OFFSET + OPTIONAL_BYTES,
};

struct skeleton {
	uint8_t *bytes; /* owned */
	size_t size;
	uint32_t sections; /* rows of the section table */
};

static uint32_t at_most_page(uint32_t alignment)
{
	return alignment < IMPORT_PAGE_BYTES ? alignment : IMPORT_PAGE_BYTES;
}

static void put_headers(const struct image *image, struct skeleton *skeleton)
{
	const struct pe_headers *h = &image->headers;
	const struct data_directory *import = &image->directories[DIRECTORY_IMPORT];
	uint8_t *file_header = skeleton->bytes + PE_OFFSET + 4;
	uint8_t *optional = skeleton->bytes + OPTIONAL_OFFSET;
	uint8_t *directory = optional + OPTIONAL_DIRECTORIES + DIRECTORY_IMPORT * 8;

	memcpy(skeleton->bytes, "MZ", 2);
	store_u32(skeleton->bytes + 60, PE_OFFSET);
	memcpy(skeleton->bytes + PE_OFFSET, image->bytes + h->pe.v, 4 + FILE_HEADER_BYTES);
	store_u16(file_header + FILE_HEADER_SECTION_COUNT, (uint16_t)skeleton->sections);
	store_u32(file_header + FILE_HEADER_SYMBOL_TABLE, 0);
	store_u32(file_header + FILE_HEADER_SYMBOL_COUNT, 0);
	store_u16(file_header + FILE_HEADER_OPTIONAL_SIZE, OPTIONAL_BYTES);
	memcpy(optional, image->bytes + h->optional.v, OPTIONAL_DIRECTORIES);
	store_u32(optional + OPTIONAL_SECTION_ALIGNMENT,
		  at_most_page(h->section_alignment));
	store_u32(optional + OPTIONAL_FILE_ALIGNMENT, at_most_page(h->file_alignment));
	store_u32(directory, import->rva.v);
	store_u32(directory + 4, import->size);
}

static void put_section(uint8_t *row, const char *name, struct rva rva, uint32_t size,
			uint32_t raw, uint32_t characteristics)
{
	memcpy(row, name, strnlen(name, 8));
	store_u32(row + SECTION_VIRTUAL_SIZE, size);
	store_u32(row + SECTION_VIRTUAL_ADDRESS, rva.v);
	store_u32(row + SECTION_RAW_POINTER, raw);
	store_u32(row + SECTION_CHARACTERISTICS, characteristics);
}

/* Copies the file's data that lies in [begin, end) of memory and in
 * [rva, rva + size) to where it belongs behind `window`. */
static void put_data(uint8_t *window, uint64_t begin, uint64_t end, uint32_t rva,
		     uint32_t size, const uint8_t *data)
{
	uint64_t from = begin > rva ? begin : rva;
	uint64_t to = end < (uint64_t)rva + size ? end : (uint64_t)rva + size;

	if (from < to)
		memcpy(window + (from - begin), data + (from - rva), to - from);
}

static void put_window(const struct image *image, const struct import_window *window,
		       uint8_t *bytes)
{
	uint64_t begin = window->rva.v, end = begin + window->size;

	put_data(bytes, begin, end, 0, image->headers.size_of_headers, image->bytes);
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *s = &image->sections[i];
		uint32_t data = s->raw_size < s->virtual_size ? s->raw_size
							      : s->virtual_size;

		put_data(bytes, begin, end, s->rva.v, data, image->bytes + s->raw.v);
	}
}

static void patch_lookup_field(struct rva field, const struct import_window *window,
			       uint8_t *bytes)
{
	uint8_t *descriptor;

	if (!rva_in(field, window->rva, window->size))
		return;
	/* The whole descriptor was marked, so it lies in this window. */
	descriptor = bytes + (field.v - window->rva.v);
	memcpy(descriptor, descriptor + 16, 4);
}

static void put_windows(const struct image *image, const struct import_check *check,
			struct skeleton *skeleton, uint32_t offset)
{
	uint8_t *row = skeleton->bytes + TABLE_OFFSET;

	for (uint32_t i = 0; i < check->windows.len; i++) {
		const struct import_window *window = &check->windows.data[i];
		uint8_t *bytes = skeleton->bytes + offset;

		put_section(row, "window", window->rva, window->size, offset, SECTION_READ);
		put_window(image, window, bytes);
		for (uint32_t k = 0; k < check->lookup_fields.len; k++)
			patch_lookup_field(check->lookup_fields.data[k], window, bytes);
		row += SECTION_HEADER_BYTES;
		offset += window->size;
	}
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *s = &image->sections[i];

		put_section(row, s->name, s->rva, s->virtual_size, 0, s->characteristics);
		row += SECTION_HEADER_BYTES;
	}
}

static enum status skeleton_make(struct skeleton *skeleton, const struct image *image,
				 const struct import_check *check, struct diag *diag)
{
	uint32_t headers;

	skeleton->sections = check->windows.len + image->section_count;
	headers = TABLE_OFFSET + skeleton->sections * SECTION_HEADER_BYTES;
	headers = (headers + IMPORT_PAGE_BYTES - 1) / IMPORT_PAGE_BYTES * IMPORT_PAGE_BYTES;
	skeleton->size = headers;
	for (uint32_t i = 0; i < check->windows.len; i++)
		skeleton->size += check->windows.data[i].size;
	skeleton->bytes = calloc(skeleton->size, 1);
	if (!skeleton->bytes)
		return diag_no_memory(diag);
	put_headers(image, skeleton);
	put_windows(image, check, skeleton, headers);
	return STATUS_OK;
}

/* LIEF's C API reads files only. */
static enum status parse(const struct skeleton *skeleton, Pe_Binary_t **ret_binary,
			 struct diag *diag)
{
	char path[64];
	size_t done = 0;
	int fd = memfd_create("appulse-skeleton", MFD_CLOEXEC);

	if (fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot make a memory file");
	while (done < skeleton->size) {
		ssize_t n = write(fd, skeleton->bytes + done, skeleton->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = errno;

			close(fd);
			return diag_fail_errno(diag, STATUS_IO, err,
					       "cannot write a memory file");
		}
		done += (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (access(path, R_OK) != 0) {
		int err = errno;

		close(fd);
		return diag_fail_errno(diag, STATUS_IO, err, "cannot open '%s'", path);
	}
	*ret_binary = pe_parse(path);
	close(fd);
	return STATUS_OK;
}

static void take_headers(struct image *image, const Pe_Binary_t *binary)
{
	struct pe_headers *h = &image->headers;
	const Pe_OptionalHeader_t *optional = &binary->optional_header;

	h->machine = (uint16_t)binary->header.machine;
	h->characteristics = binary->header.characteristics;
	h->time_date_stamp = binary->header.time_date_stamp;
	h->image_base = optional->imagebase;
	h->entry = rva_of(optional->addressof_entrypoint);
	h->size_of_image = optional->sizeof_image;
	h->size_of_headers = optional->sizeof_headers;
	h->checksum = optional->checksum;
	h->subsystem = (uint16_t)optional->subsystem;
	h->dll_characteristics = (uint16_t)optional->dll_characteristics;
	h->directory_count = optional->numberof_rva_and_size;
}

static enum status take_sections(struct image *image, const Pe_Binary_t *binary,
				 uint32_t first, struct diag *diag)
{
	uint32_t count = 0;

	while (binary->sections[count])
		count++;
	if (count != first + image->section_count)
		return diag_fail(diag, STATUS_UNSUPPORTED,
				 "LIEF reads %u sections where %u were expected", count,
				 first + image->section_count);
	for (uint32_t i = 0; i < image->section_count; i++) {
		const Pe_Section_t *from = binary->sections[first + i];
		struct section *section = &image->sections[i];

		memset(section->name, 0, sizeof(section->name));
		memcpy(section->name, from->name, strnlen(from->name, 8));
		section->rva = rva_of((uint32_t)from->virtual_address);
		section->virtual_size = from->virtual_size;
		section->characteristics = from->characteristics;
	}
	return STATUS_OK;
}

static bool take_import(struct image *image, const char *dll, const Pe_ImportEntry_t *entry,
			struct import *ret_import)
{
	const char *name = entry->name;

	*ret_import = (struct import){
		.dll = dll,
		.ordinal = entry->is_ordinal ? entry->ordinal : entry->hint,
		.slot = rva_of((uint32_t)entry->iat_address),
	};
	if (entry->is_ordinal)
		return true;
	ret_import->name = arena_strndup(&image->arena, name, strlen(name));
	return ret_import->name != NULL;
}

static enum status take_imports(struct image *image, const Pe_Binary_t *binary,
				uint32_t expected, struct diag *diag)
{
	uint32_t count = 0;

	image->imports = arena_array(&image->arena, expected, sizeof(*image->imports));
	if (!image->imports)
		return diag_no_memory(diag);
	for (Pe_Import_t **dll = binary->imports; dll && *dll; dll++) {
		const char *name = (*dll)->name;

		name = arena_strndup(&image->arena, name, strlen(name));
		if (!name)
			return diag_no_memory(diag);
		for (Pe_ImportEntry_t **entry = (*dll)->entries; *entry; entry++, count++)
			if (count < expected &&
			    !take_import(image, name, *entry, &image->imports[count]))
				return diag_no_memory(diag);
	}
	if (count != expected)
		return diag_fail(diag, STATUS_UNSUPPORTED,
				 "LIEF reads %u imports where %u were expected", count,
				 expected);
	image->import_count = count;
	return STATUS_OK;
}

enum status lief_read(struct image *image, const struct import_check *check,
		      struct diag *diag)
{
	struct skeleton skeleton = {0};
	Pe_Binary_t *binary = NULL;
	enum status status = skeleton_make(&skeleton, image, check, diag);

	if (status == STATUS_OK)
		status = parse(&skeleton, &binary, diag);
	if (status == STATUS_OK) {
		take_headers(image, binary);
		status = take_sections(image, binary, check->windows.len, diag);
	}
	if (status == STATUS_OK)
		status = take_imports(image, binary, check->import_count, diag);
	if (binary)
		pe_binary_destroy(binary);
	free(skeleton.bytes);
	return status;
}

const char *lief_version(void)
{
	/* Debian's LIEF_VERSION is "0.9.0-", the commit's hash being empty. */
	static const char version[] = LIEF_VERSION;
	static const char tidy[] = "0.9.0";

	return strncmp(version, tidy, sizeof(tidy) - 1) == 0 ? tidy : version;
}
