/* appulse-reorder simulate IMAGE: what recorded runs would cost on other layouts. */
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/name_report.h"
#include "commands.h"
#include "recorded_runs.h"
#include "trace/probed_image.h"

static const char *const placement_names[] = {"exchange", "append", NULL};

/* ---- steps ---- */

static enum status open_inputs(struct simulate *s, struct diag *diag)
{
	const struct simulate_options *o = s->options;
	const struct analysis_request request = {.pins = {o->pins.data, o->pins.len},
						 .names = o->names};
	enum status status = STATUS_OK;

	progress_step(&s->tool->progress, "finding functions");
	if (o->relinked)
		status = mapped_image_open(&s->relinked, o->relinked, o->map, diag);
	if (status == STATUS_OK)
		status = analysis_open(&s->analysis, o->image, &request, diag);
	if (status != STATUS_OK)
		return status;
	status = image_refuse_probed(&s->analysis.image, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, o->image);
	if (status == STATUS_OK && o->relinked)
		status = mapped_image_check_original(&s->relinked, o->image,
						     &s->analysis.hash, diag);
	return status;
}

static enum status load_runs(struct simulate *s, struct diag *diag)
{
	struct simulation *simulation = &s->simulation;
	enum status status = recorded_runs_load(&s->options->runs, &s->analysis,
						&s->recorded, &s->match, diag);

	if (status == STATUS_OK)
		status =
			simulation_init(simulation, &s->analysis.graph, &s->recorded, diag);
	simulation->details = s->options->details;
	simulation->cluster_count = s->options->cluster_count;
	memcpy(simulation->clusters, s->options->clusters, sizeof(simulation->clusters));
	return status;
}

static enum status add_order(struct simulate *s, enum order_name name, struct diag *diag)
{
	const struct order_request request = {.name = name,
					      .runs = s->options->runs,
					      .seed = s->options->seed,
					      .file = s->options->order_file};
	struct order_summary summary;
	struct order order = {0};
	enum status status = chosen_order_make(&s->analysis, &request, &order, &summary,
					       diag);

	if (status == STATUS_OK)
		status = simulation_add_order(&s->simulation, order_names[name], &order,
					      (enum placement)s->options->placement, diag);
	order_release(&order);
	return status;
}

static enum status lay_out(struct simulate *s, struct diag *diag)
{
	enum status status = STATUS_OK;

	progress_step(&s->tool->progress, "laying out");
	for (uint32_t i = 0; status == STATUS_OK && i < s->options->order_count; i++)
		status = add_order(s, s->options->orders[i], diag);
	if (status == STATUS_OK && s->options->relinked)
		status = simulation_add_relinked(&s->simulation, &s->relinked, diag);
	return status;
}

static void warn(const struct simulate *s)
{
	uint32_t unmatched = 0;

	for (uint32_t i = 0; i < s->simulation.run_count; i++)
		unmatched += s->simulation.runs[i].unmatched;
	if (unmatched)
		tool_warn(s->tool, "touches left out, since no function starts there: %u",
			  unmatched);
}

static enum status simulate(struct tool *tool, const struct simulate_options *options,
			    struct diag *diag)
{
	struct simulate s = {.tool = tool, .options = options};
	enum status status = open_inputs(&s, diag);

	if (status == STATUS_OK)
		status = load_runs(&s, diag);
	if (status == STATUS_OK)
		status = lay_out(&s, diag);
	if (status == STATUS_OK) {
		progress_step(&tool->progress, "replaying");
		status = simulation_run(&s.simulation, diag);
	}
	progress_end(&tool->progress);
	if (status == STATUS_OK) {
		warn(&s);
		if (tool->json)
			simulate_put(&s);
		else
			status = simulate_print(&s, diag);
	}
	simulation_release(&s.simulation);
	mapped_image_close(&s.relinked);
	db_profile_release(&s.recorded);
	analysis_close(&s.analysis);
	return status;
}

/* ---- the command line ---- */

