/* Which processes a collector does not wait for, and what a command gets from it.  How it
 * passes signals on is in tests/golden/profile.txt. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* What a shell, run with these variables, prints. */
static void read_output(struct child *child, const char *script, char *ret_text,
			size_t size, struct child_exit *ret_exit)
{
	char *words[] = {"sh", "-c", (char *)script, NULL};
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	child->command = words;
	child->output_fd = fds[1];
	child->patience = 60;
	assert_int_equal(child_run(child, ret_exit, NULL), STATUS_OK);
	close(fds[1]);
	n = read(fds[0], ret_text, size - 1);
	close(fds[0]);
	assert_true(n >= 0);
	ret_text[n] = '\0';
}

/* Its variables stand in for ours, which stay. */
static void variables_are_the_child_s_alone(void **state)
{
	struct child child = {.variables = {{"APPULSE_ONE", "new"}, {"APPULSE_TWO", "2"}}};
	struct child_exit exit;
	char text[100];

	(void)state;
	setenv("APPULSE_ONE", "old", 1);
	setenv("APPULSE_ONE_MORE", "kept", 1);
	unsetenv("APPULSE_TWO");
	read_output(&child, "echo $APPULSE_ONE $APPULSE_ONE_MORE $APPULSE_TWO", text,
		    sizeof(text), &exit);
	assert_string_equal(text, "new kept 2\n");
	assert_string_equal(getenv("APPULSE_ONE"), "old");
	assert_null(getenv("APPULSE_TWO"));
}

/* SIGTERM is blocked in us, and not in the command, which it kills. */
static void the_mask_is_the_child_s(void **state)
{
	sigset_t blocked, before;
	struct child child = {.mask = &before};
	struct child_exit exit;
	char text[100];

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	read_output(&child, "kill -TERM $$; echo survived", text, sizeof(text), &exit);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_string_equal(text, "");
	assert_int_equal(exit.exit, DB_EXIT_SIGNALED);
	assert_int_equal(exit.code, SIGTERM);
}

/* One that has stopped itself is ended by what we are told to pass on.  Were it not, the
 * watcher kills it after a minute. */
static void a_stopped_command_can_be_ended(void **state)
{
	static const char script[] =
		"{ until grep -q '^State:.T' /proc/$$/status; do sleep 0.05; done;"
		"  kill -TERM $PPID; for i in $(seq 600); do sleep 0.1; done;"
		"  kill -KILL $$; } > /dev/null 2>&1 &"
		"watcher=$!; trap 'kill $watcher; exit 7' TERM; kill -STOP $$; echo went on";
	struct child child = {0};
	struct child_exit exit;
	char text[100];

	(void)state;
	read_output(&child, script, text, sizeof(text), &exit);
	assert_int_equal(exit.interrupted, SIGTERM);
	assert_int_equal(exit.exit, DB_EXIT_EXITED);
	assert_int_equal(exit.code, 7);
	assert_string_equal(text, "");
}

/* A process that outlives the command belongs to its time. */
static void time_ends_with_the_last_process(void **state)
{
	struct child child = {0};
	struct child_exit exit;
	char text[100];

	(void)state;
	read_output(&child, "sleep 0.3 > /dev/null & echo done", text, sizeof(text), &exit);
	assert_string_equal(text, "done\n");
	assert_true(exit.wall_seconds >= 0.3);
	assert_int_equal(exit.left_running, 0);
}

static void *go_on(void *with)
{
	const struct timespec while_of = {.tv_nsec = 300000000};

	(void)with;
	nanosleep(&while_of, NULL);
	_exit(0);
}

/* A process of which the first thread has ended, and another one goes on. */
static void run_on_another_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, go_on, NULL);
	pthread_exit(NULL);
}

static void a_process_is_all_its_threads(void **state)
{
	struct child child = {0};
	struct child_exit exit;
	char script[4200], self[4096] = {0}, text[100];

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(script, sizeof(script), "'%s' thread > /dev/null & echo done", self);
	read_output(&child, script, text, sizeof(text), &exit);
	assert_string_equal(text, "done\n");
	assert_true(exit.wall_seconds >= 0.3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wine_and_its_services_are_known),
		cmocka_unit_test(everything_else_is_waited_for),
		cmocka_unit_test(an_exit_becomes_a_status),
		cmocka_unit_test(variables_are_the_child_s_alone),
		cmocka_unit_test(the_mask_is_the_child_s),
		cmocka_unit_test(a_stopped_command_can_be_ended),
		cmocka_unit_test(time_ends_with_the_last_process),
		cmocka_unit_test(a_process_is_all_its_threads),
	};

	if (argc > 1 && strcmp(argv[1], "thread") == 0)
		run_on_another_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
