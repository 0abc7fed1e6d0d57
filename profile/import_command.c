/* appulse-profile import: takes in trace files that no `run` of ours collected,
 * or that one could not.
 *
 * Which run is a trace of?  A folder that `run` made says so in its note.  Other
 * traces only say which process they are of and who its parent was, so a run is
 * there a process with the traced processes that descend from it: a folder in
 * which a program was traced three times gives three runs, and their orders are
 * not mixed.  A child whose parent had no instrumented image, or whose parent has
 * not been imported yet, starts a run of its own.
 *
 * Such a run is named by its first process, so importing again, also after more
 * traces have come into the folder, finds it.
 */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/human.h"
#include "cli/options.h"
#include "run_options.h"
#include "trace/ingest.h"
#include "trace_folder.h"

struct import_session {
	struct tool *tool;
	struct run_options options;
	double weight;
	bool remove;
	struct db *db;
	struct intake total;
	VEC(int64_t) runs; /* that got traces, each once */
};

/* Where a trace comes from. */
struct trace_origin {
	char *path; /* borrowed */
	uint32_t process, parent;
	uint64_t start;
	char *executable; /* owned */
	uint32_t root;    /* index of a trace of the run's first process */
};

struct origin_list {
	struct trace_origin *data;
	uint32_t len, cap;
};

static void origin_list_release(struct origin_list *list)
{
	for (uint32_t i = 0; i < list->len; i++)
		free(list->data[i].executable);
	vec_release(list);
}

/* A trace of the parent of trace `i`, or `i`.  Process ids are used again: the
 * parent is the latest process of that id that started before the child. */
static uint32_t parent_of(const struct origin_list *list, uint32_t i)
{
	const struct trace_origin *child = &list->data[i];
	uint32_t best = i;

	for (uint32_t k = 0; k < list->len; k++) {
		const struct trace_origin *o = &list->data[k];

		if (child->parent == 0 || o->process != child->parent ||
		    o->process == child->process || o->start > child->start)
			continue;
		if (best == i || o->start > list->data[best].start)
			best = k;
	}
	return best;
}

static void find_roots(struct origin_list *list)
{
	for (uint32_t i = 0; i < list->len; i++) {
		uint32_t root = i;

		/* Two that call each other parent end at the bound. */
		for (uint32_t steps = 0; steps < list->len; steps++) {
			uint32_t parent = parent_of(list, root);

			if (parent == root)
				break;
			root = parent;
		}
		list->data[i].root = root;
	}
}

/* Reads where the files come from; those that are no traces are left to
 * intake_file, which warns of them. */
static enum status read_origins(char **files, uint32_t count, struct origin_list *list,
				struct diag *diag)
{
	for (uint32_t i = 0; i < count; i++) {
		struct trace_file trace;
		struct trace_origin origin = {.path = files[i]};
		enum status status = trace_file_read(files[i], &trace, diag);

		if (status == STATUS_NO_MEMORY)
			return status;
		if (status == STATUS_OK) {
			origin.process = trace.process;
			origin.parent = trace.parent;
			origin.start = trace.process_start;
			origin.executable =
				strdup(trace.executable ? trace.executable : "");
			trace_file_release(&trace);
		}
		if ((status == STATUS_OK && !origin.executable) ||
		    !vec_push(list, origin)) {
			free(origin.executable);
			return diag_no_memory(diag);
		}
	}
	find_roots(list);
	return STATUS_OK;
}

static bool note_run(struct import_session *s, int64_t run)
{
	for (uint32_t i = 0; i < s->runs.len; i++)
		if (s->runs.data[i] == run)
			return true;
	return run == 0 || vec_push(&s->runs, run);
}

static enum status import_file(struct import_session *s, const struct db_run *run,
			       const char *path, struct diag *diag)
{
	enum status status;

	s->total.run = 0;
	status = intake_file(s->tool, s->db, run, path, &s->total, diag);
	if (status == STATUS_OK && !note_run(s, s->total.run))
		status = diag_no_memory(diag);
	return status;
}

/* Files without a note: runs by first processes. */
static enum status import_loose(struct import_session *s, char **files, uint32_t count,
				struct diag *diag)
{
	struct origin_list list = {0};
	enum status status = read_origins(files, count, &list, diag);

	for (uint32_t i = 0; i < list.len && status == STATUS_OK; i++) {
		const struct trace_origin *root = &list.data[list.data[i].root];
		char identity[96];
		struct db_run run = {
			.kind = DB_RUN_TRACE,
			.identity = identity,
			.scenario = s->options.scenario,
			.weight = s->weight,
			.command = root->executable && root->executable[0]
					   ? root->executable
					   : NULL,
			.started_ns = ingest_time_ns(root->start),
		};

		snprintf(identity, sizeof(identity), "imported-%" PRIu32 "-%" PRIu64,
			 root->process, root->start);
		progress_fraction(&s->tool->progress, i, list.len);
		status = import_file(s, &run, list.data[i].path, diag);
	}
	origin_list_release(&list);
	return status;
}

static enum status import_noted(struct import_session *s, const struct run_note *note,
				const struct path_list *files, const char *folder,
				struct diag *diag)
{
	enum status status = STATUS_OK;

