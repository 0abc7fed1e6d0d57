/* The log of the Windows debugger program, as docs/page-runs.md describes it.
 *
 * A log may end anywhere, because a kill may end its writer: an unfinished last
 * line counts as not written.  All else that is not as documented is
 * BAD_TRACE.
 */
#ifndef APPULSE_TRACE_DEBUGGER_LOG_H
#define APPULSE_TRACE_DEBUGGER_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"

enum { DEBUGGER_LOG_VERSION = 1, DEBUGGER_LOG_PAGE_BYTES = 4096 };

enum debugger_mode { DEBUGGER_PAGES, DEBUGGER_BREAKPOINTS, DEBUGGER_WORKING_SET };

enum debugger_access { DEBUGGER_EXECUTE, DEBUGGER_READ, DEBUGGER_WRITE };

struct debugger_process {
	uint32_t pid;
	int64_t started_ns;  /* since 1970, UTC */
	uint64_t ticks;      /* when the debugger heard of it */
	const char *path;    /* of its executable, as the host names it; "" is unknown */
	bool ended;
	uint32_t exit_code;  /* valid when ended */
	uint32_t page_faults; /* of all it did, hard and soft; 0: the system does not tell */
};

/* A wanted image, from its load to its unload. */
struct debugger_image {
	uint32_t process;    /* index into the log's processes */
	uint64_t base;       /* VA in the process */
	uint32_t size;       /* SizeOfImage, bytes */
	uint32_t time_stamp, checksum; /* of its headers */
	const char *path;    /* of its file, as the host names it */
	bool other_build;    /* breakpoints: not the build that the starts are of */
	uint32_t places;     /* pages of code, or function starts */
	uint32_t watched;    /* those of them that could be guarded or planted */
	bool answered;       /* working-set: its resident pages are known */
};

/* Working-set: neighbouring pages that were in the working set at the process's end. */
struct debugger_range {
	uint32_t image;      /* index into the log's images */
	struct rva rva;      /* a multiple of 4096 */
	uint32_t pages;      /* at least 1, inside the image */
};

struct debugger_touch {
	uint32_t image;      /* index into the log's images */
	struct rva rva;      /* of the page, a multiple of 4096, or of the function */
	uint32_t thread;
	enum debugger_access access; /* EXECUTE in mode breakpoints */
	uint64_t ticks;
};

struct debugger_log {
	struct arena arena;  /* owns the paths */
	enum debugger_mode mode;
	uint64_t frequency;  /* ticks per second, at least 1 */
	VEC(struct debugger_process) processes; /* in the order of their starts */
	VEC(struct debugger_image) images;      /* in the order of their loads */
	VEC(struct debugger_touch) touches;     /* in the order of the touches */
	VEC(struct debugger_range) resident;    /* in the order of the answers */
	bool failed;         /* the program could not be started */
	uint32_t error;      /* Windows' error code, valid when failed */
	bool ended;          /* the program and all that it started have ended */
	uint32_t exit_code;  /* the program's, valid when ended */
};

/* BAD_TRACE, NO_MEMORY.  On failure nothing is owned. */
enum status debugger_log_parse(const void *text, size_t size,
			       struct debugger_log *ret_log, struct diag *diag);
void debugger_log_release(struct debugger_log *log);

/* Nanoseconds from the start of the process to `ticks`; 0 when it lies before. */
int64_t debugger_log_ns(const struct debugger_log *log,
			const struct debugger_process *process, uint64_t ticks);

#endif
