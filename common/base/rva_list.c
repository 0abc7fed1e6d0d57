#include "base/rva_list.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/key_sort.h"

static int compare_rvas(const void *a, const void *b)
{
	const struct rva *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

void rvas_sort(struct rva *rvas, uint32_t count)
{
	if (!key_sort(rvas, count, sizeof(*rvas), offsetof(struct rva, v)))
		qsort(rvas, count, sizeof(*rvas), compare_rvas);
}

uint32_t rvas_first_from(const struct rva *rvas, uint32_t count, struct rva rva)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rvas[middle].v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
