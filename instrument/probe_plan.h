/* Which functions get a probe. */
#ifndef APPULSE_INSTRUMENT_PROBE_PLAN_H
#define APPULSE_INSTRUMENT_PROBE_PLAN_H

#include "graph/graph.h"

/* Shell patterns (fnmatch) over function names; a function without a name goes by
 * its RVA, "0x1a2b". */
struct probe_filter {
	const char *const *only; /* empty: all */
	uint32_t only_count;
	const char *const *skip;
	uint32_t skip_count;
};

struct probe_plan {
	int32_t *probe_of;   /* by function: index of its probe, -1: none; owned (heap) */
	VEC(uint32_t) functions; /* by probe: the function */
	uint32_t unreachable; /* functions that no reference enters, so without a probe */
	uint32_t doubtful;    /* functions that may be something else than code */
	uint32_t filtered;    /* functions that the filter leaves out */
	uint32_t pinned;      /* functions that the user has pinned */
};

/* A probe is given to every function that the filter takes, that is code beyond
 * doubt, that the user has not pinned, and that some reference enters.  Probes ascend with
 * their functions. */
enum status probe_plan_make(const struct graph *graph, const struct probe_filter *filter,
			    struct probe_plan *ret_plan, struct diag *diag);
void probe_plan_release(struct probe_plan *plan);

#endif
