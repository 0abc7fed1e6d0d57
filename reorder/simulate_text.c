/* appulse-reorder simulate: the tables for people. */
#include <stdio.h>
#include <string.h>

#include "cli/human.h"
#include "cli/table.h"
#include "simulate.h"

enum {
	DECILES = 10,
	/* layout, pages, wasted, area and a column a cluster; two more with runs */
	COLUMNS_MAX = CLUSTERS_MAX + 6,
};

/* The columns of a table, with the memory for their titles. */
struct columns {
	struct table_column data[COLUMNS_MAX];
	uint32_t count;
	char titles[CLUSTERS_MAX + 1][24];
	uint32_t title_count;
};

static void add_column(struct columns *columns, const char *title, enum table_align align)
{
	columns->data[columns->count++] = (struct table_column){title, align};
}

static void add_numbered(struct columns *columns, const char *word, uint32_t number)
{
	char *title = columns->titles[columns->title_count++];

	snprintf(title, sizeof(columns->titles[0]), "%s %u", word, number);
	add_column(columns, title, TABLE_RIGHT);
}

/* The cluster that the area is shown for: the usual one, else the first. */
static uint32_t shown_cluster(const struct simulation *s)
{
	for (uint32_t c = 0; c < s->cluster_count; c++)
		if (s->clusters[c] == FAULT_CLUSTER)
			return c;
	return 0;
}

static void add_figure_columns(struct columns *columns, const struct simulation *s)
{
	add_column(columns, "layout", TABLE_LEFT);
	add_column(columns, "pages", TABLE_RIGHT);
	add_column(columns, "wasted", TABLE_RIGHT);
	for (uint32_t c = 0; c < s->cluster_count; c++)
		add_numbered(columns, "faults", s->clusters[c]);
	add_numbered(columns, "area", s->clusters[shown_cluster(s)]);
}

/* A whole number as such, others with one decimal. */
static void cell_number(struct table *table, double value)
{
	uint64_t tenths = (uint64_t)(value * 10 + 0.5);

	if (tenths % 10)
		table_cell(table, "%s.%u", human_count(tenths / 10).text,
			   (unsigned)(tenths % 10));
	else
		table_cell(table, "%s", human_count(tenths / 10).text);
}

static void cell_figures(struct table *table, const struct simulation *s,
			 const struct figures *figures)
{
	cell_number(table, figures->pages);
	table_cell(table, "%s", human_bytes((uint64_t)figures->wasted_bytes).text);
	for (uint32_t c = 0; c < s->cluster_count; c++)
		cell_number(table, figures->clusters[c].faults);
	cell_number(table, figures->clusters[shown_cluster(s)].area);
}

/* What whole functions could reach: their bytes behind each other. */
static void cell_floor(struct table *table, const struct simulation *s)
{
	double weight = 0, pages = 0, faults[CLUSTERS_MAX] = {0};

	for (uint32_t r = 0; r < s->run_count; r++)
		weight += s->runs[r].weight;
	for (uint32_t r = 0; r < s->run_count; r++) {
		double share = s->runs[r].weight / weight;

		pages += share * s->runs[r].floor_pages;
		for (uint32_t c = 0; c < s->cluster_count; c++)
			faults[c] +=
				share * ((s->runs[r].floor_pages + s->clusters[c] - 1) /
					 s->clusters[c]);
	}
	table_cell(table, "(floor)");
	cell_number(table, pages);
	table_cell(table, "-");
	for (uint32_t c = 0; c < s->cluster_count; c++)
		cell_number(table, faults[c]);
	table_cell(table, "-");
}

static enum status print_mean(const struct simulation *s, struct diag *diag)
{
	struct columns columns = {0};
	struct table table;
	enum status status;

	add_figure_columns(&columns, s);
	table_init(&table, columns.data, columns.count);
	for (uint32_t i = 0; i < s->layouts.len; i++) {
		table_cell(&table, "%s", s->layouts.data[i].name);
		cell_figures(&table, s, &s->layouts.data[i].mean);
	}
	cell_floor(&table, s);
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static enum status print_runs(const struct simulation *s, struct diag *diag)
{
	struct columns columns = {0};
	struct table table;
	enum status status;

	add_column(&columns, "run", TABLE_RIGHT);
	add_column(&columns, "scenario", TABLE_LEFT);
	add_column(&columns, "weight", TABLE_RIGHT);
	add_figure_columns(&columns, s);
	table_init(&table, columns.data, columns.count);
	for (uint32_t r = 0; r < s->run_count; r++) {
		for (uint32_t i = 0; i < s->layouts.len; i++) {
			table_cell(&table, "%lld", (long long)s->runs[r].recorded->run);
			table_cell(&table, "%s", s->runs[r].recorded->scenario);
			table_cell(&table, "%.3g", s->runs[r].weight);
			table_cell(&table, "%s", s->layouts.data[i].name);
			cell_figures(&table, s, &s->layouts.data[i].replays[r].figures);
		}
	}
	printf("\neach run\n\n");
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

/* The weighted mean of the curve when `tenths` tenths of the touches have been made. */
static double curve_at(const struct simulation *s, const struct simulated_layout *layout,
		       uint32_t cluster, unsigned tenths)
{
	double sum = 0, weight = 0;

	for (uint32_t r = 0; r < s->run_count; r++) {
		const struct fault_result *result = &layout->replays[r].results[cluster];
		uint64_t touch =
			((uint64_t)result->touch_count * tenths + DECILES - 1) / DECILES;

		weight += s->runs[r].weight;
		if (touch)
			sum += s->runs[r].weight * result->curve[touch - 1];
	}
	return sum / weight;
}

static enum status print_curves(const struct simulation *s, struct diag *diag)
{
	static const char *const titles[] = {"10 %", "20 %", "30 %", "40 %", "50 %",
					     "60 %", "70 %", "80 %", "90 %", "100 %"};
	uint32_t cluster = shown_cluster(s);
	struct columns columns = {0};
	struct table table;
	enum status status;

	add_column(&columns, "layout", TABLE_LEFT);
	for (unsigned i = 0; i < DECILES; i++)
		add_column(&columns, titles[i], TABLE_RIGHT);
	table_init(&table, columns.data, columns.count);
	for (uint32_t i = 0; i < s->layouts.len; i++) {
		table_cell(&table, "%s", s->layouts.data[i].name);
		for (unsigned tenths = 1; tenths <= DECILES; tenths++)
			cell_number(&table,
				    curve_at(s, &s->layouts.data[i], cluster, tenths));
	}
	printf("\nhard faults in clusters of %s when so much of the functions is "
	       "touched\n\n",
	       human_things(s->clusters[cluster], "page").text);
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

enum status simulate_print(const struct simulate *s, struct diag *diag)
{
	const struct simulation *simulation = &s->simulation;
	uint32_t runs = simulation->run_count;
	enum status status;

	run_match_print(&s->match);
	printf("%s: %s%s\n\n", s->options->image, runs > 1 ? "mean, by weight, of " : "",
	       human_things(runs, "run").text);
	status = print_mean(simulation, diag);
	if (status == STATUS_OK)
		printf("\npages: code pages touched. wasted: bytes on them that no touched "
		       "function holds.\nfaults N: hard faults that read N pages each. "
		       "area N: "
		       "how many of them there\nwere, on average over the touches. "
		       "(floor): "
		       "if nothing else lay between.\n");
	if (status == STATUS_OK && runs > 1)
		status = print_runs(simulation, diag);
	if (status == STATUS_OK && simulation->details)
		status = print_curves(simulation, diag);
	return status;
}
