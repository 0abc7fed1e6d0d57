#include "debugger_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/companion.h"
#include "debug_command.h"

static enum status make_folder(struct debugger_run *run, struct diag *diag)
{
	const char *temporary = getenv("TMPDIR");

	if (!temporary || !temporary[0])
		temporary = "/tmp";
	if (asprintf(&run->folder, "%s/appulse-debug-XXXXXX", temporary) < 0) {
		run->folder = NULL;
		return diag_no_memory(diag);
	}
	if (!mkdtemp(run->folder)) {
		int err = errno;

		free(run->folder);
		run->folder = NULL;
		return diag_fail_errno(diag, STATUS_IO, err, "cannot make a folder in '%s'",
				       temporary);
	}
	if (asprintf(&run->log_path, "%s/log", run->folder) < 0) {
		run->log_path = NULL;
		return diag_no_memory(diag);
	}
	return STATUS_OK;
}

enum status debugger_run_init(struct debugger_run *run, struct diag *diag)
{
	static const struct companion debugger = {"appulse-debugger.exe", "APPULSE_DEBUGGER",
						  "debugger"};
	enum status status;

	memset(run, 0, sizeof(*run));
	status = companion_find(&debugger, &run->program, diag);
	return status == STATUS_OK ? make_folder(run, diag) : status;
}

void debugger_run_release(struct debugger_run *run)
{
	if (run->log_path)
		unlink(run->log_path);
	if (run->folder)
		rmdir(run->folder);
	free(run->program);
	free(run->folder);
	free(run->log_path);
	debugger_log_release(&run->log);
	memset(run, 0, sizeof(*run));
}

static enum status run_child(struct debugger_run *run, char *const *words,
			     const struct child *child, struct diag *diag)
{
	struct child with = *child;
	size_t count = 0;
	char **all, **made = NULL;
	enum status status;

	while (words[count])
		count++;
	all = calloc(count + 5, sizeof(*all));
	if (!all)
		return diag_no_memory(diag);
	all[0] = run->program;
	memcpy(all + 1, words, count * sizeof(*all));
	all[count + 1] = "--log";
	all[count + 2] = run->log_path;
	all[count + 3] = "--";
	status = debug_command_make(child->command, all, &made, diag);
	with.command = made;
	if (status == STATUS_OK)
		status = child_run(&with, &run->exit, diag);
	if (status == STATUS_OK && run->exit.exit == DB_EXIT_NOT_STARTED)
		status = child_status(&run->exit, child->command[0], diag);
	free(all);
	free(made);
	return status;
}

static enum status read_log(struct debugger_run *run, char **command, struct diag *diag)
{
	struct mapped_file file;
	enum status status;

	if (access(run->log_path, F_OK) != 0) {
		status = child_status(&run->exit, command[0], diag);
		return status != STATUS_OK ? status
					   : diag_fail(diag, STATUS_COMMAND,
						       "the debugger '%s' did not start",
						       run->program);
	}
	status = mapped_file_open(&file, run->log_path, diag);
	if (status != STATUS_OK)
		return status;
	status = debugger_log_parse(file.data, file.size, &run->log, diag);
	mapped_file_close(&file);
	if (status == STATUS_OK && run->log.failed)
		return diag_fail(diag, STATUS_COMMAND,
				 "the program did not start (Windows error %u)", run->log.error);
	/* The exit code of a Unix process has 8 bits only. */
	if (status == STATUS_OK && run->log.ended && run->exit.exit == DB_EXIT_EXITED)
		run->exit.code = (int)run->log.exit_code;
	return status;
}

enum status debugger_run_command(struct debugger_run *run, char *const *words,
				 const struct child *child, struct diag *diag)
{
	enum status status = run_child(run, words, child, diag);

	return status == STATUS_OK ? read_log(run, child->command, diag) : status;
}
