/* Databases of version 1 are read as they are, and upgraded when they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/db_identities.h"
#include "trace/db_report.h"
#include "trace/db_statement.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_db_upgrade.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static const char *path_of(const char *name)
{
	static char path[2][128];
	static unsigned used;
	char *p = path[used++ % 2];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static struct db *open_ok(const char *path, enum db_mode mode)
{
	struct diag diag = {0};
	struct db *db = NULL;

	if (db_open(path, mode, &db, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	return db;
}

static void execute(struct db *db, const char *sql)
{
	struct diag diag = {0};

	if (db_execute_text(db, sql, &diag) != STATUS_OK)
		fail_msg("%s: %s", sql, diag.message);
}

static int64_t query(struct db *db, const char *sql)
{
	struct diag diag = {0};
	int64_t value = -1;
	bool found;

	if (db_query_int(db, sql, NULL, 0, &found, &value, &diag) != STATUS_OK)
		fail_msg("%s: %s", sql, diag.message);
	return value;
}

/* One image, one run of kind pages with a process and a touched page. */
static int64_t fill(struct db *db)
{
	struct db_image image = {.hash = sha256_of("a", 1), .name = "a.dll", .size = 9};
	struct db_run run = {.kind = DB_RUN_PAGES, .scenario = "s", .weight = 1};
	struct db_process process = {.pid = 4, .started_ns = 5};
	struct db_page_touch touch = {.seq = 1, .page = {0x1000}};
	int64_t id, process_id;

	assert_int_equal(db_put_image(db, &image, NULL, 0, &id, NULL), STATUS_OK);
	assert_int_equal(db_begin_run(db, &run, &process.run, NULL), STATUS_OK);
	assert_int_equal(db_put_process(db, &process, &process_id, NULL), STATUS_OK);
	assert_int_equal(db_put_page_touches(db, process_id, id, &touch, 1, NULL),
			 STATUS_OK);
	return process.run;
}

/* A database as version 1 made it: without the kind, the tables and the views that came
 * later. */
static void make_version_1(const char *path)
{
	static const char *const views[] = {
		"v_images", "v_runs", "v_first_touch", "v_functions_touched", "v_pages",
		"v_page_counts", "v_faults", "v_fault_counts", "v_relinks", "v_functions",
		"v_scenario_functions", "v_moves",
	};
	struct db *db = open_ok(path, DB_CREATE);

	fill(db);
	execute(db, "PRAGMA foreign_keys = OFF");
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		char sql[64];

		snprintf(sql, sizeof(sql), "DROP VIEW %s", views[i]);
		execute(db, sql);
	}
	execute(db, "DROP TABLE identities; DROP TABLE faults; DROP TABLE fault_runs;"
		    "CREATE TABLE old_runs(id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE,"
		    " kind TEXT NOT NULL CHECK(kind IN ('trace', 'pages', 'breakpoints')),"
		    " scenario TEXT NOT NULL, weight REAL NOT NULL CHECK(weight > 0),"
		    " command TEXT, host TEXT, started_ns INTEGER NOT NULL,"
		    " exit TEXT NOT NULL DEFAULT 'unknown', exit_code INTEGER,"
		    " wall_seconds REAL);"
		    "INSERT INTO old_runs SELECT * FROM runs; DROP TABLE runs;"
		    "ALTER TABLE old_runs RENAME TO runs;"
		    "CREATE VIEW v_runs AS SELECT id AS run, kind FROM runs;"
		    "PRAGMA user_version = 1");
	db_close(db);
}

static struct db_fault_run faults_of(int64_t run, int64_t image)
{
	static const struct db_fault faults[] = {
		{.page = {0x2000}, .code = true, .access = DB_FAULT_EXECUTE, .thread = 7,
		 .time_ns = 3},
		{.page = {0x2000}, .code = true, .kind = DB_FAULT_SOFT, .time_ns = 4},
		{.page = {0x3000}, .kind = DB_FAULT_HARD, .time_ns = 5},
		{.page = {0x4000}, .kind = DB_FAULT_RESIDENT, .time_ns = -1},
	};

	return (struct db_fault_run){.run = run, .image = image, .method = "loop",
				     .counter = "perf", .cold = true, .pages = 9,
				     .code_pages = 4, .after = 3, .faults = faults,
				     .count = 4};
}

