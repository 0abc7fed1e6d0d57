/* Where in a section the hot blocks shall stand. */
#ifndef APPULSE_LAYOUT_PLACEMENT_WINDOW_H
#define APPULSE_LAYOUT_PLACEMENT_WINDOW_H

#include "layout/placement_area.h"

enum { PLACEMENT_PAGE = 4096 };

struct placement_window {
	struct span span;  /* begins and ends at pages, or at the section's ends; what is
			    * placed from its begin on may need a little more or less */
	span_list touched; /* pages outside `span` that a hot pinned block lies on: they
			    * are touched in any case; ascending; owned */
};

/* Chooses a window for the area's waiting blocks.  NO_MEMORY; on failure nothing
 * is owned. */
enum status placement_window_choose(const struct placement_area *area,
				    struct placement_window *ret_window, struct diag *diag);
void placement_window_release(struct placement_window *window);

#endif
