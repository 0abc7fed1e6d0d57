/* The code, instruction by instruction.
 *
 * Each instruction of the original that can have a PC-relative field is decoded once
 * more, and the field must mean the mapped target in the output.  That its other bytes are
 * the same is the last step's.  So the output needs no decoding: a PC-relative field never
 * changes how an instruction decodes.  This asks neither the graph's references nor
 * discovery of the output, so that what both missed is found here.
 */
#include "layout/verify_state.h"

#include "decode/insn.h"

/* A block in both images. */
struct pair {
	const struct block *block;
	struct rva to;
	const uint8_t *old_bytes, *new_bytes; /* `size` of each */
	const uint8_t *old_map;
	uint32_t size;
};

/* What the field of the instruction at `offset` means, in both images. */
static enum status check_field(struct verifier *v, const struct pair *pair, uint32_t offset,
			       const struct insn *insn)
{
	uint32_t at = offset + insn->field_offset, end = offset + insn->length;
	struct rva site = rva_add(pair->block->begin, at);
	int64_t value = verify_load(pair->new_bytes + at, insn->field_size);
	struct rva was = rva_add(pair->block->begin, end + (uint32_t)insn->relative);
	struct rva is = rva_add(pair->to, end + (uint32_t)value), expected;
	enum status status = verify_target(v, rva_add(pair->to, offset), was, &expected);

	if (status != STATUS_OK)
		return status;
	if (is.v != expected.v)
		return verify_differs(v, rva_add(pair->to, offset), expected.v, is.v,
				      "the target of an instruction");
	if (value != insn->relative)
		verify_prove(v, site, insn->field_size);
	v->report->references++;
	return STATUS_OK;
}

/* Bytes of the instruction at `offset` as discovery has cut it. */
static uint32_t marked_length(const struct pair *pair, uint32_t offset)
{
	uint32_t end = offset + 1;

	while (end < pair->size && (pair->old_map[end] & CODE_STATE) == CODE_INSIDE)
		end++;
	return end - offset;
}

static enum status check_instructions(struct verifier *v, const struct pair *pair)
{
	const uint32_t unsure = 1u << PIN_OVERLAP | 1u << PIN_UNDECODED;
	uint32_t offset = 0;

	while (offset < pair->size) {
		struct insn insn;
		uint32_t length;
		enum status status;

		if ((pair->old_map[offset] & CODE_STATE) != CODE_START) {
			offset++;
			continue;
		}
		length = marked_length(pair, offset);
		if (!insn_may_be_relative(pair->old_bytes + offset, length)) {
			v->report->instructions++;
			offset += length;
			continue;
		}
		if (!insn_decode(pair->old_bytes + offset, pair->size - offset, &insn) ||
		    insn.length != length) {
			if (!(pair->block->pins & unsure))
				return verify_fail(v, rva_add(pair->to, offset),
						   "an instruction decodes otherwise");
			offset += length;
			continue;
		}
		v->report->instructions++;
		if (insn.field != FIELD_NONE) {
			status = check_field(v, pair, offset, &insn);
			if (status != STATUS_OK)
				return status;
		}
		offset += length;
	}
	return STATUS_OK;
}

static enum status check_block(struct verifier *v, const struct block *block)
{
	struct rva to = verify_map(v, block->begin);
	const struct code_range *range =
		verify_range_of(v->old_graph, block->begin, block->size);
	struct pair pair = {.block = block, .to = to, .size = block->size};

	pair.new_bytes = image_bytes(v->new_image, to, block->size);
	if (!range || !pair.new_bytes)
		return verify_fail(v, to, "a block is not in the code");
	pair.old_bytes = range->bytes + (block->begin.v - range->begin.v);
	pair.old_map = range->map + (block->begin.v - range->begin.v);
	return check_instructions(v, &pair);
}

enum status verify_code(struct verifier *v)
{
	for (uint32_t i = 0; i < v->old_graph->blocks.len; i++) {
		enum status status = check_block(v, &v->old_graph->blocks.data[i]);

		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}
