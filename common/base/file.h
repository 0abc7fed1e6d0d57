/* Files: read-only maps of inputs, and outputs that appear whole or not at all.
 *
 * An output is written to a temporary file in the target's folder, flushed,
 * and renamed over the target at commit.  Until then a failure, a kill or a
 * full disk leaves the target as it was.
 */
#ifndef APPULSE_BASE_FILE_H
#define APPULSE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* A file's bytes, mapped read-only.  Of zero bytes: not mapped. */
struct mapped_file {
	const uint8_t *data; /* owned; NULL when the file is empty */
	size_t size;         /* bytes */
};

/* Maps a regular file.  STATUS_IO when it cannot be read or is no regular
 * file.  On failure nothing is owned. */
enum status mapped_file_open(struct mapped_file *file, const char *path, struct diag *diag);
void mapped_file_close(struct mapped_file *file);

/* Gives the pages of `size` bytes from `begin` on back to the page cache: they stand for
 * memory of ours no longer, and come back when they are read. */
void mapped_file_forget(const struct mapped_file *file, size_t begin, size_t size);

/* Whether two paths lead to one place: to the same file, or to the same name in the
 * same folder when there is no file yet.  NULL leads nowhere. */
bool paths_meet(const char *a, const char *b);

/* An output that is being written. */
struct output_file {
	int fd;             /* -1: none is open */
	char *path;         /* owned: the target */
	char *temporary;    /* owned: the temporary file in the same folder */
	bool force;         /* whether an existing target may be replaced */
};

/* Opens a temporary file beside `path`.  STATUS_EXISTS when the target exists
 * and `force` is false; STATUS_IO otherwise. */
enum status output_file_open(struct output_file *out, const char *path, bool force,
			     struct diag *diag);

/* Appends `size` bytes. */
enum status output_file_write(struct output_file *out, const void *data, size_t size,
			      struct diag *diag);

/* Flushes and renames over the target; `mode` as for chmod, 0 for the default.
 * On failure the temporary file is removed and the target untouched. */
enum status output_file_commit(struct output_file *out, unsigned mode, struct diag *diag);

/* Removes the temporary file if there is one; safe after a commit. */
void output_file_discard(struct output_file *out);

/* Open, write and commit at once. */
enum status file_write(const char *path, const void *data, size_t size, bool force,
		       struct diag *diag);

#endif
