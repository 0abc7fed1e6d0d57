/* The writer of appulse-reorder: the original image with its blocks at the
 * addresses of a layout. */
#ifndef APPULSE_LAYOUT_RELINK_H
#define APPULSE_LAYOUT_RELINK_H

#include "base/sha256.h"
#include "graph/graph.h"
#include "layout/map_file.h"
#include "layout/placement.h"

struct relink_options {
	uint32_t file_alignment; /* bytes, 512 to 65536, a power of two; 0 keeps the original's */
	struct sha256 original;  /* of the original's file: a part of the new identity */
};

/* The finished output. */
struct relinked {
	uint8_t *bytes; /* owned (heap) */
	size_t size;
	bool dropped_signature;
	VEC(struct move) moves; /* ascending by `from` */
};

/* Statuses: NO_MEMORY, NO_ROOM, MALFORMED, UNSUPPORTED.  On failure nothing is owned. */
enum status relink_write(const struct graph *graph, const struct layout *layout,
			 const struct relink_options *options, struct relinked *ret_relinked,
			 struct diag *diag);
void relinked_release(struct relinked *relinked);

#endif
