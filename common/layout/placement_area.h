/* One executable section while its blocks are being placed.
 *
 * A waiting block is placed, a cold one is displaced and then waits, a placed one may
 * be taken back.  At every moment the bytes of the section are held by pinned, placed
 * and cold blocks and by obstacles; the rest is free.
 */
#ifndef APPULSE_LAYOUT_PLACEMENT_AREA_H
#define APPULSE_LAYOUT_PLACEMENT_AREA_H

#include "layout/placement_queue.h"

/* Bytes from which on a cold block is not displaced by hot ones: a hole for it would
 * be hard to find, and around it at most parts of two pages are lost. */
enum { PLACEMENT_LARGE = 32768 };

enum block_state {
	BLOCK_PINNED,  /* stands where it stood and stays */
	BLOCK_COLD,    /* stands where it stood, may be displaced */
	BLOCK_WAITING, /* has no place */
	BLOCK_PLACED,  /* has its new place */
};

/* What the whole placement works on; one element of each array for a block. */
struct placement_plan {
	const struct graph *graph;
	struct rva *begins;
	uint8_t *states; /* enum block_state */
	bool *hot;       /* named by the order, pinned ones too */
};

/* A range of addresses, `end` exclusive. */
struct span {
	uint32_t begin, end;
};

typedef VEC(struct span) span_list;
typedef VEC(uint32_t) block_list;

struct placement_area {
	struct placement_plan *plan;     /* borrowed */
	struct span span;                /* of the section's data */
	uint32_t first_block, end_block; /* ids; end is exclusive */
	span_list obstacles; /* bytes in no block that are no padding, ascending; owned */
};

/* The area of a code range; `first_block` is the first block behind its begin. */
enum status placement_area_init(struct placement_area *area, struct placement_plan *plan,
				const struct code_range *range, uint32_t first_block,
				struct diag *diag);
void placement_area_release(struct placement_area *area);

/* The free spans inside those of `within`; both ascend.  With `over_cold` what cold
 * blocks hold counts as free, but for those of PLACEMENT_LARGE bytes and more. */
enum status placement_area_free(const struct placement_area *area, const span_list *within,
				bool over_cold, span_list *ret_spans, struct diag *diag);

/* Places waiting blocks of `sequence` into the spans, one span after the other,
 * until nothing more fits.  Blocks in other states are passed over. */
enum status placement_area_fill(struct placement_area *area, const block_list *sequence,
				const span_list *spans, uint32_t lookahead,
				struct diag *diag);

/* Makes the cold blocks wait that stand on a placed one's new place. */
enum status placement_area_displace(struct placement_area *area, struct diag *diag);

/* Makes all cold blocks wait that reach into `within`. */
void placement_area_clear(struct placement_area *area, struct span within);

/* The area's blocks as they stand at one moment. */
struct snapshot {
	struct rva *begins; /* owned */
	uint8_t *states;    /* owned */
};

/* NO_MEMORY.  A snapshot of zero bytes may be released, and so may one that could
 * not be taken. */
enum status snapshot_take(struct snapshot *snapshot, const struct placement_area *area,
			  struct diag *diag);
void snapshot_restore(const struct snapshot *snapshot, struct placement_area *area);
void snapshot_release(struct snapshot *snapshot);

#endif
