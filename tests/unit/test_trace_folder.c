/* Runs as they are described, and the notes about them in trace folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../profile/run_options.h"
#include "../../profile/trace_folder.h"
#include "base/file.h"

static char folder_path[] = "/tmp/test_trace_folder.XXXXXX";
static char database[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder_path + strlen(folder_path) - 6, "XXXXXX");
	if (!mkdtemp(folder_path))
		return -1;
	stpcpy(stpcpy(database, folder_path), "/t.db");
	return 0;
}

static int remove_folder(void **state)
{
	char command[96];

	(void)state;
	stpcpy(stpcpy(command, "rm -rf "), folder_path);
	return system(command);
}

/* The description of a run with one word of command. */
static struct run_description describe(char *word, const char *weight)
{
	struct run_options options = {
		.database = database, .scenario = "a \"b\"", .weight = weight};
	char *command[] = {word, NULL};
	struct run_description d;
	struct diag diag = {0};

	if (run_describe(&options, DB_RUN_TRACE, command, &d, &diag) != STATUS_OK)
		fail_msg("%s", diag.message);
	return d;
}

/* The shell itself says what the text of a command means. */
static void a_command_is_shown_as_a_shell_takes_it(void **state)
{
	static char *const words[] = {
		"plain", "two words",    "",  "it's", "$HOME `id` \\ \"*",
		"a\nb",  "-x=1,2:/y%+@", "'", "~"};

	(void)state;
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct run_description d = describe(words[i], NULL);
		char *line, answer[64] = "";
		FILE *shell;

		assert_true(asprintf(&line, "printf %%s %s", d.command) > 0);
		shell = popen(line, "r");
		assert_non_null(shell);
		answer[fread(answer, 1, sizeof(answer) - 1, shell)] = '\0';
		assert_int_equal(pclose(shell), 0);
		assert_string_equal(answer, words[i]);
		free(line);
		run_description_release(&d);
	}
}

static void weights_are_checked(void **state)
{
	static const char *const bad[] = {"0",   "-1",    "",     "x",  "1x", "inf",
					  "nan", "1e999", "0x10", " 1", "1 "};
	struct run_description d = describe("x", "2.5e1");

	(void)state;
	assert_true(d.run.weight == 25);
	run_description_release(&d);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct run_options options = {.database = "t.db", .weight = bad[i]};
		double weight = 77;

		assert_int_equal(run_options_check(&options, &weight, NULL), STATUS_USAGE);
		assert_true(weight == 77);
	}
}

static void two_runs_of_a_command_differ(void **state)
{
	struct run_description a = describe("x", NULL), b;
	struct timespec wait = {.tv_nsec = 1000};

	(void)state;
	nanosleep(&wait, NULL);
	b = describe("x", NULL);
	assert_string_not_equal(a.identity, b.identity);
	run_description_release(&a);
	run_description_release(&b);
}

static void a_note_says_what_run_it_is(void **state)
{
	struct run_description d = describe("it's", "3");
	struct trace_folder folder;
	struct run_note note;
	struct path_list list = {0};
	struct diag diag = {0};

	(void)state;
	assert_int_equal(trace_folder_make(database, NULL, &d.run, &folder, &diag),
			 STATUS_OK);
	assert_int_equal(strncmp(folder.value, "\\\\?\\unix\\", 9), 0);
	assert_null(strchr(folder.value, '/'));
	assert_true(trace_folder_is_busy(folder.path));
	assert_int_equal(run_note_read(folder.path, &note, &diag), STATUS_OK);
	assert_true(note.found);
	assert_string_equal(note.run.identity, d.identity);
	assert_string_equal(note.run.scenario, "a \"b\"");
	assert_string_equal(note.run.command, d.command);
	assert_int_equal(note.run.started_ns, d.run.started_ns);
	assert_int_equal(note.run.kind, DB_RUN_TRACE);
	assert_true(note.run.weight == 3);
	run_note_release(&note);

	assert_int_equal(trace_folder_leftovers(database, &list, &diag), STATUS_OK);
	assert_int_equal(list.len, 1);
	assert_string_equal(list.data[0], folder.path);
	close(folder.lock);
	folder.lock = -1;
	assert_false(trace_folder_is_busy(list.data[0]));
	path_list_release(&list);

	trace_folder_remove(&folder);
	assert_int_equal(access(folder.path, F_OK), -1);
	trace_folder_release(&folder);
	run_description_release(&d);
}

