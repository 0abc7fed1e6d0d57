/* The load configuration points at the structure, and that at two tables.  An
 * emulator of x64 on ARM64 may run an access without a memory barrier when it is
 * inside of a range and not in the table of accesses (Microsoft Learn,
 * "/volatileMetadata (Generate metadata on volatile memory accesses)"); what no
 * range covers gets a barrier each time.
 *
 * The structure's fields are those of IMAGE_VOLATILE_METADATA, and a range's those
 * of IMAGE_VOLATILE_RANGE_METADATA (winnt.h of the Windows 11 SDK).  Observed: the
 * MSVC linkers 14.29 to 14.44 write a size of 24, both tables ascending, ranges apart
 * from one another, versions between 0x8000 and 0x8003, and both tables empty in an
 * image without any code of MSVC.
 */
#include "pe/volatile_metadata.h"

enum {
	METADATA_BYTES = 24,
	METADATA_ACCESSES = 8,
	METADATA_RANGES = 16,
	METADATA_RANGES_SIZE = 20,
};

/* The RVA and the size in bytes at `p`: rows of `stride` bytes. */
static enum status read_table(const struct image *image, const uint8_t *p, uint32_t stride,
			      struct rva *ret_table, uint32_t *ret_count, struct diag *diag)
{
	struct rva table = rva_of(load_u32(p));
	uint32_t size = load_u32(p + 4);

	*ret_table = table;
	*ret_count = size / stride;
	if (size == 0)
		return STATUS_OK;
	if (size % stride != 0 || !image_bytes(image, table, size))
		return diag_fail_at(diag, STATUS_MALFORMED, table,
				    "a table of the volatile metadata leaves the file's "
				    "data");
	return STATUS_OK;
}

struct rva volatile_access(const struct image *image,
			   const struct volatile_metadata *metadata, uint32_t index)
{
	struct rva site = rva_add(metadata->accesses, index * VOLATILE_ACCESS_BYTES);

	return rva_of(load_u32(image_bytes(image, site, VOLATILE_ACCESS_BYTES)));
}

static enum status check_accesses(const struct image *image,
				  const struct volatile_metadata *metadata,
				  struct diag *diag)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < metadata->access_count; i++) {
		struct rva access = volatile_access(image, metadata, i);

		if (access.v < last || !image_section_at(image, access))
			return diag_fail_at(diag, STATUS_MALFORMED, metadata->accesses,
					    "the volatile accesses do not ascend, or leave "
					    "the sections");
		last = access.v;
	}
	return STATUS_OK;
}

static enum status check_ranges(const struct image *image,
				const struct volatile_metadata *metadata, struct diag *diag)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < metadata->range_count; i++) {
		struct rva site = rva_add(metadata->ranges, i * VOLATILE_RANGE_BYTES);
		const uint8_t *row = image_bytes(image, site, VOLATILE_RANGE_BYTES);
		uint64_t begin = load_u32(row);
		uint64_t end = begin + load_u32(row + VOLATILE_RANGE_SIZE);

		if (begin < last || end > image->headers.size_of_image)
			return diag_fail_at(diag, STATUS_MALFORMED, site,
					    "the ranges of the volatile metadata do not "
					    "ascend");
		last = end;
	}
	return STATUS_OK;
}

void volatile_range(const struct image *image, const struct volatile_metadata *metadata,
		    uint32_t index, struct rva *ret_begin, struct rva *ret_end)
{
	const uint8_t *row =
		image_bytes(image, rva_add(metadata->ranges, index * VOLATILE_RANGE_BYTES),
			    VOLATILE_RANGE_BYTES);

	*ret_begin = rva_of(load_u32(row));
	*ret_end = rva_add(*ret_begin, load_u32(row + VOLATILE_RANGE_SIZE));
}

enum status volatile_metadata_read(const struct image *image,
				   const struct load_config *config,
				   struct volatile_metadata *ret_metadata,
				   struct diag *diag)
{
	struct volatile_metadata metadata = {.rva = config->volatile_metadata};
	const uint8_t *p = image_bytes(image, metadata.rva, METADATA_BYTES);
	enum status status;

	if (metadata.rva.v == 0) {
		*ret_metadata = metadata;
		return STATUS_OK;
	}
	if (!p)
		return diag_fail_at(diag, STATUS_MALFORMED, metadata.rva,
				    "the volatile metadata leaves the file's data");
	if (load_u32(p) != METADATA_BYTES)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, metadata.rva,
				    "volatile metadata of %u bytes, not %u", load_u32(p),
				    METADATA_BYTES);
	metadata.ranges_size = rva_add(metadata.rva, METADATA_RANGES_SIZE);
	status = read_table(image, p + METADATA_ACCESSES, VOLATILE_ACCESS_BYTES,
			    &metadata.accesses, &metadata.access_count, diag);
	if (status == STATUS_OK)
		status = read_table(image, p + METADATA_RANGES, VOLATILE_RANGE_BYTES,
				    &metadata.ranges, &metadata.range_count, diag);
	if (status == STATUS_OK)
		status = check_accesses(image, &metadata, diag);
	if (status == STATUS_OK)
		status = check_ranges(image, &metadata, diag);
	if (status == STATUS_OK)
		*ret_metadata = metadata;
	return status;
}
