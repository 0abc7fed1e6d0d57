/* The language-specific data area of __gxx_personality_seh0 (and of Rust's and
 * other personalities of the same form): the Itanium C++ ABI's exception table
 * as GCC and LLVM emit it (observed: GCC 12.2, clang 14). */
#ifndef APPULSE_PE_LSDA_H
#define APPULSE_PE_LSDA_H

#include "pe/image.h"

/* One call site that has a landing pad. */
struct lsda_site {
	uint32_t begin, size; /* bytes, relative to the function's begin */
	int64_t landing_pad;  /* bytes, relative to lp_start (or the function's begin) */
	struct rva field;     /* of the landing pad's field */
	uint8_t field_size;   /* bytes */
};

struct lsda {
	bool has_lp_start;       /* whether lp_start is given */
	uint8_t lp_start_encoding; /* DW_EH_PE_*, 0xff when omitted */
	struct rva lp_start_site; /* of the encoded pointer, when given */
	struct rva lp_start;      /* what it resolves to, when given */
	uint8_t call_site_encoding;
	struct lsda_site *sites; /* in the caller's arena; those with a landing pad */
	uint32_t site_count;
	uint32_t size;           /* bytes up to the end of the call-site table */
};

/* Parses the table at `data` for a function of `function_size` bytes that begins at
 * `begin`; what it lists lives in `arena`.  MALFORMED when it is no such table: encodings
 * that are not known, sites outside the function or out of order, bytes cut off.
 * *ret_read, unless NULL, gets the bytes that were looked at, whatever the status. */
enum status lsda_read(const struct image *image, struct arena *arena, struct rva data,
		      struct rva begin, uint32_t function_size, struct lsda *ret_lsda,
		      uint32_t *ret_read, struct diag *diag);

#endif
