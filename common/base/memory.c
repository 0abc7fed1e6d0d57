#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
	PAGE_BYTES = 1 << 12,
	LARGE_BYTES = 4 << 20, /* from here on one huge page more is little */
	OWN_MAPPING_BYTES = 4 << 20,
	KEPT_BYTES = 32 << 20,
	STEP_BYTES = 1 << 20,
};

void memory_keep_freed(void)
{
	/* glibc gives each thread memory of its own, maps what is large apart and gives
	 * it back at once: all that is taken again is cleared again.  A request that is
	 * denied costs nothing but time. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	mallopt(M_TOP_PAD, STEP_BYTES);
}

void memory_prefer_huge(void *data, size_t size)
{
	uintptr_t begin = (uintptr_t)data & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)data + size + PAGE_BYTES - 1) &
			~(uintptr_t)(PAGE_BYTES - 1);

	if (!data || size < LARGE_BYTES)
		return;
	/* All pages of it: memory that is advised in part are several mappings to the kernel,
	 * and mremap, with which realloc spares itself a copy, moves only one. */
	madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void *memory_sparse(size_t size)
{
	/* calloc clears itself whatever it has had before. */
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	return data == MAP_FAILED ? NULL : data;
}

void memory_sparse_free(void *data, size_t size)
{
	if (data)
		munmap(data, size);
}
