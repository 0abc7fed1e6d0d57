#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/companion.h"

static const char variable[] = "APPULSE_TEST_COMPANION";

/* The folder of this very program, told by something else than the code. */
static char *own_folder(void)
{
	char *path = realpath("/proc/self/exe", NULL);

	assert_non_null(path);
	*strrchr(path, '/') = 0;
	return path;
}

static void the_variable_rules(void **state)
{
	struct companion companion = {"no such file", variable, "sub"};
	struct diag diag;
	char *path;

	(void)state;
	setenv(variable, "/proc/self/exe", 1);
	assert_int_equal(companion_find(&companion, &path, &diag), STATUS_OK);
	assert_string_equal(path, "/proc/self/exe");
	free(path);
	diag_init(&diag);
	setenv(variable, "/proc/self/no such file", 1);
	assert_int_equal(companion_find(&companion, &path, &diag), STATUS_NOT_FOUND);
	assert_non_null(strstr(diag.message, "/proc/self/no such file"));
	assert_non_null(strstr(diag.message, variable));
	unsetenv(variable);
}

static void the_build_folder_comes_before_the_tool_s_own(void **state)
{
	char *folder = own_folder(), sub[32] = "companionXXXXXX", name[64];
	char *template, *inside, *beside, *path;
	struct companion companion = {name, variable, sub};
	struct diag diag;

	(void)state;
	unsetenv(variable);
	assert_true(asprintf(&template, "%s/%s", folder, sub) > 0);
	assert_non_null(mkdtemp(template));
	strcpy(sub, strrchr(template, '/') + 1);
	snprintf(name, sizeof(name), "%s.file", sub);
	assert_true(asprintf(&inside, "%s/%s", template, name) > 0);
	assert_true(asprintf(&beside, "%s/./%s", folder, name) > 0);
	fclose(fopen(inside, "w"));
	fclose(fopen(beside, "w"));

	assert_int_equal(companion_find(&companion, &path, &diag), STATUS_OK);
	assert_string_equal(path, inside);
	free(path);
	unlink(inside);
	assert_int_equal(companion_find(&companion, &path, &diag), STATUS_OK);
	assert_string_equal(path, beside);
	free(path);
	unlink(beside);
	diag_init(&diag);
	assert_int_equal(companion_find(&companion, &path, &diag), STATUS_NOT_FOUND);
	assert_non_null(strstr(diag.message, name));
	assert_non_null(strstr(diag.message, variable));

	rmdir(template);
	free(inside);
	free(beside);
	free(template);
	free(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_variable_rules),
		cmocka_unit_test(the_build_folder_comes_before_the_tool_s_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
