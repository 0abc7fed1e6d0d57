/* Words that may be addresses, in an image without base relocations.
 *
 * Nobody mends them, so what they name at the preferred base must stand where it stood.
 * Words of 8 bytes count wherever one can begin in a section's data.  So do words of 4,
 * with their sign extended or not, that share no byte with a field which another step has
 * proven; in instructions they end with the instruction or before an immediate.  DWARF's
 * words do not count.  Padding may be covered unless 8 bytes name it.
 */
#include "layout/verify_state.h"
#include "pe/section_name.h"

/* What stands in a word of the original. */
static enum status check_value(struct verifier *v, struct rva site, uint64_t value,
			       bool wide)
{
	uint64_t offset = value - v->old_image->headers.image_base;
	struct rva named, now;

	if (offset >= v->span)
		return STATUS_OK;
	named = rva_of((uint32_t)offset);
	now = verify_map(v, named);
	if (wide && verify_is_lost(v, named))
		return verify_fail(v, site, "a moved block covers what a word may mean");
	if (now.v == named.v)
		return STATUS_OK;
	return verify_differs(v, now, named.v, now.v,
			      "a word at 0x%x may be the address of what has moved",
			      site.v);
}

static enum status check_short(struct verifier *v, struct rva site, const uint8_t *bytes)
{
	enum status status;

	for (uint32_t i = 0; i < 4; i++)
		if (verify_is_proven(v, rva_add(site, i)))
			return STATUS_OK;
	status = check_value(v, site, load_u32(bytes), false);
	return status == STATUS_OK
		       ? check_value(v, site, (uint64_t)verify_load(bytes, 4), false)
		       : status;
}

/* Whether four bytes from `at` on can be a field, or data. */
static bool can_be_word(const struct verifier *v, struct rva at)
{
	uint8_t states[9];
	unsigned padding = 0;

	for (uint32_t i = 0; i < sizeof(states); i++)
		states[i] = graph_code_state(v->old_graph, rva_add(at, i)) & CODE_STATE;
	for (unsigned i = 0; i < 4; i++) {
		if (states[i] == CODE_START)
			return false; /* it would hold an opcode */
		padding += states[i] == CODE_PADDING;
	}
	if (states[0] != CODE_INSIDE)
		return padding < 4;
	for (unsigned i = 4; i < sizeof(states); i++)
		if (states[i] != CODE_INSIDE)
			return i != 7; /* no immediate has three bytes */
	return false;
}

static enum status check_section(struct verifier *v, const struct section *section)
{
	uint32_t size = verify_data_size(section);
	const uint8_t *bytes = image_bytes(v->old_image, section->rva, size);
	bool code = section->characteristics & SECTION_EXECUTE;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; bytes && i + 4 <= size && status == STATUS_OK; i++) {
		struct rva site = rva_add(section->rva, i);

		if (i + 8 <= size)
			status = check_value(v, site, load_u64(bytes + i), true);
		if (status == STATUS_OK && (!code || can_be_word(v, site)))
			status = check_short(v, site, bytes + i);
	}
	return status;
}

enum status verify_absolute(struct verifier *v)
{
	const struct image *image = v->old_image;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < image->section_count && status == STATUS_OK; i++)
		if (!image_has_relocations(image) &&
		    !section_is_dwarf(image, &image->sections[i]))
			status = check_section(v, &image->sections[i]);
	return status;
}
