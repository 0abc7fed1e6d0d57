/* A walk over the import directory with every step bounded, that notes which
 * pages of the image it read.
 *
 * LIEF reads imports by following RVAs from table to table.  It throws, or
 * takes forever, when they lead astray: name strings without end, tables that
 * thousands of descriptors share.  So the same walk is done here first.  Each
 * read is checked against the file's data, and the sums are bounded by the
 * size of the file: symbols by the words that it has, bytes of names by its
 * bytes.  Tables that do not share anything cannot exceed these sums.
 *
 * The pages that were read are marked in a bitmap over the image; runs of
 * marked pages become the windows that lief.c shows to LIEF.
 *
 * Sources: PE/COFF specification, "The .idata Section"; observed for LIEF
 * 0.9.0: names of DLLs with less than 4 or with unprintable characters are
 * skipped, and without a lookup table only the first symbol is read.
 */
#include "pe/import_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	DLL_COUNT_MAX = 0xffff,
	DLL_NAME_MIN = 4,
	LOOKUP_BYTES = 8,
	HINT_BYTES = 2,
};
#define LOOKUP_ORDINAL 0x8000000000000000u

struct walk {
	const struct image *image;
	struct import_check *check;
	struct diag *diag;
	uint8_t *pages;      /* owned: a bit for each page of the image */
	uint32_t page_count;
	uint64_t name_bytes; /* of all names so far */
};

static void mark(struct walk *walk, struct rva rva, uint32_t size)
{
	uint32_t last = (rva.v + (size ? size - 1 : 0)) / IMPORT_PAGE_BYTES;

	for (uint32_t page = rva.v / IMPORT_PAGE_BYTES; page <= last; page++)
		walk->pages[page / 8] |= (uint8_t)(1 << page % 8);
}

static enum status leaves_data(struct walk *walk, struct rva rva, const char *what)
{
	return diag_fail_at(walk->diag, STATUS_MALFORMED, rva,
			    "%s of the import directory leaves the file's data", what);
}

/* Notes a string and counts its bytes. */
static enum status walk_string(struct walk *walk, struct rva rva, const char *what,
			       const char **ret_string)
{
	const char *string = image_string(walk->image, rva);
	uint32_t size;

	if (!string)
		return leaves_data(walk, rva, what);
	size = (uint32_t)strlen(string) + 1;
	mark(walk, rva, size);
	walk->name_bytes += size;
	if (walk->name_bytes > walk->image->size)
		return diag_fail_at(walk->diag, STATUS_MALFORMED, rva,
				    "the names of the import directory have more bytes "
				    "than the file");
	*ret_string = string;
	return STATUS_OK;
}

static enum status walk_dll_name(struct walk *walk, struct rva rva)
{
	const char *name = "";
	enum status status = walk_string(walk, rva, "a DLL name", &name);
	size_t length = strlen(name);

	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < length; i++)
		if (!isascii((unsigned char)name[i]) || !isprint((unsigned char)name[i]))
			length = 0;
	if (length < DLL_NAME_MIN)
		return diag_fail_at(walk->diag, STATUS_UNSUPPORTED, rva,
				    "the name of an imported DLL is shorter than %u bytes "
				    "or not printable", DLL_NAME_MIN);
	return STATUS_OK;
}

/* One word of a lookup table: an ordinal, or the RVA of a hint and a name. */
static enum status walk_symbol(struct walk *walk, struct rva word, uint64_t lookup)
{
	const char *name;
	struct rva hint;

	if (++walk->check->import_count > walk->image->size / LOOKUP_BYTES)
		return diag_fail_at(walk->diag, STATUS_MALFORMED, word,
				    "more imports than the file has room for");
	if (lookup & LOOKUP_ORDINAL)
		return STATUS_OK;
	hint = rva_of((uint32_t)lookup);
	if (lookup > UINT32_MAX || !image_bytes(walk->image, hint, HINT_BYTES + 1))
		return leaves_data(walk, word, "a name");
	mark(walk, hint, HINT_BYTES);
	return walk_string(walk, rva_add(hint, HINT_BYTES), "a name", &name);
}

/* The lookup table at `table`, and as many words of the address table at
 * `addresses`, which need not be in the file. */
static enum status walk_tables(struct walk *walk, struct rva table, struct rva addresses)
{
	struct reader r = image_reader(walk->image, table);
	const struct section *section = image_section_at(walk->image, addresses);
	uint32_t room = section ? section_end(section).v - addresses.v : 0;
	uint32_t count = 0;

