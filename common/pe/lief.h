/* What LIEF reads for us: the import table, and headers and sections to check
 * our reading against.  lief.c is the only file that includes LIEF. */
#ifndef APPULSE_PE_LIEF_H
#define APPULSE_PE_LIEF_H

#include "pe/image.h"

/* Fills headers, directories, sections and imports of `image`, whose `bytes`,
 * `size` and `arena` are set.  The headers must have passed header_check
 * (header_check.h), so that LIEF sees nothing that it throws on. */
enum status lief_read(struct image *image, struct diag *diag);

/* "0.9.0", for --version. */
const char *lief_version(void);

#endif
