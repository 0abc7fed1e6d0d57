/* Where the places that a PDB names have gone: section and offset in the original, section
 * and offset in the relinked image. */
#ifndef APPULSE_LAYOUT_PDB_PLACES_H
#define APPULSE_LAYOUT_PDB_PLACES_H

#include "layout/map_file.h"
#include "pe/image.h"

struct pdb_places {
	const struct image *original, *relinked; /* borrowed */
	const struct move_map *map;              /* finished, borrowed */
	uint64_t budget; /* what pieces may still cost */
	bool spent;      /* sticky: there was no budget for a piece */
};

/* Sets the budget for a PDB of `size` bytes. */
void pdb_places_set_budget(struct pdb_places *places, uint64_t size);

/* Takes `cost` bytes off the budget; false, and spent, when it has less. */
bool pdb_places_spend(struct pdb_places *places, uint64_t cost);

/* Makes the place that stands in two fields, an offset of 32 bits and a 1-based section of
 * 16, that of the relinked image.  One that is in no section stays; numbers behind the last
 * section mean no place (absolute symbols have the next one), and still do. */
void pdb_place_move(const struct pdb_places *places, uint8_t *offset, uint8_t *section);

/* How many of the `size` bytes at a place stand together in the relinked image, from the
 * first on; all when the place is in no section. */
uint32_t pdb_place_stretch(const struct pdb_places *places, uint32_t section,
			   uint32_t offset, uint32_t size);

/* A part of a range, of bytes that stand together and have not got lost. */
struct pdb_piece {
	uint32_t begin;   /* bytes from the range's begin */
	uint32_t size;    /* bytes */
	uint16_t section; /* in the relinked image */
	uint32_t offset;
};

/* The parts of a range, one after the other: *at begins with 0.  Padding that nobody moved,
 * and that another block has taken the place of, is left out.  Each costs some of the
 * budget.  False behind the last, and when the budget is spent. */
bool pdb_next_piece(struct pdb_places *places, uint32_t section, uint32_t offset,
		    uint32_t size, uint32_t *at, struct pdb_piece *ret_piece);

#endif
