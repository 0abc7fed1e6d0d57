#include "graph/analysis.h"

#include <string.h>

enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct discovery_options *options, struct diag *diag)
{
	enum status status;

	memset(analysis, 0, sizeof(*analysis));
	status = image_open(&analysis->image, path, diag);
	if (status != STATUS_OK) {
		diag_set_file(diag, path);
		return status;
	}
	status = image_check_supported(&analysis->image, diag);
	if (status == STATUS_OK)
		status = graph_discover(&analysis->graph, &analysis->image, options, diag);
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
