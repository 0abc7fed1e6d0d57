/* Runs a command and says what it cost.
 *
 *     measured_run REPORT COMMAND...
 *
 * REPORT gets one line: seconds passed, seconds of user time, seconds of system
 * time, peak resident KiB.  The exit code is the command's.
 *
 * A program of its own, because Linux counts the memory of the process that became
 * the command by exec into the command's peak (getrusage(2), ru_maxrss): behind
 * Python every small program would seem to need 10 MB.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double begin, passed;
	int status, failed;
	pid_t child;
	FILE *report;

	if (argc < 3) {
		fprintf(stderr, "usage: measured_run REPORT COMMAND...\n");
		return 2;
	}
	begin = now();
	failed = posix_spawnp(&child, argv[2], NULL, NULL, argv + 2, environ);
	if (failed) {
		fprintf(stderr, "measured_run: %s: %s\n", argv[2], strerror(failed));
		return 127;
	}
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 127;
	passed = now() - begin;
	report = fopen(argv[1], "w");
	if (!report ||
	    fprintf(report, "%.6f %.6f %.6f %ld\n", passed, seconds_of(usage.ru_utime),
		    seconds_of(usage.ru_stime), usage.ru_maxrss) < 0 ||
	    fclose(report) != 0) {
		perror(argv[1]);
		return 127;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