static void put_faults(struct db *db)
{
	struct db_run run = {.kind = DB_RUN_FAULTS, .scenario = "cold", .weight = 1,
			     .started_ns = 77};
	struct db_fault_run faults;
	int64_t id;

	assert_int_equal(db_begin_run(db, &run, &id, NULL), STATUS_OK);
	faults = faults_of(id, query(db, "SELECT id FROM images"));
	assert_int_equal(db_put_faults(db, &faults, NULL), STATUS_OK);
	assert_int_equal(db_put_faults(db, &faults, NULL), STATUS_OK); /* replaces */
}

static void a_writer_upgrades_and_loses_nothing(void **state)
{
	const char *path = path_of("t.db");
	struct db *db;

	(void)state;
	make_version_1(path);
	db = open_ok(path, DB_READWRITE);
	assert_int_equal(query(db, "PRAGMA user_version"), DB_SCHEMA_VERSION);
	assert_int_equal(query(db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(query(db, "SELECT count(*) FROM v_pages WHERE page = 4096"), 1);
	assert_int_equal(query(db, "SELECT hard_faults FROM v_runs"), 0);
	assert_int_equal(query(db, "SELECT count(*) FROM identities"), 0);
	put_faults(db);
	assert_int_equal(query(db, "SELECT count(*) FROM faults"), 4);
	assert_int_equal(query(db, "SELECT hard_faults FROM v_fault_counts"), 2);
	assert_int_equal(query(db, "SELECT hard_code_pages FROM v_fault_counts"), 1);
	execute(db, "DELETE FROM runs");
	assert_int_equal(query(db, "SELECT count(*) FROM processes"), 0);
	assert_int_equal(query(db, "SELECT count(*) FROM faults"), 0);
	db_close(db);
	db = open_ok(path, DB_READONLY);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 1);
	db_close(db);
}

static void a_reader_takes_it_as_it_is(void **state)
{
	const char *path = path_of("t.db");
	struct db_run_row *rows;
	struct arena arena;
	struct diag diag = {0};
	uint32_t count;
	struct db *db;

	(void)state;
	make_version_1(path);
	arena_init(&arena);
	db = open_ok(path, DB_READONLY);
	assert_int_equal(query(db, "PRAGMA user_version"), 1);
	if (db_list_runs(db, &arena, &rows, &count, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].page_touches, 1);
	assert_int_equal(rows[0].hard_faults, 0);
	assert_int_equal(query(db, "SELECT count(*) FROM v_faults"), 0);
	assert_int_not_equal(db_execute_text(db, "DELETE FROM runs", NULL), STATUS_OK);
	arena_release(&arena);
	db_close(db);
}

static void both_versions_can_be_merged(void **state)
{
	const char *old = path_of("old.db"), *new = path_of("new.db");
	struct db_merged merged;
	struct diag diag = {0};
	struct db *db;

	(void)state;
	make_version_1(old);
	db = open_ok(new, DB_CREATE);
	fill(db);
	put_faults(db);
	if (db_merge(db, old, &merged, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	assert_int_equal(query(db, "SELECT count(*) FROM faults"), 4);
	db_close(db);
	db = open_ok(path_of("both.db"), DB_CREATE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(db_merge(db, path_of("new.db"), &merged, &diag), STATUS_OK);
		assert_int_equal(query(db, "SELECT count(*) FROM v_faults"), 4);
		assert_int_equal(query(db, "SELECT sum(hard_faults) FROM v_fault_counts"), 2);
	}
	db_close(db);
}

/* Version 2 lacked the identities of functions alone. */
static void version_2_has_names_alone(void **state)
{
	const char *path = path_of("two.db");
	const struct db_image image = {.hash = sha256_of("b", 1), .name = "b.dll"};
	const struct db_function function = {.rva = {0x1000}, .size = 3, .name = "f",
					     .probe = -1};
	struct db *db = open_ok(path, DB_CREATE);
	struct db_identities loaded;
	int64_t id;

	(void)state;
	assert_int_equal(db_put_image(db, &image, &function, 1, &id, NULL), STATUS_OK);
	execute(db, "DROP TABLE identities; PRAGMA user_version = 2");
	db_close(db);
	for (int mode = DB_READONLY; mode <= DB_READWRITE; mode++) {
		db = open_ok(path, (enum db_mode)mode);
		assert_int_equal(db_load_identities(db, id, &loaded, NULL), STATUS_OK);
		assert_int_equal(loaded.functions.count, 1);
		assert_string_equal(loaded.functions.list[0].name, "f");
		assert_int_equal(loaded.functions.list[0].content, 0);
		db_identities_release(&loaded);
		db_close(db);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_writer_upgrades_and_loses_nothing,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(version_2_has_names_alone, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_reader_takes_it_as_it_is, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(both_versions_can_be_merged, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
