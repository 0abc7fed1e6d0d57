/* When a command's processes begin to use a file, and when they end: told by a library
 * that is loaded into them (preload/run_clock.c). */
#ifndef APPULSE_PROFILE_RUN_CLOCK_H
#define APPULSE_PROFILE_RUN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "preload_library.h"

struct run_clock {
	struct preload_library library;
};

/* What one run told. */
struct clock_reading {
	bool mapped;       /* some process mapped the file; the process below is the first */
	int64_t mapped_ns; /* CLOCK_MONOTONIC, before it did */
	int64_t ended_ns;  /* when that process ended; 0: it did not tell, as one that is
			    * killed */
	uint64_t peak;     /* bytes of memory that it had resident at most; 0: not told */
	uint64_t read;     /* bytes of the file that all processes read by themselves */
	bool whole;        /* the whole file was in memory when it was mapped, the first or
			    * the second time; false too when nobody looked */
};

/* Finds the library.  NOT_FOUND, IO, NO_MEMORY. */
enum status run_clock_open(struct run_clock *clock, struct diag *diag);
void run_clock_close(struct run_clock *clock); /* fine for RUN_CLOCK_NONE */

#define RUN_CLOCK_NONE ((struct run_clock){.library = {.fd = -1}})

/* From now on the file `fd` is meant; `look`: see what of it is in memory.  IO. */
enum status run_clock_set(struct run_clock *clock, int fd, bool look, struct diag *diag);

/* Adds what the command's environment needs to its variables. */
void run_clock_join(const struct run_clock *clock, struct child *child);

/* Once the command has ended. */
struct clock_reading run_clock_read(const struct run_clock *clock);

#endif
