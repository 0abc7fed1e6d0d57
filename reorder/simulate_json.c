/* appulse-reorder simulate: the JSON object, described in docs/prediction.md. */
#include "simulate.h"

static void put_time_area(struct result *r, json_t *object, bool known, double area)
{
	if (known)
		result_put_real(r, object, "time_area", area);
	else
		result_put_null(r, object, "time_area");
}

/* Counts of one run are integers, means are not. */
static void put_number(struct result *r, json_t *object, const char *key, double value,
		       bool mean)
{
	if (mean)
		result_put_real(r, object, key, value);
	else
		result_put_count(r, object, key, (uint64_t)value);
}

/* A step for each touch that faults: its number, its time, the faults with it. */
static void put_curve(struct result *r, json_t *object, const struct simulated_run *run,
		      const struct fault_result *result)
{
	json_t *curve = result_put_array(r, object, "curve");
	uint32_t faults = 0;

	for (uint32_t i = 0; i < result->touch_count; i++) {
		json_t *step;

		if (result->curve[i] == faults)
			continue;
		faults = result->curve[i];
		step = result_add_object(r, curve);
		result_put_count(r, step, "touch", i);
		result_put_count(r, step, "time_ns",
				 (uint64_t)run->times_ns[i] - (uint64_t)run->times_ns[0]);
		result_put_count(r, step, "faults", faults);
	}
}

static void put_clusters(const struct simulate *s, json_t *object,
			 const struct figures *figures, const struct replay *replay,
			 const struct simulated_run *run)
{
	struct result *r = &s->tool->result;
	json_t *clusters = result_put_array(r, object, "clusters");

	for (uint32_t c = 0; c < s->simulation.cluster_count; c++) {
		const struct cluster_figures *f = &figures->clusters[c];
		json_t *row = result_add_object(r, clusters);

		result_put_count(r, row, "cluster", s->simulation.clusters[c]);
		put_number(r, row, "faults", f->faults, !run);
		put_number(r, row, "read_pages", f->read_pages, !run);
		result_put_real(r, row, "area", f->area);
		put_time_area(r, row, figures->has_time, f->time_area);
		if (replay && replay->results)
			put_curve(r, row, run, &replay->results[c]);
	}
}

static void put_figures(const struct simulate *s, json_t *object,
			const struct figures *figures, const struct replay *replay,
			const struct simulated_run *run)
{
	struct result *r = &s->tool->result;

	put_number(r, object, "pages", figures->pages, !run);
	put_number(r, object, "wasted_bytes", figures->wasted_bytes, !run);
	put_number(r, object, "outside_bytes", figures->outside_bytes, !run);
	put_clusters(s, object, figures, replay, run);
	if (replay && replay->results) {
		const struct fault_result *result = &replay->results[0];
		json_t *pages = result_put_array(r, object, "touched_pages");

		for (uint64_t page = 0; page < result->page_count; page++)
			if (result->touched_by[page] != NO_TOUCH)
				result_add_count(r, pages, page * FAULT_PAGE);
	}
}

static void put_layout(const struct simulate *s, json_t *layouts,
		       const struct simulated_layout *layout)
{
	struct result *r = &s->tool->result;
	json_t *object = result_add_object(r, layouts), *runs;

	result_put_text(r, object, "name", layout->name);
	if (layout->name == order_names[ORDER_RANDOM])
		result_put_count(r, object, "seed", s->options->seed);
	result_put_count(r, object, "code_pages", layout->code_pages);
	result_put_count(r, object, "moved_blocks", layout->map.moves.len);
	put_figures(s, object, &layout->mean, NULL, NULL);
	runs = result_put_array(r, object, "runs");
	for (uint32_t i = 0; i < s->simulation.run_count; i++) {
		const struct simulated_run *run = &s->simulation.runs[i];
		const struct replay *replay = &layout->replays[i];
		json_t *row = result_add_object(r, runs);

		result_put_count(r, row, "run", (uint64_t)run->recorded->run);
		put_figures(s, row, &replay->figures, replay, run);
	}
}

static void put_run(const struct simulate *s, json_t *runs, const struct simulated_run *run)
{
	struct result *r = &s->tool->result;
	json_t *object = result_add_object(r, runs);

	result_put_count(r, object, "run", (uint64_t)run->recorded->run);
	result_put_text(r, object, "scenario", run->recorded->scenario);
	result_put_real(r, object, "weight", run->weight);
	result_put_count(r, object, "touched_functions", run->touches);
	result_put_count(r, object, "touched_bytes", run->touched_bytes);
	result_put_count(r, object, "floor_pages", run->floor_pages);
	result_put_count(r, object, "unmatched", run->unmatched);
}

void simulate_put(const struct simulate *s)
{
	const struct simulation *simulation = &s->simulation;
	struct result *r = &s->tool->result;
	json_t *image = result_put_object(r, r->root, "image"), *array;
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&s->analysis.hash, hash);
	result_put_text(r, image, "path", s->options->image);
	result_put_text(r, image, "sha256", hash);
	result_put_text(r, r->root, "db", s->options->runs.database);
	run_match_put(&s->match, r, r->root);
	result_put_text(r, r->root, "relinked", s->options->relinked);
	result_put_text(r, r->root, "placement",
			s->options->placement == PLACEMENT_EXCHANGE ? "exchange"
								    : "append");
	array = result_put_array(r, r->root, "runs");
	for (uint32_t i = 0; i < simulation->run_count; i++)
		put_run(s, array, &simulation->runs[i]);
	array = result_put_array(r, r->root, "layouts");
	for (uint32_t i = 0; i < simulation->layouts.len; i++)
		put_layout(s, array, &simulation->layouts.data[i]);
}
