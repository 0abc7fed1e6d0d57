#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rva_list.h"

static void lists_are_sorted_and_looked_up(void **state)
{
	struct rva rvas[] = {{0x80000000}, {7}, {UINT32_MAX}, {7}, {0x1000}};
	const uint32_t sorted[] = {7, 7, 0x1000, 0x80000000, UINT32_MAX};

	(void)state;
	rvas_sort(rvas, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rvas[i].v, sorted[i]);
	assert_int_equal(rvas_first_from(rvas, 5, rva_of(0)), 0);
	assert_int_equal(rvas_first_from(rvas, 5, rva_of(7)), 0);
	assert_int_equal(rvas_first_from(rvas, 5, rva_of(8)), 2);
	assert_int_equal(rvas_first_from(rvas, 5, rva_of(0x1000)), 2);
	assert_int_equal(rvas_first_from(rvas, 5, rva_of(UINT32_MAX)), 4);
	assert_int_equal(rvas_first_from(rvas, 4, rva_of(UINT32_MAX)), 4);
	assert_int_equal(rvas_first_from(NULL, 0, rva_of(1)), 0);
	rvas_sort(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_sorted_and_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
