/* Decoding by the opcode maps.  For decode/insn.c and its tests. */
#ifndef APPULSE_DECODE_OPCODE_MAP_H
#define APPULSE_DECODE_OPCODE_MAP_H

#include "decode/insn.h"

/* As insn_decode, for the instructions that compilers use; false when it is none of
 * them, which says nothing about the bytes.  True says what insn_decode would. */
bool opcode_map_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);

/* An instruction as the maps take it apart. */
struct opcode_parts {
	const uint8_t *bytes;
	uint32_t row;          /* what the maps say */
	uint8_t prefix;        /* the one legacy prefix, 0: none */
	uint8_t rex;           /* 0: none */
	bool two_bytes;        /* 0F stands before the opcode */
	bool vex;              /* it has a VEX prefix, and neither of the others */
	uint8_t opcode, modrm, sib;
	uint8_t immediate_size;
	int32_t displacement;
	int64_t immediate;     /* its sign extended */
	uint8_t at;            /* bytes taken so far: at the end, all */
};

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8, PREFIX_SIZE = 0x66 };

/* As opcode_map_decode, and gives the parts.  `bytes` in them is not to be read. */
bool opcode_map_take(const uint8_t *bytes, size_t size, struct opcode_parts *ret_parts,
		     struct insn *ret_insn);

#endif
