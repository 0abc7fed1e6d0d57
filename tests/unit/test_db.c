/* The trace database: what is written comes back, twice counts once, and no
 * other program's file or lock makes it lie. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "trace/db_statement.h"

/* A folder of the test's own, and paths in it. */
struct folder {
	char path[64];
	char text[8][128];
	unsigned used;
};

static int make_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	strcpy(folder->path, "/tmp/test_db.XXXXXX");
	if (!mkdtemp(folder->path))
		return -1;
	chmod(folder->path, 0755);
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *folder = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder->path);
	if (system(command) != 0)
		return -1;
	free(folder);
	return 0;
}

static const char *in(struct folder *folder, const char *name)
{
	char *text = folder->text[folder->used++ % 8];

	assert_true(strlen(folder->path) + strlen(name) + 2 <= sizeof(folder->text[0]));
	stpcpy(stpcpy(stpcpy(text, folder->path), "/"), name);
	return text;
}

static struct db *open_ok(const char *path, enum db_mode mode)
{
	struct diag diag = {0};
	struct db *db = NULL;

	if (db_open(path, mode, &db, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	return db;
}

static void assert_open_fails(const char *path, enum db_mode mode, enum status expected,
			      const char *words)
{
	struct diag diag = {0};
	struct db *db = NULL;

	assert_int_equal(db_open(path, mode, &db, &diag), expected);
	assert_null(db);
	assert_int_equal(diag.status, expected);
	if (!strstr(diag.message, words))
		fail_msg("'%s' lacks '%s'", diag.message, words);
}

static void assert_ok(enum status status, const struct diag *diag)
{
	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), diag->message);
}

static int64_t query(struct db *db, const char *sql)
{
	struct diag diag = {0};
	bool found = false;
	int64_t value = 0;

	assert_ok(db_query_int(db, sql, NULL, 0, &found, &value, &diag), &diag);
	assert_true(found);
	return value;
}

static void execute(struct db *db, const char *sql)
{
	struct diag diag = {0};

	assert_ok(db_execute(db, sql, NULL, 0, &diag), &diag);
}

static struct sha256 hash_of(const char *text)
{
	return sha256_of(text, strlen(text));
}

static int64_t put_image(struct db *db, const char *name)
{
	static const struct db_function functions[] = {
		{.rva = {0x2000}, .size = 32, .name = "two", .movable = true, .probe = 1},
		{.rva = {0x1000},
		 .size = 16,
		 .name = NULL,
		 .movable = false,
		 .pins = "hidden-reference",
		 .probe = -1},
		{.rva = {0xfffffff0},
		 .size = 4,
		 .name = "last",
		 .movable = true,
		 .probe = 0},
	};
	struct db_image image = {
		.hash = hash_of(name), .name = name, .size = 4096, .code_size = 100};
	struct diag diag = {0};
	int64_t id = 0;

	assert_ok(db_put_image(db, &image, functions, 3, &id, &diag), &diag);
	return id;
}

static int64_t put_run(struct db *db, const char *scenario, int64_t started_ns)
{
	struct db_run run = {.kind = DB_RUN_TRACE,
			     .scenario = scenario,
			     .weight = 2,
			     .command = "wine app.exe",
			     .host = "host",
			     .started_ns = started_ns,
			     .collector = 7};
	struct diag diag = {0};
	int64_t id = 0;

	assert_ok(db_begin_run(db, &run, &id, &diag), &diag);
	return id;
}

static int64_t put_process(struct db *db, int64_t run, uint32_t pid, int64_t started_ns)
{
	struct db_process process = {.run = run,
				     .pid = pid,
				     .started_ns = started_ns,
				     .executable = "C:\\app.exe"};
	struct diag diag = {0};
	int64_t id = 0;

	assert_ok(db_put_process(db, &process, &id, &diag), &diag);
	return id;
}

static enum db_trace_fate put_trace(struct db *db, int64_t process, int64_t image,
				    const char *identity, const struct db_touch *touches,
				    uint32_t count)
{
	struct db_trace trace = {.process = process,
				 .image = image,
				 .identity = identity,
				 .touches = touches,
				 .count = count};
	struct diag diag = {0};
	enum db_trace_fate fate = 99;

	assert_ok(db_put_trace(db, &trace, &fate, &diag), &diag);
	return fate;
}

/* ---- opening ---- */

