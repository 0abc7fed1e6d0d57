/* What a meter is made of: for fault_meter.c, which opens it, and fault_measure.c, which
 * measures with it. */
#ifndef APPULSE_PROFILE_FAULT_METER_STATE_H
#define APPULSE_PROFILE_FAULT_METER_STATE_H

#include "cold_disk.h"
#include "debugger_run.h"
#include "fault_counter.h"
#include "fault_meter.h"
#include "fault_preload.h"
#include "image_pages.h"

struct meter_image {
	const char *path, *place;  /* borrowed */
	uint64_t size;             /* bytes */
	struct image_pages pages;
	int fd;                    /* of what is in place: the copy, or the file itself,
				    * which is opened for each run; -1: none */
	uint32_t copy;             /* LOOP: number of the copy */
	bool laid;
	uint8_t *before, *after;   /* owned: a byte for each page of the file */
};

struct fault_meter {
	struct fault_options options;
	enum fault_method method;
	enum fault_counter_kind counter_kind;
	struct meter_image *images;
	uint32_t count;
	struct cold_disk disk;
	struct fault_preload preload;
	struct fault_counter *counter; /* PERF */
	struct debugger_run debugger;  /* WORKING_SET: the last run of it */
	char reason[2048];
};

/* Runs the command under the debugger, and puts what is in the working sets at the ends
 * of its processes into `run`.  `first` and `end` are the images to look for.
 * (fault_working_set.c) */
enum status fault_working_set_run(struct fault_meter *meter, uint32_t first, uint32_t end,
				  const struct child *child, struct fault_run *run,
				  struct diag *diag);

#endif
