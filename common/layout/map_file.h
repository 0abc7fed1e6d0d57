/* The map of a relink: where each moved block stood and stands (JSON, described
 * in docs/map-file.md). */
#ifndef APPULSE_LAYOUT_MAP_FILE_H
#define APPULSE_LAYOUT_MAP_FILE_H

#include "base/diag.h"
#include "base/sha256.h"
#include "base/vec.h"
#include "base/address.h"

struct move {
	struct rva from, to; /* begin in the original and in the relinked image */
	uint32_t size;       /* bytes */
};

struct move_map {
	struct sha256 original, relinked; /* of the two files */
	VEC(struct move) moves;           /* ascending by `from`, no overlaps in either image */
};

/* Reads and checks a map.  BAD_MAP when it is no map, of a newer version, or its
 * moves overlap.  On failure nothing is owned. */
enum status move_map_read(struct move_map *map, const char *path, struct diag *diag);

/* Writes the map, the same bytes for the same map. */
enum status move_map_write(const struct move_map *map, const char *path, bool force,
			   struct diag *diag);
void move_map_release(struct move_map *map);

/* The RVA in the relinked image of a byte of the original, and the other way;
 * an RVA in no moved block stays, but where a moved block covers what was there
 * before, *ret_gone is set (the byte is not at that place any more). */
struct rva move_map_forward(const struct move_map *map, struct rva rva);
struct rva move_map_backward(const struct move_map *map, struct rva rva, bool *ret_gone);

#endif
