/* Looking again and again at which pages of files are in memory. */
#ifndef APPULSE_PROFILE_RESIDENCY_WATCH_H
#define APPULSE_PROFILE_RESIDENCY_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/vec.h"

/* A file that is watched, whose first `pages` pages count. */
struct watched_file {
	int fd;                       /* borrowed */
	uint32_t pages;
	const _Atomic uint32_t *live; /* borrowed; looked at only while it is above 0 */
};

/* A page that came into memory. */
struct page_arrival {
	uint32_t file, page;
	int64_t time_ns; /* CLOCK_MONOTONIC, when it was seen: some milliseconds late */
};

struct arrival_list {
	struct page_arrival *data; /* owned */
	uint32_t len, cap;
};

struct residency_watch;

/* Looks in a thread of its own.  `files` and what they borrow must stay until the end.
 * IO, NO_MEMORY. */
enum status residency_watch_start(const struct watched_file *files, uint32_t count,
				  struct residency_watch **ret_watch, struct diag *diag);

/* Looks a last time and ends; the watch is freed either way.  `ret_arrivals` has each
 * page at most once, in the order in which they were seen, and is owned by the caller. */
enum status residency_watch_stop(struct residency_watch *watch,
				 struct arrival_list *ret_arrivals, struct diag *diag);

#endif
