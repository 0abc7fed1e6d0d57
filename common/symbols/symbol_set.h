/* Names of places in an image that a file beside it gives: a PDB or a linker map.
 *
 * They are hints.  They name functions that discovery has found without them, and change
 * nothing about what may move: a file that lies gives wrong names, never a wrong image.
 */
#ifndef APPULSE_SYMBOLS_SYMBOL_SET_H
#define APPULSE_SYMBOLS_SYMBOL_SET_H

#include "base/arena.h"
#include "base/vec.h"
#include "pe/image.h"

/* From the one whose name is taken first to the last. */
enum symbol_kind {
	SYMBOL_FUNCTION,  /* a public function, under the name that linkers know it by */
	SYMBOL_PROCEDURE, /* one that a compiler describes, with its size */
	SYMBOL_PLACE,     /* anything else in code that has a name of its own: assembly, a
			   * thunk */
	SYMBOL_LABEL,     /* a label in a function */
};

struct symbol {
	const char *name; /* in the set's arena; never empty */
	struct rva rva;
	uint32_t size; /* bytes; 0: unknown */
	uint32_t kind; /* enum symbol_kind */
};

struct symbol_set {
	struct arena arena;
	VEC(struct symbol)
	symbols;          /* ascending by RVA once finished; those of one address by
			   * kind, then as they were added */
	uint32_t outside; /* symbols that were left out: they lie in no code of the image */
};

/* A set of zero bytes is valid and empty. */
void symbol_set_release(struct symbol_set *set);

/* Adds a copy.  A symbol outside of the image's code is counted and left out, one without
 * a name is left out.  False when memory is out. */
bool symbol_set_add(struct symbol_set *set, const struct image *image,
		    const struct symbol *symbol, size_t name_length);

/* The place `offset` bytes from the begin of the section with the 1-based number, as PDBs
 * and maps say it; false when there is none. */
bool symbol_address(const struct image *image, uint32_t section, uint32_t offset,
		    struct rva *ret_rva);

/* Sorts.  False when memory is out. */
bool symbol_set_finish(struct symbol_set *set);

#endif
