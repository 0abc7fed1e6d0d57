/* Everything that `appulse optimize` does to images and profiles is done by the other
 * tools, run as a user would run them: so there is one way of doing each thing, and what
 * works here can be done by hand, step by step.
 *
 * The alternative, linking the tools' insides together, would save some 10 ms a step and
 * make the driver die of whatever they die of; and it has files to put back.
 */
#include "subtools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/companion.h"

enum { LOG_TAIL_BYTES = 2000, LOG_TAIL_LINES = 12 };

/* What to start. */
struct start {
	const char *program; /* as for execvp */
	char **words;        /* NULL-terminated */
	const char *output;  /* file for its stdout */
};

/* ---- signals ---- */

static void hold_signals(struct subtools *s)
{
	static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	sigemptyset(&s->held);
	sigaddset(&s->held, SIGCHLD);
	for (unsigned i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++) {
		struct sigaction action;

		/* What our parent wants ignored (nohup) stays ignored. */
		if (sigaction(passed_on[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(&s->held, passed_on[i]);
	}
	/* An ignored SIGCHLD would cost us the exit codes, a SIGPIPE our life. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &s->held, &s->before);
	s->holding = true;
}

enum status subtools_begin(struct subtools *subtools, struct tool *tool, const char *folder,
			   struct diag *diag)
{
	*subtools = (struct subtools){.tool = tool};
	if (asprintf(&subtools->object, "%s/object.json", folder) < 0)
		subtools->object = NULL;
	if (asprintf(&subtools->log, "%s/log", folder) < 0)
		subtools->log = NULL;
	if (!subtools->object || !subtools->log)
		return diag_no_memory(diag);
	hold_signals(subtools);
	return STATUS_OK;
}

void subtools_end(struct subtools *subtools)
{
	if (subtools->holding)
		sigprocmask(SIG_SETMASK, &subtools->before, NULL);
	free(subtools->object);
	free(subtools->log);
	memset(subtools, 0, sizeof(*subtools));
}

static enum status interruption(const struct subtools *s, struct diag *diag)
{
	return diag_fail(diag, STATUS_COMMAND, "interrupted by signal %d (%s)",
			 s->interrupted, strsignal(s->interrupted));
}

/* Takes signals that came while nothing ran. */
static void take_pending(struct subtools *s)
{
	const struct timespec none = {0};
	int signal;

	while ((signal = sigtimedwait(&s->held, NULL, &none)) > 0)
		if (signal != SIGCHLD)
			s->interrupted = signal;
}

/* ---- child processes ---- */

static void redirect(int to, const char *path, int flags)
{
	int fd = open(path, flags, 0666);

	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	if (fd != to)
		close(fd);
}

/* In the child: becomes the program, or writes an errno to `report`. */
static void become(const struct subtools *s, const struct start *start, pid_t parent,
		   int report)
{
	int err;

	/* A killed driver must not leave a collector behind. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	redirect(STDOUT_FILENO, start->output, O_WRONLY | O_CREAT | O_TRUNC);
	redirect(STDERR_FILENO, s->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	execvp(start->program, start->words);
	err = errno;
	if (write(report, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* Starts the program; 0 or an errno. */
static int spawn(const struct subtools *s, const struct start *start, pid_t *ret_pid)
{
	pid_t parent = getpid();
	int report[2], err = 0;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	*ret_pid = fork();
	if (*ret_pid == 0)
		become(s, start, parent, report[1]);
	if (*ret_pid < 0)
		err = errno;
	close(report[1]);
	do
		n = read(report[0], &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == sizeof(err) && *ret_pid > 0)
		waitpid(*ret_pid, NULL, 0);
	return err;
}

/* Passes a signal on, the second time as one that cannot be missed.  The kernel's own
 * came from the terminal, to the whole group. */
static void pass_on(struct subtools *s, pid_t pid, const siginfo_t *info)
{
	if (s->interrupted)
		kill(pid, SIGKILL);
	else if (info->si_code <= 0)
		kill(pid, info->si_signo);
	s->interrupted = info->si_signo;
}

/* The child's wait status. */
static int wait_for(struct subtools *s, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		siginfo_t info;
		int signal = sigwaitinfo(&s->held, &info);

		if (signal > 0 && signal != SIGCHLD)
			pass_on(s, pid, &info);
	}
	return status;
}

/* Runs it to its end.  COMMAND when it did not start, or we were interrupted. */
static enum status run(struct subtools *s, const struct start *start, int *ret_wait_status,
		       struct diag *diag)
{
	pid_t pid = 0;
	int err;

	take_pending(s);
	if (s->interrupted)
		return interruption(s, diag);
	err = spawn(s, start, &pid);
	if (err)
		return diag_fail_errno(diag, STATUS_COMMAND, err, "cannot start '%s'",
				       start->program);
	*ret_wait_status = wait_for(s, pid);
	return s->interrupted ? interruption(s, diag) : STATUS_OK;
}

static enum status end_status(const char *program, int wait_status, uint32_t expected,
			      struct diag *diag)
{
	int code = WEXITSTATUS(wait_status);

	if (WIFSIGNALED(wait_status))
		return diag_fail(diag, STATUS_COMMAND, "'%s' was ended by signal %d (%s)",
				 program, WTERMSIG(wait_status),
				 strsignal(WTERMSIG(wait_status)));
	if (code == (int)(expected & EXIT_CODE_MASK))
		return STATUS_OK;
	if (code)
		return diag_fail(diag, STATUS_COMMAND, "'%s' ended with exit code %d",
				 program, code);
	return diag_fail(diag, STATUS_COMMAND, "'%s' ended with exit code 0, not %u",
			 program, (unsigned)expected);
}

enum status subtools_run_command(struct subtools *subtools, char **command,
				 const char *output, uint32_t expected, struct diag *diag)
{
	const struct start start = {command[0], command, output};
	int wait_status;
	enum status status = run(subtools, &start, &wait_status, diag);

	return status == STATUS_OK ? end_status(command[0], wait_status, expected, diag)
				   : status;
}

/* ---- tools ---- */

/* APPULSE_PROFILE for "appulse-profile"; it is the caller's to free. */
static char *variable_of(const char *name)
{
	char *variable = strdup(name);

	for (char *c = variable; c && *c; c++)
		*c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	return variable;
}

enum status subtool_find(const char *name, char **ret_path, struct diag *diag)
{
	/* In a build folder each tool has the folder of its last word. */
	const char *word = strrchr(name, '-');
	char *variable = variable_of(name), *folder = NULL;
	struct companion companion = {.name = name};
	enum status status;

	if (!variable || asprintf(&folder, "../%s", word ? word + 1 : name) < 0) {
		free(variable);
		return diag_no_memory(diag);
	}
	companion.variable = variable;
	companion.folder = folder;
	status = companion_find(&companion, ret_path, diag);
	free(variable);
	free(folder);
	return status;
}

static enum status status_named(const char *name)
{
	for (unsigned i = 0; name && i < STATUS_COUNT; i++)
		if (strcmp(status_name((enum status)i), name) == 0)
			return (enum status)i;
	return STATUS_IO;
}

/* The tool's failure as if it were ours. */
static enum status adopt_failure(const json_t *object, struct diag *diag)
{
	const json_t *error = json_object_get(object, "error");
	const json_t *rva = json_object_get(error, "rva");
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *file = json_string_value(json_object_get(error, "file"));
	const char *function = json_string_value(json_object_get(error, "function"));
	enum status status =
		status_named(json_string_value(json_object_get(object, "status")));

	diag_fail(diag, status, "%s", message ? message : "");
	if (rva) {
		diag->has_rva = true;
		diag->rva = rva_of((uint32_t)json_integer_value(rva));
	}
	if (file)
		diag_set_file(diag, file);
	if (function)
		diag_set_function(diag, function);
	diag_set_values(diag, json_string_value(json_object_get(error, "expected")),
			json_string_value(json_object_get(error, "found")));
	return status;
}

static bool is_known_warning(const struct tool *tool, const char *text)
{
	for (uint32_t i = 0; i < tool->len; i++)
		if (strcmp(tool->data[i], text) == 0)
			return true;
	return false;
}

/* Each once: a command that is run several times would say the same each time. */
static void adopt_warnings(struct tool *tool, const json_t *object)
{
	const json_t *warnings = json_object_get(object, "warnings");

	for (size_t i = 0; i < json_array_size(warnings); i++) {
		const char *text = json_string_value(json_array_get(warnings, i));

		if (text && !is_known_warning(tool, text))
			tool_warn(tool, "%s", text);
	}
}

/* What a tool that has ended left: its object, its status. */
static enum status take_result(struct subtools *s, const char *name, int wait_status,
			       json_t **ret_object, struct diag *diag)
{
	json_t *object = json_load_file(s->object, 0, NULL);
	enum status status = STATUS_OK;

	if (!json_is_object(object)) {
		json_decref(object);
		status = end_status(name, wait_status, 0, diag);
		return status != STATUS_OK ? status
					   : diag_fail(diag, STATUS_COMMAND,
						       "'%s' printed no JSON object", name);
	}
	*ret_object = object;
	adopt_warnings(s->tool, object);
	if (WIFSIGNALED(wait_status))
		return end_status(name, wait_status, 0, diag);
	return WEXITSTATUS(wait_status) ? adopt_failure(object, diag) : STATUS_OK;
}

enum status subtool_run(struct subtools *subtools, const char *name, char **arguments,
			json_t **ret_object, struct diag *diag)
{
	struct start start = {.output = subtools->object};
	size_t count = 0;
	char *path = NULL;
	int wait_status;
	enum status status = subtool_find(name, &path, diag);

	*ret_object = NULL;
	if (status != STATUS_OK)
		return status;
	while (arguments[count])
		count++;
	start.program = path;
	start.words = calloc(count + 2, sizeof(*start.words));
	if (!start.words) {
		free(path);
		return diag_no_memory(diag);
	}
	start.words[0] = (char *)name;
	memcpy(start.words + 1, arguments, count * sizeof(*start.words));
	status = run(subtools, &start, &wait_status, diag);
	if (status == STATUS_OK)
		status = take_result(subtools, name, wait_status, ret_object, diag);
	free(start.words);
	free(path);
	return status;
}

/* ---- the log ---- */

/* What a terminal would show of a line: what stands behind its last carriage return, that
 * of a Windows program's line end left out. */
static char *shown_part(char *line)
{
	size_t length = strlen(line);
	char *begin;

	while (length && line[length - 1] == '\r')
		line[--length] = '\0';
	begin = strrchr(line, '\r');
	return begin ? begin + 1 : line;
}

/* The last lines of a text, which is cut into lines; the tools' own words, which we
 * repeat anyway, left out. */
static void show_lines(struct tool *tool, char *text)
{
	char *lines[LOG_TAIL_LINES], *line, *rest = text;
	unsigned count = 0;

	while ((line = strsep(&rest, "\n"))) {
		line = shown_part(line);
		if (!line[0] || strncmp(line, "appulse-", 8) == 0)
			continue;
		if (count == LOG_TAIL_LINES)
			memmove(lines, lines + 1, --count * sizeof(*lines));
		lines[count++] = line;
	}
	for (unsigned i = 0; i < count; i++)
		tool_note(tool, "  | %s", lines[i]);
}

void subtools_show_log(const struct subtools *subtools)
{
	char text[LOG_TAIL_BYTES + 1];
	int fd = open(subtools->log, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	if (lseek(fd, -LOG_TAIL_BYTES, SEEK_END) < 0)
		lseek(fd, 0, SEEK_SET);
	n = read(fd, text, LOG_TAIL_BYTES);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	show_lines(subtools->tool, text);
}
