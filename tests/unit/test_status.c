#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <string.h>

#include "base/status.h"

/* The exit codes that the tools document. */
static void exit_codes_are_the_documented_ones(void **state)
{
	(void)state;
	assert_int_equal(status_exit_code(STATUS_OK), 0);
	assert_int_equal(status_exit_code(STATUS_NO_MEMORY), 1);
	assert_int_equal(status_exit_code(STATUS_IO), 1);
	assert_int_equal(status_exit_code(STATUS_EXISTS), 1);
	assert_int_equal(status_exit_code(STATUS_USAGE), 2);
	assert_int_equal(status_exit_code(STATUS_NOT_PE), 3);
	assert_int_equal(status_exit_code(STATUS_MALFORMED), 3);
	assert_int_equal(status_exit_code(STATUS_INSTRUMENTED), 3);
	assert_int_equal(status_exit_code(STATUS_VERIFY), 4);
	assert_int_equal(status_exit_code(STATUS_STALE_PROFILE), 4);
}

static void few_statuses_have_codes_of_their_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STATUS_COUNT; i++) {
		int code = status_exit_code((enum status)i);

		assert_true(code >= 0 && code <= 4);
		assert_int_equal(code == 0, i == STATUS_OK);
		assert_int_equal(code == 2, i == STATUS_USAGE);
		assert_int_equal(code == 4, i == STATUS_VERIFY || i == STATUS_STALE_PROFILE);
	}
}

/* Scripts match on the names: lower case, words joined by dashes, no two alike. */
static void names_are_distinct_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STATUS_COUNT; i++) {
		const char *name = status_name((enum status)i);

		assert_true(islower((unsigned char)name[0]));
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(name, status_name((enum status)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes_are_the_documented_ones),
		cmocka_unit_test(
			few_statuses_have_codes_of_their_own),
		cmocka_unit_test(names_are_distinct_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
