/* Functions that are parts of one function of the source.  Internal to graph/.
 *
 * GCC lays what is unlikely into a function of its own, with a row in the function
 * table; jumps lead there and back into the middle of the first.  A computed jump in
 * one part may lead into another, so where it is not understood all parts are in doubt.
 */
#ifndef APPULSE_GRAPH_FUNCTION_FAMILY_H
#define APPULSE_GRAPH_FUNCTION_FAMILY_H

#include "graph/discovery.h"

struct family_member {
	uint32_t parent;  /* function id; the root is its own */
	bool called;      /* entered as the calling convention says: called, its address
	                   * taken, or exported */
	bool referred_to; /* something leads to it, as far as is known */
	/* Fields of tables with its RVA that nobody enters it by; and how many of them are
	 * those of rows chained to it. */
	uint32_t described, chained;
	bool unsolved;    /* it has a computed jump that is not understood */
};

/* One member for each function, by id. */
struct function_families {
	struct family_member *members; /* owned */
	uint32_t count;
	uint32_t last_from; /* where the last branch was found */
};

/* Reads the references found so far.  False when memory is out; then nothing is owned. */
bool function_families_init(struct function_families *families, struct discovery *d);
void function_families_release(struct function_families *families);

/* A computed jump in the function `from` may lead to `to`. */
void function_families_join(struct function_families *families, struct discovery *d,
			    uint32_t from, struct rva to);

/* Pins what a computed jump that is not understood may lead to: its own function's
 * family, and every function that nothing seems to refer to. */
void function_families_doubt(struct function_families *families, struct discovery *d);

#endif
