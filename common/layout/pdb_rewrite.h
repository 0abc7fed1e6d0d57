/* A PDB for a relinked image: that of the original with every place made true. */
#ifndef APPULSE_LAYOUT_PDB_REWRITE_H
#define APPULSE_LAYOUT_PDB_REWRITE_H

#include "base/file.h"
#include "layout/map_file.h"
#include "pe/image.h"
#include "symbols/pdb.h"

/* What could not be described as it was. */
struct pdb_report {
	uint32_t fragments; /* parts of procedures that have gone elsewhere: each is
			     * described as a procedure of its own, under the same name,
			     * without variables and inlined functions */
	uint32_t ranges;    /* blocks, thunks and places of variables that lost their second
			     * part */
	uint32_t old_lines; /* modules with lines of a form before Visual Studio 2005, which
			     * stay as they were */
	char first[128]; /* name of the first procedure that fell apart, cut when too long
			  */
};

/* Appends to `out` the PDB of the image `original`, made to belong to `relinked`, which is
 * the same with its blocks moved as the finished `map` says.  That the PDB belongs to the
 * image is for the caller to know (pdb_check_image).  The same input gives the same bytes.
 * BAD_SYMBOLS for what is damaged, UNSUPPORTED for what is not understood; IO, NO_MEMORY,
 * NO_ROOM. */
enum status pdb_rewrite(const struct pdb *pdb, const struct image *original,
			struct image *relinked, const struct move_map *map,
			struct output_file *out, struct pdb_report *ret_report,
			struct diag *diag);

#endif