/* A folder that holds anything that is not ours is not removed. */
static void other_files_keep_a_folder(void **state)
{
	struct run_description d = describe("x", NULL);
	struct trace_folder folder;
	char *path;

	(void)state;
	assert_int_equal(trace_folder_make(database, NULL, &d.run, &folder, NULL),
			 STATUS_OK);
	assert_true(asprintf(&path, "%s/notes.txt", folder.path) > 0);
	assert_int_equal(file_write(path, "x", 1, false, NULL), STATUS_OK);
	trace_folder_remove(&folder);
	assert_int_equal(access(path, F_OK), 0);
	free(path);
	trace_folder_release(&folder);
	run_description_release(&d);
}

static void damaged_notes_are_refused(void **state)
{
	static const char good[] =
		"{\"appulse_run\": 1, \"identity\": \"i\", \"kind\": \"trace\","
		" \"weight\": 1, \"started_ns\": 5}";
	static const char *const bad[] = {
		"",
		"garbage",
		"[]",
		"7",
		"{}",
		"{\"appulse_run\": 2, \"identity\": \"i\", \"kind\": \"trace\","
		" \"weight\": 1, \"started_ns\": 5}",
		"{\"appulse_run\": 1, \"identity\": \"\", \"kind\": \"trace\","
		" \"weight\": 1, \"started_ns\": 5}",
		"{\"appulse_run\": 1, \"identity\": 3, \"kind\": \"trace\","
		" \"weight\": 1, \"started_ns\": 5}",
		"{\"appulse_run\": 1, \"identity\": \"i\", \"kind\": \"other\","
		" \"weight\": 1, \"started_ns\": 5}",
		"{\"appulse_run\": 1, \"identity\": \"i\", \"kind\": \"trace\","
		" \"weight\": 0, \"started_ns\": 5}",
		"{\"appulse_run\": 1, \"identity\": \"i\", \"kind\": \"trace\","
		" \"weight\": 1, \"started_ns\": \"5\"}",
	};
	char path[80];
	struct run_note note;

	(void)state;
	stpcpy(stpcpy(path, folder_path), "/" RUN_NOTE);
	assert_int_equal(run_note_read(folder_path, &note, NULL), STATUS_OK);
	assert_false(note.found);
	assert_int_equal(file_write(path, good, strlen(good), true, NULL), STATUS_OK);
	assert_int_equal(run_note_read(folder_path, &note, NULL), STATUS_OK);
	assert_true(note.found);
	assert_null(note.run.scenario);
	run_note_release(&note);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(file_write(path, bad[i], strlen(bad[i]), true, NULL),
				 STATUS_OK);
		assert_int_equal(run_note_read(folder_path, &note, NULL), STATUS_BAD_TRACE);
	}
}

static void only_trace_files_are_listed(void **state)
{
	static const char *const names[] = {"b.aptrace", "a.aptrace", ".aptrace", "c.txt",
					    "d.aptrace.tmp"};
	struct path_list list = {0};
	struct diag diag;

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[80];

		stpcpy(stpcpy(stpcpy(path, folder_path), "/"), names[i]);
		assert_int_equal(file_write(path, "", 0, false, NULL), STATUS_OK);
	}
	assert_int_equal(trace_folder_files(folder_path, &list, &diag), STATUS_OK);
	assert_int_equal(list.len, 2);
	assert_non_null(strstr(list.data[0], "/a.aptrace"));
	assert_non_null(strstr(list.data[1], "/b.aptrace"));
	path_list_release(&list);
	assert_int_equal(trace_folder_files("/nonexistent", &list, &diag), STATUS_IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_is_shown_as_a_shell_takes_it),
		TEST(weights_are_checked),
		TEST(two_runs_of_a_command_differ),
		TEST(a_note_says_what_run_it_is),
		TEST(other_files_keep_a_folder),
		TEST(damaged_notes_are_refused),
		TEST(only_trace_files_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
