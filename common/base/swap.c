/* Swapping files safely.
 *
 * The original is never copied and never written: it gets a second name, a hard link,
 * and then rename(2) puts the replacement over the first one.  Putting back is one
 * rename of the second name over the first.  So every step is atomic, and time stamps,
 * owner, mode and links of the original survive, which a copy would lose.  File systems
 * without hard links take a rename aside, and there is a moment then when no file has
 * the first name; the original is whole under the second one.
 *
 * Each step is on disk before the next begins (fsync of the file and of the folder):
 *
 *     write the journal      from here on a later run knows
 *     link  app.dll          app.dll.appulse-original
 *     write app.dll.appulse-new
 *     rename it to           app.dll
 *     ... the program runs ...
 *     rename app.dll.appulse-original to app.dll
 *     remove the journal
 *
 * A run that finds a journal, and can lock the folder, undoes these steps from whatever
 * state they are in; undoing twice is harmless.  Two names of one file need care:
 * rename(2) between them does nothing, so the second is unlinked.
 *
 * Somebody may build a new app.dll while the program runs, into our replacement's place.
 * It would be wrong to put an old file over that.  So the journal has the replacement's
 * hash, and a file of another content stays.
 *
 * Rejected: a backup copy in a folder of ours (another file system may be full or gone,
 * and nobody finds it); a bind mount over the file (root, and Linux only); a handler for
 * signals alone (SIGKILL and power cuts are what hurts).
 */
#include "swap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { JOURNAL_MAX = 1 << 20, JOURNAL_MODE = 0644 };

static const char JOURNAL_NEW[] = SWAP_JOURNAL SWAP_NEW;

/* ---- files in the folder ---- */

/* `name` with a suffix, on the heap; NULL when memory is out. */
static char *with_suffix(const char *name, const char *suffix)
{
	char *text;

	return asprintf(&text, "%s%s", name, suffix) < 0 ? NULL : text;
}

static enum status fail(const struct swap_folder *f, struct diag *diag, const char *what,
			const char *name)
{
	return diag_fail_errno(diag, STATUS_IO, errno, "cannot %s '%s/%s'", what, f->path,
			       name);
}

static void tell(const struct swap_folder *f, enum swap_event event, const char *name)
{
	char *path;

	if (!f->tell)
		return;
	if (!name) {
		f->tell(f->with, event, f->path);
	} else if (asprintf(&path, "%s/%s", f->path, name) >= 0) {
		f->tell(f->with, event, path);
		free(path);
	}
}

