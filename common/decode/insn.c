/* The short ways first: nearly all that compilers use is in the maps. */
#include "decode/insn.h"

#include "decode/opcode_map.h"
#include "decode/operand_map.h"
#include "decode/zydis_insn.h"

bool insn_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	return opcode_map_decode(bytes, size, ret_insn) ||
	       zydis_insn_decode(bytes, size, ret_insn);
}

bool insn_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
		   struct insn_detail *ret_detail)
{
	return operand_map_describe(bytes, size, ret_insn, ret_detail) ||
	       zydis_insn_describe(bytes, size, ret_insn, ret_detail);
}

/* Legacy prefixes and REX (Intel SDM volume 2, 2.1.1 and 2.2.1). */
static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return (byte & 0xf0) == 0x40;
	}
}

/* Opcodes with a relative immediate (Intel SDM volume 2, appendix A): jcc, loop
 * and jrcxz, call, jmp, xbegin.  Zydis 4.0 also knows the mask jumps of Xeon Phi,
 * jcc's opcodes behind a VEX prefix (observed). */
static bool is_branch_opcode(const uint8_t *opcode, size_t left)
{
	uint8_t first = opcode[0], second = left > 1 ? opcode[1] : 0;
	size_t vex = first == 0xc5 ? 2 : 3;

	if ((first == 0xc4 || first == 0xc5) && left > vex &&
	    ((opcode[vex] & 0xf0) == 0x70 || (opcode[vex] & 0xf0) == 0x80))
		return true;
	return (first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0 || first == 0xe8 ||
	       first == 0xe9 || first == 0xeb ||
	       (first == 0x0f && (second & 0xf0) == 0x80) ||
	       (first == 0xc7 && second == 0xf8);
}

bool insn_may_be_relative(const uint8_t *bytes, size_t length)
{
	size_t at = 0;

	while (at < length && is_prefix(bytes[at]))
		at++;
	if (at == length || is_branch_opcode(bytes + at, length - at))
		return true;
	/* Four bytes stand behind a ModRM byte with mod 0 and rm 5. */
	for (at++; at + 5 <= length; at++)
		if ((bytes[at] & 0xc7) == 0x05)
			return true;
	return false;
}