	for (;;) {
		struct rva word = rva_add(table, count * LOOKUP_BYTES);
		uint64_t lookup = read_u64(&r);
		enum status status;

		if (r.failed)
			return leaves_data(walk, word, "a lookup table");
		mark(walk, word, LOOKUP_BYTES);
		if (room < LOOKUP_BYTES)
			return leaves_data(walk, addresses, "an address table");
		room -= LOOKUP_BYTES;
		if (lookup == 0)
			return STATUS_OK;
		status = walk_symbol(walk, word, lookup);
		if (status != STATUS_OK)
			return status;
		count++;
	}
}

static enum status walk_descriptor(struct walk *walk, struct rva descriptor)
{
	const uint8_t *p = image_bytes(walk->image, descriptor, IMPORT_DESCRIPTOR_BYTES);
	struct rva lookup = rva_of(load_u32(p)), addresses = rva_of(load_u32(p + 16));
	enum status status;

	if (++walk->check->dll_count > DLL_COUNT_MAX)
		return diag_fail_at(walk->diag, STATUS_MALFORMED, descriptor,
				    "an import directory of more than %u DLLs",
				    DLL_COUNT_MAX);
	status = walk_dll_name(walk, rva_of(load_u32(p + 12)));
	if (status != STATUS_OK)
		return status;
	if (lookup.v == 0) {
		lookup = addresses;
		if (!vec_push(&walk->check->lookup_fields, descriptor))
			return diag_no_memory(walk->diag);
	}
	return walk_tables(walk, lookup, addresses);
}

/* The directory ends with a descriptor without a name; its size says nothing. */
static enum status walk_directory(struct walk *walk)
{
	struct rva descriptor = walk->image->directories[DIRECTORY_IMPORT].rva;

	for (;; descriptor = rva_add(descriptor, IMPORT_DESCRIPTOR_BYTES)) {
		const uint8_t *p =
			image_bytes(walk->image, descriptor, IMPORT_DESCRIPTOR_BYTES);
		enum status status;

		if (!p)
			return leaves_data(walk, descriptor, "a descriptor");
		mark(walk, descriptor, IMPORT_DESCRIPTOR_BYTES);
		if (load_u32(p + 12) == 0)
			return STATUS_OK;
		status = walk_descriptor(walk, descriptor);
		if (status != STATUS_OK)
			return status;
	}
}

static enum status make_windows(struct walk *walk)
{
	struct import_check *check = walk->check;

	for (uint32_t page = 0; page < walk->page_count; page++) {
		struct import_window *last =
			check->windows.len ? &check->windows.data[check->windows.len - 1]
					   : NULL;
		struct import_window window = {rva_of(page * IMPORT_PAGE_BYTES),
					       IMPORT_PAGE_BYTES};

		if (!(walk->pages[page / 8] & 1 << page % 8))
			continue;
		if (last && last->rva.v + last->size == window.rva.v) {
			last->size += IMPORT_PAGE_BYTES;
			continue;
		}
		if (check->windows.len == IMPORT_WINDOW_MAX)
			return diag_fail_at(walk->diag, STATUS_MALFORMED, window.rva,
					    "the import directory is scattered over more "
					    "than %u places", IMPORT_WINDOW_MAX);
		if (!vec_push(&check->windows, window))
			return diag_no_memory(walk->diag);
	}
	return STATUS_OK;
}

enum status import_check(const struct image *image, struct import_check *ret_check,
			 struct diag *diag)
{
	struct walk walk = {.image = image, .check = ret_check, .diag = diag};
	enum status status;

	memset(ret_check, 0, sizeof(*ret_check));
	if (image->directories[DIRECTORY_IMPORT].rva.v == 0)
		return STATUS_OK;
	walk.page_count = image->headers.size_of_image / IMPORT_PAGE_BYTES + 1;
	walk.pages = calloc(walk.page_count / 8 + 1, 1);
	if (!walk.pages)
		return diag_no_memory(diag);
	status = walk_directory(&walk);
	if (status == STATUS_OK)
		status = make_windows(&walk);
	free(walk.pages);
	return status;
}

void import_check_release(struct import_check *check)
{
	vec_release(&check->windows);
	vec_release(&check->lookup_fields);
}
