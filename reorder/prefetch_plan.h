/* Which pages of an image's code a start-up needs, in order, as a plan for a loader that
 * reads them ahead.  docs/prefetch.md describes the file and the C header. */
#ifndef APPULSE_REORDER_PREFETCH_PLAN_H
#define APPULSE_REORDER_PREFETCH_PLAN_H

#include "base/sha256.h"
#include "base/vec.h"
#include "layout/fault_model.h"

enum { PLAN_SCHEMA = 1 };

/* Whole pages. */
struct plan_range {
	struct rva begin;
	uint32_t size; /* bytes */
};

/* The ranges stand in the sequence in which they are needed first; no two overlap, and
 * none reaches over a section's end by more than its last page. */
struct prefetch_plan {
	VEC(struct plan_range) ranges;
	uint32_t pages;        /* in the ranges */
	uint32_t needed_pages; /* of them that were touched */
};

/* The image that the ranges are of, so that a loader can tell it from another build. */
struct plan_image {
	const char *name; /* without folders; borrowed */
	struct sha256 hash;
	uint32_t size_of_image, time_date_stamp, checksum; /* of its headers */
};

/* Makes a plan of the touched pages in the result of a fault model's run over `input`:
 * touched pages of one section become one range when at most `gap` pages lie between.
 * NO_MEMORY; on failure nothing is owned. */
enum status prefetch_plan_make(const struct fault_input *input,
			       const struct fault_result *result, uint32_t gap,
			       struct prefetch_plan *ret_plan, struct diag *diag);
void prefetch_plan_release(struct prefetch_plan *plan);

/* The plan as JSON and as a C header whose names begin with `prefix`, a C identifier; the
 * same bytes for the same plan.  On the heap, the caller frees; NULL when memory is out. */
char *prefetch_plan_json(const struct prefetch_plan *plan, const struct plan_image *image,
			 uint32_t gap, size_t *ret_size);
char *prefetch_plan_header(const struct prefetch_plan *plan, const struct plan_image *image,
			   const char *prefix, size_t *ret_size);

#endif
