/* Orders: permutations of the blocks of a graph.
 *
 * An order says which blocks are hot, and in which sequence they shall stand.
 * It knows no addresses; placement (placement.h) gives them.
 */
#ifndef APPULSE_LAYOUT_ORDER_H
#define APPULSE_LAYOUT_ORDER_H

#include "base/diag.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "layout/profile.h"

struct order {
	VEC(uint32_t) blocks; /* ids of hot blocks, in the wanted sequence; no duplicates;
	                       * pinned ones may be among them and stay where they are */
	uint32_t unmatched;   /* distinct touched addresses at which no function begins */
};

/* The image's own order: no block is hot, nothing moves. */
enum status order_original(const struct graph *graph, struct order *ret_order, struct diag *diag);

/* All movable blocks in a random sequence that depends on `seed` alone (and the
 * blocks): the same on every machine. */
enum status order_random(const struct graph *graph, uint64_t seed, struct order *ret_order,
			 struct diag *diag);

/* Functions in the wanted sequence, as a linker takes them, which moves functions. */
struct function_order {
	VEC(uint32_t) functions; /* ids; no duplicates */
	uint32_t unmatched;      /* as of struct order */
};

/* Touched functions by their first touch; docs/orders.md says how runs are weighed.
 * Stable; ties by address.  NO_MEMORY; on failure nothing is owned. */
enum status function_order_first_touch(const struct graph *graph,
				       const struct profile *profile,
				       struct function_order *ret_order, struct diag *diag);
void function_order_release(struct function_order *order);

/* The blocks of these functions. */
enum status order_first_touch(const struct graph *graph, const struct profile *profile,
			      struct order *ret_order, struct diag *diag);

/* The functions that a file names, one a line: an RVA in hexadecimal with 0x, or
 * a symbol's name; '#' begins a comment.  BAD_ORDER for a line that is neither
 * an RVA inside a function nor a known name, with the line's number.  A name that
 * several functions bear means all of them. */
enum status order_from_file(const struct graph *graph, const char *text, size_t size,
			    struct order *ret_order, struct diag *diag);

/* The blocks of `count` functions, each at the first of its functions; functions
 * are given by id and may repeat.  What the orders above end with. */
enum status order_of_functions(const struct graph *graph, const uint32_t *functions,
			       uint32_t count, struct order *ret_order, struct diag *diag);

void order_release(struct order *order);

#endif