static enum status take_orders(struct simulate_options *o, const struct string_list *words,
			       struct diag *diag)
{
	for (uint32_t i = 0; i < words->len; i++) {
		unsigned name = 0;

		while (name < ORDER_COUNT && strcmp(words->data[i], order_names[name]) != 0)
			name++;
		if (name == ORDER_COUNT)
			return diag_fail(
				diag, STATUS_USAGE,
				"option '--order' needs one of first-touch, original, "
				"random, file, not '%s', try "
				"'appulse-reorder simulate --help'",
				words->data[i]);
		for (uint32_t k = 0; k < o->order_count; k++)
			if (o->orders[k] == (enum order_name)name)
				return diag_fail(diag, STATUS_USAGE,
						 "order '%s' is named twice",
						 words->data[i]);
		o->orders[o->order_count++] = (enum order_name)name;
	}
	if (words->len)
		return STATUS_OK;
	o->orders[o->order_count++] = ORDER_ORIGINAL;
	o->orders[o->order_count++] = ORDER_FIRST_TOUCH;
	return STATUS_OK;
}

/* "1,4,8": each once. */
static enum status take_clusters(struct simulate_options *o, const char *text,
				 struct diag *diag)
{
	const char *at = text;
	char *end;

	do {
		unsigned long value;
		bool again = false;

		errno = 0;
		value = strtoul(at, &end, 10);
		for (uint32_t i = 0; i < o->cluster_count; i++)
			again |= o->clusters[i] == value;
		if (*at < '0' || *at > '9' || errno || value < 1 || value > CLUSTER_LIMIT ||
		    (*end && *end != ',') || again || o->cluster_count == CLUSTERS_MAX)
			return diag_fail(
				diag, STATUS_USAGE,
				"option '--clusters' needs up to %d different numbers "
				"of pages from 1 to %d with commas between, not '%s'",
				CLUSTERS_MAX, CLUSTER_LIMIT, text);
		o->clusters[o->cluster_count++] = (uint32_t)value;
		at = end + 1;
	} while (*end == ',');
	return STATUS_OK;
}

static enum status check_options(const struct simulate_options *o, struct diag *diag)
{
	if (o->map && !o->relinked)
		return diag_fail(
			diag, STATUS_USAGE,
			"option '--map' needs the relinked image, say --relinked FILE");
	return STATUS_OK;
}

enum status simulate_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct simulate_options o = {.seed = 1, .runs.min_match = MIN_MATCH_DEFAULT};
	struct string_list orders = {0};
	const char *clusters = "1,4,8,16";
	const struct option_spec options[] = {
		OPTION_STRING("db", 'd', "FILE", &o.runs.database,
			      "the trace database with the runs", .required = true),
		RUN_SOURCE_OPTIONS(&o.runs),
		OPTION_LIST("order", 0, "ORDER", &orders,
			    "replay the runs on the image in this order: first-touch, "
			    "original, "
			    "random or file; may be given more than once (default: "
			    "original and "
			    "first-touch)"),
		OPTION_STRING("order-file", 0, "FILE", &o.order_file,
			      "for order 'file': functions, one a line, by RVA or name"),
		OPTION_NUMBER("seed", 0, "N", &o.seed, 0, INT64_MAX,
			      "for order 'random': where it starts (default: 1)"),
		OPTION_CHOICE("placement", 0, "WAY", &o.placement, placement_names,
			      "where the orders put the hot code"),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "leave this code where it is: as in 'appulse-reorder --help'"),
		OPTIONS_NAMES(&o.names),
		OPTION_STRING("relinked", 0, "FILE", &o.relinked,
			      "replay the runs on this relink of IMAGE too"),
		OPTION_STRING("map", 0, "FILE", &o.map,
			      "the relink's map (default: FILE.map.json)"),
		OPTION_STRING("clusters", 0, "PAGES,...", &clusters,
			      "pages that a hard fault reads, for each a column (default: "
			      "1,4,8,16)"),
		OPTION_FLAG(
			"details", 0, &o.details,
			"show how the faults come over the run; with --json the curves and "
			"the pages of each run"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description = "Predicts what the recorded runs of IMAGE cost on other "
			       "layouts: code "
			       "pages touched, hard faults when each reads some pages at "
			       "once, and the "
			       "bytes wasted on touched pages. Nothing is written.\n\n"
			       "Figures over several runs are means, weighted as the order "
			       "first-touch "
			       "weighs the runs.",
		.arguments = "IMAGE",
		.min = 1,
		.max = 1,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.image = line.arguments.data[0];
		status = take_orders(&o, &orders, diag);
		if (status == STATUS_OK)
			status = take_clusters(&o, clusters, diag);
		if (status == STATUS_OK)
			status = check_options(&o, diag);
		if (status == STATUS_OK)
			status = simulate(tool, &o, diag);
	}
	vec_release(&orders);
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
