/* An output that is hashed and written beside other work.
 *
 * It goes to its temporary file only; whether it appears is decided after output_task_wait.
 */
#ifndef APPULSE_BASE_OUTPUT_TASK_H
#define APPULSE_BASE_OUTPUT_TASK_H

#include "base/file.h"
#include "base/sha256.h"
#include "base/task.h"

struct output_task {
	struct output_file file; /* valid after output_task_wait has said OK */
	struct sha256 hash;      /* of the bytes, when asked for; the same */
	/* Owned by the task until it is waited for. */
	struct task task;
	const char *path;
	const void *bytes;
	size_t size;
	bool force, hashed, started;
	enum status status;
	struct diag diag;
};

/* Starts to write `size` bytes to a temporary file beside `path`, and with `hashed` to
 * hash them; path and bytes must live until it is waited for.  `force` as for
 * output_file_open. */
void output_task_start(struct output_task *output, const char *path, bool force,
		       const void *bytes, size_t size, bool hashed);

/* Returns when it is done.  Statuses: those of output_file_open and output_file_write.
 * On success the caller commits or discards `file`. */
enum status output_task_wait(struct output_task *output, struct diag *diag);

/* Waits, and removes the temporary file; safe for one of zero bytes and after a commit
 * of `file`. */
void output_task_discard(struct output_task *output);

#endif
