/* Making every field that refers to code true again.
 *
 * One mechanism serves both writers: reorder moves blocks, instrument leads
 * references through thunks.  A reference is looked up in the graph; where its
 * site and its target stand afterwards is the caller's layout; its kind says how
 * the new value is encoded.  Tables that must be sorted are sorted afterwards.
 */
#ifndef APPULSE_LAYOUT_REWRITE_H
#define APPULSE_LAYOUT_REWRITE_H

#include "graph/graph.h"
#include "layout/image_file.h"
#include "layout/placement.h"

struct rewrite {
	const struct graph *graph;
	const struct layout *layout;  /* NULL: no block moves */
	const struct rva *thunks;     /* by function: where references that enter it lead; 0
	                               * for its begin.  NULL: no thunks */
	struct image_file *file;      /* edited */
};

/* Moves the blocks' bytes; what they leave behind becomes int3.  The layout's
 * added section must be in the file. */
void rewrite_blocks(const struct rewrite *rewrite);

/* Writes the value of every reference.  MALFORMED when a new value does not fit
 * its field (a displacement over 2 GiB). */
enum status rewrite_refs(const struct rewrite *rewrite, struct diag *diag);

/* Moves the symbols of moved code. */
void rewrite_symbols(const struct rewrite *rewrite);

/* Sorts the function table, the guard tables, the volatile accesses and the state maps. */
enum status rewrite_sort_tables(const struct rewrite *rewrite, struct diag *diag);

/* Makes the ranges of the volatile metadata anew for the layout. */
enum status rewrite_volatile_ranges(const struct rewrite *rewrite, struct diag *diag);

/* Writes the dynamic value relocations of moved code, in the old table's place, or in a
 * new section when they need more room. */
enum status rewrite_dynamic_relocations(const struct rewrite *rewrite, struct diag *diag);

/* Writes the base relocations of the moved words, and `count` further ones, in
 * the old table's place, or in a new section when they need more room.  An image that
 * has none and always lies at its preferred base needs none. */
enum status rewrite_relocations(const struct rewrite *rewrite, const struct reloc *more,
				uint32_t count, struct diag *diag);

#endif
