/* Base relocations (PE/COFF specification, ".reloc Section"). */
#ifndef APPULSE_PE_RELOCATIONS_H
#define APPULSE_PE_RELOCATIONS_H

#include "pe/image.h"

struct reloc {
	struct rva site; /* of the word to relocate */
	uint8_t type;    /* RELOC_DIR64 or RELOC_HIGHLOW */
};

struct relocations {
	struct reloc *data; /* in the image's arena, ascending by site, no duplicates */
	uint32_t count;
};

/* Reads all relocations; padding entries are left out.  MALFORMED for blocks
 * out of bounds, types other than the two, sites outside the sections' data,
 * or words that overlap.  An image without the table gives count 0. */
enum status relocations_read(struct image *image, struct relocations *ret_relocations,
			     struct diag *diag);

/* Writes the table for `count` relocations that ascend by site into `ret_bytes`
 * (heap, the caller frees), blocks padded to 4 bytes. */
enum status relocations_encode(const struct reloc *relocs, uint32_t count,
			       uint8_t **ret_bytes, uint32_t *ret_size, struct diag *diag);

#endif
