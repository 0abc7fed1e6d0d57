#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/diag.h"

static const char *formatted(const struct diag *diag)
{
	static char text[4096];

	diag_format(diag, text, sizeof(text));
	return text;
}

static void keeps_the_failure_and_returns_its_status(void **state)
{
	struct diag diag;

	(void)state;
	diag_init(&diag);
	assert_int_equal(diag.status, STATUS_OK);
	assert_string_equal(formatted(&diag), "");
	assert_int_equal(
		diag_fail(&diag, STATUS_NO_ROOM, "need %d bytes for '%s'", 12, "x"),
		STATUS_NO_ROOM);
	assert_int_equal(diag.status, STATUS_NO_ROOM);
	assert_string_equal(formatted(&diag), "need 12 bytes for 'x'");
}

static void says_file_function_place_and_values(void **state)
{
	struct diag diag;

	(void)state;
	assert_int_equal(
		diag_fail_at(&diag, STATUS_MALFORMED, rva_of(0xdeadbeef), "bad %s", "row"),
		STATUS_MALFORMED);
	assert_string_equal(formatted(&diag), "bad row (at RVA 0xdeadbeef)");
	diag_set_values(&diag, "1 or 2", "7");
	assert_string_equal(formatted(&diag),
			    "bad row (at RVA 0xdeadbeef, expected 1 or 2, found 7)");
	diag_set_function(&diag, "main");
	diag_set_file(&diag, "a.dll");
	assert_string_equal(formatted(&diag), "'a.dll': bad row (in 'main', at RVA "
					      "0xdeadbeef, expected 1 or 2, found 7)");
}

static void a_file_is_named_once(void **state)
{
	struct diag diag;

	(void)state;
	diag_fail(&diag, STATUS_IO, "cannot open 'a.dll': no");
	diag_set_file(&diag, "a.dll");
	assert_string_equal(formatted(&diag), "cannot open 'a.dll': no");
	diag_fail(&diag, STATUS_IO, "cannot open 'aa.dll': no");
	diag_set_file(&diag, "a.dll");
	assert_string_equal(formatted(&diag), "'a.dll': cannot open 'aa.dll': no");
}

static void outer_parties_cannot_replace_what_inner_ones_set(void **state)
{
	struct diag diag;

	(void)state;
	diag_fail(&diag, STATUS_IO, "m");
	diag_set_file(&diag, "inner");
	diag_set_file(&diag, "outer");
	diag_set_function(&diag, "f");
	diag_set_function(&diag, "g");
	diag_set_values(&diag, NULL, "1");
	diag_set_values(&diag, "2", "3");
	assert_string_equal(formatted(&diag), "'inner': m (in 'f', expected 2, found 1)");
}

static void a_new_failure_forgets_the_old_one(void **state)
{
	struct diag diag;

	(void)state;
	diag_fail_at(&diag, STATUS_IO, rva_of(1), "old");
	diag_set_file(&diag, "old");
	diag_fail(&diag, STATUS_VERIFY, "new");
	assert_string_equal(formatted(&diag), "new");
	assert_int_equal(diag_no_memory(&diag), STATUS_NO_MEMORY);
	assert_string_equal(formatted(&diag), "out of memory");
}

static void adds_the_system_error(void **state)
{
	struct diag diag;

	(void)state;
	assert_int_equal(
		diag_fail_errno(&diag, STATUS_IO, ENOSPC, "cannot write '%s'", "f"),
		STATUS_IO);
	assert_string_equal(formatted(&diag), "cannot write 'f': No space left on device");
}

static void works_without_a_diag(void **state)
{
	(void)state;
	assert_int_equal(diag_fail(NULL, STATUS_GO, "x"), STATUS_GO);
	assert_int_equal(diag_fail_at(NULL, STATUS_GO, rva_of(1), "x"), STATUS_GO);
	assert_int_equal(diag_fail_errno(NULL, STATUS_IO, ENOENT, "x"), STATUS_IO);
	assert_int_equal(diag_no_memory(NULL), STATUS_NO_MEMORY);
	diag_set_file(NULL, "f");
	diag_set_function(NULL, "f");
	diag_set_values(NULL, "a", "b");
}

/* Names from hostile images can be of any length. */
static void cuts_what_is_too_long(void **state)
{
	char name[5000];
	char text[64];
	struct diag diag;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	diag_fail_errno(&diag, STATUS_IO, EIO, "%s", name);
	diag_set_file(&diag, name);
	diag_set_function(&diag, name);
	diag_set_values(&diag, name, name);
	assert_int_equal(strlen(diag.file), sizeof(diag.file) - 1);
	assert_int_equal(strlen(diag.message), sizeof(diag.message) - 1);
	memset(text, '!', sizeof(text));
	diag_format(&diag, text, 10);
	assert_string_equal(text, "'nnnnnnnn");
	assert_int_equal(text[10], '!');
	assert_true(strlen(formatted(&diag)) > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_failure_and_returns_its_status),
		cmocka_unit_test(says_file_function_place_and_values),
		cmocka_unit_test(a_file_is_named_once),
		cmocka_unit_test(outer_parties_cannot_replace_what_inner_ones_set),
		cmocka_unit_test(a_new_failure_forgets_the_old_one),
		cmocka_unit_test(adds_the_system_error),
		cmocka_unit_test(works_without_a_diag),
		cmocka_unit_test(cuts_what_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
