/* Instructions that are newer than Zydis: their length, and what they refer to.
 *
 * Libraries that choose their code at run time carry instructions that no decoder of
 * last year knows (observed: 439 of AVX-VNNI-INT8 in one image; Zydis 4.0).  One of
 * them makes a whole function "not understood".  Moving code needs no more than their
 * length and their PC-relative field, and both follow from the encoding alone:
 *
 *   - after the prefix stand the opcode, a ModRM byte and what that asks for (Intel
 *     SDM volume 2, 2.3.5 to 2.3.10 "VEX Encoding", 2.7 "EVEX"); in maps 1 to 3 the one
 *     instruction without ModRM is VZEROUPPER/VZEROALL, opcode 77 of map 1;
 *   - in map 3 all have an immediate of one byte, in maps 2, 5 and 6 none has (the same
 *     places; appendix A, tables: the maps 0F38 and 0F3A);
 *   - none is a jump.
 *
 * Map 1 is left out: it has immediates for some opcodes only, and Xeon Phi has jumps in
 * it; what is new stands in the others.  So are map 4 and the bits of EVEX that APX has
 * given a meaning, map 7 with its immediates of four bytes, and all prefixes before VEX,
 * with which processors reject the instruction or which compilers do not use.
 *
 * Only what Zydis has no instruction for comes here; a bad form of an instruction that
 * it knows stays no instruction.
 */
#include "decode/vex_length.h"

#include "base/bytes.h"

enum { VEX_2 = 0xc5, VEX_3 = 0xc4, EVEX = 0x62 };

/* Bits of the bytes behind the EVEX prefix that are fixed without APX. */
enum { EVEX_0_ZERO = 0x08, EVEX_1_ONE = 0x04 };

/* Bytes of the prefix, with the map of the opcode behind it; 0 when it is none of
 * those above. */
static uint32_t prefix_size(const uint8_t *bytes, size_t size, uint8_t *ret_map)
{
	if (size < 4)
		return 0;
	if (bytes[0] == VEX_3) {
		*ret_map = bytes[1] & 0x1f;
		return *ret_map == 2 || *ret_map == 3 ? 3 : 0;
	}
	if (bytes[0] != EVEX || (bytes[1] & EVEX_0_ZERO) || !(bytes[2] & EVEX_1_ONE))
		return 0;
	*ret_map = bytes[1] & 7;
	return *ret_map == 2 || *ret_map == 3 || *ret_map == 5 || *ret_map == 6 ? 4 : 0;
}

/* Takes ModRM, SIB and displacement (Intel SDM volume 2, tables 2-2 and 2-3). */
static void take_operands(struct reader *r, struct insn *insn)
{
	uint8_t modrm = read_u8(r), mod = modrm >> 6, base = modrm & 7;
	bool relative = mod == 0 && base == 5;

	if (mod == 3)
		return;
	if (base == 4)
		base = read_u8(r) & 7;
	if (relative) {
		insn->field = FIELD_MEMORY;
		insn->field_offset = (uint8_t)r->pos;
		insn->field_size = 4;
		insn->relative = (int32_t)read_u32(r);
	} else if (mod == 2 || (mod == 0 && base == 5)) {
		insn->constants[insn->constant_count++] = (uint64_t)(int32_t)read_u32(r);
	} else if (mod == 1) {
		read_u8(r);
	}
}

bool vex_length_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	struct insn insn = {.flow = FLOW_NEXT};
	struct reader r = {.data = bytes, .size = size};
	uint8_t map = 0;
	uint32_t prefix = prefix_size(bytes, size, &map);

	if (prefix == 0)
		return false;
	read_bytes(&r, prefix + 1);
	take_operands(&r, &insn);
	if (map == 3)
		read_u8(&r);
	if (r.failed)
		return false;
	insn.length = (uint8_t)r.pos;
	*ret_insn = insn;
	return true;
}
