/* Reads a trace file (trace/trace_format.h) into touches in their order.
 *
 * The file may come from anywhere: every size, count and string in it is
 * checked.  That the process was killed while it wrote is no damage.
 */
#ifndef APPULSE_TRACE_FILE_H
#define APPULSE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/diag.h"
#include "base/sha256.h"

/* The first touch of a function in one process. */
struct trace_touch {
	struct rva rva;  /* in the original image; not 0; unique in the trace */
	uint32_t thread; /* the Windows thread id */
	uint64_t seq;    /* from 1; unique; shared by all traces of one process */
	uint64_t ticks;  /* the performance counter */
};

/* A trace, whole in memory.  Strings are valid UTF-8 without control
 * characters, never NULL. */
struct trace_file {
	bool empty;               /* the process ended before the header was done: all
				   * else is 0 or an empty string */
	struct sha256 image_hash; /* of the original image file */
	char *image_name;         /* owned: its file name */
	char *executable;         /* owned: the process's path, as Windows names it */
	uint32_t process;
	uint32_t parent;          /* 0: unknown */
	uint64_t process_start;   /* FILETIME: 100 ns since 1601-01-01 UTC */
	uint64_t opened;          /* FILETIME when the trace began ... */
	uint64_t opened_ticks;    /* ... and the performance counter then */
	uint64_t frequency;       /* performance counter ticks a second; not 0 */
	uint32_t probes;          /* probed functions of the image */
	struct trace_touch *touches; /* owned: `touch_count`, by ascending seq */
	uint32_t touch_count;
	uint32_t incomplete;      /* records that the process's end cut short */
};

/* Reads the file at `path`.  STATUS_IO when it cannot be read, STATUS_BAD_TRACE
 * when it is no trace or a damaged one, STATUS_NO_MEMORY.  On failure
 * `ret_trace` is untouched; else release it. */
enum status trace_file_read(const char *path, struct trace_file *ret_trace,
			    struct diag *diag);

/* The same from `size` bytes in memory, which may change meanwhile. */
enum status trace_file_parse(const void *data, size_t size, struct trace_file *ret_trace,
			     struct diag *diag);

/* Frees what the trace owns.  A trace of zero bytes is valid and owns nothing. */
void trace_file_release(struct trace_file *trace);

/* Nanoseconds from the trace's opening to `ticks`; negative before it (another
 * image's trace of the same process may have begun earlier). */
int64_t trace_file_nanoseconds(const struct trace_file *trace, uint64_t ticks);

#endif
