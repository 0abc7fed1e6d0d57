#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/human.h"

static void counts_have_separators(void **state)
{
	(void)state;
	assert_string_equal(human_count(0).text, "0");
	assert_string_equal(human_count(999).text, "999");
	assert_string_equal(human_count(1000).text, "1,000");
	assert_string_equal(human_count(12345).text, "12,345");
	assert_string_equal(human_count(999999).text, "999,999");
	assert_string_equal(human_count(1000000).text, "1,000,000");
	assert_string_equal(human_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

static void one_thing_is_singular(void **state)
{
	(void)state;
	assert_string_equal(human_things(0, "function").text, "0 functions");
	assert_string_equal(human_things(1, "function").text, "1 function");
	assert_string_equal(human_things(1001, "byte").text, "1,001 bytes");
	assert_string_equal(human_things(UINT64_MAX, "instruction").text,
			    "18,446,744,073,709,551,615 instructions");
}

static void sizes_are_exact_when_small_and_rounded_when_big(void **state)
{
	(void)state;
	assert_string_equal(human_bytes(0).text, "0 B");
	assert_string_equal(human_bytes(9999).text, "9,999 B");
	assert_string_equal(human_bytes(10000).text, "9.8 KiB");
	assert_string_equal(human_bytes(10240).text, "10.0 KiB");
	assert_string_equal(human_bytes(1536 * 1024).text, "1.5 MiB");
	assert_string_equal(human_bytes(26ull << 30).text, "26.0 GiB");
	/* Never "1024.0": what rounds up to the next unit is shown in it. */
	assert_string_equal(human_bytes((1 << 20) - 1).text, "1.0 MiB");
	assert_string_equal(human_bytes((1 << 20) - 100).text, "1023.9 KiB");
	assert_string_equal(human_bytes(UINT64_MAX).text, "16.0 EiB");
}

static void a_share_of_nothing_is_a_dash(void **state)
{
	(void)state;
	assert_string_equal(human_percent(1, 8).text, "12.5 %");
	assert_string_equal(human_percent(0, 3).text, "0.0 %");
	assert_string_equal(human_percent(3, 3).text, "100.0 %");
	assert_string_equal(human_percent(0, 0).text, "-");
}

static void durations_change_their_unit(void **state)
{
	(void)state;
	assert_string_equal(human_seconds(0).text, "0 ms");
	assert_string_equal(human_seconds(0.0351).text, "35 ms");
	assert_string_equal(human_seconds(0.9994).text, "999 ms");
	assert_string_equal(human_seconds(0.9996).text, "1.0 s");
	assert_string_equal(human_seconds(4.24).text, "4.2 s");
	assert_string_equal(human_seconds(59.94).text, "59.9 s");
	assert_string_equal(human_seconds(59.96).text, "1 min 00 s");
	assert_string_equal(human_seconds(185.4).text, "3 min 05 s");
	assert_string_equal(human_seconds(119.6).text, "2 min 00 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_have_separators),
		cmocka_unit_test(one_thing_is_singular),
		cmocka_unit_test(sizes_are_exact_when_small_and_rounded_when_big),
		cmocka_unit_test(a_share_of_nothing_is_a_dash),
		cmocka_unit_test(durations_change_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
