/* Work that may be done beside what follows.
 *
 *     struct task task;
 *     task_start(&task, hash_file, &job);
 *     ... what neither reads nor writes `job` ...
 *     task_wait(&task);
 *
 * A task makes the same result whenever it runs: it owns what it writes until
 * task_wait returns, and nobody changes what it reads.
 */
#ifndef APPULSE_BASE_TASK_H
#define APPULSE_BASE_TASK_H

#include <pthread.h>
#include <stdbool.h>

struct task {
	void (*run)(void *job);
	void *job;
	pthread_t thread;
	bool threaded; /* a thread runs it, and has not been waited for */
};

/* Starts `run` with `job` in a thread of its own; runs it at once when there can be
 * none, so that it needs no failure. */
void task_start(struct task *task, void (*run)(void *job), void *job);

/* Returns when the task is done; at once for one that was waited for, or of zero bytes. */
void task_wait(struct task *task);

#endif
