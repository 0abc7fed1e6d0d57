/* Arrays of RVAs that ascend. */
#ifndef APPULSE_BASE_RVA_LIST_H
#define APPULSE_BASE_RVA_LIST_H

#include "base/address.h"

/* Needs no failure: without memory it only takes longer. */
void rvas_sort(struct rva *rvas, uint32_t count);

/* The index of the first of sorted `rvas` at or behind `rva`, `count` when there is
 * none. */
uint32_t rvas_first_from(const struct rva *rvas, uint32_t count, struct rva rva);

#endif
