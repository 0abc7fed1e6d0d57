/* An index by page over items that ascend by a 32-bit key, so that looking one up leaves
 * few to search. */
#ifndef APPULSE_BASE_PAGE_INDEX_H
#define APPULSE_BASE_PAGE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { PAGE_INDEX_SHIFT = 8 /* of 256 keys: one function or two */ };

/* One of zero bytes narrows nothing. */
struct page_index {
	uint32_t *first; /* by page: how many keys are below it; in an arena */
	uint32_t page_count;
	uint32_t item_count;
};

/* Of `count` items of `stride` bytes whose keys, in the machine's byte order, stand
 * `offset` bytes from the begin of each.  False when memory is out. */
bool page_index_make(struct page_index *index, struct arena *arena, const void *items,
		     uint32_t count, size_t stride, size_t offset);

/* Narrows the bounds [*low, *high] of how many keys are at most `key`. */
static inline void page_index_narrow(const struct page_index *index, uint32_t key,
				     uint32_t *low, uint32_t *high)
{
	uint32_t page = key >> PAGE_INDEX_SHIFT;

	if (page < index->page_count) {
		*low = index->first[page];
		*high = index->first[page + 1];
	} else if (index->page_count) {
		*low = *high = index->item_count;
	}
}

#endif