	if (s->options.scenario || s->options.weight)
		tool_warn(s->tool,
			  "folder '%s' says itself what run it is of, "
			  "--scenario and --weight do not change that",
			  folder);
	for (uint32_t i = 0; i < files->len && status == STATUS_OK; i++) {
		progress_fraction(&s->tool->progress, i, files->len);
		status = import_file(s, &note->run, files->data[i], diag);
	}
	return status;
}

static enum status import_folder(struct import_session *s, const char *folder,
				 struct diag *diag)
{
	struct path_list files = {0};
	struct run_note note = {0};
	struct trace_folder remove = {.lock = -1};
	uint32_t bad = s->total.bad;
	bool busy = trace_folder_is_busy(folder);
	enum status status = trace_folder_files(folder, &files, diag);

	if (status == STATUS_OK)
		status = run_note_read(folder, &note, diag);
	if (status == STATUS_OK && note.found)
		status = import_noted(s, &note, &files, folder, diag);
	else if (status == STATUS_OK)
		status = import_loose(s, files.data, files.len, diag);
	if (status == STATUS_OK && files.len == 0)
		tool_warn(s->tool, "folder '%s' has no trace files (*.aptrace)", folder);
	remove.path = (char *)folder;
	if (status == STATUS_OK && s->remove && s->total.bad == bad && !busy)
		trace_folder_remove(&remove);
	run_note_release(&note);
	path_list_release(&files);
	return status;
}

/* What killed collectors left beside the database. */
static enum status import_leftovers(struct import_session *s, struct diag *diag)
{
	struct path_list folders = {0};
	uint32_t taken = 0;
	enum status status = trace_folder_leftovers(s->options.database, &folders, diag);

	for (uint32_t i = 0; i < folders.len && status == STATUS_OK; i++) {
		if (trace_folder_is_busy(folders.data[i])) {
			tool_note(s->tool, "'%s' is still being collected",
				  folders.data[i]);
			continue;
		}
		taken++;
		status = import_folder(s, folders.data[i], diag);
	}
	path_list_release(&folders);
	if (status == STATUS_OK && taken == 0)
		tool_note(s->tool, "no traces were left beside '%s'", s->options.database);
	return status;
}

static enum status import_arguments(struct import_session *s,
				    const struct string_list *arguments, struct diag *diag)
{
	VEC(char *) files = {0};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < arguments->len && status == STATUS_OK; i++) {
		const char *path = arguments->data[i];
		struct stat st;

		if (stat(path, &st) != 0)
			status = diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'",
						 path);
		else if (S_ISDIR(st.st_mode))
			status = import_folder(s, path, diag);
		else if (!vec_push(&files, (char *)path))
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		status = import_loose(s, files.data, files.len, diag);
	vec_release(&files);
	return status;
}

static void put_result(struct import_session *s, enum status status)
{
	struct result *r = &s->tool->result;
	const struct intake *t = &s->total;
	json_t *runs;

	result_put_text(r, r->root, "db", s->options.database);
	intake_put(r, r->root, t);
	runs = result_put_array(r, r->root, "runs");
	for (uint32_t i = 0; i < s->runs.len; i++)
		result_add_count(r, runs, (uint64_t)s->runs.data[i]);
	if (s->tool->json || (status != STATUS_OK && t->files == 0))
		return;
	printf("trace files: %u (%u new, %u longer than before, %u known, %u empty), "
	       "touches: %s, runs: %u\n",
	       t->files, t->fresh, t->longer, t->known, t->empty,
	       human_count(t->touches).text, s->runs.len);
	if (t->cut_short)
		printf("touches that a kill cut short: %u\n", t->cut_short);
}

static enum status import(struct import_session *s, const struct string_list *arguments,
			  struct diag *diag)
{
	enum status status = run_options_check(&s->options, &s->weight, diag);

	if (status == STATUS_OK)
		status = db_open(s->options.database, DB_CREATE, &s->db, diag);
	if (status != STATUS_OK)
		return status;
	progress_step(&s->tool->progress, "reading traces");
	status = arguments->len ? import_arguments(s, arguments, diag)
				: import_leftovers(s, diag);
	progress_end(&s->tool->progress);
	if (status == STATUS_OK && s->total.bad)
		status = diag_fail(diag, STATUS_BAD_TRACE,
				   "%u of %u trace files could not be read", s->total.bad,
				   s->total.bad + s->total.files);
	put_result(s, status);
	return status;
}

enum status import_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct import_session s = {.tool = tool};
	const struct option_spec options[] = {
		OPTIONS_RUN(&s.options),
		OPTION_FLAG("remove", 0, &s.remove,
			    "remove folders whose traces are all in the database"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Writes trace files into the database, which is made when it does "
			"not exist: single files, or all in a folder. Without arguments it "
			"takes what collectors that were killed left beside the "
			"database.\n\n"
			"A trace counts once, however often it is imported; of one that "
			"has grown since, the longer version stays.\n\n"
			"Folders that 'run' made say which run they belong to. Other "
			"traces are put together by process: each traced process that no "
			"other traced one started is a run, together with its descendants.",
		.arguments = "[FILE|FOLDER...]",
		.min = 0,
		.max = ARGUMENTS_ANY,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = import(&s, &line.arguments, diag);
	vec_release(&s.runs);
	db_close(s.db);
	command_line_release(&line);
	return status;
}
