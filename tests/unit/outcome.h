/* Runs a tool's main in a child process and keeps what it printed. */
#ifndef APPULSE_TESTS_OUTCOME_H
#define APPULSE_TESTS_OUTCOME_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"

struct outcome {
	int exit_code; /* -1 when it was killed */
	char out[16384], err[16384];
};

static inline void outcome_read(int fd, char *ret_text, size_t size)
{
	ssize_t n = pread(fd, ret_text, size - 1, 0);

	ret_text[n > 0 ? n : 0] = '\0';
	close(fd);
}

/* `argv` ends in NULL; `out_path` is where stdout goes, NULL to keep it. */
static inline struct outcome outcome_of(struct tool *tool, char **argv,
					const char *out_path)
{
	int out = memfd_create("out", 0), err = memfd_create("err", 0);
	struct outcome outcome = {.exit_code = -1};
	int argc = 0, wait_status;
	pid_t child;

	while (argv[argc])
		argc++;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		dup2(out_path ? open(out_path, O_WRONLY) : out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		_exit(tool_main(tool, argc, argv));
	}
	if (child > 0 && waitpid(child, &wait_status, 0) == child && WIFEXITED(wait_status))
		outcome.exit_code = WEXITSTATUS(wait_status);
	outcome_read(out, outcome.out, sizeof(outcome.out));
	outcome_read(err, outcome.err, sizeof(outcome.err));
	return outcome;
}

#endif
