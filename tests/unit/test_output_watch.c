/* Waiting for a text in what a command prints. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../profile/output_watch.h"

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void print(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static struct output_watch *start(const char *marker, int *ret_fd)
{
	struct output_watch *watch;

	assert_int_equal(output_watch_start(marker, &watch, ret_fd, NULL), STATUS_OK);
	return watch;
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	nanosleep(&t, NULL);
}

/* The watch takes the time right after it has read. */
static void wait_until_read(int fd)
{
	int left = 1;

	while (left > 0) {
		assert_int_equal(ioctl(fd, FIONREAD, &left), 0);
		pause_ms(10);
	}
	pause_ms(50);
}

/* A signal of the process is for the thread that waits for it. */
static void test_signals_are_not_for_it(void **state)
{
	const struct timespec limit = {.tv_sec = 60};
	struct output_watch *watch;
	sigset_t one, before;
	int fd;

	(void)state;
	watch = start("ready", &fd);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, &before);
	kill(getpid(), SIGUSR1);
	assert_int_equal(sigtimedwait(&one, NULL, &limit), SIGUSR1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(output_watch_stop(watch), 0);
}

/* The time is that of the first one, not that of the end. */
static void test_the_first_marker(void **state)
{
	int fd;
	struct output_watch *watch = start("ready", &fd);
	int64_t begin = now(), between, seen;

	(void)state;
	print(fd, "one\nnow ready to go\n");
	wait_until_read(fd);
	between = now();
	print(fd, "ready again\n");
	seen = output_watch_stop(watch);
	assert_true(seen >= begin && seen <= between);
}

/* Written in pieces, each of which is read alone. */
static void test_a_marker_in_pieces(void **state)
{
	static const char *const pieces[] = {"not rea", "d", "y, rea", "dy\n"};
	int fd;
	struct output_watch *watch = start("ready,", &fd);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		print(fd, pieces[i]);
		pause_ms(20);
	}
	assert_true(output_watch_stop(watch) > 0);
	watch = start("ready\x01", &fd);
	for (unsigned i = 0; i < 4; i++)
		print(fd, pieces[i]);
	assert_int_equal(output_watch_stop(watch), 0);
}

/* More than a pipe holds, with the marker at its very end: nobody has to wait. */
static void test_much_output(void **state)
{
	static char text[1 << 20];
	int fd;
	struct output_watch *watch = start("end", &fd);

	(void)state;
	memset(text, 'e', sizeof(text) - 1);
	memcpy(text + sizeof(text) - 4, "end", 3);
	print(fd, text);
	assert_true(output_watch_stop(watch) > 0);
}

static void test_no_output(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(output_watch_stop(start("ready", &fd)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_are_not_for_it),
		cmocka_unit_test(test_the_first_marker),
		cmocka_unit_test(test_a_marker_in_pieces),
		cmocka_unit_test(test_much_output),
		cmocka_unit_test(test_no_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
