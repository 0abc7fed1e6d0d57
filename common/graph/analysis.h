/* An image together with its graph: what every tool begins with. */
#ifndef APPULSE_GRAPH_ANALYSIS_H
#define APPULSE_GRAPH_ANALYSIS_H

#include "base/sha256.h"
#include "graph/pin_ranges.h"

struct analysis {
	struct image image;
	struct graph graph;
	struct sha256 hash; /* of the image's file */
	bool open; /* whether the two are owned */
};

/* Opens the image at `path`, refuses what no tool may touch, and discovers its
 * graph, with the code that `pins` names pinned; `pins` may be NULL.  Statuses: those of
 * image_open, image_check_supported, pin_ranges_find, pin_ranges_check, graph_discover.
 * On failure nothing is owned. */
enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct pin_words *pins, struct diag *diag);

/* The same for an image that is open and supported: the graph alone. */
enum status analysis_discover(struct graph *graph, struct image *image,
			      const struct pin_words *pins, struct diag *diag);

/* Fine for an analysis of zero bytes. */
void analysis_close(struct analysis *analysis);

#endif
