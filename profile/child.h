/* Runs a command and waits for it and for all that it started. */
#ifndef APPULSE_PROFILE_CHILD_H
#define APPULSE_PROFILE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "trace/db.h"

struct child {
	char **command;         /* NULL-terminated; found on PATH */
	/* Set in its environment, not in ours; a NULL name ends the list. */
	struct child_variable {
		const char *name, *value;
	} variables[5];
	const char *output;     /* its stdout goes to this file, made anew; NULL: stays */
	int output_fd;          /* otherwise this is its stdout; 0: none */
	bool output_to_stderr;  /* its stdout becomes our stderr (ours holds JSON) */
	const sigset_t *mask;   /* signals that it has blocked; NULL: as we have now */
	double patience;        /* seconds to wait for what outlives it; < 0: for ever */

	/* Called once when it has taken a while: what is waited for.  May be NULL. */
	void (*tell)(void *with, unsigned processes, int first_pid, const char *first_name);
	void *with;
};

struct child_exit {
	enum db_exit exit;     /* NOT_STARTED, EXITED or SIGNALED */
	int code;              /* errno, exit code, signal */
	double wall_seconds;   /* until the last process that was waited for ended; what
				* outlives the command is looked at all 50 ms */
	unsigned left_running; /* processes that were given up */
	int interrupted;       /* the signal that was passed on last; 0: none */
};

/* Starts the command, passes SIGINT, SIGTERM, SIGHUP and SIGQUIT on, and waits
 * for it and all its descendants, but not for Wine's own server and services,
 * which serve later programs too.  STATUS_OK however the command ends; IO when
 * we cannot do our part, or the output cannot be opened. */
enum status child_run(const struct child *child, struct child_exit *ret_exit,
		      struct diag *diag);

/* STATUS_OK when the command ended with 0, else COMMAND with how it ended. */
enum status child_status(const struct child_exit *exit, const char *program,
			 struct diag *diag);

/* Whether the command line `text` (as in /proc/PID/cmdline, `size` bytes) is that
 * of Wine's server or of one of its service programs. */
bool child_is_wine_service(const char *text, unsigned size);

#endif
