/* Tasks, with threads and without. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/task.h"

struct sum {
	uint32_t up_to;
	uint64_t result;
	pthread_t by;
};

static void add_up(void *job)
{
	struct sum *sum = job;

	for (uint32_t i = 1; i <= sum->up_to; i++)
		sum->result += i;
	sum->by = pthread_self();
}

/* Stands in for the C library's. */
static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *argument)
{
	if (no_threads)
		return EAGAIN;
	return __real_pthread_create(thread, attr, start, argument);
}

static void test_runs_beside(void **state)
{
	struct sum sums[8] = {0};
	struct task tasks[8];

	(void)state;
	no_threads = false;
	for (uint32_t i = 0; i < 8; i++) {
		sums[i].up_to = 1000 * i;
		task_start(&tasks[i], add_up, &sums[i]);
	}
	for (uint32_t i = 0; i < 8; i++) {
		task_wait(&tasks[i]);
		assert_true(sums[i].result == 500ull * i * (1000 * i + 1));
		assert_false(pthread_equal(sums[i].by, pthread_self()));
	}
}

/* Without a thread the work is done all the same. */
static void test_runs_at_once(void **state)
{
	struct sum sum = {.up_to = 10};
	struct task task;

	(void)state;
	no_threads = true;
	task_start(&task, add_up, &sum);
	assert_int_equal(sum.result, 55);
	assert_true(pthread_equal(sum.by, pthread_self()));
	task_wait(&task);
	assert_int_equal(sum.result, 55);
}

static void test_waits_once(void **state)
{
	struct sum sum = {.up_to = 10};
	struct task task = {0};

	(void)state;
	task_wait(&task);
	no_threads = false;
	task_start(&task, add_up, &sum);
	task_wait(&task);
	task_wait(&task);
	assert_int_equal(sum.result, 55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_beside),
		cmocka_unit_test(test_runs_at_once),
		cmocka_unit_test(test_waits_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
