/* Reading what a command prints, until a certain text comes. */
#ifndef APPULSE_PROFILE_OUTPUT_WATCH_H
#define APPULSE_PROFILE_OUTPUT_WATCH_H

#include <stdint.h>

#include "base/diag.h"

struct output_watch;

/* Begins to read, in a thread of its own; `marker` is not empty, has no line break and is
 * borrowed until the end.  `ret_fd` is what the command writes to; it is closed by
 * output_watch_stop.  IO, NO_MEMORY. */
enum status output_watch_start(const char *marker, struct output_watch **ret_watch,
			       int *ret_fd, struct diag *diag);

/* Reads what is there already and ends; the watch is freed.  When the marker was read
 * first, CLOCK_MONOTONIC; 0: never. */
int64_t output_watch_stop(struct output_watch *watch);

#endif
