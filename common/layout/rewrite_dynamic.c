/* The dynamic value relocations of moved code.
 *
 * Their entries are grouped by page, so that code which comes to lie in more pages
 * needs a bigger table.  When it does not fit its place it goes into a new section;
 * the load configuration names the section and the offset in it.
 */
#include "layout/rewrite.h"

#include <stdlib.h>

#define DYNAMIC_SECTION ".dynrel"

/* Gives the table a place of `size` bytes, and says where that is. */
static enum status make_room(const struct rewrite *rewrite, uint32_t size,
			     struct rva *ret_table, struct diag *diag)
{
	const struct dynamic_relocations *was = &rewrite->graph->tables.dynamic;
	uint8_t *offset_field = image_file_at(rewrite->file, was->offset_field, 4);
	uint8_t *section_field = image_file_at(rewrite->file, was->section_field, 2);
	enum status status;

	*ret_table = was->rva;
	if (size <= was->size)
		return STATUS_OK;
	if (!offset_field || !section_field)
		return diag_fail_at(diag, STATUS_MALFORMED, was->offset_field,
				    "the load configuration leaves its section");
	status = image_file_add_section(
		rewrite->file, DYNAMIC_SECTION, size, 0,
		SECTION_INITIALIZED | SECTION_DISCARDABLE | SECTION_READ, ret_table, diag);
	if (status != STATUS_OK)
		return status;
	store_u32(offset_field, 0);
	store_u16(section_field, (uint16_t)rewrite->file->sections.len);
	return STATUS_OK;
}

static enum status store_table(const struct rewrite *rewrite, const uint8_t *bytes,
			       uint32_t size, struct diag *diag)
{
	const struct dynamic_relocations *was = &rewrite->graph->tables.dynamic;
	uint8_t *old = image_file_at(rewrite->file, was->rva, was->size);
	struct rva table;
	enum status status;

	if (!old)
		return diag_fail_at(diag, STATUS_MALFORMED, was->rva,
				    "a table leaves its section");
	memset(old, 0, was->size);
	status = make_room(rewrite, size, &table, diag);
	if (status == STATUS_OK)
		memcpy(image_file_at(rewrite->file, table, size), bytes, size);
	return status;
}

enum status rewrite_dynamic_relocations(const struct rewrite *rewrite, struct diag *diag)
{
	const struct dynamic_relocations *was = &rewrite->graph->tables.dynamic;
	struct dynamic_fixup *fixups;
	uint8_t *bytes = NULL;
	uint32_t size = 0;
	enum status status;

	if (was->size == 0 || !rewrite->layout->moved)
		return STATUS_OK;
	fixups = calloc((size_t)was->fixup_count + 1, sizeof(*fixups));
	if (!fixups)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < was->fixup_count; i++) {
		fixups[i] = was->fixups[i];
		fixups[i].site = layout_map(rewrite->graph, rewrite->layout,
					    was->fixups[i].site);
	}
	status = dynamic_relocations_encode(was, fixups, &bytes, &size, diag);
	if (status == STATUS_OK)
		status = store_table(rewrite, bytes, size, diag);
	free(bytes);
	free(fixups);
	return status;
}
