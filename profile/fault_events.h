/* What the kernel tells of a command's faults, and what follows from it.
 *
 * The kernel tells addresses; which page of which file an address was is worked out
 * from the mappings that it tells of too, once all events are there: each processor
 * has a list of its own, and only the clock brings them into one order.
 */
#ifndef APPULSE_PROFILE_FAULT_EVENTS_H
#define APPULSE_PROFILE_FAULT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/vec.h"

enum fault_event_type {
	FAULT_EVENT_MAP,   /* something was mapped at `address`: a file that is known by its
			    * number, or anything else */
	FAULT_EVENT_FORK,  /* `pid` begins with the mappings of `parent` */
	FAULT_EVENT_EXEC,  /* `pid` begins another program: its mappings are gone */
	FAULT_EVENT_HARD,
	FAULT_EVENT_SOFT,
};

#define FAULT_NO_FILE UINT32_MAX

struct fault_event {
	enum fault_event_type type;
	uint32_t pid, thread; /* of the process and the thread, as Linux counts them */
	uint32_t order;       /* of arrival, breaks ties of time */
	uint32_t file;        /* MAP: number of the file, or FAULT_NO_FILE */
	uint32_t parent;      /* FORK */
	int64_t time_ns;      /* CLOCK_MONOTONIC */
	uint64_t address;     /* MAP: of the first byte; faults: what was accessed */
	uint64_t size;        /* MAP: bytes */
	uint64_t offset;      /* MAP: bytes into the file */
	uint64_t code;        /* faults: address of the instruction */
};

struct fault_event_list {
	struct fault_event *data; /* owned */
	uint32_t len, cap;
};

/* A fault inside a file. */
struct file_fault {
	uint32_t file;
	uint64_t page;        /* bytes into the file, a multiple of 4096 */
	bool hard;
	bool execute;         /* the fault was the fetch of an instruction */
	uint32_t pid, thread;
	int64_t time_ns;      /* CLOCK_MONOTONIC */
};

/* A process that mapped a file. */
struct file_user {
	uint32_t file, pid;
	uint32_t mappings;
};

struct file_faults {
	VEC(struct file_fault) faults; /* in the order of time */
	VEC(struct file_user) users;
};

/* Sorts the events and finds the faults that lie in files.  NO_MEMORY. */
enum status fault_events_resolve(struct fault_event_list *events,
				 struct file_faults *ret_faults, struct diag *diag);
void file_faults_release(struct file_faults *faults);

#endif
