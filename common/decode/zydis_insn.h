/* Decoding by Zydis.  For decode/insn.c, and for tests to compare with. */
#ifndef APPULSE_DECODE_ZYDIS_INSN_H
#define APPULSE_DECODE_ZYDIS_INSN_H

#include "decode/insn.h"

/* As insn_decode and insn_describe, whatever the instruction. */
bool zydis_insn_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);
bool zydis_insn_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
			 struct insn_detail *ret_detail);

#endif
