/* Placement: addresses for the blocks of an order.
 *
 * exchange   The hot blocks are laid out contiguously from a chosen place in
 *            their section, around what is pinned there; the movable cold blocks
 *            that lay there move into the holes that the hot ones left.  Every
 *            other block keeps its RVA, and the image does not grow (what does
 *            not fit into the holes goes into a new section, which is rare).
 * append     The hot blocks go into a new section at the end of the image.
 *
 * A moved block keeps its begin modulo ALIGNMENT.
 */
#ifndef APPULSE_LAYOUT_PLACEMENT_H
#define APPULSE_LAYOUT_PLACEMENT_H

#include "base/diag.h"
#include "graph/graph.h"
#include "layout/order.h"

enum { PLACEMENT_ALIGNMENT = 16 };

enum placement { PLACEMENT_EXCHANGE, PLACEMENT_APPEND };

struct layout {
	struct rva *begins;      /* new begin of each block, by id; owned (heap) */
	uint32_t block_count;
	struct rva added;        /* RVA of the new code section; 0 when there is none */
	uint32_t added_size;     /* bytes in it */
	uint32_t moved;          /* blocks whose begin changed */
};

/* The RVA at which a new section may begin: the end of the image, rounded up to
 * its section alignment. */
struct rva layout_end_of_image(const struct image *image);

/* Lays out `order`.  Proves before it returns that no two blocks overlap, that
 * none overlaps padding that must stay, that pinned blocks kept their place, and
 * that all lie in code sections (an assert: it would be our own bug). */
enum status layout_place(const struct graph *graph, const struct order *order,
			 enum placement placement, struct layout *ret_layout, struct diag *diag);
void layout_release(struct layout *layout);

/* Where the byte at `rva` stands after the move; the same when it is in no block. */
struct rva layout_map(const struct graph *graph, const struct layout *layout, struct rva rva);

/* As layout_map for the exclusive end of a range: where the byte before it
 * stands, plus one. */
struct rva layout_map_end(const struct graph *graph, const struct layout *layout, struct rva end);

#endif
