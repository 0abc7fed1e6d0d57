/* Running a command under the Windows debugger program: the folder for its log, the
 * command with the debugger put into it, and what the log says.
 *
 *     debugger_run_init(&run, diag);             finds the program, makes the folder
 *     debugger_run_command(&run, words, &child, diag);
 *     debugger_run_release(&run);
 */
#ifndef APPULSE_PROFILE_DEBUGGER_RUN_H
#define APPULSE_PROFILE_DEBUGGER_RUN_H

#include "child.h"
#include "trace/debugger_log.h"

struct debugger_run {
	char *program;           /* owned: path of the debugger program */
	char *folder;            /* owned: temporary, removed by debugger_run_release */
	char *log_path;          /* owned: in `folder` */
	struct child_exit exit;  /* of the command; its code is the program's full one */
	struct debugger_log log; /* owned */
};

/* What companion_find answers when the debugger program is nowhere; IO, NO_MEMORY.
 * Release it either way. */
enum status debugger_run_init(struct debugger_run *run, struct diag *diag);

/* What else lies in the folder is for the caller to remove before. */
void debugger_run_release(struct debugger_run *run);

/* Runs the child's command with the debugger put into it and waits, then reads the log.
 * `words` (NULL-terminated) are the debugger's mode and images.  How the program ended is
 * in `exit`, and no failure.  COMMAND when it did not start; USAGE when the command has
 * no place for the debugger; BAD_TRACE for the log; IO, NO_MEMORY. */
enum status debugger_run_command(struct debugger_run *run, char *const *words,
				 const struct child *child, struct diag *diag);

#endif
