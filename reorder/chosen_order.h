/* The order that the command line asks for. */
#ifndef APPULSE_REORDER_CHOSEN_ORDER_H
#define APPULSE_REORDER_CHOSEN_ORDER_H

#include "layout/order.h"
#include "recorded_runs.h"

#define ORDER_LIST(X)                   \
	X(FIRST_TOUCH, "first-touch")   \
	X(ORIGINAL, "original")         \
	X(RANDOM, "random")             \
	X(FILE, "file")

enum order_name {
#define X(id, name) ORDER_##id,
	ORDER_LIST(X)
#undef X
	ORDER_COUNT
};

/* NULL-terminated, in the sequence of enum order_name. */
extern const char *const order_names[ORDER_COUNT + 1];

struct order_request {
	enum order_name name;
	struct run_source runs; /* ORDER_FIRST_TOUCH */
	uint64_t seed;        /* ORDER_RANDOM */
	const char *file;     /* ORDER_FILE */
};

/* What a profile says about the image, for the report. */
struct order_summary {
	uint32_t runs;
	uint32_t touched;       /* functions that a run touched */
	uint64_t touched_bytes; /* of these functions */
	struct run_match match;
};

/* Makes the order for the analysed image.  Statuses of the orders and of
 * recorded_runs_load. */
enum status chosen_order_make(const struct analysis *analysis,
			      const struct order_request *request, struct order *ret_order,
			      struct order_summary *ret_summary, struct diag *diag);

/* The order first-touch of these runs, of blocks and of functions; statuses of
 * order_first_touch. */
enum status order_of_runs(const struct graph *graph, const struct db_profile *recorded,
			  struct order *ret_order, struct diag *diag);
enum status function_order_of_runs(const struct graph *graph,
				   const struct db_profile *recorded,
				   struct function_order *ret_order, struct diag *diag);

#endif
