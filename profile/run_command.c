/* appulse-profile run: traces a command into the database.
 *
 * The run's row and the trace folder's note are written before the command
 * starts: a database that cannot be written is told before minutes of work, and
 * whatever kills the collector leaves a folder that `import` can take.  The
 * database is closed while the command runs, and found by its path afterwards: it
 * may have been moved or replaced meanwhile, and traces must not go into a file
 * that nobody can see.
 *
 * With --json our stdout holds one object, so the command's output goes to stderr
 * then.
 */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "cli/companion.h"
#include "cli/human.h"
#include "cli/options.h"
#include "run_options.h"
#include "trace/probe.h"
#include "trace_folder.h"

struct run_session {
	struct tool *tool;
	struct run_options options;
	const char *keep;
	uint64_t patience; /* seconds */
	bool has_patience;

	struct db *db;
	int64_t run;
	struct run_description description;
	struct trace_folder folder;
	struct child_exit exit;
	struct intake intake;
};

static void close_database(struct run_session *s)
{
	db_close(s->db);
	s->db = NULL;
}

static enum status prepare(struct run_session *s, char **command, struct diag *diag)
{
	enum status status =
		run_describe(&s->options, DB_RUN_TRACE, command, &s->description, diag);

	if (status == STATUS_OK)
		status = db_open(s->options.database, DB_CREATE, &s->db, diag);
	if (status == STATUS_OK)
		status = trace_folder_make(s->options.database, s->keep,
					   &s->description.run, &s->folder, diag);
	if (status == STATUS_OK)
		status = db_begin_run(s->db, &s->description.run, &s->run, diag);
	if (status != STATUS_OK && s->folder.path)
		trace_folder_remove(&s->folder);
	close_database(s);
	return status;
}

static void tell_waiting(void *with, unsigned processes, int first_pid,
			 const char *first_name)
{
	tool_note(with,
		  "the command has ended, waiting for what it left running: process %d "
		  "('%s')%s; --wait SECONDS would bound that",
		  first_pid, first_name, processes > 1 ? " and others" : "");
}

/* Wine's path for DLLs (observed: Wine 8, Unix paths are understood), with the
 * agent's folder in front: Windows looks for what a DLL imports in the program's
 * folder and in the path, not beside the DLL.  On the heap, the caller frees; NULL
 * when there is no agent or no memory: then the agent must be found as it is. */
static char *path_to_agent(void)
{
	static const struct companion agent = {.name = PROBE_AGENT_DLL,
					       .variable = PROBE_AGENT_VARIABLE,
					       .folder = "../instrument/agent"};
	const char *old = getenv("WINEPATH");
	char *path, *slash, *all = NULL;

	if (companion_find(&agent, &path, NULL) != STATUS_OK)
		return NULL;
	slash = strrchr(path, '/');
	if (slash && asprintf(&all, "%.*s%s%s", (int)(slash - path), path, old ? ";" : "",
			      old ? old : "") < 0)
		all = NULL;
	free(path);
	return all;
}

static enum status run_child(struct run_session *s, char **command, struct diag *diag)
{
	char *path = path_to_agent();
	struct child child = {
		.command = command,
		.variables = {{PROBE_TRACE_FOLDER, s->folder.value},
			      {path ? "WINEPATH" : NULL, path}},
		.output = s->options.output,
		.output_to_stderr = s->tool->json,
		.patience = s->has_patience ? (double)s->patience : -1,
		.tell = tell_waiting,
		.with = s->tool,
	};
	enum status status = child_run(&child, &s->exit, diag);

	free(path);
	return status;
}

/* Takes all trace files in, and writes how the command ended even when one of
 * them cannot be taken in. */
static enum status take_in(struct run_session *s, struct diag *diag)
{
	struct path_list files = {0};
	enum status status = db_open(s->options.database, DB_CREATE, &s->db, diag);

	/* Finds the run, but in a database that was replaced. */
	if (status == STATUS_OK)
		status = db_begin_run(s->db, &s->description.run, &s->run, diag);
	if (status == STATUS_OK)
		status = db_finish_run(s->db, s->run, s->exit.exit, s->exit.code,
				       s->exit.wall_seconds, diag);
	if (status == STATUS_OK)
		status = trace_folder_files(s->folder.path, &files, diag);
	for (uint32_t i = 0; i < files.len && status == STATUS_OK; i++) {
		progress_fraction(&s->tool->progress, i, files.len);
		status = intake_file(s->tool, s->db, &s->description.run, files.data[i],
				     &s->intake, diag);
	}
	path_list_release(&files);
	close_database(s);
	if (status == STATUS_OK && s->intake.bad)
		status = diag_fail(diag, STATUS_BAD_TRACE,
				   "%u of %u trace files could not be read", s->intake.bad,
				   s->intake.bad + s->intake.files);
	return status;
}

