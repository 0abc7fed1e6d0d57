/* Measuring the hard page faults that a command takes on images.
 *
 *     fault_meter_open(&options, images, count, &meter, diag);  picks a method
 *     fault_meter_run(meter, 0, count, &child, &run, diag);     as often as wanted
 *     fault_run_release(&run);
 *     fault_meter_close(meter);
 *
 * A fault is *hard* when the page was not in memory and had to be read from the
 * disk.  Linux counts such faults by process; this counts them by page of a file,
 * over all threads and processes that the command starts.
 *
 * The methods:
 *
 * - LOOP: the image is copied to a file system of its own, on a loop device with
 *   the read-ahead that was asked for, and laid over its place in a mount namespace
 *   that only this process and its children see.  Needs root.
 * - PRELOAD: the image stays where it is; a library that is loaded into the command's
 *   processes turns off read-ahead for it, or where the kernel does not obey for code
 *   (Linux 6.16 and later) makes each first touch of a page a fault: then the first
 *   fault on a page that was not in memory when the command started counts as hard.
 * - IN_PLACE: the image stays where it is, with the disk's own read-ahead.
 * - WORKING_SET: the image stays where it is, and the Windows debugger program asks which
 *   of its pages are in the working set of each process when that ends.  Of faults it
 *   knows nothing: pages are RESIDENT.
 *
 * Nothing of it outlives the process: devices and mounts vanish with it, whatever
 * ends it.  A meter belongs to one thread, the one that opened it, and a process
 * should have one meter for all its images: the mount namespace is entered once.
 */
#ifndef APPULSE_PROFILE_FAULT_METER_H
#define APPULSE_PROFILE_FAULT_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/vec.h"
#include "child.h"

#define FAULT_METHOD_LIST(X)  \
	X(LOOP, "loop")         \
	X(PRELOAD, "preload")   \
	X(IN_PLACE, "in-place") \
	X(WORKING_SET, "working-set")

enum fault_method {
#define X(id, name) FAULT_METHOD_##id,
	FAULT_METHOD_LIST(X)
#undef X
	FAULT_METHOD_COUNT,
	FAULT_METHOD_ANY = FAULT_METHOD_COUNT /* the first of the list that works */
};

/* What says which pages had to be read. */
#define FAULT_COUNTER_LIST(X)                                                             \
	X(PERF, "perf")       /* perf events: every fault with its address, in order */   \
	X(PAGEMAP, "pagemap") /* page tables of the processes: no order, times, threads */ \
	X(MINCORE, "mincore") /* pages that are in memory afterwards and were not before: \
			       * no threads or processes, times from looking repeatedly */ \
	X(QUERY, "query-working-set") /* QueryWorkingSetEx: no order, times, threads */

enum fault_counter_kind {
#define X(id, name) FAULT_COUNTER_##id,
	FAULT_COUNTER_LIST(X)
#undef X
	FAULT_COUNTER_COUNT
};

/* The names that reports, JSON and the database show. */
const char *fault_method_name(enum fault_method method);
const char *fault_counter_kind_name(enum fault_counter_kind counter);

enum { FAULT_READ_AHEAD_DISK = -1, FAULT_PAGE_BYTES = 4096 };

struct fault_options {
	enum fault_method method; /* FAULT_METHOD_ANY picks */
	int read_ahead_kib; /* 0: each fault reads its one page.  Above: LOOP only.
			     * FAULT_READ_AHEAD_DISK: as the disk has it, IN_PLACE only */
	bool cold;          /* evict the images before each run */
	bool soft;          /* record faults on pages that were in memory too, where perf
			     * events can be used */
	bool no_perf;       /* do without perf events */
	bool resident_will_do; /* FAULT_METHOD_ANY may pick WORKING_SET */
};

struct fault_image {
	const char *path;  /* the content, borrowed until the meter is closed */
	const char *place; /* the file that the program loads, which must exist, borrowed;
			    * NULL: `path` itself.  For another than `path` the caller sees
			    * to it that the content is there in each run, unless
			    * fault_meter_lays_copies */
};

