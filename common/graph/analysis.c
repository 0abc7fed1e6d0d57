#include "graph/analysis.h"

#include <string.h>

#include "base/task.h"

enum status analysis_discover(struct graph *graph, struct image *image,
			      const struct pin_words *pins, const struct symbol_set *names,
			      struct diag *diag)
{
	struct pin_ranges ranges = {0};
	struct discovery_options options = {0};
	enum status status = STATUS_OK;

	if (pins && pins->len)
		status = pin_ranges_find(image, pins, names, &ranges, diag);
	options.pins = ranges.ranges.data;
	options.pin_count = ranges.ranges.len;
	if (status == STATUS_OK)
		status = graph_discover(graph, image, &options, diag);
	if (status == STATUS_OK && pins && pins->len) {
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

/* Names first: a word of --pin may be one. */
static enum status discover(struct analysis *analysis, const struct analysis_request *request,
			    struct diag *diag)
{
	enum status status =
		file_names_read(&analysis->names, &request->names, &analysis->image, diag);

	if (status != STATUS_OK)
		return status;
	status = analysis_discover(&analysis->graph, &analysis->image, &request->pins,
				   &analysis->names.set, diag);
	if (status == STATUS_OK)
		function_names_add(&analysis->graph, &analysis->names.set, &analysis->named);
	else
		file_names_release(&analysis->names);
	return status;
}

enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct analysis_request *request, struct diag *diag)
{
	static const struct analysis_request nothing;
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
		status = discover(analysis, request ? request : &nothing, diag);
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
	file_names_release(&analysis->names);
	image_release(&analysis->image);
	analysis->open = false;
}
