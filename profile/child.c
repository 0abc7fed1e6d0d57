/* Runs a command and waits for all that it started.
 *
 * A program's own children may outlive it: Wine even detaches every process that
 * a Windows program creates.  The collector is therefore the subreaper
 * (prctl(2), PR_SET_CHILD_SUBREAPER): whatever loses its parent below us becomes
 * our child, and the end of the last child is the end of all.
 *
 * Except that Wine's server, and the services that it starts for any program,
 * belong to the prefix and may live for ever.  Under Wine a process's command line
 * is its Windows one (observed: Wine 8.0), so the services are known by their
 * names in the system folder.  A new process shows its parent's command line for a
 * moment, hence the polling once the command itself has ended.  The command itself
 * is always waited for, whatever its name is.
 *
 * Signals.  The command stays in our process group, so that the terminal's job
 * control and reading from it work as without us.  The terminal's own signals
 * (Ctrl-C) reach the whole group; those that somebody sent to us alone are passed
 * on: to the command while it lives, then to what is left of it; what was stopped
 * goes on by it (SIGCONT), or it would not take the signal.  Once a signal
 * came, what outlives the command is waited for only GRACE_SECONDS.
 */
#include "child.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

enum { POLL_NS = 50000000, TELL_SECONDS = 2, GRACE_SECONDS = 5, MAX_COMMAND_LINE = 4096 };

struct watch {
	const struct child *child;
	pid_t pid; /* of the command; 0 once it has been reaped */
	struct timespec begin;
	double ended;    /* seconds when the command ended */
	double last;     /* seconds when the last one ended so far, or all were given up */
	double signaled; /* seconds when a signal came last; < 0: none did */
	bool told;       /* what is waited for */
	struct child_exit exit;
	sigset_t signals; /* that are waited for */
	VEC(pid_t) left;  /* children to wait for once the command has ended */
};

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) +
	       (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

/* ---- which processes count ---- */

/* The last part of a path of either system, up to `size`. */
static const char *base_name(const char *path, unsigned size)
{
	const char *name = path;

	for (unsigned i = 0; i < size; i++)
		if (path[i] == '/' || path[i] == '\\')
			name = path + i + 1;
	return name;
}

bool child_is_wine_service(const char *text, unsigned size)
{
	static const char folder[] = "c:\\windows\\system32\\";
	static const char *const names[] = {
		"services.exe",   "explorer.exe", "plugplay.exe",
		"winedevice.exe", "svchost.exe",  "rpcss.exe",
		"spoolsv.exe",    "tabtip.exe",   "conhost.exe"};
	const char *name;
	unsigned length = 0;

	/* The program's name ends at a blank (the services' have none) or NUL. */
	while (length < size && text[length] && text[length] != ' ')
		length++;
	name = base_name(text, length);
	if (text[0] == '/')
		return strncmp(name, "wineserver", 10) == 0;
	if (length < sizeof(folder) || strncasecmp(text, folder, sizeof(folder) - 1) != 0)
		return false;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == length - (unsigned)(name - text) &&
		    strncasecmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Reads a file of /proc; the bytes that came, 0 when it is gone. */
static unsigned read_proc(pid_t pid, const char *name, char *ret_text, unsigned size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, ret_text, size - 1);
	close(fd);
	if (n < 0)
		n = 0;
	ret_text[n] = '\0';
	return (unsigned)n;
}

/* Whether `pid` is a living child of ours (proc(5): "pid (name) state ppid", and field 20:
 * threads).  One whose first thread has ended is a zombie, with others that go on. */
static bool is_child(pid_t pid)
{
	char text[512];
	const char *p;
	char state;
	int parent, threads;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return false;
	p = strrchr(text, ')');
	return p &&
	       sscanf(p + 1,
		      " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
		      &state, &parent, &threads) == 3 &&
	       (state != 'Z' || threads > 1) && parent == (int)getpid();
}

static bool is_service(pid_t pid)
{
	char text[MAX_COMMAND_LINE];
	unsigned size = read_proc(pid, "cmdline", text, sizeof(text));

	return child_is_wine_service(text, size);
}

/* Lists the children that still have to end; false when /proc cannot tell. */
static bool list_left(struct watch *w)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	w->left.len = 0;
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && is_child(pid) &&
		    !is_service(pid) && !vec_push(&w->left, pid))
			break;
	}
	closedir(dir);
	return true;
}

