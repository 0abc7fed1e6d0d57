/* What a comparison has shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/human.h"
#include "cli/table.h"
#include "compare.h"

static const char *metric_name(unsigned metric)
{
	static const char *const names[] = {
#define X(id, name, unit) [COMPARE_##id] = name,
		COMPARE_METRIC_LIST(X)
#undef X
	};

	return names[metric];
}

static enum compare_unit metric_unit(unsigned metric)
{
	static const enum compare_unit units[] = {
#define X(id, name, unit) [COMPARE_##id] = unit,
		COMPARE_METRIC_LIST(X)
#undef X
	};

	return units[metric];
}

bool compare_read_whole(const struct compare_image *image)
{
	return 2 * image->whole_reads > image->runs;
}

bool compare_resident_at_first(const struct compare_image *image)
{
	return 2 * image->resident_at_first > image->runs;
}

/* ---- for programs ---- */

static void put_spread(struct result *r, json_t *metric, const char *key,
		       const struct spread *spread)
{
	json_t *object = result_put_object(r, metric, key);

	result_put_real(r, object, "low_quartile", spread->low_quartile);
	result_put_real(r, object, "median", spread->median);
	result_put_real(r, object, "high_quartile", spread->high_quartile);
	result_put_real(r, object, "percentile_95", spread->percentile_95);
}

static void put_ratio(struct result *r, json_t *metric, const struct paired *p)
{
	static const char *const keys[] = {"ratio", "ratio_low", "ratio_high"};
	const double values[] = {p->ratio, p->low, p->high};
	static const char *const verdicts[] = {[PAIRED_SAME] = "no-difference-seen",
					       [PAIRED_LESS] = "less", [PAIRED_MORE] = "more"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (p->has_ratio)
			result_put_real(r, metric, keys[i], values[i]);
		else
			result_put_null(r, metric, keys[i]);
	result_put_real(r, metric, "probability", p->probability);
	result_put_text(r, metric, "verdict", verdicts[p->verdict]);
	if (p->has_ratio)
		result_put_count(r, metric, "runs_for_2_percent", p->needed);
	else
		result_put_null(r, metric, "runs_for_2_percent");
}

static void put_metric(struct result *r, json_t *metrics, unsigned id,
		       const struct compare_series *s)
{
	static const char *const units[] = {"seconds", "bytes", "pages", "faults"};
	static const char *const keys[] = {"values_a", "values_b"};
	json_t *metric = result_add_object(r, metrics);

	result_put_text(r, metric, "name", metric_name(id));
	result_put_text(r, metric, "unit", units[metric_unit(id)]);
	result_put_count(r, metric, "pairs", s->pairs);
	put_spread(r, metric, "a", &s->result.a);
	put_spread(r, metric, "b", &s->result.b);
	put_ratio(r, metric, &s->result);
	for (unsigned side = 0; side < SIDE_COUNT; side++) {
		json_t *values = result_put_array(r, metric, keys[side]);

		for (uint32_t i = 0; i < s->pairs; i++)
			result_add_real(r, values, s->values[side][i]);
	}
}

static void put_image(struct result *r, json_t *images, const struct compare_image *image)
{
	json_t *object = result_add_object(r, images);
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&image->hash, hash);
	result_put_text(r, object, "path", image->path);
	result_put_text(r, object, "sha256", hash);
	result_put_count(r, object, "bytes", image->size);
	result_put_flag(r, object, "preloaded",
			compare_read_whole(image) || compare_resident_at_first(image));
	result_put_text(r, object, "preloaded_how",
			compare_read_whole(image)          ? "read"
			: compare_resident_at_first(image) ? "resident"
							   : NULL);
}

void compare_tell_json(const struct compare *c)
{
	struct result *r = &c->tool->result;
	json_t *images, *metrics;

	result_put_count(r, r->root, "runs", c->options->runs);
	result_put_count(r, r->root, "seed", c->options->seed);
	result_put_flag(r, r->root, "cold", c->options->cold);
	result_put_text(r, r->root, "marker", c->options->marker);
	result_put_count(r, r->root, "command_exit_code", (uint64_t)c->code);
	result_put_text(r, r->root, "fault_method", c->fault_method);
	result_put_text(r, r->root, "fault_counter", c->fault_counter);
	result_put_text(r, r->root, "faults_not_counted", c->not_counted);
	result_put_count(r, r->root, "wine_server_starts", c->server_starts);
	result_put_count(r, r->root, "runs_again", (uint64_t)c->again + c->lost_again);
	images = result_put_array(r, r->root, "images");
	for (unsigned side = 0; side < SIDE_COUNT; side++)
		put_image(r, images, &c->images[side]);
	metrics = result_put_array(r, r->root, "metrics");
	for (unsigned i = 0; i < COMPARE_METRIC_COUNT; i++)
		if (c->series[i].pairs)
			put_metric(r, metrics, i, &c->series[i]);
}