static void a_new_database_is_labelled_and_opens_again(void **state)
{
	const char *path = in(*state, "a b?c#d%41.db");
	char log[160];
	struct db *db = open_ok(path, DB_CREATE);

	assert_int_equal(query(db, "PRAGMA user_version"), DB_SCHEMA_VERSION);
	assert_int_equal(query(db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(query(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"),
			 1);
	db_close(db);
	assert_int_equal(access(path, F_OK), 0);
	db_close(open_ok(path, DB_CREATE));
	db_close(open_ok(path, DB_READWRITE));
	db_close(open_ok(path, DB_READONLY));
	snprintf(log, sizeof(log), "%s-wal", path);
	assert_int_equal(access(log, F_OK), -1);
}

static void an_empty_file_becomes_a_database_only_when_created(void **state)
{
	const char *path = in(*state, "t.db");

	assert_int_equal(file_write(path, "", 0, false, NULL), STATUS_OK);
	assert_open_fails(path, DB_READWRITE, STATUS_BAD_DATABASE, "not a trace database");
	db_close(open_ok(path, DB_CREATE));
}

static void what_is_no_trace_database_is_refused(void **state)
{
	const char *path = in(*state, "t.db");
	char garbage[8192];
	struct db *db;

	assert_open_fails(in(*state, "none.db"), DB_READWRITE, STATUS_NOT_FOUND, "none.db");
	assert_open_fails(in(*state, "none.db"), DB_READONLY, STATUS_NOT_FOUND, "none.db");
	assert_open_fails("", DB_CREATE, STATUS_NOT_FOUND, "no database ''");
	assert_open_fails(in(*state, "no/folder/t.db"), DB_CREATE, STATUS_IO,
			  "cannot open");
	assert_open_fails(in(*state, "."), DB_CREATE, STATUS_IO, "cannot open");

	memset(garbage, 0x5a, sizeof(garbage));
	assert_int_equal(file_write(path, garbage, sizeof(garbage), true, NULL), STATUS_OK);
	for (enum db_mode mode = DB_READONLY; mode <= DB_CREATE; mode++)
		assert_open_fails(path, mode, STATUS_BAD_DATABASE, "not a trace database");

	db = open_ok(in(*state, "foreign.db"), DB_CREATE);
	execute(db, "PRAGMA application_id = 1");
	db_close(db);
	assert_open_fails(in(*state, "foreign.db"), DB_CREATE, STATUS_BAD_DATABASE,
			  "not a trace database");

	db = open_ok(in(*state, "newer.db"), DB_CREATE);
	execute(db, "PRAGMA user_version = 4711");
	db_close(db);
	assert_open_fails(in(*state, "newer.db"), DB_READONLY, STATUS_BAD_DATABASE,
			  "newer version");
}

static void a_label_on_another_schema_is_a_bad_database(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	struct sha256 hash = hash_of("x");
	struct diag diag = {0};
	int64_t id;

	execute(db, "DROP TABLE relinks");
	execute(db, "DROP TABLE images");
	assert_int_equal(db_find_image(db, &hash, &id, &diag), STATUS_BAD_DATABASE);
	db_close(db);
}

/* Whatever bytes are damaged: a status, never a crash. */
static void damaged_pages_are_told(void **state)
{
	const char *path = in(*state, "t.db"), *bad = in(*state, "bad.db");
	struct mapped_file file;
	struct db *db = open_ok(path, DB_CREATE);
	struct sha256 hash = hash_of("a.dll");
	int64_t image = put_image(db, "a.dll");
	struct db_touch touch = {.seq = 1, .rva = {0x2000}};
	unsigned failures = 0;

	put_trace(db, put_process(db, put_run(db, "s", 1), 5, 6), image, "t", &touch, 1);
	db_close(db);
	assert_int_equal(mapped_file_open(&file, path, NULL), STATUS_OK);
	for (size_t at = 16; at < file.size; at += 509) {
		uint8_t *bytes = malloc(file.size);
		struct db_profile profile;
		struct db_image_functions functions;
		enum status status;

		memcpy(bytes, file.data, file.size);
		memset(bytes + at, 0xff, at + 64 < file.size ? 64 : file.size - at);
		assert_int_equal(file_write(bad, bytes, file.size, true, NULL), STATUS_OK);
		free(bytes);
		status = db_open(bad, DB_READONLY, &db, NULL);
		if (status == STATUS_OK) {
			if (db_load_profile(db, &hash, DB_RUN_TRACE, &profile, NULL) ==
			    STATUS_OK)
				db_profile_release(&profile);
			else
				failures++;
			if (db_load_image(db, image, &functions, NULL) == STATUS_OK)
				db_image_release(&functions);
			db_close(db);
		} else {
			failures++;
			assert_true(status == STATUS_BAD_DATABASE || status == STATUS_IO);
		}
	}
	mapped_file_close(&file);
	assert_true(failures > 3);
}

/* Runs `body` as a user who may not write there; its answer is an exit code. */
static int as_stranger(int (*body)(const char *), const char *path)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(99);
		_exit(body(path));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int read_but_not_write(const char *path)
{
	struct db *db;
	struct sha256 hash = hash_of("a.dll");
	struct diag diag = {0};
	struct db_image image = {.name = "b.dll"};
	int64_t id;

	if (db_open(path, DB_READONLY, &db, &diag) != STATUS_OK)
		return 1;
	if (db_find_image(db, &hash, &id, &diag) != STATUS_OK)
		return 2;
	if (db_put_image(db, &image, NULL, 0, &id, &diag) != STATUS_IO ||
	    !strstr(diag.message, "cannot be written"))
		return 3;
	db_close(db);
	if (db_open(path, DB_READWRITE, &db, &diag) == STATUS_OK &&
	    db_put_image(db, &image, NULL, 0, &id, &diag) != STATUS_IO)
		return 4;
	return 0;
}

static void a_read_only_folder_can_be_read(void **state)
{
	struct folder *folder = *state;
	const char *path = in(folder, "t.db");
	struct db *db = open_ok(path, DB_CREATE);

	put_image(db, "a.dll");
	db_close(db);
	chmod(path, 0444);
	chmod(folder->path, 0555);
	assert_int_equal(as_stranger(read_but_not_write, path), 0);
	chmod(folder->path, 0755);
}

/* ---- locks, kills, transactions ---- */

static void a_lock_is_waited_for_and_then_told(void **state)
{
	const char *path = in(*state, "t.db");
	struct db *a = open_ok(path, DB_CREATE), *b = open_ok(path, DB_CREATE);
	struct db_image image = {.name = "x"};
	struct diag diag = {0};
	struct timespec begin, end;
	int64_t id;

	assert_int_equal(db_begin(a, &diag), STATUS_OK);
	db_set_timeout(b, 200);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(db_put_image(b, &image, NULL, 0, &id, &diag), STATUS_DATABASE);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_non_null(strstr(diag.message, "locked"));
	assert_true((double)(end.tv_sec - begin.tv_sec) +
			    (double)(end.tv_nsec - begin.tv_nsec) / 1e9 >
		    0.15);
	/* Reports go on reading meanwhile. */
	assert_int_equal(query(b, "SELECT count(*) FROM images"), 0);
	db_rollback(a);
	assert_int_equal(db_put_image(b, &image, NULL, 0, &id, &diag), STATUS_OK);
	db_close(a);
	db_close(b);
}

/* One of two collectors: `count` traces with three touches each. */
static int collect(const char *path, uint32_t pid, unsigned count)
{
	static const struct db_touch touches[] = {{.seq = 1, .rva = {0x1000}},
						  {.seq = 2, .rva = {0x2000}},
						  {.seq = 3, .rva = {0x3000}}};
	struct db *db;
	int64_t image, run, process;
	struct db_image row = {.hash = hash_of("a.dll"), .name = "a.dll"};
	struct db_run spec = {.weight = 1, .started_ns = pid, .collector = pid};

	if (db_open(path, DB_CREATE, &db, NULL) != STATUS_OK)
		return 1;
	if (db_begin_run(db, &spec, &run, NULL) != STATUS_OK)
		return 2;
	for (unsigned i = 0; i < count; i++) {
		struct db_process p = {.run = run, .pid = pid, .started_ns = i};
		struct db_trace trace = {.touches = touches, .count = 3};

		if (db_put_image(db, &row, NULL, 0, &image, NULL) != STATUS_OK ||
		    db_put_process(db, &p, &process, NULL) != STATUS_OK)
			return 3;
		trace.process = process;
		trace.image = image;
		if (db_put_trace(db, &trace, NULL, NULL) != STATUS_OK)
			return 4;
	}
	db_close(db);
	return 0;
}

static void two_collectors_write_at_once(void **state)
{
	const char *path = in(*state, "t.db");
	struct db *db;
	pid_t children[2];

	for (unsigned i = 0; i < 2; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			_exit(collect(path, 10 + i, 40));
	}
	for (unsigned i = 0; i < 2; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	db = open_ok(path, DB_READONLY);
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 2);
	assert_int_equal(query(db, "SELECT count(*) FROM traces"), 80);
	assert_int_equal(query(db, "SELECT count(*) FROM touches"), 240);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 1);
	db_close(db);
}

static void a_killed_writer_leaves_whole_traces_only(void **state)
{
	const char *path = in(*state, "t.db");
	struct db *db;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct db_image image = {.hash = hash_of("b.dll"), .name = "b.dll"};
		int64_t id;

		if (collect(path, 3, 2) != 0 || db_open(path, DB_CREATE, &db, NULL) != 0 ||
		    db_begin(db, NULL) != 0 ||
		    db_put_image(db, &image, NULL, 0, &id, NULL) != 0)
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	db = open_ok(path, DB_READWRITE);
	assert_int_equal(query(db, "SELECT count(*) FROM traces"), 2);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 1);
	db_close(db);
}

static void a_failed_write_leaves_nothing(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t image = put_image(db, "a.dll");
	int64_t process = put_process(db, put_run(db, "s", 1), 5, 6);
	struct db_touch twice[] = {{.seq = 1, .rva = {1}}, {.seq = 1, .rva = {2}}};
	struct db_trace trace = {
		.process = process, .image = image, .touches = twice, .count = 2};
	struct diag diag = {0};

	assert_int_equal(db_put_trace(db, &trace, NULL, &diag), STATUS_DATABASE);
	assert_int_equal(query(db, "SELECT count(*) FROM traces"), 0);
	assert_int_equal(query(db, "SELECT count(*) FROM touches"), 0);

	/* Inside a transaction only the failed part is undone. */
	assert_int_equal(db_begin(db, &diag), STATUS_OK);
	put_image(db, "b.dll");
	assert_int_equal(db_put_trace(db, &trace, NULL, &diag), STATUS_DATABASE);
	assert_int_equal(db_commit(db, &diag), STATUS_OK);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 2);
	assert_int_equal(query(db, "SELECT count(*) FROM traces"), 0);

	assert_int_equal(db_begin(db, &diag), STATUS_OK);
	put_image(db, "c.dll");
	db_rollback(db);
	assert_int_equal(query(db, "SELECT count(*) FROM images"), 2);
	db_close(db);
}

