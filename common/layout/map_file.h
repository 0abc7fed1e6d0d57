/* The map of a relink: where each moved block stood and stands (JSON, described
 * in docs/map-file.md).
 *
 * Invariants of a finished map: its moves ascend by `from`, none is empty, none
 * overlaps another in the original or in the relinked image, none leaves 32
 * bits; `by_target` holds the same moves, ascending by `to`.
 */
#ifndef APPULSE_LAYOUT_MAP_FILE_H
#define APPULSE_LAYOUT_MAP_FILE_H

#include "base/address.h"
#include "base/diag.h"
#include "base/sha256.h"
#include "base/vec.h"

enum { MAP_SCHEMA = 1 };

struct move {
	struct rva from, to; /* begin in the original and in the relinked image */
	uint32_t size;       /* bytes */
};

struct move_map {
	struct sha256 original, relinked; /* of the two files */
	VEC(struct move) moves;           /* ascending by `from` */
	struct move *by_target;           /* owned (heap); NULL before move_map_finish */
};

/* Makes a finished map of one whose moves were pushed in any sequence: checks
 * the invariants and sorts.  BAD_MAP when they do not hold, NO_MEMORY.  On
 * failure the map still owns its moves. */
enum status move_map_finish(struct move_map *map, struct diag *diag);

/* Reads a map and finishes it.  IO; BAD_MAP when it is no map, of a newer
 * version, or breaks the invariants.  On failure nothing is owned. */
enum status move_map_read(struct move_map *map, const char *path, struct diag *diag);

/* As move_map_read for text in memory. */
enum status move_map_parse(struct move_map *map, const char *text, size_t size,
			   struct diag *diag);

/* Writes a finished map, the same bytes for the same map.  IO, EXISTS. */
enum status move_map_write(const struct move_map *map, const char *path, bool force,
			   struct diag *diag);
void move_map_release(struct move_map *map);

/* Where the byte at `rva` of the original stands in the relinked image: the same
 * RVA when it is in no moved block.  The map must be finished. */
struct rva move_map_forward(const struct move_map *map, struct rva rva);

/* How many of the `size` bytes at `rva` of the original stand together in the relinked
 * image, from the first on; *ret_to is where.  0 for no bytes. */
uint32_t move_map_stretch(const struct move_map *map, struct rva rva, uint32_t size,
			  struct rva *ret_to);

/* Where the byte at `rva` of the relinked image stood in the original: the same
 * RVA when it is in no moved block.  *ret_gone is set when a moved block has left
 * `rva` and none has come: such a byte has no original. */
struct rva move_map_backward(const struct move_map *map, struct rva rva, bool *ret_gone);

#endif
