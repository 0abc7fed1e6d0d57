/* A tree of directories, of three levels: type, name, language.  All offsets
 * are relative to the root.  It is read for one purpose: to know which bytes are its
 * own.  A tree that has more entries than its bytes hold shares some, or is none; it
 * is left alone then.
 */
#include "pe/resource_tree.h"

#include "base/vec.h"

enum {
	DIRECTORY_BYTES = 16,
	NAMED_COUNT = 12,
	ID_COUNT = 14,
	ENTRY_BYTES = 8,
	DATA_ENTRY_BYTES = 16,
	LEVEL_MAX = 3,
};

#define OFFSET_IS_DIRECTORY 0x80000000u /* in a name's place: a string */

struct tree_reader {
	struct image *image;
	struct data_directory root;
	struct resource_tree *tree;
	uint32_t room; /* parts that `tree->parts` has room for */
};

/* Adds a part of the tree; its bytes, or NULL when they are not there. */
static const uint8_t *add_part(struct tree_reader *t, uint32_t offset, uint32_t size)
{
	const uint8_t *bytes = NULL;

	if (offset <= t->root.size && size <= t->root.size - offset)
		bytes = image_bytes(t->image, rva_add(t->root.rva, offset), size);
	if (!bytes || t->tree->count == t->room)
		return NULL;
	t->tree->parts[t->tree->count++] =
		(struct resource_part){rva_add(t->root.rva, offset), size};
	return bytes;
}

static bool add_string(struct tree_reader *t, uint32_t offset)
{
	const uint8_t *length = image_bytes(t->image, rva_add(t->root.rva, offset), 2);

	return offset < t->root.size && length &&
	       add_part(t, offset, 2 + 2u * load_u16(length));
}

static bool read_directory(struct tree_reader *t, uint32_t offset, unsigned level)
{
	const uint8_t *p = image_bytes(t->image, rva_add(t->root.rva, offset),
				       DIRECTORY_BYTES);
	uint32_t count;

	if (!p || offset >= t->root.size)
		return false;
	count = load_u16(p + NAMED_COUNT) + load_u16(p + ID_COUNT);
	p = add_part(t, offset, DIRECTORY_BYTES + count * ENTRY_BYTES);
	if (!p)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = p + DIRECTORY_BYTES + (size_t)i * ENTRY_BYTES;
		uint32_t name = load_u32(entry), to = load_u32(entry + 4);

		if ((name & OFFSET_IS_DIRECTORY) &&
		    !add_string(t, name & ~OFFSET_IS_DIRECTORY))
			return false;
		if (to & OFFSET_IS_DIRECTORY) {
			if (level == LEVEL_MAX ||
			    !read_directory(t, to & ~OFFSET_IS_DIRECTORY, level + 1))
				return false;
		} else if (!add_part(t, to, DATA_ENTRY_BYTES)) {
			return false;
		}
	}
	return true;
}

enum status resource_tree_read(struct image *image, struct resource_tree *ret_tree,
			       struct diag *diag)
{
	struct resource_tree tree = {0};
	struct tree_reader t = {.image = image,
				.root = image->directories[DIRECTORY_RESOURCE],
				.tree = &tree};

	*ret_tree = tree;
	/* Each part but a name stands for 8 bytes of its own, and each entry has at most
	 * one name. */
	if (t.root.rva.v == 0 || !image_bytes(image, t.root.rva, t.root.size))
		return STATUS_OK;
	t.room = t.root.size / ENTRY_BYTES * 2;
	tree.parts = arena_array(&image->arena, t.room, sizeof(*tree.parts));
	if (!tree.parts)
		return diag_no_memory(diag);
	if (read_directory(&t, 0, 1))
		*ret_tree = tree;
	return STATUS_OK;
}
