/* An image together with its graph: what every tool begins with. */
#ifndef APPULSE_GRAPH_ANALYSIS_H
#define APPULSE_GRAPH_ANALYSIS_H

#include "graph/graph.h"

struct analysis {
	struct image image;
	struct graph graph;
	bool open; /* whether the two are owned */
};

/* Opens the image at `path`, refuses what no tool may touch, and discovers its
 * graph.  Statuses: those of image_open, image_check_supported, graph_discover.
 * On failure nothing is owned. */
enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct discovery_options *options, struct diag *diag);

/* Fine for an analysis of zero bytes. */
void analysis_close(struct analysis *analysis);

#endif
