/* Columns of numbers and texts for the page: bytes that are joined, compressed and
 * given as one text.
 *
 * Each column is described by an object in the page's JSON: `at` and `count`, the
 * place and number of its values in the bytes; `kind`: "u32" (little-endian), "delta"
 * (the same, each the difference to the one before, modulo 2^32) or "text" (`count`
 * texts in UTF-8, each with a NUL behind it, in `bytes` bytes).  Memory running out
 * is sticky and told by pack_finish. */
#ifndef APPULSE_PROFILE_REPORT_PACK_H
#define APPULSE_PROFILE_REPORT_PACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct pack {
	uint8_t *data; /* owned */
	uint32_t len, cap;
	bool failed; /* memory ran out, or 4 GiB are reached */
};

void pack_release(struct pack *pack);

/* Add a column that becomes `object`'s member `key`. */
void pack_numbers(struct pack *pack, json_t *object, const char *key,
		  const uint32_t *values, uint32_t count);
void pack_deltas(struct pack *pack, json_t *object, const char *key,
		 const uint32_t *values, uint32_t count);

/* NULL counts as an empty text; what is no UTF-8 becomes '?'. */
void pack_texts(struct pack *pack, json_t *object, const char *key,
		const char *const *texts, uint32_t count);

/* All of it, as zlib makes it (RFC 1950), in base 64 (RFC 4648).  The caller frees it.
 * NO_MEMORY. */
enum status pack_finish(const struct pack *pack, char **ret_text, struct diag *diag);

#endif
