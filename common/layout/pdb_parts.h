/* The parts of a PDB that name places, each made true for the relinked image.  What they
 * share is here; nobody but pdb_rewrite.c and they include it.
 *
 * Bytes are in the heap and are changed in place; the parts that may grow are built anew.
 */
#ifndef APPULSE_LAYOUT_PDB_PARTS_H
#define APPULSE_LAYOUT_PDB_PARTS_H

#include "layout/pdb_places.h"
#include "layout/pdb_rewrite.h"
#include "symbols/pdb.h"

/* Bytes that are built. */
struct pdb_bytes {
	VEC(uint8_t) bytes;
};

struct pdb_rewriting {
	struct pdb_places places;
	struct pdb_report *report;
	struct diag *diag;
	struct pdb_bytes added; /* records to stand behind a module's */
	uint32_t added_at;      /* where: bytes from the stream's begin */
};

/* False when memory is out. */
bool pdb_bytes_put(struct pdb_bytes *to, const void *data, size_t size);
bool pdb_bytes_u16(struct pdb_bytes *to, uint16_t v);
bool pdb_bytes_u32(struct pdb_bytes *to, uint32_t v);

/* Symbol records, one behind the other, up to `size`; what must be told beside them goes to
 * `added`.  BAD_SYMBOLS when one leaves the bytes; NO_MEMORY.  (pdb_records.c) */
enum status pdb_records_move(struct pdb_rewriting *rewriting, uint8_t *records,
			     uint32_t size);

/* The lines of a module, `size` bytes of subsections, appended to `to`.  BAD_SYMBOLS,
 * NO_MEMORY.  (pdb_lines.c) */
enum status pdb_lines_move(struct pdb_rewriting *rewriting, const uint8_t *lines,
			   uint32_t size, struct pdb_bytes *to);

/* The list of contributions of object files to sections, `size` bytes, appended to `to`.
 * BAD_SYMBOLS, UNSUPPORTED, NO_MEMORY.  (pdb_contributions.c) */
enum status pdb_contributions_move(struct pdb_rewriting *rewriting, const uint8_t *list,
				   uint32_t size, struct pdb_bytes *to);

#endif
