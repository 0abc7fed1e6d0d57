#include "base/output_task.h"

static void write_output(void *job)
{
	struct output_task *output = job;

	output->status =
		output_file_open(&output->file, output->path, output->force, &output->diag);
	if (output->status != STATUS_OK)
		return;
	output->status = output_file_write(&output->file, output->bytes, output->size,
					   &output->diag);
	if (output->hashed)
		output->hash = sha256_of(output->bytes, output->size);
}

void output_task_start(struct output_task *output, const char *path, bool force,
		       const void *bytes, size_t size, bool hashed)
{
	*output = (struct output_task){.file = {.fd = -1},
				       .path = path,
				       .bytes = bytes,
				       .size = size,
				       .force = force,
				       .hashed = hashed,
				       .started = true};
	diag_init(&output->diag);
	task_start(&output->task, write_output, output);
}

enum status output_task_wait(struct output_task *output, struct diag *diag)
{
	task_wait(&output->task);
	if (output->status != STATUS_OK && diag)
		*diag = output->diag;
	return output->status;
}

void output_task_discard(struct output_task *output)
{
	if (!output->started)
		return;
	task_wait(&output->task);
	output_file_discard(&output->file);
	output->started = false;
}
