/* Looking up by page, against counting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/page_index.h"

struct item {
	uint16_t other;
	uint32_t key;
};

static uint32_t count_at_most(const struct item *items, uint32_t count, uint32_t key)
{
	uint32_t at_most = 0;

	for (uint32_t i = 0; i < count; i++)
		at_most += items[i].key <= key;
	return at_most;
}

static void check_key(const struct page_index *index, const struct item *items,
		      uint32_t count, uint32_t key)
{
	uint32_t low = 0, high = count, expected = count_at_most(items, count, key);

	page_index_narrow(index, key, &low, &high);
	assert_true(low <= expected);
	assert_true(expected <= high);
	/* What is left lies in the page. */
	for (uint32_t i = low; i < high; i++)
		assert_int_equal(items[i].key >> PAGE_INDEX_SHIFT,
				 key >> PAGE_INDEX_SHIFT);
}

static void test_narrows(void **state)
{
	static const struct item items[] = {{1, 5},     {2, 1023}, {3, 1024}, {4, 1024},
					    {5, 1030},  {6, 9000}, {7, 9215}, {8, 9216},
					    {9, 70000}, {9, 70001}};
	struct arena arena = {0};

	(void)state;
	for (uint32_t count = 0; count <= sizeof(items) / sizeof(items[0]); count++) {
		struct page_index index;

		assert_true(page_index_make(&index, &arena, items, count, sizeof(items[0]),
					    offsetof(struct item, key)));
		for (uint32_t key = 0; key < 80000; key++)
			check_key(&index, items, count, key);
		check_key(&index, items, count, UINT32_MAX);
	}
	arena_release(&arena);
}

static void test_without_an_index(void **state)
{
	struct page_index index = {0};
	uint32_t low = 3, high = 8;

	(void)state;
	page_index_narrow(&index, 7, &low, &high);
	assert_int_equal(low, 3);
	assert_int_equal(high, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_narrows),
		cmocka_unit_test(test_without_an_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