/* ---- content ---- */

static void an_image_comes_back_sorted_and_once(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t id = put_image(db, "a.dll"), found;
	struct sha256 hash = hash_of("a.dll"), other = hash_of("other");
	struct db_image_functions image;
	struct diag diag = {0};

	assert_int_equal(put_image(db, "a.dll"), id);
	assert_int_equal(query(db, "SELECT count(*) FROM functions"), 3);
	assert_ok(db_find_image(db, &hash, &found, &diag), &diag);
	assert_int_equal(found, id);
	assert_int_equal(db_find_image(db, &other, &found, &diag), STATUS_NOT_FOUND);
	assert_int_equal(db_load_image(db, id + 1, &image, &diag), STATUS_NOT_FOUND);

	assert_ok(db_load_image(db, id, &image, &diag), &diag);
	assert_memory_equal(&image.image.hash, &hash, sizeof(hash));
	assert_string_equal(image.image.name, "a.dll");
	assert_int_equal(image.image.size, 4096);
	assert_int_equal(image.image.code_size, 100);
	assert_int_equal(image.count, 3);
	assert_int_equal(image.functions[0].rva.v, 0x1000);
	assert_null(image.functions[0].name);
	assert_string_equal(image.functions[0].pins, "hidden-reference");
	assert_false(image.functions[0].movable);
	assert_int_equal(image.functions[0].probe, -1);
	assert_int_equal(image.functions[1].rva.v, 0x2000);
	assert_string_equal(image.functions[1].name, "two");
	assert_true(image.functions[1].movable);
	assert_int_equal(image.functions[1].probe, 1);
	assert_null(image.functions[1].pins);
	assert_int_equal(image.functions[2].rva.v, 0xfffffff0);
	db_image_release(&image);
	db_close(db);
}

