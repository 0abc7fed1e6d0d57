/* What the kernel is told of large memory, as it shows in /proc/self/smaps (proc(5)). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/vec.h"

enum { LARGE = 16 << 20, SMALL = 1 << 20 };

/* Whether huge pages were asked for at `place`. */
static bool is_huge(const void *place)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool inside = false, huge = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long long begin, end;

		if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
			inside = (uintptr_t)place >= begin && (uintptr_t)place < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			huge = strstr(line, " hg") != NULL;
	}
	fclose(maps);
	return huge;
}

/* A kernel may have none. */
static bool has_huge_pages(void)
{
	return access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
}

static void test_large_memory(void **unused)
{
	char *large = malloc(LARGE), *small = malloc(SMALL);

	(void)unused;
	large[0] = large[LARGE - 1] = 'x';
	memory_prefer_huge(large, LARGE);
	memory_prefer_huge(small, SMALL);
	memory_prefer_huge(NULL, 0);
	memory_prefer_huge(NULL, LARGE);
	assert_int_equal(is_huge(large + LARGE / 2), has_huge_pages());
	/* All of it is one mapping, which mremap can move. */
	assert_int_equal(is_huge(large), has_huge_pages());
	assert_int_equal(is_huge(large + LARGE - 1), has_huge_pages());
	assert_false(is_huge(small + SMALL / 2));
	assert_int_equal(large[0], 'x');
	assert_int_equal(large[LARGE - 1], 'x');
	free(small);
	free(large);
}

static void test_arena_and_vector(void **unused)
{
	struct arena arena = {0};
	VEC(char) vec = {0};
	char *large = arena_alloc(&arena, LARGE);

	(void)unused;
	assert_true(vec_reserve(&vec, LARGE));
	assert_int_equal(is_huge(large + LARGE / 2), has_huge_pages());
	assert_int_equal(is_huge(vec.data + LARGE / 2), has_huge_pages());
	assert_true(vec_reserve(&vec, 2 * LARGE));
	assert_int_equal(is_huge(vec.data), has_huge_pages());
	assert_int_equal(is_huge(vec.data + 2 * LARGE - 1), has_huge_pages());
	vec_release(&vec);
	arena_release(&arena);
}

/* KiB of the mapping at `place` that stand in memory. */
static unsigned long resident_kib(const void *place)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long kib = 0;
	bool inside = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long long begin, end;

		if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
			inside = (uintptr_t)place >= begin && (uintptr_t)place < end;
		else if (inside)
			sscanf(line, "Rss: %lu kB", &kib);
	}
	fclose(maps);
	return kib;
}

/* Only what is written costs memory. */
static void test_sparse_memory(void **unused)
{
	char *sparse = memory_sparse(LARGE);
	unsigned long before;

	(void)unused;
	assert_non_null(sparse);
	before = resident_kib(sparse);
	sparse[LARGE / 2] = 'x';
	assert_true(resident_kib(sparse) > before);
	assert_true(resident_kib(sparse) < before + LARGE / 1024 / 2);
	assert_int_equal(sparse[0], 0);
	assert_int_equal(sparse[LARGE / 2 + 1], 0);
	assert_int_equal(sparse[LARGE - 1], 0);
	memory_sparse_free(sparse, LARGE);
	memory_sparse_free(NULL, LARGE);
	assert_null(memory_sparse(SIZE_MAX / 2));
}

#ifndef __SANITIZE_ADDRESS__ /* which has an allocator of its own */
/* Freed memory is there for the next, not given back. */
static void test_freed_memory_stays(void **unused)
{
	void *memory, *end;
	uintptr_t place;

	(void)unused;
	memory_keep_freed();
	memory = malloc(SMALL);
	place = (uintptr_t)memory;
	end = sbrk(0);
	assert_true(place < (uintptr_t)end);
	free(memory);
	assert_ptr_equal(sbrk(0), end);
	memory = malloc(SMALL);
	assert_int_equal((uintptr_t)memory, place);
	free(memory);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_memory),
		cmocka_unit_test(test_arena_and_vector),
		cmocka_unit_test(test_sparse_memory),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_freed_memory_stays),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
