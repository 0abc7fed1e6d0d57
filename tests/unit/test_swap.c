/* Files that are swapped and put back.
 *
 * The main claim is that no kill loses an original.  So a child process swaps a folder's
 * files in and out under ptrace(2), and is killed at its first system call, at its
 * second, and so on until it lives to its end: between two system calls nothing changes
 * on disk.  After each kill the original must stand in the folder, whole and as the same
 * file, and opening the folder once must make it what it was.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/swap.h"

static const char OLD[] = "the original", NEW[] = "the replacement", AGENT[] = "the agent";

/* ---- a folder to work on ---- */

struct place {
	char folder[64];   /* with app.dll and notes.txt */
	char work[64];     /* with the replacements */
	struct stat image; /* app.dll as it was */
};

static void path_in(const char *folder, const char *name, char ret_path[256])
{
	snprintf(ret_path, 256, "%s/%s", folder, name);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	path_in(folder, name, path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static bool holds(const char *folder, const char *name, const char *text)
{
	char path[256], found[64] = "";
	FILE *f;

	path_in(folder, name, path);
	f = fopen(path, "r");
	if (!f)
		return false;
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	fclose(f);
	return strcmp(found, text) == 0;
}

static bool is_original(const struct place *p, const char *name)
{
	char path[256];
	struct stat st;

	path_in(p->folder, name, path);
	return stat(path, &st) == 0 && st.st_ino == p->image.st_ino &&
	       st.st_mode == p->image.st_mode &&
	       st.st_mtim.tv_sec == p->image.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == p->image.st_mtim.tv_nsec &&
	       holds(p->folder, name, OLD);
}

static void place_make(struct place *p)
{
	const struct timespec times[2] = {{1000000000, 1}, {1000000001, 2}};
	const char *temporary = getenv("TMPDIR");
	char path[256];

	snprintf(p->folder, sizeof(p->folder), "%.40s/swapXXXXXX",
		 temporary ? temporary : "/tmp");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->work, sizeof(p->work), "%.50s.work", p->folder);
	assert_int_equal(mkdir(p->work, 0700), 0);
	write_file(p->folder, "app.dll", OLD);
	write_file(p->folder, "notes.txt", "notes");
	write_file(p->work, "new.dll", NEW);
	write_file(p->work, "agent.dll", AGENT);
	path_in(p->folder, "app.dll", path);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(stat(path, &p->image), 0);
}

static void empty(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char path[512];

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	closedir(dir);
}

static void place_remove(struct place *p)
{
	empty(p->folder);
	empty(p->work);
	assert_int_equal(rmdir(p->folder), 0);
	assert_int_equal(rmdir(p->work), 0);
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.' || (strcmp(entry->d_name, ".") != 0 &&
						     strcmp(entry->d_name, "..") != 0);
	closedir(dir);
	return count;
}

static bool is_as_before(const struct place *p)
{
	return is_original(p, "app.dll") && holds(p->folder, "notes.txt", "notes") &&
	       count_files(p->folder) == 2;
}

/* ---- events ---- */

static unsigned events[4];

static void count_event(void *with, enum swap_event event, const char *path)
{
	(void)with;
	(void)path;
	events[event]++;
}

static enum status open_place(struct swap_folder *f, const struct place *p)
{
	struct diag diag;

	diag_init(&diag);
	memset(events, 0, sizeof(events));
	return swap_folder_open(f, p->folder, SWAP_BUSY, count_event, NULL, &diag);
}

static enum status add_all(struct swap_folder *f, const struct place *p)
{
	char image[256], agent[256];
	enum status status;

	path_in(p->work, "new.dll", image);
	path_in(p->work, "agent.dll", agent);
	status = swap_folder_add(f, "app.dll", image, false, NULL);
	return status == STATUS_OK ? swap_folder_add(f, "agent.dll", agent, true, NULL)
				   : status;
}

/* Opens and swaps in. */
static void swap_place(struct swap_folder *f, const struct place *p)
{
	assert_int_equal(open_place(f, p), STATUS_OK);
	assert_int_equal(add_all(f, p), STATUS_OK);
	assert_int_equal(swap_in(f, NULL), STATUS_OK);
}

static void put_right(const struct place *p)
{
	struct swap_folder f;

	assert_int_equal(open_place(&f, p), STATUS_OK);
	swap_folder_close(&f);
}