enum fault_kind {
	FAULT_HARD,
	FAULT_SOFT,     /* a fault on a page that was in memory */
	FAULT_RESIDENT, /* no fault was seen, but the page came into memory: by
			 * read-ahead, or because somebody read the file.  WORKING_SET: it is
			 * in the working set of a process at its end */
};

enum fault_access { FAULT_UNKNOWN_ACCESS, FAULT_EXECUTE, FAULT_DATA };

struct page_fault {
	uint32_t image;   /* index in the meter */
	struct rva page;  /* a multiple of FAULT_PAGE_BYTES */
	bool code;        /* of an executable section that cannot be written */
	enum fault_kind kind;
	enum fault_access access;
	uint32_t process, thread; /* Linux ids, Windows' with WORKING_SET; 0: unknown */
	int64_t time_ns;  /* since the command was started; -1: unknown */
};

/* Of one image in one run.  Pages are those of the file that are mapped: of the
 * headers and the sections. */
struct fault_counts {
	uint32_t mappings;     /* times that a part of the file was mapped; 0 with the
				* counter PERF means that it was not loaded */
	uint32_t pages, code_pages; /* of the image */
	uint32_t before;       /* pages in memory when the command started */
	uint32_t after;        /* pages in memory when it had ended */
	uint64_t hard, soft;   /* faults */
	uint32_t hard_pages, hard_code_pages; /* distinct pages with a hard fault */
	uint32_t resident_pages, resident_code_pages; /* distinct RESIDENT ones */
};

/* A process that mapped one of the images. */
struct fault_process {
	uint32_t pid;       /* as Linux counts them; Windows' with WORKING_SET */
	int64_t started_ns; /* since 1970, UTC */
};

struct fault_run {
	struct child_exit exit;
	VEC(struct fault_process) processes; /* known with PERF and QUERY only */
	VEC(struct page_fault) faults; /* in order; RESIDENT ones last, by page */
	struct fault_counts *counts;   /* owned: for each image of the meter; zero for
					* those that were not in this run */
	uint32_t count;
	uint64_t page_faults;          /* QUERY: of the processes as a whole, soft ones too;
					* 0: the system does not tell */
	uint64_t lost;                 /* events that could not be recorded; above 0 the
					* faults are incomplete */
};

struct fault_meter;

/* Picks a method and prepares it.  The images must be files that Wine maps
 * (FileAlignment a multiple of 4096): UNSUPPORTED else, with what to do.  COMMAND
 * when no method works, or the one asked for does not: the message says why.  Also
 * what image_open answers, IO, NO_MEMORY, USAGE (options that exclude each other).
 * On failure nothing is owned. */
enum status fault_meter_open(const struct fault_options *options,
			     const struct fault_image *images, uint32_t count,
			     struct fault_meter **ret_meter, struct diag *diag);

/* Undoes all, NULL is fine. */
void fault_meter_close(struct fault_meter *meter);

/* What was picked, and why each method before it was not ("" for the first). */
enum fault_method fault_meter_method(const struct fault_meter *meter);
enum fault_counter_kind fault_meter_counter(const struct fault_meter *meter);
const char *fault_meter_reason(const struct fault_meter *meter);

/* Bytes of an image's file. */
uint64_t fault_meter_size(const struct fault_meter *meter, uint32_t image);

/* Whether the meter itself puts each image in its place, for the time of a run. */
bool fault_meter_lays_copies(const struct fault_meter *meter);

/* Puts the images from `first` on, `count` of them, in place, evicts them when the
 * meter is for cold runs, runs `child` and counts.  No two of them may have one
 * place.  The child's `variables` are added to.  How the command ended is no failure;
 * COMMAND when the images cannot be evicted, or when the program loaded another file
 * than the one in place (a Wine server of another mount namespace opened it).
 * `ret_run` needs fault_run_release after STATUS_OK. */
enum status fault_meter_run(struct fault_meter *meter, uint32_t first, uint32_t count,
			    const struct child *child, struct fault_run *ret_run,
			    struct diag *diag);
void fault_run_release(struct fault_run *run);

#endif
