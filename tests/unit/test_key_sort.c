/* Sorting by key, against counting how many come before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/key_sort.h"

struct item {
	uint16_t before;
	uint32_t key;
	uint32_t number; /* as it was made */
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Each item stands behind all with a smaller key, and all older ones with the same. */
static void check_sorted(const struct item *items, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		assert_true(items[i - 1].key <= items[i].key);
		if (items[i - 1].key == items[i].key)
			assert_true(items[i - 1].number < items[i].number);
		assert_int_equal(items[i].before, items[i].number % 60000);
	}
}

/* Keys below `limit`; the numbers say that no item was lost. */
static void try_random(uint32_t count, uint64_t limit)
{
	struct item *items = calloc(count + 1, sizeof(*items));
	uint8_t *seen = calloc(count + 1, 1);
	uint64_t random = count + limit;

	assert_non_null(items);
	assert_non_null(seen);
	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct item){(uint16_t)(i % 60000),
					 (uint32_t)(next_random(&random) * 3 % limit), i};
	items[count].number = 0x5a5a;
	assert_true(key_sort(items, count, sizeof(*items), offsetof(struct item, key)));
	check_sorted(items, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(items[i].number < count);
		assert_false(seen[items[i].number]++);
	}
	assert_int_equal(items[count].number, 0x5a5a);
	free(seen);
	free(items);
}

static void test_random_keys(void **state)
{
	static const uint64_t limits[] = {1, 2, 100, 5000, 1 << 22, UINT32_MAX + 1ull};

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (uint32_t count = 0; count < 80; count++)
			try_random(count, limits[i]);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		try_random(100000, limits[i]);
}

/* Whole items are moved, of whatever size. */
static void test_strides(void **state)
{
	enum { COUNT = 1000, LARGEST = 40 };

	(void)state;
	for (size_t stride = 4; stride <= LARGEST; stride += 2) {
		uint8_t *items = calloc(COUNT, stride);

		assert_non_null(items);
		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t key = i * 7919 % COUNT;

			memset(items + stride * i, (int)(key % 251), stride);
			memcpy(items + stride * i, &key, sizeof(key));
		}
		assert_true(key_sort(items, COUNT, stride, 0));
		for (uint32_t i = 0; i < COUNT; i++) {
			assert_memory_equal(items + stride * i, &i, sizeof(i));
			for (size_t k = sizeof(i); k < stride; k++)
				assert_int_equal(items[stride * i + k], i % 251);
		}
		free(items);
	}
}

static int compare_falling(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->number > y->number ? -1 : x->number < y->number;
}

/* What has one key is in the sequence of the comparison, here the reverse. */
static void test_equal_keys(void **state)
{
	struct item items[1000];

	(void)state;
	for (uint32_t count = 0; count < 1000; count += 37) {
		for (uint32_t i = 0; i < count; i++)
			items[i] = (struct item){0, i * 7919 % 300, i};
		assert_true(key_sort_by(items, count, sizeof(*items),
					offsetof(struct item, key), compare_falling));
		for (uint32_t i = 1; i < count; i++)
			assert_true(items[i - 1].key < items[i].key ||
				    (items[i - 1].key == items[i].key &&
				     items[i - 1].number > items[i].number));
	}
}

static void test_plain_numbers(void **state)
{
	uint32_t numbers[] = {UINT32_MAX, 0, 0x80000000, 0x7fffffff, 1, 0x00400000, 0x800};
	const uint32_t sorted[] = {0,          1,          0x800,     0x00400000,
				   0x7fffffff, 0x80000000, UINT32_MAX};

	(void)state;
	assert_true(key_sort(numbers, 7, sizeof(numbers[0]), 0));
	assert_memory_equal(numbers, sorted, sizeof(sorted));
}

/* Numbers of which `mask` says the bits that differ: each pass may have nothing to do. */
static void try_numbers(uint32_t count, uint64_t mask)
{
	uint64_t *numbers = calloc(count + 1, sizeof(*numbers)), random = count + mask;
	uint64_t sum = 0, still = 0;

	assert_non_null(numbers);
	for (uint32_t i = 0; i < count; i++) {
		numbers[i] = (next_random(&random) << 33 ^ next_random(&random) << 7) & mask;
		sum += numbers[i] * numbers[i];
	}
	numbers[count] = 0x5a5a;
	assert_true(number_sort(numbers, count));
	for (uint32_t i = 0; i < count; i++) {
		assert_true(i == 0 || numbers[i - 1] <= numbers[i]);
		still += numbers[i] * numbers[i];
	}
	assert_true(sum == still);
	assert_true(numbers[count] == 0x5a5a);
	free(numbers);
}

static void test_numbers(void **state)
{
	static const uint64_t masks[] = {0, 0x780, UINT64_MAX, 0xffffffff00000000,
					 0x3ffffff03ffff80, 0x8000000000000080};

	(void)state;
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		for (uint32_t count = 0; count < 80; count++)
			try_numbers(count, masks[i]);
		try_numbers(100000, masks[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_keys),
		cmocka_unit_test(test_strides),
		cmocka_unit_test(test_equal_keys),
		cmocka_unit_test(test_plain_numbers),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
