/* The runtime pseudo relocations of mingw: a list that the C start-up code of
 * mingw-w64 applies for data imported without dllimport (observed: mingw-w64
 * 10.0's pseudo-reloc.c format, version 2, as linked by GNU ld 2.40 and lld 14).
 *
 *     0, 0, 1; then { symbol RVA, target RVA, flags: bit size }
 */
#ifndef APPULSE_PE_PSEUDO_RELOCS_H
#define APPULSE_PE_PSEUDO_RELOCS_H

#include "pe/image.h"

struct pseudo_reloc {
	struct rva symbol; /* the import address table slot */
	struct rva target; /* the place that is patched */
	uint32_t bits;     /* 8, 16, 32 or 64 */
	struct rva site;   /* of this entry; fields at +0, +4, +8 */
};

struct pseudo_relocs {
	struct pseudo_reloc *data; /* in the image's arena */
	uint32_t count;
};

/* Finds lists by their structure in read-only data: the header, and at least
 * one entry whose symbol is an import slot and whose target lies in a section. */
enum status pseudo_relocs_read(struct image *image, struct pseudo_relocs *ret_relocs,
			       struct diag *diag);

#endif
