#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Each test has an empty folder of its own as the current one. */
static int enter_folder(void **state)
{
	char name[] = "/tmp/appulse-test-XXXXXX";

	if (!mkdtemp(name) || chdir(name) != 0)
		return -1;
	*state = strdup(name);
	return *state ? 0 : -1;
}

static int leave_folder(void **state)
{
	DIR *folder = opendir(".");
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (unlink(entry->d_name) != 0)
			rmdir(entry->d_name);
	closedir(folder);
	if (chdir("/") != 0 || rmdir(*state) != 0)
		return -1;
	free(*state);
	return 0;
}

static unsigned count_entries(void)
{
	DIR *folder = opendir(".");
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)))
		n += entry->d_name[0] != '.';
	closedir(folder);
	return n;
}

static void make_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_content(const char *path, const char *text)
{
	char buffer[256];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(buffer, 1, sizeof(buffer) - 1, f);
	fclose(f);
	buffer[n] = '\0';
	assert_string_equal(buffer, text);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void maps_whole_files(void **state)
{
	struct mapped_file file;
	struct diag diag;

	(void)state;
	make_file("f", "hello");
	assert_int_equal(mapped_file_open(&file, "f", &diag), STATUS_OK);
	assert_int_equal(file.size, 5);
	assert_memory_equal(file.data, "hello", 5);
	mapped_file_close(&file);
	assert_null(file.data);
	mapped_file_close(&file);
}

static void an_empty_file_is_no_failure(void **state)
{
	struct mapped_file file;
	struct diag diag;

	(void)state;
	make_file("f", "");
	assert_int_equal(mapped_file_open(&file, "f", &diag), STATUS_OK);
	assert_null(file.data);
	assert_int_equal(file.size, 0);
	mapped_file_close(&file);
}

static void names_what_it_cannot_map(void **state)
{
	struct mapped_file file;
	struct diag diag;

	(void)state;
	assert_int_equal(mapped_file_open(&file, "none", &diag), STATUS_IO);
	assert_string_equal(diag.message, "cannot open 'none': No such file or directory");
	assert_int_equal(mapped_file_open(&file, ".", &diag), STATUS_IO);
	assert_string_equal(diag.message, "'.' is not a regular file");
	/* A pipe without a writer would block for ever. */
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(mapped_file_open(&file, "pipe", &diag), STATUS_IO);
	assert_string_equal(diag.message, "'pipe' is not a regular file");
	assert_null(file.data);
}

static void a_new_file_appears_whole_at_commit(void **state)
{
	struct output_file out;
	struct diag diag;
	mode_t mask = umask(027);

	(void)state;
	assert_int_equal(output_file_open(&out, "f", false, &diag), STATUS_OK);
	assert_int_equal(output_file_write(&out, "hel", 3, &diag), STATUS_OK);
	assert_int_equal(output_file_write(&out, "lo", 2, &diag), STATUS_OK);
	assert_int_equal(access("f", F_OK), -1);
	assert_int_equal(output_file_commit(&out, 0, &diag), STATUS_OK);
	assert_content("f", "hello");
	assert_int_equal(mode_of("f"), 0640);
	assert_int_equal(count_entries(), 1);
	output_file_discard(&out); /* safe after a commit */
	assert_content("f", "hello");
	umask(mask);
}

static void the_mode_can_be_chosen(void **state)
{
	struct output_file out;
	struct diag diag;

	(void)state;
	assert_int_equal(output_file_open(&out, "f", false, &diag), STATUS_OK);
	assert_int_equal(output_file_commit(&out, 0751, &diag), STATUS_OK);
	assert_int_equal(mode_of("f"), 0751);
}

static void an_existing_target_needs_force(void **state)
{
	struct diag diag;

	(void)state;
	make_file("f", "old");
	assert_int_equal(file_write("f", "new", 3, false, &diag), STATUS_EXISTS);
	assert_string_equal(diag.message, "output 'f' exists, use --force to replace it");
	assert_content("f", "old");
	assert_int_equal(count_entries(), 1);
	assert_int_equal(file_write("f", "new", 3, true, &diag), STATUS_OK);
	assert_content("f", "new");
	assert_int_equal(count_entries(), 1);
}

/* A device or a pipe would be gone. */
static void what_is_no_file_is_not_replaced(void **state)
{
	struct diag diag;
	struct stat st;

	(void)state;
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(file_write("pipe", "new", 3, true, &diag), STATUS_IO);
	assert_string_equal(diag.message, "cannot replace 'pipe': it is no regular file");
	assert_int_equal(stat("pipe", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(count_entries(), 1);
}

/* Whoever made it in the meantime keeps it. */
static void a_target_that_appears_meanwhile_is_kept(void **state)
{
	struct output_file out;
	struct diag diag;

	(void)state;
	assert_int_equal(output_file_open(&out, "f", false, &diag), STATUS_OK);
	assert_int_equal(output_file_write(&out, "new", 3, &diag), STATUS_OK);
	make_file("f", "other");
	assert_int_equal(output_file_commit(&out, 0, &diag), STATUS_EXISTS);
	assert_content("f", "other");
	assert_int_equal(count_entries(), 1);
}

static void a_discarded_output_leaves_no_trace(void **state)
{
	struct output_file out;
	struct diag diag;

	(void)state;
	make_file("f", "old");
	assert_int_equal(output_file_open(&out, "f", true, &diag), STATUS_OK);
	assert_int_equal(output_file_write(&out, "new", 3, &diag), STATUS_OK);
	output_file_discard(&out);
	output_file_discard(&out);
	assert_content("f", "old");
	assert_int_equal(count_entries(), 1);
}

/* A limit on file sizes stands for the full disk. */
static void a_full_disk_leaves_the_target(void **state)
{
	static char big[65536];
	struct rlimit old, limit;
	struct diag diag;

	(void)state;
	make_file("f", "old");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(file_write("f", big, sizeof(big), true, &diag), STATUS_IO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_string_equal(diag.message, "cannot write 'f': File too large");
	assert_content("f", "old");
	assert_int_equal(count_entries(), 1);
}

static void a_missing_folder_is_named(void **state)
{
	struct diag diag;

	(void)state;
	assert_int_equal(file_write("no/f", "x", 1, false, &diag), STATUS_IO);
	assert_string_equal(diag.message, "cannot write 'no/f': No such file or directory");
}

static void a_folder_is_not_replaced(void **state)
{
	struct diag diag;

	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(file_write("d", "x", 1, true, &diag), STATUS_IO);
	assert_string_equal(diag.message, "cannot write 'd': Is a directory");
	assert_int_equal(count_entries(), 1);
}

/* Root may write everywhere, so it becomes nobody for the attempt. */
static void a_read_only_folder_is_a_failure(void **state)
{
	bool root = geteuid() == 0;
	struct diag diag;
	enum status status;

	(void)state;
	assert_int_equal(chmod(".", 0555), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	status = file_write("f", "x", 1, false, &diag);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(status, STATUS_IO);
	assert_string_equal(diag.message, "cannot write 'f': Permission denied");
	assert_int_equal(count_entries(), 0);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

static void paths_that_lead_to_one_place(void **state)
{
	static const char *const here[] = {"f", "./f", "d/../f", "link", "hard"};

	(void)state;
	assert_int_equal(file_write("f", "x", 1, false, NULL), STATUS_OK);
	assert_int_equal(file_write("g", "x", 1, false, NULL), STATUS_OK);
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(symlink("f", "link"), 0);
	assert_int_equal(link("f", "hard"), 0);
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
		assert_true(paths_meet("f", here[i]));
		assert_false(paths_meet("g", here[i]));
		assert_false(paths_meet(here[i], "d/f"));
	}
	/* Files that are not there yet. */
	assert_true(paths_meet("new", "./new"));
	assert_true(paths_meet("d/new", "./d/../d/new"));
	assert_false(paths_meet("new", "d/new"));
	assert_false(paths_meet("new", "newer"));
	assert_true(paths_meet("nowhere/new", "nowhere/new"));
	assert_false(paths_meet("nowhere/new", "nowhere/./new"));
	assert_false(paths_meet("f", NULL));
	assert_false(paths_meet(NULL, NULL));
}

/* What was forgotten is read again, whatever part of the file it is. */
static void forgotten_pages_come_back(void **state)
{
	enum { SIZE = 5 * 4096 + 100 };
	const char *path = "forgotten.bin";
	static uint8_t bytes[SIZE];
	struct mapped_file file;

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(file_write(path, bytes, SIZE, true, NULL), STATUS_OK);
	assert_int_equal(mapped_file_open(&file, path, NULL), STATUS_OK);
	for (size_t begin = 0; begin < SIZE + 4096; begin += 1000)
		for (size_t size = 0; size < SIZE + 4096; size += 3000) {
			mapped_file_forget(&file, begin, size);
			assert_memory_equal(file.data, bytes, SIZE);
		}
	mapped_file_forget(&file, 0, SIZE_MAX);
	assert_memory_equal(file.data, bytes, SIZE);
	mapped_file_close(&file);
	mapped_file_forget(&file, 0, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_folder(maps_whole_files),
		in_folder(forgotten_pages_come_back),
		in_folder(an_empty_file_is_no_failure),
		in_folder(names_what_it_cannot_map),
		in_folder(a_new_file_appears_whole_at_commit),
		in_folder(the_mode_can_be_chosen),
		in_folder(an_existing_target_needs_force),
		in_folder(what_is_no_file_is_not_replaced),
		in_folder(a_target_that_appears_meanwhile_is_kept),
		in_folder(a_discarded_output_leaves_no_trace),
		in_folder(a_full_disk_leaves_the_target),
		in_folder(a_missing_folder_is_named),
		in_folder(a_folder_is_not_replaced),
		in_folder(a_read_only_folder_is_a_failure),
		in_folder(paths_that_lead_to_one_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
