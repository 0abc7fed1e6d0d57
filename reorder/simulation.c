/* The replay of recorded runs on layouts.
 *
 * A run touches functions of the original, in an order.  Where each of them stands in a
 * layout is a matter of the layout's map, whether an order made it here or a relink wrote
 * it: so what is predicted for an order is what the map of its relink would give, and the
 * placement is the real one.
 *
 * Numbers over several runs are means, weighted as the order first-touch weighs the runs
 * (docs/orders.md): what a start costs on average, if starts are as the weights say.
 */
#include "simulation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs ---- */

static enum status take_run(struct simulated_run *run, const struct graph *graph,
			    struct diag *diag)
{
	const struct db_profile_run *recorded = run->recorded;

	run->functions = malloc(((size_t)recorded->count + 1) * sizeof(*run->functions));
	run->times_ns = malloc(((size_t)recorded->count + 1) * sizeof(*run->times_ns));
	if (!run->functions || !run->times_ns)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < recorded->count; i++) {
		uint32_t function = graph_function_starting(graph, recorded->rvas[i]);

		if (function == NO_FUNCTION) {
			run->unmatched++;
			continue;
		}
		run->functions[run->touches] = function;
		run->times_ns[run->touches++] = recorded->times_ns[i];
		run->touched_bytes += graph->functions.data[function].size;
	}
	run->floor_pages = (uint32_t)((run->touched_bytes + FAULT_PAGE - 1) / FAULT_PAGE);
	return STATUS_OK;
}

enum status simulation_init(struct simulation *simulation, const struct graph *graph,
			    const struct db_profile *recorded, struct diag *diag)
{
	uint64_t touches = 0;

	memset(simulation, 0, sizeof(*simulation));
	simulation->graph = graph;
	simulation->runs = calloc((size_t)recorded->count + 1, sizeof(*simulation->runs));
	if (!simulation->runs)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < recorded->count; i++) {
		struct simulated_run *run = &simulation->runs[simulation->run_count++];
		enum status status;

		run->recorded = &recorded->runs[i];
		run->weight = db_profile_weight(recorded, i);
		status = take_run(run, graph, diag);
		if (status != STATUS_OK)
			return status;
		touches += run->touches;
	}
	if (touches == 0)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "no recorded run has touched a function of the image");
	return STATUS_OK;
}

static void release_layout(struct simulated_layout *layout, uint32_t runs,
			   uint32_t clusters)
{
	for (uint32_t r = 0; layout->replays && r < runs; r++) {
		struct fault_result *results = layout->replays[r].results;

		for (uint32_t c = 0; results && c < clusters; c++)
			fault_result_release(&results[c]);
		free(results);
	}
	free(layout->replays);
	vec_release(&layout->sections);
	move_map_release(&layout->map);
}

void simulation_release(struct simulation *simulation)
{
	for (uint32_t i = 0; i < simulation->layouts.len; i++)
		release_layout(&simulation->layouts.data[i], simulation->run_count,
			       simulation->cluster_count);
	vec_release(&simulation->layouts);
	for (uint32_t i = 0; i < simulation->run_count; i++) {
		free(simulation->runs[i].functions);
		free(simulation->runs[i].times_ns);
	}
	free(simulation->runs);
	memset(simulation, 0, sizeof(*simulation));
}

/* ---- layouts ---- */

static enum status add_section(struct simulated_layout *layout, struct rva begin,
			       uint32_t size, struct diag *diag)
{
	struct fault_section section = {begin, size};
	uint32_t end = begin.v + size;

	if (!vec_push(&layout->sections, section))
		return diag_no_memory(diag);
	layout->code_pages += (end - 1) / FAULT_PAGE - begin.v / FAULT_PAGE + 1;
	if (layout->image_size < end)
		layout->image_size = end;
	return STATUS_OK;
}

static enum status add_sections_of(struct simulated_layout *layout,
				   const struct image *image, struct diag *diag)
{
	enum status status = STATUS_OK;

	layout->image_size = image->headers.size_of_image;
	for (uint32_t i = 0; status == STATUS_OK && i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (section->characteristics & SECTION_EXECUTE)
			status = add_section(layout, section->rva, section->virtual_size,
					     diag);
	}
	return status;
}

/* Hands the layout over to the simulation, or releases it. */
static enum status finish_layout(struct simulation *simulation,
				 struct simulated_layout *layout, enum status status,
				 struct diag *diag)
{
	if (status == STATUS_OK)
		status = move_map_finish(&layout->map, diag);
	if (status == STATUS_OK && !vec_push(&simulation->layouts, *layout))
		status = diag_no_memory(diag);
	if (status != STATUS_OK)
		release_layout(layout, 0, 0);
	return status;
}

static enum status push_moves(struct move_map *map, const struct graph *graph,
			      const struct layout *placed, struct diag *diag)
{
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];
		struct move move = {block->begin, placed->begins[i], block->size};

		if (move.from.v != move.to.v && !vec_push(&map->moves, move))
			return diag_no_memory(diag);
	}
	return STATUS_OK;
}

enum status simulation_add_order(struct simulation *simulation, const char *name,
				 const struct order *order, enum placement placement,
				 struct diag *diag)
{
	const struct graph *graph = simulation->graph;
	struct simulated_layout layout = {.name = name};
	struct layout placed = {0};
	enum status status = layout_place(graph, order, placement, &placed, diag);

