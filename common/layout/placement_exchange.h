/* The exchange placement of one section. */
#ifndef APPULSE_LAYOUT_PLACEMENT_EXCHANGE_H
#define APPULSE_LAYOUT_PLACEMENT_EXCHANGE_H

#include "layout/placement_area.h"

/* Places the area's waiting blocks, which `hot` lists in the wanted sequence, and
 * the cold ones that they displace.  What finds no room still waits afterwards;
 * `hot` is reordered.  NO_MEMORY. */
enum status placement_exchange(struct placement_area *area, block_list *hot,
			       struct diag *diag);

#endif
