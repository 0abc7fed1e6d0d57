/* What control_flow.c and the map are asked most often, against naive versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/control_flow.h"

enum { SEED = 1, ROUNDS = 200, MOST = 300 };

static int compare_branches(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	if (x->to.v != y->to.v)
		return x->to.v < y->to.v ? -1 : 1;
	return x->from.v < y->from.v ? -1 : x->from.v > y->from.v;
}

static uint32_t naive_sort(struct branch *branches, uint32_t count)
{
	uint32_t kept = 0;

	qsort(branches, count, sizeof(*branches), compare_branches);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || compare_branches(&branches[i - 1], &branches[i]) != 0)
			branches[kept++] = branches[i];
	return kept;
}

static void test_branches(void **unused)
{
	(void)unused;
	srand(SEED);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t count = (uint32_t)(rand() % MOST), expected;
		struct branch branches[MOST], naive[MOST];

		for (uint32_t i = 0; i < count; i++)
			branches[i] = (struct branch){rva_of((uint32_t)(rand() % 40) << 10),
						      rva_of((uint32_t)(rand() % 20) << 12)};
		memcpy(naive, branches, count * sizeof(*branches));
		expected = naive_sort(naive, count);
		assert_true(branches_sort(branches, &count));
		assert_int_equal(count, expected);
		assert_memory_equal(branches, naive, count * sizeof(*branches));
	}
}

static void test_next_unknown(void **unused)
{
	(void)unused;
	srand(SEED);
	for (int round = 0; round < ROUNDS * 20; round++) {
		uint32_t size = (uint32_t)(rand() % 40), from = (uint32_t)(rand() % 40);
		uint8_t map[40];
		uint32_t expected = from;

		for (uint32_t i = 0; i < size; i++)
			map[i] = (uint8_t)(rand() % 10 ? rand() | 1 : rand() & ~CODE_STATE);
		while (expected < size && (map[expected] & CODE_STATE) != CODE_UNKNOWN)
			expected++;
		assert_int_equal(code_map_next_unknown(map, from, size), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_next_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