/* An image that a trace made known is filled in later, and a new analysis
 * replaces the functions, with the touches kept. */
static void functions_can_be_written_again(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	struct db_image bare = {.hash = hash_of("a.dll"), .name = "a.dll"};
	struct db_touch touches[] = {{.seq = 1, .rva = {0x2000}},
				     {.seq = 2, .rva = {0x77}}};
	struct db_function one = {.rva = {0x77}, .size = 1, .probe = -1};
	struct diag diag = {0};
	int64_t id;

	assert_ok(db_put_image(db, &bare, NULL, 0, &id, &diag), &diag);
	put_trace(db, put_process(db, put_run(db, "s", 1), 5, 6), id, NULL, touches, 2);
	assert_int_equal(query(db, "SELECT count(*) FROM v_first_touch WHERE known"), 0);
	assert_int_equal(put_image(db, "a.dll"), id);
	assert_int_equal(query(db, "SELECT size FROM images"), 4096);
	assert_int_equal(query(db, "SELECT rva FROM v_first_touch WHERE known"), 0x2000);
	assert_ok(db_put_image(db, &bare, &one, 1, &id, &diag), &diag);
	assert_int_equal(query(db, "SELECT size FROM images"), 4096);
	assert_int_equal(query(db, "SELECT rva FROM v_first_touch WHERE known"), 0x77);
	assert_int_equal(query(db, "SELECT count(*) FROM v_functions_touched"), 2);
	db_close(db);
}

