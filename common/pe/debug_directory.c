#include "pe/debug_directory.h"

#include <string.h>

enum {
	DEBUG_TYPE = 12,
	DEBUG_SIZE = 16,
	DEBUG_ADDRESS = 20,
	DEBUG_POINTER = 24,
	CODEVIEW_GUID = 4, /* behind "RSDS" (LLVM's PDB documentation, "The PDB Info
			    * Stream", on matching a PDB to an image) */
	GUID_BYTES = 16,
};

static enum status read_entry(const struct image *image, struct rva site, const uint8_t *p,
			      struct debug_entry *ret_entry, struct diag *diag)
{
	struct debug_entry entry = {
		.type = load_u32(p + DEBUG_TYPE),
		.size = load_u32(p + DEBUG_SIZE),
		.data = rva_of(load_u32(p + DEBUG_ADDRESS)),
		.data_off = file_off_of(load_u32(p + DEBUG_POINTER)),
		.header = file_off_of((uint32_t)(p - image->bytes)),
	};
	const uint8_t *data;

	if ((uint64_t)entry.data_off.v + entry.size > image->size ||
	    (entry.data.v && entry.size && !image_bytes(image, entry.data, entry.size)))
		return diag_fail_at(diag, STATUS_MALFORMED, site,
				    "the data of a debug entry leaves the file");
	data = image_bytes(image, entry.data, entry.size);
	if (entry.type == DEBUG_TYPE_CODEVIEW && entry.data.v && data &&
	    entry.size >= CODEVIEW_GUID + GUID_BYTES && memcmp(data, "RSDS", 4) == 0)
		entry.guid = rva_add(entry.data, CODEVIEW_GUID);
	*ret_entry = entry;
	return STATUS_OK;
}

enum status debug_directory_read(struct image *image, struct debug_directory *ret_debug,
				 struct diag *diag)
{
	const struct data_directory *directory = &image->directories[DIRECTORY_DEBUG];
	const uint8_t *rows = image_bytes(image, directory->rva, directory->size);
	struct debug_directory debug = {0};

	if (directory->rva.v == 0) {
		*ret_debug = debug;
		return STATUS_OK;
	}
	if (!rows)
		return diag_fail_at(diag, STATUS_MALFORMED, directory->rva,
				    "the debug directory leaves the file's data");
	debug.count = directory->size / DEBUG_ENTRY_BYTES;
	debug.data = arena_array(&image->arena, debug.count, sizeof(*debug.data));
	if (!debug.data)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < debug.count; i++) {
		uint32_t offset = i * DEBUG_ENTRY_BYTES;
		enum status status =
			read_entry(image, rva_add(directory->rva, offset), rows + offset,
				   &debug.data[i], diag);

		if (status != STATUS_OK)
			return status;
	}
	*ret_debug = debug;
	return STATUS_OK;
}

bool debug_entry_agrees(const struct image *image, const struct debug_entry *entry)
{
	const uint8_t *data = image_bytes(image, entry->data, entry->size);

	return data && data == image->bytes + entry->data_off.v;
}