/* ---- starting, signals, waiting ---- */

static void signals_of(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGCHLD);
	sigaddset(ret_signals, SIGINT);
	sigaddset(ret_signals, SIGTERM);
	sigaddset(ret_signals, SIGHUP);
	sigaddset(ret_signals, SIGQUIT);
}

/* Whether one of the child's variables stands in for this "NAME=VALUE". */
static bool is_replaced(const struct child *child, const char *text)
{
	for (unsigned i = 0; child->variables[i].name; i++) {
		size_t length = strlen(child->variables[i].name);

		if (strncmp(text, child->variables[i].name, length) == 0 &&
		    text[length] == '=')
			return true;
	}
	return false;
}

/* The command's environment: ours, with the child's variables.  `ret_made` are the
 * texts of those, which free_environment frees. */
static char **make_environment(const struct child *child, unsigned *ret_made)
{
	unsigned count = 0, made = 0, kept = 0;
	char **list;

	while (environ[count])
		count++;
	list = calloc(count + sizeof(child->variables) / sizeof(child->variables[0]) + 1,
		      sizeof(*list));
	for (; list && child->variables[made].name; made++)
		if (asprintf(&list[made], "%s=%s", child->variables[made].name,
			     child->variables[made].value) < 0)
			break;
	*ret_made = made;
	for (unsigned i = 0; list && i < count; i++)
		if (!is_replaced(child, environ[i]))
			list[made + kept++] = environ[i];
	if (list && child->variables[made].name)
		list[made] = NULL; /* memory is out */
	return list;
}

static void free_environment(char **list, unsigned made)
{
	for (unsigned i = 0; list && i < made; i++)
		free(list[i]);
	free(list);
}

/* Starts the command, its stdout being `output`; 0 or an errno. */
static int start(struct watch *w, int output, const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	unsigned made;
	char **environment = make_environment(w->child, &made);
	int err = !environment || w->child->variables[made].name
			  ? ENOMEM
			  : posix_spawn_file_actions_init(&actions);

	if (err) {
		free_environment(environment, made);
		return err;
	}
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = posix_spawnattr_setsigmask(&attributes, mask);
		if (!err)
			err = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
		if (!err && output != STDOUT_FILENO)
			err = posix_spawn_file_actions_adddup2(&actions, output,
							       STDOUT_FILENO);
		if (!err)
			err = posix_spawnp(&w->pid, w->child->command[0], &actions,
					   &attributes, w->child->command, environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	free_environment(environment, made);
	return err;
}

static void command_ended(struct watch *w, int status)
{
	w->pid = 0;
	w->ended = seconds_since(&w->begin);
	if (WIFSIGNALED(status)) {
		w->exit.exit = DB_EXIT_SIGNALED;
		w->exit.code = WTERMSIG(status);
	} else {
		w->exit.exit = DB_EXIT_EXITED;
		w->exit.code = WEXITSTATUS(status);
	}
}

/* Reaps what has ended; false when no child is left at all. */
static bool reap(struct watch *w)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0)
			w->last = seconds_since(&w->begin);
		if (pid == w->pid && pid > 0)
			command_ended(w, status);
		if (pid == 0)
			return true;
		if (pid < 0 && errno != EINTR)
			return false;
	}
}

/* A process that has stopped itself takes a signal when it goes on, and not before. */
static void send(pid_t pid, const siginfo_t *info)
{
	/* The kernel's own is there: the terminal sent it to the whole group. */
	if (info->si_code <= 0)
		kill(pid, info->si_signo);
	kill(pid, SIGCONT);
}