/* ---- for people ---- */

static struct human value_text(enum compare_unit unit, double value)
{
	struct human h;

	if (unit == UNIT_BYTES)
		snprintf(h.text, sizeof(h.text), "%.1f MiB", value / (1 << 20));
	else if (unit != UNIT_SECONDS)
		snprintf(h.text, sizeof(h.text), "%.0f", value);
	else if (value < 1)
		snprintf(h.text, sizeof(h.text), "%.2f ms", value * 1000);
	else
		snprintf(h.text, sizeof(h.text), "%.3f s", value);
	return h;
}

static void put_cells(struct table *table, const char *name, enum compare_unit unit,
		      const struct spread *s)
{
	table_cell(table, "%s", name);
	table_cell(table, "%s", value_text(unit, s->median).text);
	table_cell(table, "%s to %s", value_text(unit, s->low_quartile).text,
		   value_text(unit, s->high_quartile).text);
	table_cell(table, "%s", value_text(unit, s->percentile_95).text);
}

static enum status print_table(const struct compare *c, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"", TABLE_LEFT}, {"", TABLE_LEFT}, {"median", TABLE_RIGHT},
		{"half of them", TABLE_RIGHT}, {"95 % below", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (unsigned i = 0; i < COMPARE_METRIC_COUNT; i++) {
		const struct compare_series *s = &c->series[i];

		if (!s->pairs)
			continue;
		table_cell(&table, "%s", metric_name(i));
		put_cells(&table, "A", metric_unit(i), &s->result.a);
		table_cell(&table, "%s", "");
		put_cells(&table, "B", metric_unit(i), &s->result.b);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

/* How much less or more, as a percentage of A. */
static double percent(double ratio)
{
	return fabs(ratio - 1) * 100;
}

static void print_verdict(unsigned metric, const struct compare_series *s)
{
	static const char *const words[][2] = {
		[UNIT_SECONDS] = {"faster", "slower"}, [UNIT_BYTES] = {"less", "more"},
		[UNIT_PAGES] = {"fewer", "more"}, [UNIT_FAULTS] = {"fewer", "more"},
	};
	const struct paired *p = &s->result;
	const char *word = words[metric_unit(metric)][p->verdict == PAIRED_MORE];
	double first = p->verdict == PAIRED_MORE ? p->low : p->high;
	double second = p->verdict == PAIRED_MORE ? p->high : p->low;

	printf("  %-12s ", metric_name(metric));
	if (!p->has_ratio)
		printf("%s (no ratio, as a value is 0)\n",
		       p->verdict == PAIRED_SAME ? "no difference seen" : word);
	else if (p->verdict == PAIRED_SAME)
		printf("no difference seen (95 %% interval %+.1f to %+.1f %%)\n",
		       (p->low - 1) * 100, (p->high - 1) * 100);
	else
		printf("%s by %.1f %% (95 %% interval %.1f to %.1f)\n", word,
		       percent(p->ratio), percent(first), percent(second));
}

/* How many runs of each would show a difference of 2 %. */
static void print_needed(const struct compare *c)
{
	printf("\nruns that would show a difference of 2 %%:");
	for (unsigned i = 0; i <= COMPARE_WALL; i++)
		printf("%s %s %s", i ? "," : "", metric_name(i),
		       human_count(c->series[i].result.needed).text);
	printf(" (these were %s)\n", human_count(c->options->runs).text);
}

enum status compare_tell_people(const struct compare *c, struct diag *diag)
{
	enum status status;

	printf("A  %s\nB  %s\n\n", c->images[SIDE_A].path, c->images[SIDE_B].path);
	status = print_table(c, diag);
	puts("\nB against A, by pairs:\n");
	for (unsigned i = 0; i < COMPARE_METRIC_COUNT; i++)
		if (c->series[i].pairs)
			print_verdict(i, &c->series[i]);
	print_needed(c);
	if (c->not_counted && !c->options->times_only)
		printf("\nhard faults were not counted: %s\n", c->not_counted);
	return status;
}
