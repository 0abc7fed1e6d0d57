/* The steps of a tool: how long each took, and a line about the running one on
 * the terminal.
 *
 *     progress_step(&tool->progress, "finding functions");
 *     ...
 *     progress_step(&tool->progress, "writing the image");
 *     ...
 *     progress_end(&tool->progress);
 *
 * The line goes to stderr, only when that is a terminal and --quiet was not
 * given, and is erased at the end.  The durations are kept either way and stand
 * in the tool's JSON as "steps".
 */
#ifndef APPULSE_CLI_PROGRESS_H
#define APPULSE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct step {
	const char *name; /* borrowed; a constant string */
	double seconds;   /* by CLOCK_MONOTONIC; valid once the step has ended */
};

struct progress {
	FILE *terminal;        /* where the line goes, NULL: nowhere */
	struct step *data;     /* owned: the steps in the order they began */
	uint32_t len, cap;
	bool running;          /* whether the last step has not ended */
	bool shown;            /* whether a line stands on the terminal */
	struct timespec begin; /* of the running step */
	struct timespec drawn; /* when the line was last drawn */
};

/* No steps, nothing shown.  A progress of zero bytes is the same. */
void progress_init(struct progress *progress);

/* Shows the line on `stream` if that is a terminal able to erase it. */
void progress_show_on(struct progress *progress, FILE *stream);

/* Ends the running step, if any, and begins the next. */
void progress_step(struct progress *progress, const char *name);

/* Says how far the running step is; cheap enough for inner loops. */
void progress_fraction(struct progress *progress, uint64_t done, uint64_t total);

/* Ends the running step, if any, and erases the line. */
void progress_end(struct progress *progress);

/* Erases the line, so that other text can be written; the next step or fraction
 * draws it again. */
void progress_erase(struct progress *progress);

/* Erases the line and forgets all steps. */
void progress_release(struct progress *progress);

#endif
