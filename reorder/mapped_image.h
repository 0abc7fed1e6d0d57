/* A relinked image together with the map of its relink. */
#ifndef APPULSE_REORDER_MAPPED_IMAGE_H
#define APPULSE_REORDER_MAPPED_IMAGE_H

#include "layout/map_file.h"
#include "pe/image.h"

struct mapped_image {
	struct image image;
	struct sha256 hash; /* of its file */
	struct move_map map;
	bool open; /* whether `image` is owned */
};

/* Opens the relinked image at `path` and its map; a `map_path` of NULL means the path with
 * ".map.json" behind it.  Statuses of move_map_read and image_open; OTHER_IMAGE when the
 * map was made for another relinked image.  Close it either way. */
enum status mapped_image_open(struct mapped_image *relinked, const char *path,
			      const char *map_path, struct diag *diag);

/* OTHER_IMAGE unless the map's original is the file at `path`, which has the hash `hash`.
 */
enum status mapped_image_check_original(const struct mapped_image *relinked,
					const char *path, const struct sha256 *hash,
					struct diag *diag);

/* Fine for one of zero bytes. */
void mapped_image_close(struct mapped_image *relinked);

#endif