static void a_run_is_found_again_and_finished(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	struct db_run bad = {.weight = 0};
	struct diag diag = {0};
	int64_t run = put_run(db, "s", 1), id;

	assert_int_equal(put_run(db, "s", 1), run);
	assert_int_not_equal(put_run(db, "s", 2), run);
	assert_int_not_equal(put_run(db, NULL, 1), run);
	assert_int_equal(db_begin_run(db, &bad, &id, &diag), STATUS_USAGE);
	bad.weight = (double)INFINITY;
	assert_int_equal(db_begin_run(db, &bad, &id, &diag), STATUS_USAGE);
	assert_ok(db_finish_run(db, run, DB_EXIT_SIGNALED, 9, 1.5, &diag), &diag);
	assert_int_equal(query(db, "SELECT count(*) FROM v_runs WHERE exit = 'signaled'"
				   " AND exit_code = 9 AND wall_seconds = 1.5"
				   " AND started = '1970-01-01T00:00:00Z'"),
			 1);
	assert_int_equal(query(db, "SELECT count(*) FROM v_runs WHERE scenario = 'default'"
				   " AND exit = 'unknown'"),
			 1);
	db_close(db);
}

static void the_longer_version_of_a_trace_stays(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t image = put_image(db, "a.dll"), run = put_run(db, "s", 1);
	int64_t process = put_process(db, run, 5, 6);
	int64_t other = put_process(db, put_run(db, "s", 2), 5, 6);
	struct db_touch touches[] = {
		{.seq = 1, .rva = {1}}, {.seq = 2, .rva = {2}}, {.seq = 3, .rva = {3}}};
	bool found;
	int64_t in_run;

	assert_int_equal(put_process(db, run, 5, 6), process);
	assert_int_equal(put_trace(db, process, image, "t", touches, 2), DB_TRACE_NEW);
	assert_int_equal(put_trace(db, process, image, "t", touches, 2), DB_TRACE_KNOWN);
	assert_int_equal(put_trace(db, other, image, "t", touches, 3), DB_TRACE_LONGER);
	assert_int_equal(put_trace(db, process, image, "t", touches, 1), DB_TRACE_KNOWN);
	assert_int_equal(query(db, "SELECT count(*) FROM touches"), 3);
	assert_int_equal(query(db, "SELECT records FROM traces"), 3);
	assert_int_equal(db_find_trace(db, "t", &found, &in_run, NULL), STATUS_OK);
	assert_true(found);
	assert_int_equal(in_run, run);
	assert_int_equal(db_find_trace(db, "u", &found, &in_run, NULL), STATUS_OK);
	assert_false(found);

	/* Without an identity image, process and run make one. */
	assert_int_equal(put_trace(db, process, image, NULL, touches, 1), DB_TRACE_NEW);
	assert_int_equal(put_trace(db, process, image, NULL, touches, 1), DB_TRACE_KNOWN);
	assert_int_equal(put_trace(db, other, image, NULL, touches, 1), DB_TRACE_NEW);
	db_close(db);
}

