#include "graph/analysis.h"

#include <string.h>

#include "base/task.h"

enum status analysis_discover(struct graph *graph, struct image *image,
			      const struct pin_words *pins, struct diag *diag)
{
	struct pin_ranges ranges = {0};
	struct discovery_options options = {0};
	enum status status = STATUS_OK;

	if (pins)
		status = pin_ranges_find(image, pins, &ranges, diag);
	options.pins = ranges.ranges.data;
	options.pin_count = ranges.ranges.len;
	if (status == STATUS_OK)
		status = graph_discover(graph, image, &options, diag);
	if (status == STATUS_OK && pins) {
		status = pin_ranges_check(&ranges, graph, pins, diag);
		if (status != STATUS_OK)
			graph_release(graph);
	}
	pin_ranges_release(&ranges);
	return status;
}

/* Beside discovery; both only read the file. */
static void hash_file(void *job)
{
	struct analysis *analysis = job;

	analysis->hash = sha256_of(analysis->image.bytes, analysis->image.size);
}

enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct pin_words *pins, struct diag *diag)
{
	struct task hashing = {0};
	enum status status;

	memset(analysis, 0, sizeof(*analysis));
	status = image_open(&analysis->image, path, diag);
	if (status != STATUS_OK) {
		diag_set_file(diag, path);
		return status;
	}
	status = image_check_supported(&analysis->image, diag);
	if (status == STATUS_OK) {
		task_start(&hashing, hash_file, analysis);
		status = analysis_discover(&analysis->graph, &analysis->image, pins, diag);
		task_wait(&hashing);
	}
	if (status != STATUS_OK) {
		image_release(&analysis->image);
		diag_set_file(diag, path);
		return status;
	}
	analysis->open = true;
	return STATUS_OK;
}

void analysis_close(struct analysis *analysis)
{
	if (!analysis->open)
		return;
	graph_release(&analysis->graph);
	image_release(&analysis->image);
	analysis->open = false;
}
