/* Functions that a PDB names. */
#ifndef APPULSE_SYMBOLS_PDB_SYMBOLS_H
#define APPULSE_SYMBOLS_PDB_SYMBOLS_H

#include "symbols/pdb.h"
#include "symbols/symbol_set.h"

/* Adds public symbols in code, and the procedures, thunks and labels of all modules.
 * BAD_SYMBOLS when a record leaves its stream, or one is named more often than it is there;
 * NO_MEMORY.  On failure some may have been added. */
enum status pdb_symbols_add(const struct pdb *pdb, const struct image *image,
			    struct symbol_set *set, struct diag *diag);

#endif
