#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"

/* A terminal whose other end can be read. */
struct terminal {
	int master;
	FILE *stream;
};

static void terminal_open(struct terminal *t)
{
	int slave;

	t->master = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(t->master >= 0);
	assert_int_equal(grantpt(t->master), 0);
	assert_int_equal(unlockpt(t->master), 0);
	slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	t->stream = fdopen(slave, "w");
	assert_non_null(t->stream);
	assert_int_equal(setenv("TERM", "xterm", 1), 0);
}

static void terminal_close(struct terminal *t)
{
	fclose(t->stream);
	close(t->master);
}

/* What has been written since the last call.  The system hands it over piece by piece,
 * some of it later: a mark behind it tells when all has come. */
static const char *terminal_written(struct terminal *t)
{
	static char text[4096];
	const char mark = 1;
	size_t size = 0;

	assert_int_equal(write(fileno(t->stream), &mark, 1), 1);
	do {
		ssize_t n = read(t->master, text + size, sizeof(text) - size);

		assert_true(n > 0);
		size += (size_t)n;
	} while (text[size - 1] != mark);
	text[size - 1] = '\0';
	return text;
}

/* What stands on the line after `written`: a return goes to its start, and
 * ESC [ K erases from there on. */
static const char *line_after(const char *written)
{
	static char line[4096];
	size_t at = 0;

	line[0] = '\0';
	for (; *written; written++) {
		if (*written == '\r') {
			at = 0;
		} else if (strncmp(written, "\033[K", 3) == 0) {
			line[at] = '\0';
			written += 2;
		} else {
			line[at++] = *written;
			line[at] = '\0';
		}
	}
	return line;
}

static unsigned count_draws(const char *written)
{
	unsigned n = 0;

	for (; (written = strchr(written, '\r')); written++)
		n++;
	return n;
}

static double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_step_shows_its_name_and_leaves_nothing(void **state)
{
	struct progress progress;
	struct terminal t;

	(void)state;
	terminal_open(&t);
	progress_init(&progress);
	progress_show_on(&progress, t.stream);
	progress_step(&progress, "reading a long name");
	assert_string_equal(line_after(terminal_written(&t)), "reading a long name ...");
	progress_step(&progress, "writing");
	assert_string_equal(line_after(terminal_written(&t)), "writing ...");
	progress_end(&progress);
	assert_string_equal(line_after(terminal_written(&t)), "");
	progress_end(&progress);
	assert_string_equal(terminal_written(&t), "");
	progress_release(&progress);
	terminal_close(&t);
}

/* Inner loops may call as often as they like. */
static void fractions_are_drawn_seldom(void **state)
{
	const char *written;
	double begin;
	struct progress progress;
	struct terminal t;

	(void)state;
	terminal_open(&t);
	progress_init(&progress);
	progress_show_on(&progress, t.stream);
	progress_fraction(&progress, 1, 2); /* no step: nothing to say */
	assert_string_equal(terminal_written(&t), "");
	progress_step(&progress, "sorting");
	terminal_written(&t);
	usleep(150000);
	begin = clock_seconds();
	for (int i = 0; i < 1000; i++)
		progress_fraction(&progress, 1, 3);
	written = terminal_written(&t);
	assert_string_equal(line_after(written), "sorting ... 33 %");
	assert_true(count_draws(written) <= 1 + (clock_seconds() - begin) / 0.1);
	usleep(150000);
	progress_fraction(&progress, 0, 0);
	assert_string_equal(terminal_written(&t), "");
	progress_fraction(&progress, 7, 5);
	assert_string_equal(line_after(terminal_written(&t)), "sorting ... 100 %");
	progress_release(&progress);
	assert_string_equal(line_after(terminal_written(&t)), "");
	terminal_close(&t);
}

static void only_a_terminal_is_written_to(void **state)
{
	struct progress progress;
	struct terminal t;
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	progress_init(&progress);
	progress_show_on(&progress, file);
	progress_step(&progress, "reading");
	progress_release(&progress);
	assert_int_equal(ftell(file), 0);
	fclose(file);

	terminal_open(&t);
	assert_int_equal(setenv("TERM", "dumb", 1), 0);
	progress_show_on(&progress, t.stream);
	progress_step(&progress, "reading");
	assert_string_equal(terminal_written(&t), "");
	progress_release(&progress);
	terminal_close(&t);
}

static void durations_are_kept_in_order(void **state)
{
	double begin = clock_seconds();
	struct progress progress;

	(void)state;
	progress_init(&progress);
	progress_step(&progress, "first");
	usleep(30000);
	progress_step(&progress, "second");
	progress_end(&progress);
	usleep(30000); /* belongs to no step */
	progress_step(&progress, "first");
	progress_end(&progress);
	assert_int_equal(progress.len, 3);
	assert_string_equal(progress.data[0].name, "first");
	assert_string_equal(progress.data[1].name, "second");
	assert_string_equal(progress.data[2].name, "first");
	assert_true(progress.data[0].seconds >= 0.03);
	assert_true(progress.data[1].seconds >= 0);
	assert_true(progress.data[2].seconds >= 0);
	assert_true(progress.data[0].seconds + progress.data[1].seconds +
			    progress.data[2].seconds <=
		    clock_seconds() - begin - 0.03);
	progress_release(&progress);
	assert_int_equal(progress.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_shows_its_name_and_leaves_nothing),
		cmocka_unit_test(fractions_are_drawn_seldom),
		cmocka_unit_test(only_a_terminal_is_written_to),
		cmocka_unit_test(durations_are_kept_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
