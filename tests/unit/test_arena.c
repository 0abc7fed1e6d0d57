#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"

static void starts_empty_and_gives_memory_of_zero_bytes(void **state)
{
	struct arena arena = {0};
	void *a = arena_alloc(&arena, 0);

	(void)state;
	assert_non_null(a);
	arena_release(&arena);
	assert_null(arena.chunks);
}

/* Sizes around the alignment and around the size of a chunk; each allocation is
 * filled with its own byte, and all must still hold it at the end. */
static void allocations_are_aligned_zeroed_and_apart(void **state)
{
	static const size_t sizes[] = {1,      15, 16,	   17, 100,   4096,
				       300000, 1,  262144, 33, 262145};
	enum { COUNT = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 40 };
	unsigned char *given[COUNT * ROUNDS];
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (unsigned i = 0; i < COUNT * ROUNDS; i++) {
		size_t size = sizes[i % COUNT];

		given[i] = arena_alloc(&arena, size);
		assert_non_null(given[i]);
		assert_int_equal((uintptr_t)given[i] % 16, 0);
		for (size_t j = 0; j < size; j++)
			if (given[i][j] != 0)
				fail_msg("allocation %u has byte %zu set", i, j);
		memset(given[i], (int)(i % 255 + 1), size);
	}
	for (unsigned i = 0; i < COUNT * ROUNDS; i++)
		for (size_t j = 0; j < sizes[i % COUNT]; j++)
			if (given[i][j] != i % 255 + 1)
				fail_msg("allocation %u was overwritten at %zu", i, j);
	arena_release(&arena);
}

static void memory_is_zeroed_again_after_a_release(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (int round = 0; round < 3; round++) {
		unsigned char *p = arena_alloc(&arena, 5000);

		assert_non_null(p);
		for (int i = 0; i < 5000; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, 5000);
		arena_release(&arena);
	}
}

static void memory_is_zeroed_again_after_a_reset(void **state)
{
	struct arena arena;
	unsigned char *first, *again;

	(void)state;
	arena_init(&arena);
	arena_reset(&arena); /* an empty one */
	first = arena_alloc(&arena, 100);
	memset(first, 0xff, 100);
	arena_reset(&arena);
	again = arena_alloc(&arena, 200);
	assert_ptr_equal(again, first); /* the same memory */
	for (int i = 0; i < 200; i++)
		assert_int_equal(again[i], 0);
	/* What has grown beyond a chunk is given back. */
	memset(arena_alloc(&arena, 1 << 20), 0xff, 1 << 20);
	arena_reset(&arena);
	again = arena_alloc(&arena, 1 << 20);
	assert_int_equal(again[(1 << 20) - 1], 0);
	arena_release(&arena);
}

static void sizes_that_overflow_give_null(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 15));
	assert_null(arena_array(&arena, SIZE_MAX / 8 + 1, 8));
	assert_null(arena_array(&arena, 8, SIZE_MAX / 8 + 1));
	assert_null(arena_strndup(&arena, "x", SIZE_MAX));
	/* The arena still works. */
	assert_non_null(arena_array(&arena, 3, 8));
	assert_non_null(arena_array(&arena, 0, 8));
	assert_non_null(arena_array(&arena, 8, 0));
	arena_release(&arena);
}

static void strndup_copies_and_terminates(void **state)
{
	static const char text[] = {'a', 'b', 'c', 'd'}; /* no NUL */
	struct arena arena;
	char *copy;

	(void)state;
	arena_init(&arena);
	copy = arena_strndup(&arena, text, 3);
	assert_string_equal(copy, "abc");
	assert_ptr_not_equal(copy, text);
	assert_string_equal(arena_strndup(&arena, text, 0), "");
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty_and_gives_memory_of_zero_bytes),
		cmocka_unit_test(allocations_are_aligned_zeroed_and_apart),
		cmocka_unit_test(memory_is_zeroed_again_after_a_release),
		cmocka_unit_test(memory_is_zeroed_again_after_a_reset),
		cmocka_unit_test(sizes_that_overflow_give_null),
		cmocka_unit_test(strndup_copies_and_terminates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
