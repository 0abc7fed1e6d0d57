/* Writing a relinked image, step by step:
 *
 *   1. copy the image; add a section when the layout has one
 *   2. move the blocks' bytes
 *   3. write every reference anew
 *   4. sort the tables that must be sorted; relocations; symbols
 *   5. give the image a new identity when code has moved: the CodeView GUID is
 *      derived from the original's hash and the moves, so that the same input and
 *      order give the same bytes, and no old PDB passes for the new image's
 *   6. lay out the file
 */
#include "layout/relink.h"

#include "layout/image_file.h"
#include "layout/rewrite.h"

#define ADDED_SECTION ".aptext"

static enum status add_code_section(struct image_file *file, const struct layout *layout,
				    struct diag *diag)
{
	struct rva rva;
	enum status status;

	if (layout->added_size == 0)
		return STATUS_OK;
	status = image_file_add_section(file, ADDED_SECTION, layout->added_size, 0xcc,
					SECTION_CODE | SECTION_EXECUTE | SECTION_READ, &rva, diag);
	if (status == STATUS_OK && rva.v != layout->added.v)
		status = diag_fail(diag, STATUS_NO_ROOM,
				   "the new section does not stand where it was laid out");
	return status;
}

static enum status list_moves(const struct graph *graph, const struct layout *layout,
			      struct relinked *relinked, struct diag *diag)
{
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];
		struct move move = {block->begin, layout->begins[i], block->size};

		if (move.from.v != move.to.v && !vec_push(&relinked->moves, move))
			return diag_no_memory(diag);
	}
	return STATUS_OK;
}

/* SHA-256 over the original's hash and the moves; its first 16 bytes are the GUID. */
static struct sha256 identity_of(const struct sha256 *original,
				 const struct relinked *relinked)
{
	struct sha256 parts[2] = {*original};

	parts[1] = sha256_of(relinked->moves.data,
			     relinked->moves.len * sizeof(*relinked->moves.data));
	return sha256_of(parts, sizeof(parts));
}

static void renew_guid(const struct graph *graph, const struct sha256 *original,
		       const struct relinked *relinked, struct image_file *file)
{
	const struct debug_directory *debug = &graph->tables.debug;
	struct sha256 identity;

	if (relinked->moves.len == 0 || debug->count == 0)
		return;
	identity = identity_of(original, relinked);
	for (uint32_t i = 0; i < debug->count; i++) {
		const struct debug_entry *entry = &debug->data[i];
		uint8_t *guid = entry->guid.v && debug_entry_agrees(graph->image, entry)
					? image_file_at(file, entry->guid, 16)
					: NULL;

		if (guid)
			memcpy(guid, identity.bytes, 16);
	}
}

static enum status edit(const struct graph *graph, const struct layout *layout,
			const struct relink_options *options, struct image_file *file,
			struct relinked *relinked, struct diag *diag)
{
	struct rewrite rewrite = {.graph = graph, .layout = layout, .file = file};
	enum status status = add_code_section(file, layout, diag);

	if (status != STATUS_OK)
		return status;
	rewrite_blocks(&rewrite);
	status = rewrite_refs(&rewrite, diag);
	if (status == STATUS_OK)
		status = rewrite_sort_tables(&rewrite, diag);
	if (status == STATUS_OK)
		status = rewrite_volatile_ranges(&rewrite, diag);
	if (status == STATUS_OK)
		status = rewrite_dynamic_relocations(&rewrite, diag);
	if (status == STATUS_OK)
		status = rewrite_relocations(&rewrite, NULL, 0, diag);
	if (status == STATUS_OK)
		status = list_moves(graph, layout, relinked, diag);
	if (status != STATUS_OK)
		return status;
	rewrite_symbols(&rewrite);
	renew_guid(graph, &options->original, relinked, file);
	return STATUS_OK;
}

enum status relink_write(const struct graph *graph, const struct layout *layout,
			 const struct relink_options *options, struct relinked *ret_relinked,
			 struct diag *diag)
{
	struct image_file file;
	enum status status = image_file_init(&file, graph->image, diag);

	memset(ret_relinked, 0, sizeof(*ret_relinked));
	if (status != STATUS_OK)
		return status;
	if (options->file_alignment)
		file.file_alignment = options->file_alignment;
	status = edit(graph, layout, options, &file, ret_relinked, diag);
	if (status == STATUS_OK)
		status = image_file_emit(&file, &ret_relinked->bytes, &ret_relinked->size, diag);
	ret_relinked->dropped_signature = file.had_certificate;
	image_file_release(&file);
	if (status != STATUS_OK)
		relinked_release(ret_relinked);
	return status;
}

void relinked_release(struct relinked *relinked)
{
	free(relinked->bytes);
	vec_release(&relinked->moves);
	memset(relinked, 0, sizeof(*relinked));
}
