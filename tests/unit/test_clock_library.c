/* What the library for timed runs stands in for is as the C library's own: it is linked
 * into this program, as it is put in front of others by LD_PRELOAD. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { GIVEN_UP_SECONDS = 60 };

static void *read_byte(void *with)
{
	char byte;

	return read(*(int *)with, &byte, 1) == 1 ? NULL : with;
}

/* pthreads(7) lists read among the cancellation points. */
static void a_thread_that_reads_can_be_cancelled(void **state)
{
	struct timespec until;
	pthread_t thread;
	void *result;
	int fds[2], err;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_byte, &fds[0]), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GIVEN_UP_SECONDS;
	err = pthread_timedjoin_np(thread, &result, &until);
	if (err) /* let it end */
		assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(err, 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	close(fds[0]);
	close(fds[1]);
}

static void reads_give_what_the_library_gives(void **state)
{
	char path[] = "/tmp/appulse-clock-XXXXXX", text[8] = {0};
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, "abcdef", 6), 6);
	assert_int_equal(pread(fd, text, 3, 2), 3);
	assert_string_equal(text, "cde");
	assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
	assert_int_equal(read(fd, text, sizeof(text)), 2);
	assert_memory_equal(text, "efe", 3);
	close(fd);
	errno = 0;
	assert_int_equal(read(fd, text, 1), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_reads_can_be_cancelled),
		cmocka_unit_test(reads_give_what_the_library_gives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