/* Whether nothing more can come out of the folder. */
static bool is_done_with(const struct run_session *s, enum status status)
{
	return status == STATUS_OK && s->exit.left_running == 0;
}

/* Says where the traces are when they are needed still. */
static void put_folder_away(struct run_session *s, enum status status)
{
	const char *later = s->exit.left_running ? " when they have ended" : "";

	if (s->exit.left_running)
		tool_warn(s->tool, "processes of the command that still run: %u",
			  s->exit.left_running);
	if (s->keep)
		return;
	if (is_done_with(s, status))
		trace_folder_remove(&s->folder);
	else
		tool_warn(s->tool,
			  "the traces stay in '%s', take them in%s by "
			  "'appulse-profile import --db %s %s'",
			  s->folder.path, later, s->options.database, s->folder.path);
}

static void put_result(struct run_session *s, enum status status)
{
	struct result *r = &s->tool->result;
	json_t *command;
	bool kept = s->keep || !is_done_with(s, status);

	result_put_text(r, r->root, "db", s->options.database);
	result_put_count(r, r->root, "run", (uint64_t)s->run);
	result_put_text(r, r->root, "scenario",
			s->options.scenario ? s->options.scenario : "default");
	result_put_real(r, r->root, "weight", s->description.run.weight);
	command = result_put_object(r, r->root, "command_exit");
	result_put_text(r, command, "class", db_exit_name(s->exit.exit));
	result_put_count(r, command, "code", (uint64_t)s->exit.code);
	result_put_real(r, command, "wall_seconds", s->exit.wall_seconds);
	result_put_count(r, command, "left_running", s->exit.left_running);
	intake_put(r, r->root, &s->intake);
	result_put_text(r, r->root, "traces", kept ? s->folder.path : NULL);
}

static void say_result(struct run_session *s)
{
	if (s->exit.exit == DB_EXIT_NOT_STARTED)
		return;
	tool_note(s->tool, "run %lld: %s, trace files: %u, touches: %s", (long long)s->run,
		  human_seconds(s->exit.wall_seconds).text, s->intake.files,
		  human_count(s->intake.touches).text);
	if (s->intake.files == 0)
		tool_warn(s->tool, "the command loaded no instrumented image");
}

static enum status run_session(struct run_session *s, char **command, struct diag *diag)
{
	enum status status = prepare(s, command, diag);

	if (status != STATUS_OK)
		return status;
	status = run_child(s, command, diag);
	if (status == STATUS_OK) {
		progress_step(&s->tool->progress, "reading traces");
		status = take_in(s, diag);
		progress_end(&s->tool->progress);
	}
	put_folder_away(s, status);
	put_result(s, status);
	if (status == STATUS_OK) {
		say_result(s);
		status = child_status(&s->exit, command[0], diag);
	}
	return status;
}

enum status run_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct run_session s = {.tool = tool, .folder.lock = -1};
	const struct option_spec options[] = {
		OPTIONS_RUN(&s.options),
		OPTION_COMMAND_OUTPUT(&s.options),
		OPTION_STRING("keep-traces", 0, "DIR", &s.keep,
			      "make the trace files in DIR and leave them there"),
		OPTION_NUMBER("wait", 0, "SECONDS", &s.patience, 0, 86400,
			      "wait no longer for what outlives the command (default: "
			      "until all has ended)",
			      .given = &s.has_patience),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Runs COMMAND, waits for it and for all processes that it starts, "
			"and writes what they touched of instrumented images into the "
			"database, which is made when it does not exist.\n\n"
			"The exit code is 0 when COMMAND ended with 0, and 1 when it ended "
			"otherwise or did not start; what it touched is in the database "
			"then too. With --json, what COMMAND writes to stdout goes to "
			"stderr, or where --stdout says.\n\n"
			"Until they are in the database the trace files stand beside it, "
			"in FILE.traces-XXXXXX, where 'import' finds them if this program "
			"is killed.",
		.takes_command = true,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = run_session(&s, line.command, diag);
	trace_folder_release(&s.folder);
	run_description_release(&s.description);
	close_database(&s);
	command_line_release(&line);
	return status;
}
