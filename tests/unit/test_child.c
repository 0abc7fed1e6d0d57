/* Which processes a collector does not wait for.  How it runs commands and passes
 * signals on is in tests/golden/profile.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../profile/child.h"

static bool is_service(const char *text)
{
	return child_is_wine_service(text, (unsigned)strlen(text));
}

/* Command lines as Wine 8.0 shows them in /proc. */
static void wine_and_its_services_are_known(void **state)
{
	(void)state;
	assert_true(is_service("/usr/lib/wine/wineserver64"));
	assert_true(child_is_wine_service("/usr/lib/wine/wineserver64\0-p0", 30));
	assert_true(is_service("/opt/wine/bin/wineserver"));
	assert_true(is_service("C:\\windows\\system32\\services.exe"));
	assert_true(is_service("C:\\windows\\system32\\explorer.exe /desktop"));
	assert_true(
		child_is_wine_service("C:\\windows\\system32\\explorer.exe\0/desktop", 41));
	assert_true(is_service(
		"C:\\windows\\system32\\svchost.exe -k LocalServiceNetworkRestricted"));
	assert_true(is_service("c:\\Windows\\System32\\PlugPlay.exe"));
}

static void everything_else_is_waited_for(void **state)
{
	(void)state;
	assert_false(is_service(""));
	assert_false(child_is_wine_service("", 0));
	assert_false(is_service("app.exe"));
	assert_false(is_service("services.exe"));
	assert_false(is_service("C:\\windows\\system32\\cmd.exe"));
	assert_false(is_service("C:\\windows\\system32\\rundll32.exe x.dll,y"));
	assert_false(is_service("C:\\windows\\system32\\"));
	assert_false(is_service("C:\\windows\\system32\\services.exe.exe"));
	assert_false(is_service("C:\\windows\\system32\\myservices.exe"));
	assert_false(is_service("D:\\app\\services.exe"));
	assert_false(is_service("/usr/bin/wine"));
	assert_false(is_service("/bin/sh /usr/lib/wine/wineserver"));
	/* Cut in the middle of a name. */
	assert_false(child_is_wine_service("C:\\windows\\system32\\services.exe", 28));
}

static void an_exit_becomes_a_status(void **state)
{
	struct child_exit done = {.exit = DB_EXIT_EXITED};
	struct child_exit failed = {.exit = DB_EXIT_EXITED, .code = 7};
	struct child_exit killed = {.exit = DB_EXIT_SIGNALED, .code = 11};
	struct child_exit missing = {.exit = DB_EXIT_NOT_STARTED, .code = 2};
	struct diag diag;

	(void)state;
	assert_int_equal(child_status(&done, "app", &diag), STATUS_OK);
	assert_int_equal(child_status(&failed, "app", &diag), STATUS_COMMAND);
	assert_string_equal(diag.message, "'app' ended with exit code 7");
	assert_int_equal(child_status(&killed, "app", &diag), STATUS_COMMAND);
	assert_non_null(strstr(diag.message, "signal 11"));
	assert_int_equal(child_status(&missing, "app", &diag), STATUS_COMMAND);
	assert_non_null(strstr(diag.message, "cannot start 'app'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wine_and_its_services_are_known),
		cmocka_unit_test(everything_else_is_waited_for),
		cmocka_unit_test(an_exit_becomes_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
