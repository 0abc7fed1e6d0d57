#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

struct pair {
	uint64_t a;
	uint8_t b;
};

static void keeps_what_is_pushed(void **state)
{
	VEC(struct pair) pairs = {0};

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		assert_true(vec_push(&pairs, ((struct pair){i * 3ull, (uint8_t)i})));
		assert_int_equal(pairs.len, i + 1);
		assert_true(pairs.cap >= pairs.len);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(pairs.data[i].a, i * 3ull);
		assert_int_equal(pairs.data[i].b, (uint8_t)i);
	}
	vec_release(&pairs);
	assert_null(pairs.data);
	assert_int_equal(pairs.len, 0);
	assert_int_equal(pairs.cap, 0);
	assert_true(vec_push(&pairs, ((struct pair){1, 2})));
	vec_release(&pairs);
}

static void reserve_leaves_the_length_and_avoids_moves(void **state)
{
	VEC(uint32_t) numbers = {0};
	uint32_t *data;

	(void)state;
	assert_true(vec_reserve(&numbers, 1000));
	assert_int_equal(numbers.len, 0);
	assert_true(numbers.cap >= 1000);
	data = numbers.data;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(vec_push(&numbers, i));
	assert_ptr_equal(numbers.data, data);
	assert_true(vec_reserve(&numbers, 10));
	assert_ptr_equal(numbers.data, data);
	vec_release(&numbers);
}

static void releasing_an_empty_vector_is_fine(void **state)
{
	VEC(char) v = {0};

	(void)state;
	vec_release(&v);
	assert_null(v.data);
}

/* Failures leave the vector as it was. */
static void refuses_more_than_32_bits_of_elements(void **state)
{
	char byte = 'x';
	VEC(char) full = {&byte, UINT32_MAX, UINT32_MAX};
	void *data = &byte;
	uint32_t cap = 1;

	(void)state;
	assert_false(vec_push(&full, 'y'));
	assert_int_equal(full.len, UINT32_MAX);
	assert_ptr_equal(full.data, &byte);
	assert_false(vec_grow(&data, &cap, (size_t)UINT32_MAX + 1, 1));
	assert_false(vec_grow(&data, &cap, 16, SIZE_MAX / 8));
	assert_ptr_equal(data, &byte);
	assert_int_equal(cap, 1);
	assert_int_equal(byte, 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_is_pushed),
		cmocka_unit_test(reserve_leaves_the_length_and_avoids_moves),
		cmocka_unit_test(releasing_an_empty_vector_is_fine),
		cmocka_unit_test(refuses_more_than_32_bits_of_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
