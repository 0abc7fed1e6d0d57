#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/debugger_log.h"

static const char pages[] = "appulse-debugger\t1\tpages\t10000000\n"
			    "process\t264\t1700000000000000100\t5000\t/tmp/a b%09%25.exe\n"
			    "image\t1\t264\t180000000\t30000\t5\tab\t5100\t/tmp/\xc3\xbc.dll\n"
			    "code\t1\t1000\t16\t15\n"
			    "code\t1\t20000\t2\t2\n"
			    "page\t0\t1\t20000\t268\tx\t5150\n"
			    "page\t1\t1\t1000\t272\tr\t5151\n"
			    "unload\t1\t5160\n"
			    "image\t2\t264\t180000000\t30000\t5\tab\t5200\t/tmp/\xc3\xbc.dll\n"
			    "page\t2\t2\t2000\t272\tw\t15000\n"
			    "exit\t264\tc0000005\t16000\n"
			    "end\tc0000005\n";

static const char starts[] = "appulse-debugger\t1\tbreakpoints\t1000\n"
			     "process\t8\t0\t0\tC:\\a.exe\n"
			     "image\t1\t8\t180000000\t30000\t5\tab\t1\tC:\\a.dll\n"
			     "planted\t1\t7\t6\n"
			     "image\t2\t8\t190000000\t30000\t5\tac\t2\tC:\\b\\a.dll\n"
			     "other\t2\n"
			     "start\t0\t1\t1234\t12\t3\n";

static const char working_set[] =
	"appulse-debugger\t1\tworking-set\t1000\n"
	"process\t8\t0\t0\tC:\\a.exe\n"
	"image\t1\t8\t180000000\t30000\t5\tab\t1\tC:\\a.dll\n"
	"image\t2\t8\t190000000\t3000\t5\tac\t2\tC:\\b.dll\n"
	"resident\t1\t0\t1\n"
	"resident\t1\t2f000\t1\n"
	"answer\t1\tinside\t77\n"
	"exit\t8\t0\t9\n"
	"end\t0\n";

static enum status parse(const char *text, struct debugger_log *log)
{
	struct diag diag;

	diag_init(&diag);
	return debugger_log_parse(text, strlen(text), log, &diag);
}

static void every_line_of_a_page_log_is_read(void **state)
{
	struct debugger_log log;

	(void)state;
	assert_int_equal(parse(pages, &log), STATUS_OK);
	assert_int_equal(log.mode, DEBUGGER_PAGES);
	assert_int_equal(log.frequency, 10000000);
	assert_int_equal(log.processes.len, 1);
	assert_int_equal(log.processes.data[0].pid, 264);
	assert_true(log.processes.data[0].started_ns == 1700000000000000100);
	assert_string_equal(log.processes.data[0].path, "/tmp/a b\t%.exe");
	assert_true(log.processes.data[0].ended);
	assert_int_equal(log.processes.data[0].exit_code, 0xc0000005);
	assert_int_equal(log.images.len, 2);
	assert_true(log.images.data[0].base == 0x180000000);
	assert_int_equal(log.images.data[0].size, 0x30000);
	assert_int_equal(log.images.data[0].time_stamp, 5);
	assert_int_equal(log.images.data[0].checksum, 0xab);
	assert_string_equal(log.images.data[0].path, "/tmp/\xc3\xbc.dll");
	assert_int_equal(log.images.data[0].places, 18);
	assert_int_equal(log.images.data[0].watched, 17);
	assert_int_equal(log.images.data[1].places, 0);
	assert_int_equal(log.touches.len, 3);
	assert_int_equal(log.touches.data[0].rva.v, 0x20000);
	assert_int_equal(log.touches.data[0].access, DEBUGGER_EXECUTE);
	assert_int_equal(log.touches.data[1].access, DEBUGGER_READ);
	assert_int_equal(log.touches.data[1].thread, 272);
	assert_int_equal(log.touches.data[2].access, DEBUGGER_WRITE);
	assert_int_equal(log.touches.data[2].image, 1);
	assert_true(log.ended);
	assert_false(log.failed);
	assert_int_equal(log.exit_code, 0xc0000005);
	debugger_log_release(&log);
}

static void every_line_of_a_breakpoint_log_is_read(void **state)
{
	struct debugger_log log;

	(void)state;
	assert_int_equal(parse(starts, &log), STATUS_OK);
	assert_int_equal(log.mode, DEBUGGER_BREAKPOINTS);
	assert_int_equal(log.images.data[0].places, 7);
	assert_int_equal(log.images.data[0].watched, 6);
	assert_false(log.images.data[0].other_build);
	assert_true(log.images.data[1].other_build);
	assert_int_equal(log.touches.len, 1);
	assert_int_equal(log.touches.data[0].rva.v, 0x1234);
	assert_int_equal(log.touches.data[0].image, 0);
	assert_false(log.ended);
	assert_false(log.processes.data[0].ended);
	debugger_log_release(&log);
	assert_int_equal(parse("appulse-debugger\t1\tpages\t1\nfailed\t193\n", &log), STATUS_OK);
	assert_true(log.failed);
	assert_int_equal(log.error, 193);
	debugger_log_release(&log);
}