static bool exists(const struct swap_folder *f, const char *name, struct stat *ret_stat)
{
	return fstatat(f->fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* Makes a file of these bytes, on disk when it returns.  It must not exist. */
static enum status make_file(const struct swap_folder *f, const char *name,
			     const void *data, size_t size, mode_t mode, struct diag *diag)
{
	int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	bool done;

	if (fd < 0 && errno == EEXIST)
		return diag_fail(diag, STATUS_EXISTS, "'%s/%s' is in the way, move it away",
				 f->path, name);
	if (fd < 0)
		return fail(f, diag, "write", name);
	done = write_all(fd, data, size) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
	if (close(fd) == 0 && done)
		return STATUS_OK;
	fail(f, diag, "write", name);
	unlinkat(f->fd, name, 0);
	return STATUS_IO;
}

/* Removes a file that may not be there. */
static enum status remove_file(const struct swap_folder *f, const char *name,
			       struct diag *diag)
{
	if (unlinkat(f->fd, name, 0) != 0 && errno != ENOENT && errno != ENAMETOOLONG)
		return fail(f, diag, "remove", name);
	return STATUS_OK;
}

static enum status move_file(const struct swap_folder *f, const char *from, const char *to,
			     struct diag *diag)
{
	if (renameat(f->fd, from, f->fd, to) != 0)
		return fail(f, diag, "write", to);
	return STATUS_OK;
}

static enum status flush_folder(const struct swap_folder *f, struct diag *diag)
{
	/* File systems that cannot flush a folder say EINVAL. */
	if (fsync(f->fd) != 0 && errno != EINVAL && errno != EBADF)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot write '%s'",
				       f->path);
	return STATUS_OK;
}

/* ---- the journal ---- */

static enum status write_journal(const struct swap_folder *f, struct diag *diag)
{
	char *text = swap_journal_text(&f->entries);
	enum status status;

	if (!text)
		return diag_no_memory(diag);
	status = make_file(f, JOURNAL_NEW, text, strlen(text), JOURNAL_MODE, diag);
	if (status == STATUS_OK)
		status = move_file(f, JOURNAL_NEW, SWAP_JOURNAL, diag);
	if (status == STATUS_OK)
		status = flush_folder(f, diag);
	free(text);
	return status;
}

static enum status remove_journal(const struct swap_folder *f, struct diag *diag)
{
	enum status status = remove_file(f, SWAP_JOURNAL, diag);

	return status == STATUS_OK ? flush_folder(f, diag) : status;
}

/* Maps a file of the folder.  `ret_found` is false when there is none. */
static enum status map_file(const struct swap_folder *f, const char *name,
			    struct mapped_file *ret_file, bool *ret_found,
			    struct diag *diag)
{
	struct stat st;
	char *path;
	enum status status;

	*ret_found = exists(f, name, &st);
	if (!*ret_found)
		return STATUS_OK;
	if (asprintf(&path, "%s/%s", f->path, name) < 0)
		return diag_no_memory(diag);
	status = mapped_file_open(ret_file, path, diag);
	free(path);
	return status;
}

/* Reads the journal of a run that was killed; no entries when there is none. */
static enum status read_journal(struct swap_folder *f, bool *ret_found, struct diag *diag)
{
	struct mapped_file file;
	enum status status = map_file(f, SWAP_JOURNAL, &file, ret_found, diag);

	if (status != STATUS_OK || !*ret_found)
		return status;
	if (file.size > JOURNAL_MAX)
		status =
			diag_fail(diag, STATUS_MALFORMED, "not a journal of swapped files");
	else
		status = swap_journal_parse((const char *)file.data, file.size, &f->entries,
					    diag);
	mapped_file_close(&file);
	if (status == STATUS_MALFORMED) {
		char *path = NULL;

		if (asprintf(&path, "%s/%s", f->path, SWAP_JOURNAL) >= 0)
			diag_set_file(diag, path);
		free(path);
	}
	return status;
}

/* ---- putting back ---- */

/* Whether the file holds what the entry put there. */
static enum status is_ours(const struct swap_folder *f, const struct swap_entry *e,
			   bool *ret_ours, struct diag *diag)
{
	struct mapped_file file;
	struct sha256 hash;
	bool found;
	enum status status = map_file(f, e->name, &file, &found, diag);

	*ret_ours = false;
	if (status != STATUS_OK || !found)
		return status;
	hash = sha256_of(file.data, file.size);
	mapped_file_close(&file);
	*ret_ours = memcmp(&hash, &e->hash, sizeof(hash)) == 0;
	return STATUS_OK;
}

static enum status remove_added(const struct swap_folder *f, const struct swap_entry *e,
				struct diag *diag)
{
	bool ours;
	enum status status = is_ours(f, e, &ours, diag);

	if (status == STATUS_OK && ours)
		status = remove_file(f, e->name, diag);
	return status;
}

/* From any state that swap_in can be in. */
static enum status put_back(const struct swap_folder *f, const struct swap_entry *e,
			    const char *original, bool report, struct diag *diag)
{
	struct stat aside, st;
	bool ours;
	enum status status;

	if (!exists(f, original, &aside))
		return STATUS_OK;
	if (exists(f, e->name, &st)) {
		if (st.st_dev == aside.st_dev && st.st_ino == aside.st_ino)
			return remove_file(f, original, diag);
		status = is_ours(f, e, &ours, diag);
		if (status == STATUS_OK && !ours)
			tell(f, SWAP_CHANGED, e->name);
		if (status != STATUS_OK || !ours)
			return status;
	}
	status = move_file(f, original, e->name, diag);
	if (status == STATUS_OK && report)
		tell(f, SWAP_RESTORED, e->name);
	return status;
}

static enum status restore_entry(const struct swap_folder *f, const struct swap_entry *e,
				 bool report, struct diag *diag)
{
	char *original = with_suffix(e->name, SWAP_ORIGINAL);
	char *new_name = with_suffix(e->name, SWAP_NEW);
	enum status status = original && new_name ? STATUS_OK : diag_no_memory(diag);

	if (status == STATUS_OK)
		status = remove_file(f, new_name, diag);
	if (status == STATUS_OK)
		status = e->added ? remove_added(f, e, diag)
				  : put_back(f, e, original, report, diag);
	free(original);
	free(new_name);
	return status;
}

/* Every entry is tried, whatever becomes of the others. */
static enum status restore(struct swap_folder *f, bool report, struct diag *diag)
{
	enum status first = STATUS_OK;

	for (uint32_t i = 0; i < f->entries.len; i++) {
		struct diag own;
		enum status status;

		diag_init(&own);
		status = restore_entry(f, &f->entries.data[i], report, &own);
		if (first == STATUS_OK && status != STATUS_OK) {
			first = status;
			if (diag)
				*diag = own;
		}
	}
	if (first == STATUS_OK)
		first = flush_folder(f, diag);
	if (first == STATUS_OK)
		first = remove_journal(f, diag);
	return first;
}

static enum status put_right(struct swap_folder *f, struct diag *diag)
{
	bool found;
	enum status status = remove_file(f, JOURNAL_NEW, diag);

	if (status == STATUS_OK)
		status = read_journal(f, &found, diag);
	if (status == STATUS_OK && found)
		status = restore(f, true, diag);
	swap_entries_release(&f->entries);
	return status;
}

/* ---- the folder ---- */

static enum status lock(struct swap_folder *f, enum swap_wait wait, struct diag *diag)
{
	if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
		return STATUS_OK;
	if (errno != EWOULDBLOCK) {
		tell(f, SWAP_UNLOCKED, NULL);
		return STATUS_OK;
	}
	if (wait == SWAP_BUSY)
		return diag_fail(diag, STATUS_IO, "another run works in '%s'", f->path);
	tell(f, SWAP_WAITS, NULL);
	while (flock(f->fd, LOCK_EX) != 0)
		if (errno != EINTR)
			return diag_fail_errno(diag, STATUS_IO, errno, "cannot lock '%s'",
					       f->path);
	return STATUS_OK;
}

enum status swap_folder_open(struct swap_folder *folder, const char *path,
			     enum swap_wait wait, swap_tell_fn *tell_fn, void *with,
			     struct diag *diag)
{
	enum status status;

	*folder = (struct swap_folder){.fd = -1, .tell = tell_fn, .with = with};
	folder->path = strdup(path);
	if (!folder->path)
		return diag_no_memory(diag);
	folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	status = lock(folder, wait, diag);
	return status == STATUS_OK ? put_right(folder, diag) : status;
}

void swap_folder_close(struct swap_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	free(folder->path);
	swap_entries_release(&folder->entries);
	*folder = (struct swap_folder){.fd = -1};
}

enum status swap_folder_add(struct swap_folder *folder, const char *name,
			    const char *replacement, bool added, struct diag *diag)
{
	struct swap_entry e = {.added = added};
	struct mapped_file file;
	enum status status;

	if (!swap_name_is_fit(name) || strlen(name) + sizeof(SWAP_ORIGINAL) - 1 > NAME_MAX)
		return diag_fail(diag, STATUS_USAGE, "a file named '%s' cannot be swapped",
				 name);
	status = mapped_file_open(&file, replacement, diag);
	if (status != STATUS_OK)
		return status;
	e.hash = sha256_of(file.data, file.size);
	mapped_file_close(&file);
	e.name = strdup(name);
	e.replacement = strdup(replacement);
	if (e.name && e.replacement && vec_push(&folder->entries, e))
		return STATUS_OK;
	free(e.name);
	free(e.replacement);
	return diag_no_memory(diag);
}

/* ---- putting in ---- */

/* Gives the original its second name.  `ret_moved`: it has lost its first. */
static enum status put_aside(const struct swap_folder *f, const struct swap_entry *e,
			     struct diag *diag)
{
	char *original = with_suffix(e->name, SWAP_ORIGINAL);
	enum status status = STATUS_OK;

	if (!original)
		return diag_no_memory(diag);
	if (linkat(f->fd, e->name, f->fd, original, 0) != 0) {
		/* Not a file system's way, or not allowed for this file. */
		bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS ||
				errno == EMLINK;

		status = no_links ? move_file(f, e->name, original, diag)
				  : fail(f, diag, "put aside", e->name);
	}
	if (status == STATUS_OK)
		status = flush_folder(f, diag);
	free(original);
	return status;
}

/* Writes the replacement beside its place, then moves it there. */
static enum status put_in(const struct swap_folder *f, const struct swap_entry *e,
			  mode_t mode, struct diag *diag)
{
	char *new_name = with_suffix(e->name, SWAP_NEW);
	struct mapped_file file;
	enum status status;

	if (!new_name)
		return diag_no_memory(diag);
	status = mapped_file_open(&file, e->replacement, diag);
	if (status == STATUS_OK) {
		status = make_file(f, new_name, file.data, file.size, mode, diag);
		mapped_file_close(&file);
	}
	if (status == STATUS_OK)
		status = move_file(f, new_name, e->name, diag);
	free(new_name);
	return status == STATUS_OK ? flush_folder(f, diag) : status;
}

/* Nothing may be in the way: what `restore` removes must be ours. */
static enum status check_entry(const struct swap_folder *f, const struct swap_entry *e,
			       struct diag *diag)
{
	const char *const suffixes[] = {SWAP_ORIGINAL, SWAP_NEW, ""};
	struct stat st;

	for (unsigned i = 0; i < 2 + (unsigned)e->added; i++) {
		char *name = with_suffix(e->name, suffixes[i]);
		bool there = name && exists(f, name, &st);

		free(name);
		if (!name)
			return diag_no_memory(diag);
		if (there)
			return diag_fail(diag, STATUS_EXISTS,
					 "'%s/%s%s' is in the way, move it away", f->path,
					 e->name, suffixes[i]);
	}
	if (!e->added && !exists(f, e->name, &st))
		return fail(f, diag, "find", e->name);
	if (!e->added && !S_ISREG(st.st_mode))
		return diag_fail(diag, STATUS_IO, "'%s/%s' is not a regular file", f->path,
				 e->name);
	return STATUS_OK;
}

static enum status swap_entry_in(const struct swap_folder *f, const struct swap_entry *e,
				 struct diag *diag)
{
	struct stat st = {.st_mode = 0755};
	enum status status = STATUS_OK;

	if (!e->added) {
		exists(f, e->name, &st);
		status = put_aside(f, e, diag);
	}
	return status == STATUS_OK ? put_in(f, e, st.st_mode & 0777, diag) : status;
}

enum status swap_in(struct swap_folder *folder, struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < folder->entries.len && status == STATUS_OK; i++)
		status = check_entry(folder, &folder->entries.data[i], diag);
	if (status != STATUS_OK)
		return status;
	folder->swapped = true;
	status = write_journal(folder, diag);
	for (uint32_t i = 0; i < folder->entries.len && status == STATUS_OK; i++)
		status = swap_entry_in(folder, &folder->entries.data[i], diag);
	if (status != STATUS_OK)
		(void)swap_out(folder, NULL);
	folder->complete = status == STATUS_OK;
	return status;
}

