/* What the database keeps of functions to find them again in another build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/db_identities.h"
#include "trace/db_statement.h"

enum { FUNCTIONS = 3 };

static struct function_identity list[FUNCTIONS] = {
	{.rva = {0x1000}, .size = 16, .content = 0xfedcba9876543210, .callee_count = 2},
	{.rva = {0x1010}, .size = 16, .content = 1, .first_callee = 2},
	{.rva = {0x1020}, .size = 16, .content = 2, .first_callee = 2, .callee_count = 1},
};
static struct rva callees[] = {{0x1020}, {0xfffffff0}, {0x1000}};
static const struct function_identities identities = {list, FUNCTIONS, callees, 3};

static struct db *open_new(char path[64])
{
	struct db *db = NULL;

	strcpy(path, "/tmp/test_identities.XXXXXX");
	close(mkstemp(path));
	assert_int_equal(db_open(path, DB_CREATE, &db, NULL), STATUS_OK);
	return db;
}

static void close_and_remove(struct db *db, const char *path)
{
	db_close(db);
	unlink(path);
}

static int64_t put_image(struct db *db, const char *content, const char *name)
{
	const struct db_image image = {.hash = sha256_of(content, strlen(content)),
				       .name = name};
	struct db_function functions[FUNCTIONS];
	int64_t id;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct db_function){.rva = list[i].rva, .size = list[i].size,
						    .name = i ? NULL : "first", .probe = -1};
	assert_int_equal(db_put_image(db, &image, functions, FUNCTIONS, &id, NULL), STATUS_OK);
	return id;
}

static void put_run(struct db *db, int64_t image, int64_t started_ns)
{
	const struct db_run run = {.weight = 1, .started_ns = started_ns};
	const struct db_touch touch = {.seq = 1, .rva = {0x1000}};
	struct db_process process = {.pid = 1, .started_ns = started_ns};
	struct db_trace trace = {.image = image, .touches = &touch, .count = 1};
	enum db_trace_fate fate;

	assert_int_equal(db_begin_run(db, &run, &process.run, NULL), STATUS_OK);
	assert_int_equal(db_put_process(db, &process, &trace.process, NULL), STATUS_OK);
	assert_int_equal(db_put_trace(db, &trace, &fate, NULL), STATUS_OK);
}

static void assert_kept(struct db *db, int64_t image)
{
	struct db_identities loaded;

	assert_int_equal(db_load_identities(db, image, &loaded, NULL), STATUS_OK);
	assert_int_equal(loaded.functions.count, FUNCTIONS);
	assert_int_equal(loaded.functions.callee_count, 3);
	assert_string_equal(loaded.functions.list[0].name, "first");
	assert_null(loaded.functions.list[1].name);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const struct function_identity *found = &loaded.functions.list[i];

		assert_int_equal(found->rva.v, list[i].rva.v);
		assert_int_equal(found->size, list[i].size);
		assert_true(found->content == list[i].content);
		assert_int_equal(found->callee_count, list[i].callee_count);
		for (uint32_t c = 0; c < found->callee_count; c++)
			assert_int_equal(loaded.functions.callees[found->first_callee + c].v,
					 callees[list[i].first_callee + c].v);
	}
	db_identities_release(&loaded);
}

static void what_is_put_comes_back(void **state)
{
	char path[64];
	struct db *db = open_new(path);
	int64_t image = put_image(db, "a", "a.dll");

	(void)state;
	assert_int_equal(db_put_identities(db, image, &identities, NULL), STATUS_OK);
	assert_kept(db, image);
	assert_int_equal(db_put_identities(db, image, &identities, NULL), STATUS_OK);
	assert_kept(db, image);
	close_and_remove(db, path);
}

static void a_merge_takes_them_along(void **state)
{
	char from_path[64], to_path[64];
	struct db *from = open_new(from_path), *to = open_new(to_path);
	struct db_merged merged;
	int64_t image;

	(void)state;
	put_image(to, "before", "b.dll");
	image = put_image(from, "a", "a.dll");
	assert_int_equal(db_put_identities(from, image, &identities, NULL), STATUS_OK);
	/* Known without them, as from an older version. */
	image = put_image(to, "a", "a.dll");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(db_merge(to, from_path, &merged, NULL), STATUS_OK);
		assert_kept(to, image);
	}
	close_and_remove(from, from_path);
	close_and_remove(to, to_path);
}

static void damaged_callees_are_told(void **state)
{
	char path[64];
	struct db *db = open_new(path);
	int64_t image = put_image(db, "a", "a.dll");
	struct db_identities loaded;

	(void)state;
	assert_int_equal(db_put_identities(db, image, &identities, NULL), STATUS_OK);
	assert_int_equal(db_execute_text(db, "PRAGMA ignore_check_constraints = ON;"
					     "UPDATE identities SET callees = x'010203'",
					 NULL),
			 STATUS_OK);
	assert_int_equal(db_load_identities(db, image, &loaded, NULL), STATUS_BAD_DATABASE);
	assert_int_equal(db_execute_text(db, "UPDATE identities SET callees = 'text'", NULL),
			 STATUS_OK);
	assert_int_equal(db_load_identities(db, image, &loaded, NULL), STATUS_BAD_DATABASE);
	close_and_remove(db, path);
}

static void assert_build(struct db *db, const char *build, int64_t expected)
{
	struct sha256 hash;
	bool found;
	int64_t id = 0;

	assert_int_equal(db_find_build(db, build, &hash, &found, &id, NULL), STATUS_OK);
	assert_int_equal(found, expected != 0);
	assert_int_equal(id, expected);
}

static void builds_are_found_by_name_and_hash(void **state)
{
	char path[64], hex[SHA256_HEX_SIZE];
	struct db *db = open_new(path);
	const struct sha256 hash = sha256_of("old", 3);
	int64_t old = put_image(db, "old", "App.dll"), new = put_image(db, "new", "app.dll");
	int64_t id;
	bool found;

	(void)state;
	assert_build(db, "app.dll", 0); /* no run */
	put_run(db, new, 20);
	put_run(db, old, 10);
	assert_build(db, "APP.DLL", new); /* the one that was recorded last */
	assert_build(db, "other.dll", 0);
	assert_build(db, "app", 0);
	sha256_hex(&hash, hex);
	hex[8] = '\0';
	assert_build(db, hex, old);
	hex[7] = '\0'; /* too short to mean one */
	assert_build(db, hex, 0);
	assert_int_equal(db_find_recorded(db, &hash, &found, &id, NULL), STATUS_OK);
	assert_true(found && id == old);
	close_and_remove(db, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_comes_back),
		cmocka_unit_test(a_merge_takes_them_along),
		cmocka_unit_test(damaged_callees_are_told),
		cmocka_unit_test(builds_are_found_by_name_and_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
