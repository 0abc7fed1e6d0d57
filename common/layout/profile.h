/* What recorded runs say about the functions of one image. */
#ifndef APPULSE_LAYOUT_PROFILE_H
#define APPULSE_LAYOUT_PROFILE_H

#include <stdint.h>

#include "base/address.h"

/* One run: the functions that it touched, in the order of their first touch. */
struct profile_run {
	double weight;            /* of the run, above 0 */
	const struct rva *touched; /* begins of functions, no duplicates */
	uint32_t count;
};

struct profile {
	const struct profile_run *runs; /* all borrowed */
	uint32_t run_count;
};

#endif
