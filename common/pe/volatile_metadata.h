/* Volatile metadata: which instructions access memory that other threads see too
 * (Microsoft Learn, "/volatileMetadata"). */
#ifndef APPULSE_PE_VOLATILE_METADATA_H
#define APPULSE_PE_VOLATILE_METADATA_H

#include "pe/load_config.h"

enum { VOLATILE_ACCESS_BYTES = 4, VOLATILE_RANGE_SIZE = 4, VOLATILE_RANGE_BYTES = 8 };

struct volatile_metadata {
	struct rva rva;         /* of the structure; 0 when there is none */
	struct rva ranges_size; /* of its field that has the ranges' bytes */
	/* RVAs of instructions, ascending. */
	struct rva accesses;
	uint32_t access_count;
	/* Rows of an RVA and a size: code whose accesses are all known.  They ascend and
	 * do not overlap. */
	struct rva ranges;
	uint32_t range_count;
};

/* The access `index`. */
struct rva volatile_access(const struct image *image,
			   const struct volatile_metadata *metadata, uint32_t index);

/* The row `index` of the ranges. */
void volatile_range(const struct image *image, const struct volatile_metadata *metadata,
		    uint32_t index, struct rva *ret_begin, struct rva *ret_end);

/* MALFORMED when a table leaves the file's data or does not ascend, or an access stands
 * in no section; UNSUPPORTED when the structure is of a form that is not known. */
enum status volatile_metadata_read(const struct image *image,
				   const struct load_config *config,
				   struct volatile_metadata *ret_metadata,
				   struct diag *diag);

#endif
