/* Names of sections that are too long for the section table. */
#ifndef APPULSE_PE_SECTION_NAME_H
#define APPULSE_PE_SECTION_NAME_H

#include "pe/image.h"

/* The section's name: for "/123" that in the string table behind the COFF symbols, as
 * mingw's linkers write it for DWARF's sections (PE/COFF specification, "Section Table",
 * allows it in object files only).  "/123" itself when it leads nowhere.  In the image's
 * memory. */
const char *section_name(const struct image *image, const struct section *section);

/* The packer or protector that gives its sections this name, or NULL.  The code of such an
 * image is not what the file shows, or watches over itself. */
const char *section_packer(const struct section *section);

/* Whether it holds DWARF, which no program reads: one that may be discarded, and is named
 * so. */
bool section_is_dwarf(const struct image *image, const struct section *section);

#endif
