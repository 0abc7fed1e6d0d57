/* Opening an image, and the accessors that everything else reads it through.
 *
 * image_bytes is called for millions of operands and table rows, so it does no
 * more than a binary search over the section table (a handful of rows) and two
 * comparisons: 10 to 20 ns at random addresses among twenty sections.  A table
 * of pages would be quicker still, but costs memory for each image and a pass to
 * fill it.
 *
 * What an image holds beyond the raw data of a section, up to its virtual size,
 * is zero memory: it has an address and a section, but no bytes in the file, so
 * image_bytes has nothing to show.  Raw data beyond the virtual size is padding
 * that only stands in the file; it has no address.
 */
#include "pe/image.h"

#include <string.h>

#include "pe/header_check.h"
#include "pe/import_check.h"
#include "pe/lief.h"

static enum status read_image(struct image *image, struct diag *diag)
{
	struct import_check imports;
	enum status status = header_check(image, diag);

	if (status != STATUS_OK)
		return status;
	status = import_check(image, &imports, diag);
	if (status == STATUS_OK)
		status = lief_read(image, &imports, diag);
	import_check_release(&imports);
	return status;
}

/* Reads `image`, whose file is set; releases it on failure. */
static enum status open_image(struct image *image, const char *name, struct diag *diag)
{
	enum status status;

	image->path = arena_strndup(&image->arena, name, strlen(name));
	status = image->path ? read_image(image, diag) : diag_no_memory(diag);
	if (status != STATUS_OK) {
		diag_set_file(diag, name);
		image_release(image);
	}
	return status;
}

enum status image_open(struct image *image, const char *path, struct diag *diag)
{
	enum status status;

	memset(image, 0, sizeof(*image));
	status = mapped_file_open(&image->file, path, diag);
	if (status != STATUS_OK)
		return status;
	image->bytes = image->file.data;
	image->size = image->file.size;
	return open_image(image, path, diag);
}

enum status image_open_bytes(struct image *image, const void *bytes, size_t size,
			     const char *name, struct diag *diag)
{
	memset(image, 0, sizeof(*image));
	image->bytes = bytes;
	image->size = size;
	return open_image(image, name, diag);
}

void image_release(struct image *image)
{
	if (!image)
		return;
	mapped_file_close(&image->file);
	arena_release(&image->arena);
	memset(image, 0, sizeof(*image));
}

const struct section *image_section_at(const struct image *image, struct rva rva)
{
	const struct section *section = image->sections;

	/* The last section that begins at or before `rva`, or the first of all.  Both
	 * ways of the choice are computed, so that no branch is mispredicted. */
	for (uint32_t count = image->section_count; count > 1; count -= count / 2) {
		const struct section *middle = section + count / 2;

		section = middle->rva.v <= rva.v ? middle : section;
	}
	if (!section || rva.v < section->rva.v)
		return NULL;
	return rva.v - section->rva.v < section->virtual_size ? section : NULL;
}

/* The file's data from `rva` to the end of its section or of the headers. */
static const uint8_t *data_at(const struct image *image, struct rva rva, uint32_t *ret_left)
{
	const struct section *section = image_section_at(image, rva);
	uint32_t offset, data;

	if (!section) {
		if (rva.v >= image->headers.size_of_headers)
			return NULL;
		*ret_left = image->headers.size_of_headers - rva.v;
		return image->bytes + rva.v;
	}
	offset = rva.v - section->rva.v;
	data = section->raw_size < section->virtual_size ? section->raw_size
							  : section->virtual_size;
	if (offset >= data)
		return NULL;
	*ret_left = data - offset;
	return image->bytes + section->raw.v + offset;
}

const uint8_t *image_bytes(const struct image *image, struct rva rva, uint32_t size)
{
	uint32_t left;
	const uint8_t *bytes = data_at(image, rva, &left);

	return bytes && size <= left ? bytes : NULL;
}

struct reader image_reader(const struct image *image, struct rva rva)
{
	uint32_t left = 0;
	const uint8_t *bytes = data_at(image, rva, &left);

	return (struct reader){.data = bytes, .size = left, .failed = !bytes};
}

const char *image_string(const struct image *image, struct rva rva)
{
	uint32_t left;
	const uint8_t *bytes = data_at(image, rva, &left);

	if (!bytes)
		return NULL;
	if (left > IMAGE_STRING_MAX)
		left = IMAGE_STRING_MAX;
	return memchr(bytes, '\0', left) ? (const char *)bytes : NULL;
}

bool image_is_code(const struct image *image, struct rva rva)
{
	const struct section *section = image_section_at(image, rva);

	return section && (section->characteristics & SECTION_EXECUTE);
}

bool image_is_read_only(const struct image *image, struct rva rva)
{
	const struct section *section = image_section_at(image, rva);

	return section && !(section->characteristics & SECTION_WRITE);
}
