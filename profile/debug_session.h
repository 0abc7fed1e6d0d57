/* A command run under the debugger program, and what it says of named images:
 * what the subcommands `pages` and `breakpoints` have in common.
 *
 *     debug_session_init(&session, DEBUGGER_PAGES, images, diag)    opens the images
 *     debug_session_run(&session, ...)       runs the command, reads the log
 *     debug_session_store(&session, ...)     writes the run into the database
 *     debug_session_release(&session)
 *
 * An image is known by its content.  The debugger goes by the file's name alone,
 * so what it logs of other files of that name is left out here.
 */
#ifndef APPULSE_PROFILE_DEBUG_SESSION_H
#define APPULSE_PROFILE_DEBUG_SESSION_H

#include "cli/options.h"
#include "cli/tool.h"
#include "debugger_run.h"
#include "pe/image.h"
#include "run_options.h"

/* An image that the user named, and after the run what was seen of it. */
struct debug_image {
	struct image image;    /* owned, open */
	const char *name;      /* file name without folders, borrowed */
	struct sha256 hash;    /* of the file */
	int64_t id;            /* in the database, once stored */
	char *starts;          /* owned: the file of function starts; NULL for pages */
	uint32_t loads;        /* how often it was loaded, over all processes */
	uint32_t processes;    /* that loaded it */
	uint32_t places;       /* its pages of code, or the function starts asked for */
	uint32_t watched;      /* those of them that could be guarded or planted */
	uint32_t touched;      /* those that any process touched */
	uint32_t executed;     /* those of them whose first touch ran them */
	uint8_t *seen;         /* owned: one bit for each touched page, or RVA */
};

struct debug_session {
	enum debugger_mode mode;
	struct debug_image *images; /* owned */
	uint32_t image_count;
	struct debugger_run debugger;
	uint32_t *wanted;      /* owned: for each image of the log the index of ours,
				* DEBUG_OTHER for another file of that name */
	struct run_description description;
	int64_t run;           /* in the database, once stored */
};

#define DEBUG_OTHER UINT32_MAX

/* Opens the images at `paths`, finds the debugger program and makes the temporary
 * folder.  USAGE when there are no images or two are the same file; else what
 * image_open and companion_find answer.  Release it either way. */
enum status debug_session_init(struct debug_session *session, enum debugger_mode mode,
			       const struct string_list *paths, struct diag *diag);
void debug_session_release(struct debug_session *session);

/* Runs `command` with the debugger put into it, and reads the log.  COMMAND when
 * the program did not start; NOT_FOUND when it loaded none of the images.  How the
 * program ended is in `exit`, and no failure. */
enum status debug_session_run(struct debug_session *session, struct tool *tool,
			      const struct run_options *options, char **command,
			      struct diag *diag);

/* Writes the run, in one transaction, and counts touches.  (debug_store.c) */
enum status debug_session_store(struct debug_session *session, struct db *db,
				struct diag *diag);

/* Puts the run into the tool's result, and for people says how it was stored. */
void debug_session_tell(struct debug_session *session, struct tool *tool,
			const char *database);

/* Adds an image to the array, for each mode to go on with. */
json_t *debug_session_tell_image(const struct debug_session *session, uint32_t index,
				 struct result *result, json_t *images);

#endif