/* Somebody has taken an original away that swap_in had put aside: what stands in its place
 * is ours, and the caller must not believe otherwise. */
static enum status check_originals(const struct swap_folder *f, struct diag *diag)
{
	for (uint32_t i = 0; i < f->entries.len; i++) {
		const struct swap_entry *e = &f->entries.data[i];
		char *original = with_suffix(e->name, SWAP_ORIGINAL);
		struct stat st;
		bool gone = original && !e->added && !exists(f, original, &st);

		free(original);
		if (!original)
			return diag_no_memory(diag);
		if (gone)
			return diag_fail(diag, STATUS_IO,
					 "'%s/%s%s', the original, has gone while another "
					 "file stood in its place, and still stands there",
					 f->path, e->name, SWAP_ORIGINAL);
	}
	return STATUS_OK;
}

enum status swap_out(struct swap_folder *folder, struct diag *diag)
{
	enum status kept = folder->complete ? check_originals(folder, diag) : STATUS_OK;
	enum status status = STATUS_OK;

	folder->complete = false;
	if (folder->swapped)
		status = restore(folder, false, kept == STATUS_OK ? diag : NULL);
	if (status == STATUS_OK) {
		folder->swapped = false;
		swap_entries_release(&folder->entries);
	}
	return kept == STATUS_OK ? status : kept;
}
