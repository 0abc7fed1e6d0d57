/* A folder of trace files, and the note in it that says which run they are of.
 *
 * `run` makes one beside the database, t.db.traces-XXXXXX, with the file
 * run.json, which it holds locked while it collects.  Whatever happens to the
 * collector, the folder alone is enough to import the run.
 */
#ifndef APPULSE_PROFILE_TRACE_FOLDER_H
#define APPULSE_PROFILE_TRACE_FOLDER_H

#include "base/vec.h"
#include "cli/tool.h"
#include "run_options.h"
#include "trace/db.h"

#define RUN_NOTE "run.json"

struct trace_folder {
	char *path;  /* owned: absolute; NULL when there is none */
	char *value; /* owned: the same as the agent takes it under Wine */
	int lock;    /* of the note; -1: not held */
};

/* Makes the folder at `keep` (which must not exist, or be empty), or a new one
 * beside the database, and writes the note.  IO, EXISTS. */
enum status trace_folder_make(const char *database, const char *keep,
			      const struct db_run *run, struct trace_folder *ret_folder,
			      struct diag *diag);

/* Removes the folder with its trace files and note; a folder that holds
 * anything else stays. */
void trace_folder_remove(struct trace_folder *folder);

void trace_folder_release(struct trace_folder *folder);

/* What a note says. */
struct run_note {
	bool found;
	struct db_run run;  /* borrows from `json` */
	void *json;         /* owned */
};

/* Reads the note of a folder; one without a note gives `found` false.
 * BAD_TRACE when it is damaged. */
enum status run_note_read(const char *folder, struct run_note *ret_note, struct diag *diag);
void run_note_release(struct run_note *note);

/* Whether a collector holds the folder's note locked. */
bool trace_folder_is_busy(const char *folder);

/* Paths, sorted.  Released by path_list_release. */
struct path_list {
	char **data; /* owned, the strings too */
	uint32_t len, cap;
};
void path_list_release(struct path_list *list);

/* The trace files in a folder. */
enum status trace_folder_files(const char *folder, struct path_list *ret_files,
			       struct diag *diag);

/* The folders that collectors left beside the database. */
enum status trace_folder_leftovers(const char *database, struct path_list *ret_folders,
				   struct diag *diag);

/* What became of trace files. */
struct intake {
	uint32_t files, fresh, longer, known, empty; /* files that were read, by fate */
	uint32_t bad;      /* that are no trace, or could not be read: a warning each */
	uint64_t touches;  /* in the fresh and longer ones */
	uint32_t cut_short; /* touches that a kill cut short */
	int64_t run;       /* of the last trace; 0: none */
};

/* Takes one trace file into the database, as a part of `run` (unless it is known
 * as a part of another), and adds it to `intake`.  A bad file is a warning and
 * counted; a failure of the database is a status. */
enum status intake_file(struct tool *tool, struct db *db, const struct db_run *run,
			const char *path, struct intake *intake, struct diag *diag);

/* Sets members of a JSON object. */
void intake_put(struct result *result, json_t *object, const struct intake *intake);

#endif
