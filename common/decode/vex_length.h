/* Lengths of instructions that Zydis does not know.  For decode/insn.c. */
#ifndef APPULSE_DECODE_VEX_LENGTH_H
#define APPULSE_DECODE_VEX_LENGTH_H

#include "decode/insn.h"

/* As insn_decode, for an instruction with a VEX or EVEX prefix that Zydis does not
 * know; false when its length is not certain. */
bool vex_length_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);

#endif
