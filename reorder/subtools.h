/* Runs the sibling tools, and the user's command, as child processes.
 *
 * While this is open SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end us: they are
 * passed on to the child, whose end is waited for, and the call answers COMMAND with
 * "interrupted by signal ...".  So the caller can put things right before it ends.  A
 * second signal kills the child.
 *
 * Children have no stdin, so that each run of a command sees the same.  What they
 * write to stderr goes to a log, of which subtools_show_log shows the end.
 */
#ifndef APPULSE_REORDER_SUBTOOLS_H
#define APPULSE_REORDER_SUBTOOLS_H

#include <jansson.h>
#include <signal.h>

#include "cli/tool.h"

enum { EXIT_CODE_MASK = 0xff }; /* what wait(2) gives of an exit code */

struct subtools {
	struct tool *tool;     /* the tools' warnings become its own */
	char *object;          /* owned: the file that a tool's JSON goes to */
	char *log;             /* owned: the file that the last child's stderr went to */
	sigset_t held, before; /* signals; the mask as it was */
	bool holding;
	int interrupted; /* the signal that came last; 0: none */
};

/* Holds the signals; files go to `folder`.  NO_MEMORY.  End it either way. */
enum status subtools_begin(struct subtools *subtools, struct tool *tool, const char *folder,
			   struct diag *diag);

/* Lets go of the signals.  One that came while nothing ran takes effect here. */
void subtools_end(struct subtools *subtools);

/* The path of a sibling tool such as "appulse-profile", on the heap: where its
 * variable says (APPULSE_PROFILE), in the build folder, or beside us.  NOT_FOUND. */
enum status subtool_find(const char *name, char **ret_path, struct diag *diag);

/* Runs a sibling tool with `arguments` (NULL-terminated, without the tool's name),
 * which must hold --json.  The tool's status and failure become ours.  `ret_object`,
 * owned by the caller, is what it printed; NULL when it did not. */
enum status subtool_run(struct subtools *subtools, const char *name, char **arguments,
			json_t **ret_object, struct diag *diag);

/* Runs the user's command, its stdout going to the file `output`.  COMMAND when it
 * does not end with the exit code `expected` (of which the system keeps 8 bits). */
enum status subtools_run_command(struct subtools *subtools, char **command,
				 const char *output, uint32_t expected, struct diag *diag);

/* Shows the end of what the last child wrote to stderr, as remarks. */
void subtools_show_log(const struct subtools *subtools);

#endif
