/* Operands by the opcode maps.  For decode/insn.c and its tests. */
#ifndef APPULSE_DECODE_OPERAND_MAP_H
#define APPULSE_DECODE_OPERAND_MAP_H

#include "decode/insn.h"

/* As insn_describe, for the instructions that compute addresses, compare and branch;
 * false when it is none of them, which says nothing about the bytes. */
bool operand_map_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
			  struct insn_detail *ret_detail);

#endif
