/* What the steps of `appulse-reorder simulate` share. */
#ifndef APPULSE_REORDER_SIMULATE_H
#define APPULSE_REORDER_SIMULATE_H

#include "cli/options.h"
#include "graph/analysis.h"
#include "simulation.h"

struct simulate_options {
	const char *image;
	struct run_source runs;
	const char *relinked,
		*map; /* NULL: none; a map of NULL: beside the relinked image */
	enum order_name orders[ORDER_COUNT]; /* in the sequence in which they were named */
	uint32_t order_count;
	const char *order_file;
	uint64_t seed;
	unsigned placement; /* enum placement */
	uint32_t clusters[CLUSTERS_MAX];
	uint32_t cluster_count;
	struct string_list pins;
	struct name_files names;
	bool details;
};

struct simulate {
	struct tool *tool;
	const struct simulate_options *options;
	struct analysis analysis;
	struct db_profile recorded;
	struct run_match match;
	struct mapped_image relinked; /* of zero bytes: none */
	struct simulation simulation;
};

/* Fills the tool's JSON object.  (simulate_json.c) */
void simulate_put(const struct simulate *s);

/* Prints the tables.  NO_MEMORY.  (simulate_text.c) */
enum status simulate_print(const struct simulate *s, struct diag *diag);

#endif
