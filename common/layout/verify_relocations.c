/* Base relocations and the words under them.
 *
 * The set must be the original's with its sites mapped, and each word that holds
 * an address of the image must hold the mapped one.  This does not ask the graph
 * which words lead to code, so it holds for what discovery does not know too.
 *
 * The table itself is encoded anew.  It must stand where it was and be no larger,
 * or in a section that the original has not; what is left of its place is zero.
 */
#include "layout/verify_state.h"

#include <stdlib.h>

static enum status check_word(struct verifier *v, const struct reloc *was, struct rva site)
{
	uint8_t size = was->type == RELOC_DIR64 ? 8 : 4;
	uint64_t base = v->old_image->headers.image_base;
	const uint8_t *old_word = image_bytes(v->old_image, was->site, size);
	const uint8_t *new_word = image_bytes(v->new_image, site, size);
	uint64_t old_value, new_value, expected;

	if (!old_word || !new_word)
		return verify_fail(v, site, "a relocated word cannot be read");
	old_value = size == 8 ? load_u64(old_word) : load_u32(old_word);
	new_value = size == 8 ? load_u64(new_word) : load_u32(new_word);
	expected = old_value;
	if (old_value >= base && old_value - base < v->span) {
		struct rva target;
		enum status status = verify_target(
			v, site, rva_of((uint32_t)(old_value - base)), &target);

		if (status != STATUS_OK)
			return status;
		expected = base + target.v;
	}
	if (size == 4)
		expected = (uint32_t)expected;
	if (new_value != expected)
		return verify_differs(v, site, expected, new_value, "a relocated word");
	verify_prove(v, was->site, size);
	v->report->relocations++;
	return STATUS_OK;
}

static enum status compare_relocation(struct verifier *v, const struct reloc *was,
				      const struct relocations *is, uint32_t index)
{
	struct rva site = verify_map(v, was->site);

	if (index >= is->count || is->data[index].site.v > site.v)
		return verify_fail(v, site, "a base relocation is missing");
	if (is->data[index].site.v < site.v)
		return verify_fail(v, is->data[index].site,
				   "a base relocation that the original has not");
	if (is->data[index].type != was->type)
		return verify_differs(v, site, was->type, is->data[index].type,
				      "the type of a base relocation");
	return check_word(v, was, site);
}

static enum status compare_set(struct verifier *v)
{
	const struct relocations *was = &v->old_graph->tables.relocs;
	const struct relocations *is = &v->new_graph.tables.relocs;
	uint32_t *order = NULL;
	enum status status;

	status = verify_new_order(v, was->data, offsetof(struct reloc, site),
				  sizeof(*was->data), was->count, "a base relocation",
				  &order);
	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++)
		status = compare_relocation(v, &was->data[order[i]], is, i);
	if (status == STATUS_OK && is->count > was->count)
		status = verify_fail(v, is->data[was->count].site,
				     "a base relocation that the original has not");
	free(order);
	return status;
}

/* Entries that only pad a block are zero; anything else there would pass unseen. */
static enum status check_padding(struct verifier *v)
{
	struct data_directory is = v->new_image->directories[DIRECTORY_RELOCATION];
	struct reader r = reader_of(image_bytes(v->new_image, is.rva, is.size), is.size);

	while (r.data && reader_left(&r)) {
		uint32_t page = read_u32(&r), size = read_u32(&r);

		for (uint32_t i = 8; i < size && !r.failed; i += 2) {
			uint16_t entry = read_u16(&r);

			if (entry && entry >> 12 == RELOC_ABSOLUTE)
				return verify_differs(v, rva_of(page), 0, entry,
						      "padding of the base relocations");
		}
	}
	return STATUS_OK;
}

/* Bytes [from, to) behind `begin` are zero, or the image has none there. */
static bool is_blank(const struct image *image, struct rva begin, uint32_t from,
		     uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const uint8_t *byte = image_bytes(image, rva_add(begin, i), 1);

		if (byte && *byte != 0)
			return false;
	}
	return true;
}

enum status verify_relocations(struct verifier *v)
{
	struct data_directory was = v->old_image->directories[DIRECTORY_RELOCATION];
	struct data_directory is = v->new_image->directories[DIRECTORY_RELOCATION];
	bool stays = was.rva.v == is.rva.v;
	enum status status = compare_set(v);

	if (status != STATUS_OK)
		return status;
	if (stays && is.size > was.size)
		return verify_fail(v, is.rva, "the base relocations cover other data");
	if (!is_blank(v->new_image, was.rva, stays ? is.size : 0, was.size))
		return verify_fail(v, was.rva,
				   "bytes are left of the old base relocations");
	verify_prove(v, was.rva, was.size);
	return check_padding(v);
}
