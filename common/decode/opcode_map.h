/* Decoding by the opcode maps.  For decode/insn.c and its tests. */
#ifndef APPULSE_DECODE_OPCODE_MAP_H
#define APPULSE_DECODE_OPCODE_MAP_H

#include "decode/insn.h"

/* As insn_decode, for the instructions that compilers use; false when it is none of
 * them, which says nothing about the bytes.  True says what insn_decode would. */
bool opcode_map_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);

#endif
