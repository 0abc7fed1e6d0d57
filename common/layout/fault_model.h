/* A model of the page faults that running code costs: a pure function of where the
 * touched code stands.  It knows no graph, no file and no database.
 *
 * Code is touched in an order.  The first touch of a page that is not in memory is a
 * hard fault, which reads that page and those behind it, `cluster` pages in all, but
 * none behind the end of the section.  What has been read stays in memory.
 *
 * docs/prediction.md says where the model comes from, and what it leaves out.
 */
#ifndef APPULSE_LAYOUT_FAULT_MODEL_H
#define APPULSE_LAYOUT_FAULT_MODEL_H

#include "base/address.h"
#include "base/diag.h"

enum {
	FAULT_PAGE = 4096, /* bytes of a page on x86-64 (AMD64 APM 2, "4-Kbyte Page
			    * Translation") */
	FAULT_CLUSTER = 8, /* pages that a fault reads unless told otherwise */
};

#define NO_TOUCH UINT32_MAX

/* Bytes that one touch needs.  A touch whose code stands in several places has a range
 * for each, in the sequence in which they are needed. */
struct fault_range {
	struct rva begin;
	uint32_t size;  /* bytes; 0: the touch needs none here */
	uint32_t touch; /* its number, from 0; never falls from one range to the next */
};

/* A code section as it stands in memory. */
struct fault_section {
	struct rva begin;
	uint32_t size; /* bytes, above 0 */
};

struct fault_input {
	uint32_t image_size; /* bytes in memory; no section ends behind it */
	const struct fault_section *sections; /* ascending, disjoint; borrowed */
	uint32_t section_count;
	const struct fault_range *ranges; /* borrowed; may overlap */
	uint32_t range_count;
	uint32_t touch_count; /* above the number of every touch; one may have no range */
	const int64_t *times_ns; /* by touch, from any moment; NULL: unknown; borrowed */
	uint32_t cluster;        /* pages, at least 1 */
};

struct fault_result {
	uint32_t pages;      /* that hold a byte of a range */
	uint32_t read_pages; /* that were read: `pages` and what came with them */
	uint32_t faults;
	uint64_t touched_bytes; /* that a range holds, each once */
	uint64_t wasted_bytes;  /* of the sections, on touched pages, that no range holds */
	uint64_t outside_bytes; /* of ranges, outside all sections: left out of all else */

	uint32_t *curve;      /* by touch: faults so far, with those of the touch; owned */
	uint32_t touch_count; /* elements of `curve` */
	/* The area under the curve, divided by its width: the mean of the curve, in faults.
	 * It is small when faults are few or come late; two layouts of one run compare. */
	double area;      /* over the touches; 0 without touches */
	double time_area; /* over the time from the first to the last touch; valid with
			   * has_time */
	bool has_time;    /* times are known and not all the same */

	uint32_t page_count;  /* of the image: elements of the two arrays */
	uint32_t *touched_by; /* by page: the touch that needed it first, or NO_TOUCH; owned
			       */
	uint32_t *read_by; /* by page: the touch whose fault read it, or NO_TOUCH; owned */
};

/* Takes time and memory that grow with ranges, touches and `image_size`, and time for each
 * page and 64 bytes of each range.  Times that fall count as the latest before.
 * NO_MEMORY; on failure nothing is owned. */
enum status fault_model_run(const struct fault_input *input,
			    struct fault_result *ret_result, struct diag *diag);

/* One of zero bytes may be released. */
void fault_result_release(struct fault_result *result);

#endif