static void every_line_of_a_working_set_log_is_read(void **state)
{
	struct debugger_log log;

	(void)state;
	assert_int_equal(parse(working_set, &log), STATUS_OK);
	assert_int_equal(log.mode, DEBUGGER_WORKING_SET);
	assert_int_equal(log.resident.len, 2);
	assert_int_equal(log.resident.data[1].image, 0);
	assert_int_equal(log.resident.data[1].rva.v, 0x2f000);
	assert_int_equal(log.resident.data[1].pages, 1);
	assert_true(log.images.data[0].answered);
	assert_false(log.images.data[1].answered);
	assert_int_equal(log.processes.data[0].page_faults, 77);
	debugger_log_release(&log);
}

/* A line more behind the images of a log. */
static void wrong_working_sets_are_refused(void **state)
{
	static const char *const lines[] = {
		"resident\t3\t0\t1\n",            /* no such image */
		"resident\t1\t0\t0\n",            /* no page */
		"resident\t1\t10\t1\n",           /* not at a page */
		"resident\t2\t2000\t2\n",         /* behind the image */
		"resident\t2\t0\t4294967295\n",
		"answer\t1\taside\t0\n",
		"answer\t1\tinside\t0\nanswer\t1\tinside\t0\n",
		"answer\t1\tinside\t0\nresident\t1\t0\t1\n",
		"page\t0\t1\t2000\t268\tx\t5150\n", /* of another mode */
		"planted\t1\t7\t6\n",
	};
	size_t head = (size_t)(strstr(working_set, "resident") - working_set);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct debugger_log log;
		char text[1024];

		snprintf(text, sizeof(text), "%.*s%s", (int)head, working_set, lines[i]);
		assert_int_equal(parse(text, &log), STATUS_BAD_TRACE);
	}
}

/* As after a kill: what stands in whole lines counts. */
static void a_log_may_end_anywhere(void **state)
{
	size_t head = strcspn(pages, "\n") + 1;

	(void)state;
	for (size_t size = head; size < sizeof(pages); size++) {
		char *copy = malloc(size);
		struct debugger_log log;
		unsigned touches = 0;
		struct diag diag;

		memcpy(copy, pages, size);
		for (size_t i = 0; i < size; i++)
			if (copy[i] == '\n' && i + 5 < sizeof(pages) &&
			    strncmp(pages + i + 1, "page\t", 5) == 0 &&
			    memchr(copy + i + 1, '\n', size - i - 1))
				touches++;
		assert_int_equal(debugger_log_parse(copy, size, &log, &diag), STATUS_OK);
		assert_int_equal(log.touches.len, touches);
		assert_int_equal(log.ended, size == sizeof(pages) - 1);
		debugger_log_release(&log);
		free(copy);
	}
	for (size_t size = 0; size < head; size++) {
		struct debugger_log log;
		struct diag diag;

		assert_int_equal(debugger_log_parse(pages, size, &log, &diag),
				 STATUS_BAD_TRACE);
	}
}

