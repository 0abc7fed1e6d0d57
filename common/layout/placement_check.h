/* Proof of a layout, by other means than those that made it. */
#ifndef APPULSE_LAYOUT_PLACEMENT_CHECK_H
#define APPULSE_LAYOUT_PLACEMENT_CHECK_H

#include "layout/placement.h"

/* The first rule that the layout breaks, as a phrase, or NULL when it is sound.
 * NO_MEMORY when that cannot be found out. */
enum status layout_find_fault(const struct graph *graph, const struct layout *layout,
			      const char **ret_fault, struct diag *diag);

#endif