	if (status != STATUS_OK)
		return status;
	status = push_moves(&layout.map, graph, &placed, diag);
	if (status == STATUS_OK)
		status = add_sections_of(&layout, graph->image, diag);
	if (status == STATUS_OK && placed.added_size)
		status = add_section(&layout, placed.added, placed.added_size, diag);
	layout_release(&placed);
	return finish_layout(simulation, &layout, status, diag);
}

enum status simulation_add_relinked(struct simulation *simulation,
				    const struct mapped_image *relinked, struct diag *diag)
{
	struct simulated_layout layout = {.name = "relinked"};
	enum status status = add_sections_of(&layout, &relinked->image, diag);

	for (uint32_t i = 0; status == STATUS_OK && i < relinked->map.moves.len; i++)
		if (!vec_push(&layout.map.moves, relinked->map.moves.data[i]))
			status = diag_no_memory(diag);
	return finish_layout(simulation, &layout, status, diag);
}

/* ---- the replay ---- */

bool simulation_push_ranges(const struct move_map *map, const struct function *function,
			    uint32_t touch, fault_range_list *ranges)
{
	struct rva at = function->begin;
	uint32_t left = function->size;

	while (left) {
		struct fault_range range = {.touch = touch};

		range.size = move_map_stretch(map, at, left, &range.begin);
		if (!vec_push(ranges, range))
			return false;
		at = rva_add(at, range.size);
		left -= range.size;
	}
	return true;
}

static void take_figures(struct figures *figures, unsigned cluster,
			 const struct fault_result *result)
{
	struct cluster_figures *c = &figures->clusters[cluster];

	figures->pages = result->pages;
	figures->wasted_bytes = (double)result->wasted_bytes;
	figures->outside_bytes = (double)result->outside_bytes;
	figures->has_time = result->has_time;
	c->faults = result->faults;
	c->read_pages = result->read_pages;
	c->area = result->area;
	c->time_area = result->time_area;
}

static enum status replay_clusters(const struct simulation *simulation,
				   struct fault_input *input, struct replay *replay,
				   struct diag *diag)
{
	enum status status = STATUS_OK;

	if (simulation->details) {
		replay->results = calloc(CLUSTERS_MAX, sizeof(*replay->results));
		if (!replay->results)
			return diag_no_memory(diag);
	}
	for (uint32_t c = 0; status == STATUS_OK && c < simulation->cluster_count; c++) {
		struct fault_result result;

		input->cluster = simulation->clusters[c];
		status = fault_model_run(input, &result, diag);
		if (status != STATUS_OK)
			break;
		take_figures(&replay->figures, c, &result);
		if (replay->results)
			replay->results[c] = result;
		else
			fault_result_release(&result);
	}
	return status;
}

static enum status replay_run(const struct simulation *simulation,
			      const struct simulated_layout *layout,
			      const struct simulated_run *run, struct replay *replay,
			      struct diag *diag)
{
	fault_range_list ranges = {0};
	struct fault_input input = {.image_size = layout->image_size,
				    .sections = layout->sections.data,
				    .section_count = layout->sections.len,
				    .touch_count = run->touches,
				    .times_ns = run->times_ns};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < run->touches; i++)
		if (!simulation_push_ranges(
			    &layout->map,
			    &simulation->graph->functions.data[run->functions[i]], i,
			    &ranges))
			status = diag_no_memory(diag);
	input.ranges = ranges.data;
	input.range_count = ranges.len;
	if (status == STATUS_OK)
		status = replay_clusters(simulation, &input, replay, diag);
	vec_release(&ranges);
	return status;
}

/* Adds `share` of the figures to the mean. */
static void add_share(struct figures *mean, const struct figures *figures, double share,
		      uint32_t clusters)
{
	mean->pages += share * figures->pages;
	mean->wasted_bytes += share * figures->wasted_bytes;
	mean->outside_bytes += share * figures->outside_bytes;
	mean->has_time &= figures->has_time;
	for (uint32_t c = 0; c < clusters; c++) {
		mean->clusters[c].faults += share * figures->clusters[c].faults;
		mean->clusters[c].read_pages += share * figures->clusters[c].read_pages;
		mean->clusters[c].area += share * figures->clusters[c].area;
		mean->clusters[c].time_area += share * figures->clusters[c].time_area;
	}
}

static enum status run_layout(const struct simulation *simulation,
			      struct simulated_layout *layout, struct diag *diag)
{
	double weight = 0;
	enum status status = STATUS_OK;

	layout->replays =
		calloc((size_t)simulation->run_count + 1, sizeof(*layout->replays));
	if (!layout->replays)
		return diag_no_memory(diag);
	for (uint32_t r = 0; r < simulation->run_count; r++)
		weight += simulation->runs[r].weight;
	layout->mean.has_time = true;
	for (uint32_t r = 0; status == STATUS_OK && r < simulation->run_count; r++) {
		const struct simulated_run *run = &simulation->runs[r];

		status = replay_run(simulation, layout, run, &layout->replays[r], diag);
		if (status == STATUS_OK)
			add_share(&layout->mean, &layout->replays[r].figures,
				  run->weight / weight, simulation->cluster_count);
	}
	return status;
}

enum status simulation_run(struct simulation *simulation, struct diag *diag)
{
	enum status status = STATUS_OK;

	assert(simulation->cluster_count >= 1 && simulation->cluster_count <= CLUSTERS_MAX);
	for (uint32_t i = 0; status == STATUS_OK && i < simulation->layouts.len; i++)
		status = run_layout(simulation, &simulation->layouts.data[i], diag);
	return status;
}
