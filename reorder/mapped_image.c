#include "mapped_image.h"

#include <stdio.h>
#include <string.h>

static enum status check_hash(const char *path, const struct sha256 *hash,
			      const struct sha256 *expected, struct diag *diag)
{
	enum status status;

	if (memcmp(hash->bytes, expected->bytes, sizeof(hash->bytes)) == 0)
		return STATUS_OK;
	status = diag_fail(diag, STATUS_OTHER_IMAGE, "the map was made for another file");
	diag_set_file(diag, path);
	return status;
}

enum status mapped_image_open(struct mapped_image *relinked, const char *path,
			      const char *map_path, struct diag *diag)
{
	char beside[4096];
	enum status status;

	memset(relinked, 0, sizeof(*relinked));
	snprintf(beside, sizeof(beside), "%s.map.json", path);
	status = move_map_read(&relinked->map, map_path ? map_path : beside, diag);
	if (status == STATUS_OK)
		status = image_open(&relinked->image, path, diag);
	if (status != STATUS_OK)
		return status;
	relinked->open = true;
	relinked->hash = sha256_of(relinked->image.bytes, relinked->image.size);
	return check_hash(path, &relinked->hash, &relinked->map.relinked, diag);
}

enum status mapped_image_check_original(const struct mapped_image *relinked,
					const char *path, const struct sha256 *hash,
					struct diag *diag)
{
	return check_hash(path, hash, &relinked->map.original, diag);
}

void mapped_image_close(struct mapped_image *relinked)
{
	if (relinked->open)
		image_release(&relinked->image);
	move_map_release(&relinked->map);
	memset(relinked, 0, sizeof(*relinked));
}
