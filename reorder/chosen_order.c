#include "chosen_order.h"

#include <stdlib.h>
#include <string.h>

const char *const order_names[ORDER_COUNT + 1] = {
#define X(id, name) [ORDER_##id] = name,
	ORDER_LIST(X)
#undef X
};

static enum status count_touched(const struct graph *graph, const struct db_profile *recorded,
				 struct order_summary *summary, struct diag *diag)
{
	bool *touched = calloc((size_t)graph->functions.len + 1, sizeof(*touched));

	if (!touched)
		return diag_no_memory(diag);
	for (uint32_t r = 0; r < recorded->count; r++) {
		for (uint32_t i = 0; i < recorded->runs[r].count; i++) {
			uint32_t f = graph_function_starting(graph, recorded->runs[r].rvas[i]);

			if (f == NO_FUNCTION || touched[f])
				continue;
			touched[f] = true;
			summary->touched++;
			summary->touched_bytes += graph->functions.data[f].size;
		}
	}
	free(touched);
	summary->runs = recorded->count;
	return STATUS_OK;
}

/* What the orders need of the runs; the array is the caller's to free.  NULL: no memory. */
static struct profile_run *weighed_runs(const struct db_profile *recorded)
{
	struct profile_run *runs = calloc((size_t)recorded->count + 1, sizeof(*runs));

	for (uint32_t i = 0; runs && i < recorded->count; i++)
		runs[i] = (struct profile_run){.weight = db_profile_weight(recorded, i),
					       .touched = recorded->runs[i].rvas,
					       .count = recorded->runs[i].count};
	return runs;
}

enum status order_of_runs(const struct graph *graph, const struct db_profile *recorded,
			  struct order *ret_order, struct diag *diag)
{
	struct profile_run *runs = weighed_runs(recorded);
	const struct profile profile = {.runs = runs, .run_count = recorded->count};
	enum status status = runs ? order_first_touch(graph, &profile, ret_order, diag)
				  : diag_no_memory(diag);

	free(runs);
	return status;
}

enum status function_order_of_runs(const struct graph *graph,
				   const struct db_profile *recorded,
				   struct function_order *ret_order, struct diag *diag)
{
	struct profile_run *runs = weighed_runs(recorded);
	const struct profile profile = {.runs = runs, .run_count = recorded->count};
	enum status status =
		runs ? function_order_first_touch(graph, &profile, ret_order, diag)
		     : diag_no_memory(diag);

	free(runs);
	return status;
}

static enum status first_touch(const struct analysis *analysis,
			       const struct run_source *source, struct order *ret_order,
			       struct order_summary *ret_summary, struct diag *diag)
{
	const struct graph *graph = &analysis->graph;
	struct db_profile recorded = {0};
	enum status status;

	if (!source->database)
		return diag_fail(diag, STATUS_USAGE,
				 "order 'first-touch' needs a trace database, say --db FILE");
	status = recorded_runs_load(source, analysis, &recorded, &ret_summary->match, diag);
	if (status == STATUS_OK)
		status = order_of_runs(graph, &recorded, ret_order, diag);
	if (status == STATUS_OK)
		status = count_touched(graph, &recorded, ret_summary, diag);
	db_profile_release(&recorded);
	return status;
}

static enum status order_of_file(const struct graph *graph, const char *path,
				 struct order *ret_order, struct diag *diag)
{
	struct mapped_file file;
	enum status status;

	if (!path)
		return diag_fail(diag, STATUS_USAGE,
				 "order 'file' needs a list of functions, say --order-file FILE");
	status = mapped_file_open(&file, path, diag);
	if (status != STATUS_OK)
		return status;
	status = order_from_file(graph, file.data ? (const char *)file.data : "", file.size,
				 ret_order, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, path);
	mapped_file_close(&file);
	return status;
}

enum status chosen_order_make(const struct analysis *analysis,
			      const struct order_request *request, struct order *ret_order,
			      struct order_summary *ret_summary, struct diag *diag)
{
	const struct graph *graph = &analysis->graph;

	memset(ret_summary, 0, sizeof(*ret_summary));
	switch (request->name) {
	case ORDER_ORIGINAL:
		return order_original(graph, ret_order, diag);
	case ORDER_RANDOM:
		return order_random(graph, request->seed, ret_order, diag);
	case ORDER_FILE:
		return order_of_file(graph, request->file, ret_order, diag);
	default:
		return first_touch(analysis, &request->runs, ret_order, ret_summary, diag);
	}
}
