#include "base/task.h"

static void *run_task(void *argument)
{
	struct task *task = argument;

	task->run(task->job);
	return NULL;
}

void task_start(struct task *task, void (*run)(void *job), void *job)
{
	*task = (struct task){.run = run, .job = job};
	/* Set before, as the thread may look at the task at once. */
	task->threaded = true;
	if (pthread_create(&task->thread, NULL, run_task, task) == 0)
		return;
	task->threaded = false;
	run(job);
}

void task_wait(struct task *task)
{
	if (!task->threaded)
		return;
	pthread_join(task->thread, NULL);
	task->threaded = false;
}
