#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../profile/debug_command.h"

enum { WORDS_MAX = 16 };

/* Splits `text` at blanks; the words stand in `storage`. */
static void split(const char *text, char storage[256], char *words[WORDS_MAX])
{
	int n = 0;

	snprintf(storage, 256, "%s", text);
	for (char *w = strtok(storage, " "); w; w = strtok(NULL, " "))
		words[n++] = w;
	words[n] = NULL;
}

static enum status make(const char *command, char ret_text[256])
{
	char storage[256], *words[WORDS_MAX];
	char *debugger[] = {"dbg.exe", "pages", "--", NULL};
	enum status status;
	struct diag diag;
	char **made;

	split(command, storage, words);
	diag_init(&diag);
	status = debug_command_make(words, debugger, &made, &diag);
	if (status != STATUS_OK)
		return status;
	ret_text[0] = 0;
	for (char **w = made; *w; w++) {
		strcat(ret_text, w == made ? "" : " ");
		strcat(ret_text, *w);
	}
	free(made);
	return status;
}

static void the_debugger_stands_before_the_program(void **state)
{
	static const char *const pairs[][2] = {
		{"wine app.exe a", "wine dbg.exe pages -- app.exe a"},
		{"wine64 app", "wine64 dbg.exe pages -- app"},
		{"/opt/wine-8/bin/wine-stable app.exe",
		 "/opt/wine-8/bin/wine-stable dbg.exe pages -- app.exe"},
		{"env A=B wine app.exe wine", "env A=B wine dbg.exe pages -- app.exe wine"},
		{"timeout 9 wine64-stable x y", "timeout 9 wine64-stable dbg.exe pages -- x y"},
		{"./app.EXE a", "dbg.exe pages -- ./app.EXE a"},
		{"app.exe winetricks", "dbg.exe pages -- app.exe winetricks"},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(make(pairs[i][0], text), STATUS_OK);
		assert_string_equal(text, pairs[i][1]);
	}
}

static void a_command_without_a_place_is_wrong_usage(void **state)
{
	static const char *const commands[] = {
		"sh -c x", "wine", "env wine", "winecfg app.exe", "wineserver -k", ".exe",
		"/wine/bin/run app.exe",
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		assert_int_equal(make(commands[i], text), STATUS_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_debugger_stands_before_the_program),
		cmocka_unit_test(a_command_without_a_place_is_wrong_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
