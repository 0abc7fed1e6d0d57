/* The import table, validated before LIEF sees it. */
#ifndef APPULSE_PE_IMPORT_CHECK_H
#define APPULSE_PE_IMPORT_CHECK_H

#include "base/vec.h"
#include "pe/image.h"

/* Whole pages of memory that hold import data. */
struct import_window {
	struct rva rva; /* a multiple of IMPORT_PAGE_BYTES */
	uint32_t size;  /* bytes, a multiple of IMPORT_PAGE_BYTES */
};

enum { IMPORT_PAGE_BYTES = 4096, IMPORT_WINDOW_MAX = 256 };

struct import_check {
	VEC(struct import_window) windows; /* ascending, not touching each other */
	VEC(struct rva) lookup_fields; /* the lookup table fields that are 0 */
	uint32_t dll_count;            /* descriptors */
	uint32_t import_count;         /* symbols of all of them */
};

/* Walks the whole import directory of `image`, which has passed header_check.
 * MALFORMED when a descriptor, a table or a name leaves the file's data, or
 * when there are more of them than the file has room for; UNSUPPORTED for DLL
 * names that LIEF would skip without a word (shorter than 4 bytes, or not
 * printable ASCII).  `ret_check` can be released in any case. */
enum status import_check(const struct image *image, struct import_check *ret_check,
			 struct diag *diag);
void import_check_release(struct import_check *check);

#endif
