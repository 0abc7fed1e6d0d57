/* Replays recorded runs on layouts of an image, by the model of layout/fault_model.h.
 *
 * A layout here is where the original's code stands: the image as it is, as an order would
 * place it, or as a relinked file has it.  Each is a map and its code sections.
 */
#ifndef APPULSE_REORDER_SIMULATION_H
#define APPULSE_REORDER_SIMULATION_H

#include "chosen_order.h"
#include "layout/fault_model.h"
#include "layout/placement.h"
#include "mapped_image.h"
#include "trace/db.h"

enum {
	CLUSTERS_MAX = 16,
	CLUSTER_LIMIT = 65536, /* pages */
};

/* What one run costs with one cluster, or the weighted mean over all runs. */
struct cluster_figures {
	double faults, read_pages;
	double area;      /* in faults */
	double time_area; /* in faults; valid with has_time of the figures */
};

struct figures {
	double pages;         /* touched */
	double wasted_bytes;  /* on them */
	double outside_bytes; /* touched, in no code section */
	bool has_time;        /* of all runs that the figures are of */
	struct cluster_figures clusters[CLUSTERS_MAX]; /* as many as simulation.clusters */
};

/* A run on a layout. */
struct replay {
	struct figures figures;
	/* With `details` only, one for each cluster; owned. */
	struct fault_result *results;
};

struct simulated_layout {
	const char *name;                   /* of the order, or "relinked"; borrowed */
	struct move_map map;                /* owned; finished; its hashes mean nothing */
	VEC(struct fault_section) sections; /* with code, ascending */
	uint32_t image_size;                /* bytes in memory */
	uint32_t code_pages;                /* of the sections */
	struct replay *replays; /* owned: one for each run; NULL before simulation_run */
	struct figures mean;    /* weighted, over all runs */
};

/* A run, as far as it is of known functions. */
struct simulated_run {
	const struct db_profile_run *recorded; /* borrowed */
	double weight;                         /* its share of its scenario's */
	uint32_t touches;                      /* touched functions */
	uint32_t unmatched;     /* touched addresses at which no function begins */
	uint64_t touched_bytes; /* of the functions */
	uint32_t floor_pages;   /* which these bytes would fill */
	uint32_t *functions;    /* ids, in the order of first touch; owned */
	int64_t *times_ns;      /* of each; owned */
};

struct simulation {
	const struct graph *graph; /* borrowed: the original's */
	bool details; /* whether to keep results; set it before simulation_run */
	uint32_t clusters[CLUSTERS_MAX]; /* pages, each above 0; set them before
					    simulation_run */
	uint32_t cluster_count;
	struct simulated_run *runs; /* owned */
	uint32_t run_count;
	VEC(struct simulated_layout) layouts; /* in the sequence in which they were added */
};

/* The runs of `recorded`, which must outlive the simulation.  NO_MEMORY, NOT_FOUND when
 * none touched a function that `graph` knows.  Release it either way. */
enum status simulation_init(struct simulation *simulation, const struct graph *graph,
			    const struct db_profile *recorded, struct diag *diag);
void simulation_release(struct simulation *simulation);

/* Adds the image as the order would place it.  Statuses of layout_place. */
enum status simulation_add_order(struct simulation *simulation, const char *name,
				 const struct order *order, enum placement placement,
				 struct diag *diag);

/* Adds a relinked image of the same original; its map is copied.  NO_MEMORY. */
enum status simulation_add_relinked(struct simulation *simulation,
				    const struct mapped_image *relinked, struct diag *diag);

/* Replays every run on every layout.  NO_MEMORY. */
enum status simulation_run(struct simulation *simulation, struct diag *diag);

typedef VEC(struct fault_range) fault_range_list;

/* The ranges of a function's bytes where the map has them, pushed to `ranges` as those of
 * the touch `touch`; false when memory is out. */
bool simulation_push_ranges(const struct move_map *map, const struct function *function,
			    uint32_t touch, fault_range_list *ranges);

#endif