static void assert_rvas(const struct db_profile_run *run, const uint32_t *rvas,
			uint32_t count)
{
	assert_int_equal(run->count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(run->rvas[i].v, rvas[i]);
}

/* Two processes, the second started later, with touches between each other's; in
 * the first, thread 2 got its number before thread 1 but its time after. */
static void a_profile_orders_touches_over_processes(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t image = put_image(db, "a.dll"), other_image = put_image(db, "b.dll");
	int64_t late = put_run(db, "late", 2000000), early = put_run(db, "early", 1000000);
	int64_t p = put_process(db, early, 1, 1000), q = put_process(db, early, 2, 1500);
	int64_t r = put_process(db, late, 3, 9000), s = put_process(db, late, 4, 9000);
	struct db_touch of_p[] = {
		{.seq = 1, .rva = {0x10}, .time_ns = 100}, /* at 1100 */
		{.seq = 2, .rva = {0x20}, .time_ns = 600}, /* at 1600 */
		{.seq = 3, .rva = {0x30}, .time_ns = 590}, /* after seq 2 all the same */
		{.seq = 9, .rva = {0x40}, .time_ns = 900}, /* at 1900 */
	};
	struct db_touch of_q[] = {
		{.seq = 1, .rva = {0x40}, .time_ns = 50},  /* at 1550: first */
		{.seq = 2, .rva = {0x10}, .time_ns = 60},  /* second time */
		{.seq = 3, .rva = {0x50}, .time_ns = 300}, /* at 1800 */
	};
	struct db_touch of_r[] = {{.seq = 5, .rva = {0x99}, .time_ns = 1}};
	static const uint32_t expected[] = {0x10, 0x40, 0x20, 0x30, 0x50};
	static const int64_t times[] = {1100, 1550, 1600, 1600, 1800};
	static const uint32_t expected_late[] = {0x99};
	struct sha256 hash = hash_of("a.dll"), unknown = hash_of("?");
	struct db_profile profile;
	struct diag diag = {0};

	put_trace(db, r, image, NULL, of_r, 1);
	put_trace(db, q, image, NULL, of_q, 3);
	put_trace(db, p, image, NULL, of_p, 4);
	put_trace(db, p, other_image, NULL, of_r, 1);
	put_trace(db, s, image, NULL, NULL, 0);
	assert_ok(db_load_profile(db, &hash, DB_RUN_TRACE, &profile, &diag), &diag);
	assert_int_equal(profile.count, 2);
	assert_int_equal(profile.runs[0].run, early);
	assert_string_equal(profile.runs[0].scenario, "early");
	assert_true(profile.runs[0].weight == 2);
	assert_rvas(&profile.runs[0], expected, 5);
	assert_memory_equal(profile.runs[0].times_ns, times, sizeof(times));
	assert_int_equal(profile.runs[1].run, late);
	assert_rvas(&profile.runs[1], expected_late, 1);
	db_profile_release(&profile);

	assert_ok(db_load_profile(db, &hash, DB_RUN_BREAKPOINTS, &profile, &diag), &diag);
	assert_int_equal(profile.count, 0);
	db_profile_release(&profile);
	assert_int_equal(db_load_profile(db, &unknown, DB_RUN_TRACE, &profile, &diag),
			 STATUS_NOT_FOUND);
	db_close(db);
}

static void runs_of_a_scenario_share_its_weight(void **state)
{
	char often[] = "often", once[] = "once";
	struct db_profile_run runs[] = {
		{.scenario = often, .weight = 3},
		{.scenario = once, .weight = 5},
		{.scenario = often, .weight = 1},
	};
	const struct db_profile profile = {runs, 3};

	(void)state;
	assert_true(db_profile_weight(&profile, 0) == 1.5);
	assert_true(db_profile_weight(&profile, 1) == 5);
	assert_true(db_profile_weight(&profile, 2) == 0.5);
}

static void pages_replace_those_of_the_same_process(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t image = put_image(db, "a.dll");
	int64_t process = put_process(db, put_run(db, "s", 1), 5, 6);
	struct db_page_touch pages[] = {
		{.seq = 1, .page = {0x1000}, .kind = DB_ACCESS_EXECUTE},
		{.seq = 2, .page = {0x3000}, .kind = DB_ACCESS_READ},
		{.seq = 3, .page = {0x1234}, .kind = DB_ACCESS_READ},
	};
	struct diag diag = {0};

	assert_ok(db_put_page_touches(db, process, image, pages, 1, &diag), &diag);
	assert_ok(db_put_page_touches(db, process, image, pages, 2, &diag), &diag);
	assert_int_equal(query(db, "SELECT pages FROM v_page_counts"), 2);
	assert_int_equal(query(db, "SELECT executed_pages FROM v_page_counts"), 1);
	assert_int_equal(query(db, "SELECT page FROM v_pages WHERE kind = 'read'"), 0x3000);
	assert_int_equal(db_put_page_touches(db, process, image, pages, 3, &diag),
			 STATUS_DATABASE);
	assert_int_equal(query(db, "SELECT pages FROM v_page_counts"), 2);
	db_close(db);
}

static void a_relink_names_its_input(void **state)
{
	struct db *db = open_ok(in(*state, "t.db"), DB_CREATE);
	int64_t image = put_image(db, "a.dll"), output;
	struct db_move moves[] = {{{0x1000}, {0x5000}, 16}, {{0x2000}, {0x1000}, 32}};
	struct db_relink relink = {
		.image = image,
		.output = hash_of("out"),
		.output_name = "a.dll",
		.output_size = 5000,
		.order = "random",
		.seed = UINT64_MAX,
		.placement = "exchange",
		.moves = moves,
		.move_count = 2,
	};
	struct diag diag = {0};

	assert_ok(db_put_relink(db, &relink, &output, &diag), &diag);
	assert_ok(db_put_relink(db, &relink, &output, &diag), &diag);
	assert_int_equal(query(db, "SELECT moves FROM v_relinks"), 2);
	assert_int_equal(query(db, "SELECT seed = '18446744073709551615' FROM relinks"), 1);
	assert_int_equal(query(db, "SELECT image FROM relinks"), image);
	assert_int_equal(query(db, "SELECT output FROM relinks"), output);
	db_close(db);
}

/* ---- merging ---- */

/* A database with a trace of its own and one that the three share, in lengths
 * 1, 2 and 3. */
static void make_part(const char *path, unsigned n)
{
	struct db *db = open_ok(path, DB_CREATE);
	struct db_touch touches[] = {{.seq = 1, .rva = {0x10}},
				     {.seq = 2, .rva = {0x20}},
				     {.seq = 3, .rva = {0x30}}};
	struct db_touch own = {.seq = 1, .rva = {0x1000 * n}};
	struct db_image bare = {.hash = hash_of("a.dll"), .name = "a.dll"};
	struct db_page_touch page = {.seq = 1, .page = {0x1000}};
	struct diag diag = {0};
	int64_t image, run, shared = put_run(db, "shared", 5);

	if (n == 2)
		image = put_image(db, "a.dll");
	else
		assert_ok(db_put_image(db, &bare, NULL, 0, &image, &diag), &diag);
	put_trace(db, put_process(db, shared, 1, 1), image, NULL, touches, n);
	if (n == 1)
		assert_ok(db_finish_run(db, shared, DB_EXIT_EXITED, 3, 1, &diag), &diag);
	run = put_run(db, "own", 10 - n);
	put_trace(db, put_process(db, run, 2, n), image, NULL, &own, 1);
	assert_ok(
		db_put_page_touches(db, put_process(db, run, 2, n), image, &page, 1, &diag),
		&diag);
	db_close(db);
}

/* What a database says about itself, without ids. */
static void describe(struct db *db, char *ret_text, size_t size)
{
	static const char *const queries[] = {
		"SELECT group_concat(x, '|') FROM (SELECT r.identity || exit ||"
		" ifnull(exit_code, '') AS x FROM runs r ORDER BY 1)",
		"SELECT group_concat(x, '|') FROM (SELECT t.identity || t.records || p.pid "
		"||"
		" r.identity || u.seq || u.rva AS x FROM touches u"
		" JOIN traces t ON u.trace = t.id JOIN processes p ON t.process = p.id"
		" JOIN runs r ON p.run = r.id ORDER BY 1)",
		"SELECT group_concat(x, '|') FROM (SELECT i.sha256 || ifnull(size, '') ||"
		" ifnull((SELECT count(*) FROM functions f WHERE f.image = i.id), '') AS x"
		" FROM images i ORDER BY 1)",
		"SELECT group_concat(x, '|') FROM (SELECT run || process || page AS x"
		" FROM (SELECT r.identity AS run, p.pid AS process, g.page FROM "
		"page_touches g"
		" JOIN processes p ON g.process = p.id JOIN runs r ON p.run = r.id) ORDER "
		"BY 1)",
	};

	ret_text[0] = '\0';
	for (unsigned i = 0; i < 4; i++) {
		struct db_statement s;
		bool row;

		assert_int_equal(db_prepare(db, &s, queries[i], NULL), STATUS_OK);
		assert_int_equal(db_step(&s, &row, NULL), STATUS_OK);
		assert_true(row);
		assert_non_null(db_column_text(&s, 0));
		strncat(ret_text, db_column_text(&s, 0), size - strlen(ret_text) - 2);
		strcat(ret_text, "\n");
		db_finalize(&s);
	}
}

static void merging_is_free_of_order_and_repetition(void **state)
{
	static const char orders[][8] = {"123", "321", "213", "1223331"};
	const char *part[4] = {NULL, in(*state, "1.db"), in(*state, "2.db"),
			       in(*state, "3.db")};
	char first[8192] = "", text[8192];
	struct db_merged merged;
	struct diag diag = {0};

	for (unsigned n = 1; n <= 3; n++)
		make_part(part[n], n);
	for (unsigned i = 0; i < 4; i++) {
		char name[16];
		struct db *db;

		snprintf(name, sizeof(name), "out%u.db", i);
		db = open_ok(in(*state, name), DB_CREATE);
		for (const char *p = orders[i]; *p; p++)
			assert_ok(db_merge(db, part[*p - '0'], &merged, &diag), &diag);
		assert_ok(db_merge(db, part[2], &merged, &diag), &diag);
		assert_int_equal(
			merged.runs + merged.traces + merged.touches + merged.images, 0);
		assert_int_equal(query(db, "SELECT count(*) FROM runs"), 4);
		assert_int_equal(query(db, "SELECT count(*) FROM touches"), 6);
		assert_int_equal(query(db, "SELECT count(*) FROM functions"), 3);
		assert_int_equal(query(db, "SELECT exit_code FROM runs WHERE scenario ="
					   " 'shared'"),
				 3);
		describe(db, text, sizeof(text));
		if (i == 0)
			strcpy(first, text);
		assert_string_equal(text, first);
		db_close(db);
	}
}

static void a_merge_of_parts_merged_before_is_the_same(void **state)
{
	const char *part[4] = {NULL, in(*state, "1.db"), in(*state, "2.db"),
			       in(*state, "3.db")};
	const char *left = in(*state, "12.db"), *right = in(*state, "23.db");
	char a[8192], b[8192];
	struct db_merged merged;
	struct db *db;

	for (unsigned n = 1; n <= 3; n++)
		make_part(part[n], n);
	db = open_ok(right, DB_CREATE);
	assert_int_equal(db_merge(db, part[2], &merged, NULL), STATUS_OK);
	assert_int_equal(db_merge(db, part[3], &merged, NULL), STATUS_OK);
	db_close(db);
	db = open_ok(left, DB_CREATE);
	assert_int_equal(db_merge(db, part[1], &merged, NULL), STATUS_OK);
	assert_int_equal(merged.traces, 2);
	assert_int_equal(merged.touches, 2);
	assert_int_equal(db_merge(db, right, &merged, NULL), STATUS_OK);
	describe(db, a, sizeof(a));
	db_close(db);
	db = open_ok(part[1], DB_READWRITE);
	assert_int_equal(db_merge(db, part[2], &merged, NULL), STATUS_OK);
	assert_int_equal(db_merge(db, part[3], &merged, NULL), STATUS_OK);
	describe(db, b, sizeof(b));
	assert_string_equal(a, b);
	db_close(db);
}

static void a_bad_source_adds_nothing(void **state)
{
	const char *good = in(*state, "1.db"), *bad = in(*state, "bad.db");
	struct db *db;
	struct db_merged merged;
	struct diag diag = {0};

	make_part(good, 1);
	make_part(bad, 2);
	db = open_ok(bad, DB_READWRITE);
	execute(db, "ALTER TABLE touches RENAME COLUMN rva TO odd");
	db_close(db);
	db = open_ok(good, DB_READWRITE);
	assert_int_equal(db_merge(db, in(*state, "none.db"), &merged, &diag),
			 STATUS_NOT_FOUND);
	assert_int_equal(db_merge(db, bad, &merged, &diag), STATUS_BAD_DATABASE);
	assert_int_equal(query(db, "SELECT count(*) FROM runs"), 2);
	assert_int_equal(query(db, "SELECT count(*) FROM touches"), 2);
	db_close(db);
}

static int merge_read_only(const char *path)
{
	char out[64] = "/tmp/test_db_out.XXXXXX";
	struct db *db = NULL;
	struct db_merged merged = {0};
	struct diag diag = {0};
	int fd = mkstemp(out), result = 0;

	if (fd < 0)
		return 1;
	close(fd);
	if (db_open(out, DB_CREATE, &db, &diag) != STATUS_OK)
		result = 2;
	else if (db_merge(db, path, &merged, &diag) != STATUS_OK)
		result = 3;
	else if (merged.traces != 2)
		result = 4;
	db_close(db);
	unlink(out);
	return result;
}

static void a_source_in_a_read_only_folder_merges(void **state)
{
	struct folder *folder = *state;
	const char *path = in(folder, "1.db");

	make_part(path, 1);
	chmod(path, 0444);
	chmod(folder->path, 0555);
	assert_int_equal(as_stranger(merge_read_only, path), 0);
	chmod(folder->path, 0755);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_database_is_labelled_and_opens_again),
		TEST(an_empty_file_becomes_a_database_only_when_created),
		TEST(what_is_no_trace_database_is_refused),
		TEST(a_label_on_another_schema_is_a_bad_database),
		TEST(damaged_pages_are_told),
		TEST(a_read_only_folder_can_be_read),
		TEST(a_lock_is_waited_for_and_then_told),
		TEST(two_collectors_write_at_once),
		TEST(a_killed_writer_leaves_whole_traces_only),
		TEST(a_failed_write_leaves_nothing),
		TEST(an_image_comes_back_sorted_and_once),
		TEST(functions_can_be_written_again),
		TEST(a_run_is_found_again_and_finished),
		TEST(the_longer_version_of_a_trace_stays),
		TEST(a_profile_orders_touches_over_processes),
		TEST(runs_of_a_scenario_share_its_weight),
		TEST(pages_replace_those_of_the_same_process),
		TEST(a_relink_names_its_input),
		TEST(merging_is_free_of_order_and_repetition),
		TEST(a_merge_of_parts_merged_before_is_the_same),
		TEST(a_bad_source_adds_nothing),
		TEST(a_source_in_a_read_only_folder_merges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