/* ---- being killed ---- */

/* Makes linkat(2) fail, as on a file system without hard links. */
static bool forbid_links(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum child_work { SWAP_IN_AND_OUT, RESTORE_ONLY };

static void be_child(const struct place *p, enum child_work work, bool links)
{
	struct swap_folder f;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || (!links && !forbid_links()))
		_exit(77);
	raise(SIGSTOP);
	if (swap_folder_open(&f, p->folder, SWAP_BUSY, NULL, NULL, NULL) != STATUS_OK)
		_exit(1);
	if (work == SWAP_IN_AND_OUT &&
	    (add_all(&f, p) != STATUS_OK || swap_in(&f, NULL) != STATUS_OK ||
	     !holds(p->folder, "app.dll", NEW) || !holds(p->folder, "agent.dll", AGENT) ||
	     swap_out(&f, NULL) != STATUS_OK))
		_exit(1);
	_exit(0);
}

/* Runs the child and kills it at its n-th stop at a system call's begin or end; false
 * when it ended before, with exit code 0. */
static bool run_and_kill(const struct place *p, enum child_work work, bool links,
			 unsigned n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		be_child(p, work, links);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* no ptrace, no seccomp here */
	for (unsigned i = 0; WIFSTOPPED(status); i++) {
		if (i == n) {
			kill(pid, SIGKILL);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			return true;
		}
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

static void kill_everywhere(enum child_work work, bool links)
{
	unsigned swapped = 0, n = 0;
	bool killed;

	do {
		struct place p;

		place_make(&p);
		if (work == RESTORE_ONLY) {
			struct swap_folder f;

			swap_place(&f, &p);
			swap_folder_close(&f); /* as a kill would */
		}
		killed = run_and_kill(&p, work, links, n++);
		assert_true(is_original(&p, "app.dll") ||
			    is_original(&p, "app.dll" SWAP_ORIGINAL));
		/* At no moment is there half a file. */
		assert_true(is_original(&p, "app.dll") || holds(p.folder, "app.dll", NEW) ||
			    !links);
		swapped += !is_original(&p, "app.dll");
		put_right(&p);
		assert_true(is_as_before(&p));
		place_remove(&p);
	} while (killed);
	/* The test has seen what it is about. */
	assert_true(swapped > 5);
	assert_true(n - swapped > 5);
}

static void no_kill_loses_an_original(void **state)
{
	(void)state;
	kill_everywhere(SWAP_IN_AND_OUT, true);
}

static void nor_where_there_are_no_links(void **state)
{
	(void)state;
	kill_everywhere(SWAP_IN_AND_OUT, false);
}

static void nor_one_while_it_is_put_back(void **state)
{
	(void)state;
	kill_everywhere(RESTORE_ONLY, true);
}

/* ---- living on ---- */

static void a_swap_can_be_seen_and_is_undone(void **state)
{
	struct place p;
	struct swap_folder f;
	char path[256];
	struct stat st;

	(void)state;
	place_make(&p);
	swap_place(&f, &p);
	assert_true(holds(p.folder, "app.dll", NEW));
	assert_true(holds(p.folder, "agent.dll", AGENT));
	assert_true(is_original(&p, "app.dll" SWAP_ORIGINAL));
	path_in(p.folder, "app.dll", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, p.image.st_mode);

	assert_int_equal(swap_out(&f, NULL), STATUS_OK);
	assert_true(is_as_before(&p));
	/* And again, with the same folder. */
	assert_int_equal(add_all(&f, &p), STATUS_OK);
	assert_int_equal(swap_in(&f, NULL), STATUS_OK);
	assert_true(holds(p.folder, "app.dll", NEW));
	assert_int_equal(swap_out(&f, NULL), STATUS_OK);
	assert_true(is_as_before(&p));
	assert_int_equal(events[SWAP_RESTORED] + events[SWAP_CHANGED], 0);
	swap_folder_close(&f);
	place_remove(&p);
}

static void a_leftover_is_told(void **state)
{
	struct place p;
	struct swap_folder f;

	(void)state;
	place_make(&p);
	swap_place(&f, &p);
	swap_folder_close(&f);
	put_right(&p);
	assert_int_equal(events[SWAP_RESTORED], 1);
	assert_true(is_as_before(&p));
	put_right(&p);
	assert_int_equal(events[SWAP_RESTORED], 0);
	place_remove(&p);
}

/* Somebody tidied up: what stands there is not the original. */
static void a_lost_original_is_an_error(void **state)
{
	struct place p;
	struct swap_folder f;
	struct diag diag;
	char path[256];

	(void)state;
	place_make(&p);
	swap_place(&f, &p);
	path_in(p.folder, "app.dll" SWAP_ORIGINAL, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(swap_out(&f, &diag), STATUS_IO);
	assert_non_null(strstr(diag.message, "app.dll" SWAP_ORIGINAL));
	assert_true(holds(p.folder, "app.dll", NEW));
	/* And nothing more is in the way. */
	path_in(p.folder, SWAP_JOURNAL, path);
	assert_int_equal(access(path, F_OK), -1);
	swap_folder_close(&f);
	place_remove(&p);
}

static void a_new_build_is_not_overwritten(void **state)
{
	struct place p;
	struct swap_folder f;

	(void)state;
	place_make(&p);
	swap_place(&f, &p);
	write_file(p.folder, "app.dll", "a new build");
	write_file(p.folder, "agent.dll", "another agent");
	assert_int_equal(swap_out(&f, NULL), STATUS_OK);
	assert_int_equal(events[SWAP_CHANGED], 1);
	assert_true(holds(p.folder, "app.dll", "a new build"));
	assert_true(holds(p.folder, "agent.dll", "another agent"));
	assert_true(is_original(&p, "app.dll" SWAP_ORIGINAL));
	swap_folder_close(&f);

	/* Nobody comes back later to do it after all, or loses what was kept. */
	put_right(&p);
	assert_true(holds(p.folder, "app.dll", "a new build"));
	assert_int_equal(open_place(&f, &p), STATUS_OK);
	assert_int_equal(add_all(&f, &p), STATUS_OK);
	assert_int_equal(swap_in(&f, NULL), STATUS_EXISTS);
	assert_true(holds(p.folder, "app.dll", "a new build"));
	assert_true(is_original(&p, "app.dll" SWAP_ORIGINAL));
	swap_folder_close(&f);
	place_remove(&p);
}

static void what_is_in_the_way_stays(void **state)
{
	static const char *const names[] = {"app.dll" SWAP_ORIGINAL, "app.dll" SWAP_NEW,
					    "agent.dll", "agent.dll" SWAP_NEW};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct place p;
		struct swap_folder f;

		place_make(&p);
		write_file(p.folder, names[i], "somebody's");
		assert_int_equal(open_place(&f, &p), STATUS_OK);
		assert_int_equal(add_all(&f, &p), STATUS_OK);
		assert_int_equal(swap_in(&f, NULL), STATUS_EXISTS);
		swap_folder_close(&f);
		put_right(&p);
		assert_true(holds(p.folder, names[i], "somebody's"));
		assert_true(is_original(&p, "app.dll"));
		assert_int_equal(count_files(p.folder), 3);
		place_remove(&p);
	}
}

static void a_failure_midway_is_undone(void **state)
{
	struct place p;
	struct swap_folder f;
	char path[256];
	struct diag diag;

	(void)state;
	diag_init(&diag);
	place_make(&p);
	assert_int_equal(open_place(&f, &p), STATUS_OK);
	assert_int_equal(add_all(&f, &p), STATUS_OK);
	path_in(p.work, "agent.dll", path);
	unlink(path);
	assert_int_equal(swap_in(&f, &diag), STATUS_IO);
	assert_non_null(strstr(diag.message, "agent.dll"));
	assert_true(is_as_before(&p));
	swap_folder_close(&f);
	place_remove(&p);
}

static void a_folder_in_use_is_left_alone(void **state)
{
	struct place p;
	struct swap_folder f, second;

	(void)state;
	place_make(&p);
	swap_place(&f, &p);
	assert_int_equal(open_place(&second, &p), STATUS_IO);
	swap_folder_close(&second);
	assert_true(holds(p.folder, "app.dll", NEW));
	assert_int_equal(swap_out(&f, NULL), STATUS_OK);
	swap_folder_close(&f);
	place_remove(&p);
}

static void a_missing_or_odd_image_is_no_swap(void **state)
{
	struct place p;
	struct swap_folder f;
	char path[256], longest[300] = "";

	(void)state;
	place_make(&p);
	path_in(p.work, "new.dll", path);
	assert_int_equal(open_place(&f, &p), STATUS_OK);
	assert_int_equal(swap_folder_add(&f, "other.dll", path, false, NULL), STATUS_OK);
	assert_int_equal(swap_in(&f, NULL), STATUS_IO);
	assert_int_equal(swap_folder_add(&f, ".", path, false, NULL), STATUS_USAGE);
	assert_int_equal(swap_folder_add(&f, "a/b", path, false, NULL), STATUS_USAGE);
	/* There is no name for its original. */
	memset(longest, 'x', sizeof(longest) - 1);
	longest[255 - strlen(SWAP_ORIGINAL) + 1] = '\0';
	assert_int_equal(swap_folder_add(&f, longest, path, false, NULL), STATUS_USAGE);
	longest[255 - strlen(SWAP_ORIGINAL)] = '\0';
	assert_int_equal(swap_folder_add(&f, longest, path, false, NULL), STATUS_OK);
	assert_int_equal(swap_folder_add(&f, "app.dll", "/none/there", false, NULL),
			 STATUS_IO);
	swap_folder_close(&f);
	assert_true(is_as_before(&p));
	place_remove(&p);
}

/* ---- the journal ---- */

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static enum status parse(const char *text, struct swap_entries *ret_entries)
{
	return swap_journal_parse(text, strlen(text), ret_entries, NULL);
}

static void a_journal_is_what_the_header_says(void **state)
{
	static const char text[] = "appulse-swap 1\nswapped " HASH " app v1.dll\n"
				   "added " HASH " \303\244\377.dll\nend\n";
	struct swap_entries entries;
	char *again;

	(void)state;
	assert_int_equal(parse(text, &entries), STATUS_OK);
	assert_int_equal(entries.len, 2);
	assert_string_equal(entries.data[0].name, "app v1.dll");
	assert_false(entries.data[0].added);
	assert_int_equal(entries.data[0].hash.bytes[1], 0x11);
	assert_string_equal(entries.data[1].name, "\303\244\377.dll");
	assert_true(entries.data[1].added);
	again = swap_journal_text(&entries);
	assert_string_equal(again, text);
	free(again);
	swap_entries_release(&entries);
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"end\n",
		"appulse-swap 1\n",
		"appulse-swap 2\nend\n",
		"appulse-swap 1\nend",
		"appulse-swap 1\nend\nend\n",
		"appulse-swap 1\nadded " HASH "\nend\n",
		"appulse-swap 1\nadded " HASH " \nend\n",
		"appulse-swap 1\nadded " HASH " ../app.dll\nend\n",
		"appulse-swap 1\nadded " HASH " ..\nend\n",
		"appulse-swap 1\nswapped " HASH " /etc/passwd\nend\n",
		"appulse-swap 1\nswapped 0011 app.dll\nend\n",
		"appulse-swap 1\nmoved " HASH " app.dll\nend\n",
		"appulse-swap 1\nappulse-swap 1\nend\n",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct swap_entries entries;

		assert_int_equal(parse(texts[i], &entries), STATUS_MALFORMED);
		swap_entries_release(&entries);
	}
}

static void nothing_is_done_by_a_bad_journal(void **state)
{
	struct place p;
	struct swap_folder f;

	(void)state;
	place_make(&p);
	write_file(p.folder, SWAP_JOURNAL, "appulse-swap 1\nadded " HASH);
	assert_int_equal(open_place(&f, &p), STATUS_MALFORMED);
	swap_folder_close(&f);
	assert_true(is_original(&p, "app.dll"));
	assert_int_equal(count_files(p.folder), 3);
	place_remove(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_kill_loses_an_original),
		cmocka_unit_test(nor_where_there_are_no_links),
		cmocka_unit_test(nor_one_while_it_is_put_back),
		cmocka_unit_test(a_swap_can_be_seen_and_is_undone),
		cmocka_unit_test(a_leftover_is_told),
		cmocka_unit_test(a_lost_original_is_an_error),
		cmocka_unit_test(a_new_build_is_not_overwritten),
		cmocka_unit_test(what_is_in_the_way_stays),
		cmocka_unit_test(a_failure_midway_is_undone),
		cmocka_unit_test(a_folder_in_use_is_left_alone),
		cmocka_unit_test(a_missing_or_odd_image_is_no_swap),
		cmocka_unit_test(a_journal_is_what_the_header_says),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(nothing_is_done_by_a_bad_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
