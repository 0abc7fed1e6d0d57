#include "base/vec.h"

#include "base/memory.h"

bool vec_grow(void **data, uint32_t *cap, size_t need, size_t size)
{
	size_t wanted = *cap ? (size_t)*cap + *cap / 2 + 1 : 16;
	void *grown;

	if (wanted < need)
		wanted = need;
	if (need > UINT32_MAX)
		return false;
	if (wanted > UINT32_MAX)
		wanted = UINT32_MAX;
	if (wanted > SIZE_MAX / size)
		return false;
	grown = realloc(*data, wanted * size);
	if (!grown)
		return false;
	memory_prefer_huge(grown, wanted * size);
	*data = grown;
	*cap = (uint32_t)wanted;
	return true;
}
