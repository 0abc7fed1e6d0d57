#include "base/page_index.h"

#include <string.h>

bool page_index_make(struct page_index *index, struct arena *arena, const void *items,
		     uint32_t count, size_t stride, size_t offset)
{
	uint32_t last, pages, next = 0;

	*index = (struct page_index){0};
	if (count == 0)
		return true;
	memcpy(&last, (const char *)items + stride * (count - 1) + offset, sizeof(last));
	pages = (last >> PAGE_INDEX_SHIFT) + 1;
	index->first = arena_array(arena, (size_t)pages + 1, sizeof(*index->first));
	if (!index->first)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key;

		memcpy(&key, (const char *)items + stride * i + offset, sizeof(key));
		while (next <= key >> PAGE_INDEX_SHIFT)
			index->first[next++] = i;
	}
	index->first[pages] = count;
	index->page_count = pages;
	index->item_count = count;
	return true;
}
