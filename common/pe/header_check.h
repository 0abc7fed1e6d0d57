/* The headers of a PE file, validated by our own code before anything else
 * looks at the file. */
#ifndef APPULSE_PE_HEADER_CHECK_H
#define APPULSE_PE_HEADER_CHECK_H

#include "pe/image.h"

/* The most sections that an image may have (PE/COFF specification, "COFF File
 * Header": the Windows loader's limit). */
enum { SECTION_COUNT_MAX = 96 };

/* Validates the headers of `image`, whose bytes, size and arena are set, and
 * fills its headers, directories and sections; what image.h promises about
 * them holds afterwards.  Where the data directories lead is not looked at.
 * Statuses: NOT_PE, MACHINE, MALFORMED, OVERLAP, UNSUPPORTED (a file beyond
 * 4 GiB), NO_MEMORY. */
enum status header_check(struct image *image, struct diag *diag);

#endif
