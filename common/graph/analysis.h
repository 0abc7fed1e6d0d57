/* An image together with its graph: what every tool begins with. */
#ifndef APPULSE_GRAPH_ANALYSIS_H
#define APPULSE_GRAPH_ANALYSIS_H

#include "base/sha256.h"
#include "graph/function_names.h"
#include "graph/pin_ranges.h"
#include "symbols/name_files.h"

/* What the user says about the image. */
struct analysis_request {
	struct pin_words pins;   /* code that stays where it is */
	struct name_files names; /* files that name functions */
};

struct analysis {
	struct image image;
	struct file_names names; /* that the graph's functions have names from */
	struct graph graph;
	struct name_report named;
	struct sha256 hash; /* of the image's file */
	bool open; /* whether the two are owned */
};

/* Opens the image at `path`, refuses what no tool may touch, and discovers its graph as
 * the request wants it; NULL requests nothing.  Statuses: those of image_open,
 * image_check_supported, file_names_read, analysis_discover.  On failure nothing is owned. */
enum status analysis_open(struct analysis *analysis, const char *path,
			  const struct analysis_request *request, struct diag *diag);

/* The graph alone, of an image that is open and supported, with the code pinned that `pins`
 * names; a word may be a name of `names`.  Both may be NULL.  Statuses: those of
 * pin_ranges_find, pin_ranges_check, graph_discover. */
enum status analysis_discover(struct graph *graph, struct image *image,
			      const struct pin_words *pins, const struct symbol_set *names,
			      struct diag *diag);

/* Fine for an analysis of zero bytes. */
void analysis_close(struct analysis *analysis);

#endif