static void pass_on(struct watch *w, const siginfo_t *info)
{
	w->signaled = seconds_since(&w->begin);
	w->exit.interrupted = info->si_signo;
	if (w->pid > 0)
		send(w->pid, info);
	for (uint32_t i = 0; w->pid == 0 && i < w->left.len; i++)
		send(w->left.data[i], info);
}

static bool patience_ended(const struct watch *w)
{
	double now = seconds_since(&w->begin);
	double since = w->signaled > w->ended ? w->signaled : w->ended;

	if (w->signaled >= 0 && now - since > GRACE_SECONDS)
		return true;
	return w->child->patience >= 0 && now - w->ended > w->child->patience;
}

/* Nobody should have to guess why the command's end is not the end. */
static void tell(struct watch *w)
{
	char text[MAX_COMMAND_LINE];

	if (w->told || !w->child->tell || w->left.len == 0 ||
	    seconds_since(&w->begin) - w->ended < TELL_SECONDS)
		return;
	w->told = true;
	if (read_proc(w->left.data[0], "cmdline", text, sizeof(text)))
		w->child->tell(w->child->with, w->left.len, (int)w->left.data[0], text);
}

/* Waits until the command and all that counts have ended. */
static void wait_for_all(struct watch *w)
{
	const struct timespec poll = {.tv_nsec = POLL_NS};

	while (reap(w)) {
		siginfo_t info;
		int signal;

		if (w->pid == 0) {
			if (list_left(w) && w->left.len == 0) {
				reap(w); /* what ended since, for its time */
				return;
			}
			if (patience_ended(w)) {
				w->last = seconds_since(&w->begin);
				w->exit.left_running = w->left.len;
				return;
			}
			tell(w);
		}
		signal = sigtimedwait(&w->signals, &info, w->pid == 0 ? &poll : NULL);
		if (signal > 0 && signal != SIGCHLD)
			pass_on(w, &info);
	}
}

/* Where the command's stdout goes; to be closed when it is none of ours. */
static enum status open_output(const struct child *child, int *ret_fd, struct diag *diag)
{
	*ret_fd = child->output_fd > 0 ? child->output_fd
		  : child->output_to_stderr ? STDERR_FILENO : STDOUT_FILENO;
	if (!child->output)
		return STATUS_OK;
	*ret_fd = open(child->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (*ret_fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot write '%s'",
				       child->output);
	return STATUS_OK;
}

enum status child_run(const struct child *child, struct child_exit *ret_exit,
		      struct diag *diag)
{
	struct watch w = {.child = child, .signaled = -1};
	sigset_t old_mask;
	int err, output;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno,
				       "cannot watch over the command's processes");
	if (open_output(child, &output, diag) != STATUS_OK)
		return STATUS_IO;
	/* A parent may have left it ignored; then exit codes are lost. */
	signal(SIGCHLD, SIG_DFL);
	signals_of(&w.signals);
	sigprocmask(SIG_BLOCK, &w.signals, &old_mask);
	clock_gettime(CLOCK_MONOTONIC, &w.begin);
	err = start(&w, output, child->mask ? child->mask : &old_mask);
	if (child->output)
		close(output);
	if (err) {
		w.exit.exit = DB_EXIT_NOT_STARTED;
		w.exit.code = err;
		w.last = seconds_since(&w.begin);
	} else {
		wait_for_all(&w);
	}
	w.exit.wall_seconds = w.last;
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	vec_release(&w.left);
	*ret_exit = w.exit;
	return STATUS_OK;
}

enum status child_status(const struct child_exit *exit, const char *program,
			 struct diag *diag)
{
	switch (exit->exit) {
	case DB_EXIT_EXITED:
		if (exit->code == 0)
			return STATUS_OK;
		return diag_fail(diag, STATUS_COMMAND, "'%s' ended with exit code %d",
				 program, exit->code);
	case DB_EXIT_SIGNALED:
		return diag_fail(diag, STATUS_COMMAND, "'%s' was ended by signal %d (%s)",
				 program, exit->code, strsignal(exit->code));
	default:
		return diag_fail_errno(diag, STATUS_COMMAND, exit->code,
				       "cannot start '%s'", program);
	}
}
