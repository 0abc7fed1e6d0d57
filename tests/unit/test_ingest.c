/* From trace files to the database: times, identities, and runs that begin with
 * their first trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/db_statement.h"
#include "trace/ingest.h"

enum { TICKS_A_SECOND = 1000 };

/* 2000-01-01 in 100 ns units since 1601 and in seconds since 1970: 145,731 and
 * 10,957 days. */
static const uint64_t year_2000 = UINT64_C(145731) * 86400 * 10000000;
static const int64_t year_2000_unix = INT64_C(10957) * 86400;

static struct trace_touch touches[] = {
	{.rva = {0x1000}, .thread = 7, .seq = 1, .ticks = 5000},
	{.rva = {0x2000}, .thread = 8, .seq = 4, .ticks = 5500},
	{.rva = {0x3000}, .thread = 7, .seq = 5, .ticks = 4000}, /* before the opening */
};

/* A process that started at 2000-01-01 and opened the trace 2 s later. */
static struct trace_file make_trace(void)
{
	struct trace_file trace = {
		.image_name = "app.dll",
		.executable = "C:\\app.exe",
		.process = 42,
		.parent = 41,
		.process_start = year_2000,
		.opened = year_2000 + 20000000,
		.opened_ticks = 5000,
		.frequency = TICKS_A_SECOND,
		.probes = 3,
		.touches = touches,
		.touch_count = 3,
	};

	trace.image_hash = sha256_of("app", 3);
	return trace;
}

static int open_database(void **state)
{
	struct db *db;

	if (db_open(":memory:", DB_CREATE, &db, NULL) != STATUS_OK)
		return -1;
	*state = db;
	return 0;
}

static int close_database(void **state)
{
	db_close(*state);
	return 0;
}

static int64_t query(struct db *db, const char *sql)
{
	bool found = false;
	int64_t value = 0;

	assert_int_equal(db_query_int(db, sql, NULL, 0, &found, &value, NULL), STATUS_OK);
	assert_true(found);
	return value;
}

static struct ingested ingest(struct db *db, const char *run,
			      const struct trace_file *trace)
{
	struct db_run row = {.identity = run, .weight = 1, .started_ns = 1};
	struct ingested result = {0};
	struct diag diag = {0};

	if (ingest_trace(db, &row, trace, NULL, &result, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	return result;
}

static void moments_become_unix_time(void **state)
{
	(void)state;
	assert_int_equal(ingest_time_ns(year_2000), year_2000_unix * 1000000000);
	assert_int_equal(ingest_time_ns(year_2000 + 1), year_2000_unix * 1000000000 + 100);
	assert_true(ingest_time_ns(0) < 0);
	/* What 64 bits cannot say is the nearest that they can. */
	assert_true(ingest_time_ns(UINT64_MAX) > INT64_MAX - 100);
	assert_true(ingest_time_ns(INT64_MAX) > INT64_MAX - 100);
}

static void a_trace_is_stored_with_its_process_and_image(void **state)
{
	struct db *db = *state;
	struct trace_file trace = make_trace();
	struct ingested result = ingest(db, "r", &trace);

	assert_false(result.empty);
	assert_int_equal(result.fate, DB_TRACE_NEW);
	assert_int_equal(result.touches, 3);
	assert_int_equal(result.run, query(db, "SELECT id FROM runs WHERE identity = 'r'"));
	assert_int_equal(query(db, "SELECT pid FROM processes"), 42);
	assert_int_equal(query(db, "SELECT parent FROM processes"), 41);
	assert_int_equal(query(db, "SELECT started_ns FROM processes"),
			 year_2000_unix * 1000000000);
	assert_int_equal(query(db, "SELECT name = 'app.dll' AND size IS NULL FROM images"),
			 1);
	/* From the start of the process: 2 s to the opening, then ticks of 1 ms. */
	assert_int_equal(query(db, "SELECT time_ns FROM touches WHERE seq = 1"),
			 2000000000);
	assert_int_equal(query(db, "SELECT time_ns FROM touches WHERE seq = 4"),
			 2500000000);
	assert_int_equal(query(db, "SELECT time_ns FROM touches WHERE seq = 5"),
			 1000000000);
	assert_int_equal(query(db, "SELECT thread FROM touches WHERE rva = 0x2000"), 8);
	assert_int_equal(query(db, "SELECT incomplete FROM traces"), 0);
}

static void a_trace_that_grew_is_the_same_trace(void **state)
{
	struct db *db = *state;
	struct trace_file trace = make_trace();
	struct ingested result;

	trace.touch_count = 1;
	trace.incomplete = 1;
	result = ingest(db, "r", &trace);
	assert_int_equal(result.cut_short, 1);
	assert_int_equal(query(db, "SELECT incomplete FROM traces"), 1);
	trace.touch_count = 3;
	trace.incomplete = 0;
	result = ingest(db, "another", &trace);
	assert_int_equal(result.fate, DB_TRACE_LONGER);
	assert_int_equal(query(db, "SELECT count(*) FROM touches"), 3);
	assert_int_equal(query(db, "SELECT incomplete FROM traces"), 0);
	/* It stays in its run, and no empty run is left. */
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 1);
	assert_int_equal(query(db, "SELECT count(*) FROM runs WHERE identity = 'r'"), 1);
	assert_int_equal(ingest(db, "another", &trace).fate, DB_TRACE_KNOWN);
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 1);
}

/* Unloaded and loaded again, another process, another image: other traces. */
static void what_differs_has_another_identity(void **state)
{
	struct db *db = *state;
	struct trace_file trace = make_trace();

	ingest(db, "r", &trace);
	trace.opened_ticks++;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	trace.process++;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	trace.process_start++;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	trace.image_hash.bytes[31] ^= 1;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	assert_int_equal(query(db, "SELECT count(*) FROM processes"), 3);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 2);
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 1);
}

static void an_empty_trace_leaves_nothing(void **state)
{
	struct db *db = *state;
	struct trace_file trace = {.empty = true};

	assert_true(ingest(db, "r", &trace).empty);
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 0);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 0);
}

/* Times that no machine can have must not break anything. */
static void absurd_times_are_stored(void **state)
{
	struct db *db = *state;
	struct trace_file trace = make_trace();
	struct sha256 hash = trace.image_hash;
	struct db_profile profile;
	enum status status;

	trace.process_start = UINT64_MAX;
	trace.opened = 0;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	trace.process_start = 0;
	trace.opened = UINT64_MAX;
	assert_int_equal(ingest(db, "r", &trace).fate, DB_TRACE_NEW);
	status = db_load_profile(db, &hash, DB_RUN_TRACE, &profile, NULL);
	assert_true(status == STATUS_OK || status == STATUS_BAD_DATABASE);
	if (status == STATUS_OK)
		db_profile_release(&profile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_database, close_database)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_become_unix_time),
		TEST(a_trace_is_stored_with_its_process_and_image),
		TEST(a_trace_that_grew_is_the_same_trace),
		TEST(what_differs_has_another_identity),
		TEST(an_empty_trace_leaves_nothing),
		TEST(absurd_times_are_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