static void a_bad_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"nonsense",
		"page\t0\t1\t1000\t268\tx",                 /* a field is missing */
		"page\t0\t1\t1000\t268\tx\t1\t2",           /* one too many */
		"page\t0\t1\t1000\t268\tq\t1",              /* no such access */
		"page\t1\t1\t1000\t268\tx\t1",              /* not the next number */
		"page\t0\t2\t1000\t268\tx\t1",              /* no such image */
		"page\t0\t0\t1000\t268\tx\t1",
		"page\t0\t1\t1001\t268\tx\t1",              /* no page */
		"page\t0\t1\t30000\t268\tx\t1",             /* behind the image */
		"page\t0\t1\t100000000\t268\tx\t1",         /* over 32 bits */
		"page\t0\t1\t\t268\tx\t1",                  /* empty */
		"page\t0\t1\t1000\t-1\tx\t1",
		"page\t0\t1\t1000\t26f\tx\t1",              /* hexadecimal digit */
		"page\t0\t1\t1000\t268\tx\t18446744073709551616",
		"start\t0\t1\t1234\t12\t3",                 /* of the other mode */
		"planted\t1\t7\t6",
		"other\t1",
		"code\t1\t1000\t5\t6",                      /* more guarded than there are */
		"code\t1\t1000\t48\t1",                     /* behind the image */
		"code\t1\t1004\t5\t5",
		"code\t2\t1000\t5\t5",
		"unload\t2\t5",
		"exit\t5\t0\t0",                            /* no such process */
		"process\t4\t0\t0\tx",                      /* runs already */
		"process\t5\t0\t0\t%4",                     /* bad escapes */
		"process\t5\t0\t0\t%4g",
		"process\t5\t0\t0\t%00",
		"process\t5\t9223372036854775808\t0\tx",
		"image\t3\t4\t0\t1000\t0\t0\t0\tx",         /* not the next id */
		"image\t2\t5\t0\t1000\t0\t0\t0\tx",         /* no such process */
		"end\t0\nend\t0",                           /* behind the end */
	};
	static const char *const bad_heads[] = {
		"\n", "appulse-debugger\t2\tpages\t1\n", "appulse-debugger\t1\tpages\t0\n",
		"appulse-debugger\t1\tother\t1\n", "appulse-debugger\t1\tpages\n",
		"appulse-debugger\t1\tpages\t1\t1\n", "appulse-debugge\t1\tpages\t1\n",
	};
	char text[512];
	struct debugger_log log;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text),
			 "appulse-debugger\t1\tpages\t1\nprocess\t4\t0\t0\tx\n"
			 "image\t1\t4\t0\t30000\t0\t0\t0\tx\n%s\n", bad[i]);
		assert_int_equal(parse(text, &log), STATUS_BAD_TRACE);
	}
	for (size_t i = 0; i < sizeof(bad_heads) / sizeof(bad_heads[0]); i++)
		assert_int_equal(parse(bad_heads[i], &log), STATUS_BAD_TRACE);
	/* The frame itself is good. */
	snprintf(text, sizeof(text), "appulse-debugger\t1\tpages\t1\nprocess\t4\t0\t0\tx\n"
				     "image\t1\t4\t0\t30000\t0\t0\t0\tx\n");
	assert_int_equal(parse(text, &log), STATUS_OK);
	debugger_log_release(&log);
}

static void a_process_id_may_be_used_again(void **state)
{
	struct debugger_log log;

	(void)state;
	assert_int_equal(parse("appulse-debugger\t1\tpages\t1\nprocess\t4\t0\t0\tx\n"
			       "exit\t4\t0\t0\nprocess\t4\t9\t0\ty\n"
			       "image\t1\t4\t0\t30000\t0\t0\t0\tx\n", &log), STATUS_OK);
	assert_int_equal(log.images.data[0].process, 1);
	debugger_log_release(&log);
}

/* Whatever one byte becomes, the answer is one of the two. */
static void a_changed_byte_does_no_harm(void **state)
{
	const char *logs[] = {pages, starts};

	(void)state;
	for (int k = 0; k < 2; k++) {
		size_t size = strlen(logs[k]);
		char *copy = malloc(size);

		for (size_t i = 0; i < size; i++) {
			static const char values[] = {0, '\t', '\n', '%', '0', '9', 'f', 'x', -1};

			for (size_t v = 0; v < sizeof(values); v++) {
				struct debugger_log log;
				struct diag diag;
				enum status status;

				memcpy(copy, logs[k], size);
				copy[i] = values[v];
				status = debugger_log_parse(copy, size, &log, &diag);
				assert_true(status == STATUS_OK || status == STATUS_BAD_TRACE);
				if (status == STATUS_OK)
					debugger_log_release(&log);
			}
		}
		free(copy);
	}
}

static void ticks_become_nanoseconds(void **state)
{
	struct debugger_log log = {.frequency = 10000000};
	struct debugger_process process = {.ticks = 100};

	(void)state;
	assert_true(debugger_log_ns(&log, &process, 103) == 300);
	assert_true(debugger_log_ns(&log, &process, 100) == 0);
	assert_true(debugger_log_ns(&log, &process, 7) == 0);
	log.frequency = 1;
	assert_true(debugger_log_ns(&log, &process, 102) == 2000000000);
	assert_true(debugger_log_ns(&log, &process, UINT64_MAX) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_of_a_page_log_is_read),
		cmocka_unit_test(every_line_of_a_breakpoint_log_is_read),
		cmocka_unit_test(every_line_of_a_working_set_log_is_read),
		cmocka_unit_test(wrong_working_sets_are_refused),
		cmocka_unit_test(a_log_may_end_anywhere),
		cmocka_unit_test(a_bad_line_is_refused),
		cmocka_unit_test(a_process_id_may_be_used_again),
		cmocka_unit_test(a_changed_byte_does_no_harm),
		cmocka_unit_test(ticks_become_nanoseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
