/* What LIEF reads for us: headers, sections and the import table.  lief.c is
 * the only file that includes LIEF. */
#ifndef APPULSE_PE_LIEF_H
#define APPULSE_PE_LIEF_H

#include "pe/image.h"

struct import_check;

/* Reads the headers, the sections and the imports of `image` again through
 * LIEF, and leaves LIEF's values in it.  The image must have passed
 * header_check (header_check.h), and `check` be what import_check
 * (import_check.h) found, so that LIEF sees nothing that it throws on.
 * Statuses: NO_MEMORY, IO (no memory file), UNSUPPORTED (LIEF reads something
 * else than our checks saw). */
enum status lief_read(struct image *image, const struct import_check *check,
		      struct diag *diag);

/* "0.9.0", for --version. */
const char *lief_version(void);

#endif
