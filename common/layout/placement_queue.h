/* Blocks that wait for a place, in a sequence.
 *
 * The caller gives a place (where it begins, how much room there is) and gets the
 * block that it shall hold: one that fits, early in the sequence, and that wastes
 * few bytes to keep its begin modulo PLACEMENT_ALIGNMENT.
 */
#ifndef APPULSE_LAYOUT_PLACEMENT_QUEUE_H
#define APPULSE_LAYOUT_PLACEMENT_QUEUE_H

#include "layout/placement.h"

/* The waiting blocks of one begin modulo PLACEMENT_ALIGNMENT. */
struct queue_class {
	uint32_t *positions; /* in the sequence, ascending; room in the queue's memory */
	uint32_t *least;     /* a tree: least[1] is the root, node n has the children 2n
			      * and 2n + 1; the last `leaves` nodes are the sizes of the
			      * blocks that wait */
	uint32_t count, leaves;
};

struct block_queue {
	const struct graph *graph; /* borrowed */
	const uint32_t *sequence;  /* block ids; borrowed */
	struct queue_class classes[PLACEMENT_ALIGNMENT];
	uint32_t *memory; /* owned: all arrays of the classes */
};

/* NO_MEMORY; on failure nothing is owned. */
enum status block_queue_init(struct block_queue *queue, const struct graph *graph,
			     const uint32_t *sequence, uint32_t count, struct diag *diag);
void block_queue_release(struct block_queue *queue);

/* Takes a block that can stand in the `room` bytes at `place`, and its begin
 * there; NO_BLOCK when none can.  Of the blocks that stand at most `lookahead`
 * positions behind the first that fits it is one that wastes the fewest bytes;
 * of these the first. */
uint32_t block_queue_take(struct block_queue *queue, struct rva place, uint32_t room,
			  uint32_t lookahead, struct rva *ret_begin);

#endif
