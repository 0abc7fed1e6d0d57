/* appulse-reorder prefetch-plan IMAGE: which pages of its code a start-up needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/human.h"
#include "cli/name_report.h"
#include "cli/options.h"
#include "commands.h"
#include "graph/analysis.h"
#include "prefetch_plan.h"
#include "recorded_runs.h"
#include "simulation.h"
#include "trace/probed_image.h"

enum { GAP_PAGES = 4, GAP_LIMIT = 65536 };

struct prefetch_options {
	const char *image, *output, *header;
	struct run_source runs;
	struct name_files names;
	const char *relinked, *map; /* NULL: the image itself; beside the relinked image */
	const char *prefix;
	struct string_list scenarios; /* empty: all */
	uint64_t gap;                 /* pages */
	bool force;
};

/* Everything that the steps make, released at one place. */
struct prefetch {
	struct tool *tool;
	const struct prefetch_options *options;
	struct analysis analysis;
	struct mapped_image relinked;
	struct db_profile recorded;
	struct run_match match;
	struct db_profile
		selected; /* those of `recorded` that count; owns the array only */
	struct simulation simulation; /* for its runs, and its one layout */
	struct prefetch_plan plan;
	uint32_t functions; /* that the runs touched */
	struct output_file file, header;
};

/* ---- inputs ---- */

static enum status open_inputs(struct prefetch *p, struct diag *diag)
{
	const struct prefetch_options *o = p->options;
	const struct analysis_request request = {.names = o->names};
	enum status status = STATUS_OK;

	progress_step(&p->tool->progress, "finding functions");
	if (o->relinked)
		status = mapped_image_open(&p->relinked, o->relinked, o->map, diag);
	if (status == STATUS_OK)
		status = analysis_open(&p->analysis, o->image, &request, diag);
	if (status != STATUS_OK)
		return status;
	status = image_refuse_probed(&p->analysis.image, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, o->image);
	else if (o->relinked)
		status = mapped_image_check_original(&p->relinked, o->image,
						     &p->analysis.hash, diag);
	return status;
}

static bool is_selected(const struct string_list *scenarios, const char *scenario)
{
	bool selected = scenarios->len == 0;

	for (uint32_t i = 0; i < scenarios->len; i++)
		selected |= strcmp(scenarios->data[i], scenario) == 0;
	return selected;
}

/* Each scenario that is named must have a run. */
static enum status check_scenarios(const struct prefetch *p, struct diag *diag)
{
	const struct string_list *scenarios = &p->options->scenarios;

	for (uint32_t i = 0; i < scenarios->len; i++) {
		bool found = false;

		for (uint32_t r = 0; r < p->recorded.count; r++)
			found |= strcmp(p->recorded.runs[r].scenario, scenarios->data[i]) ==
				 0;
		if (!found)
			return diag_fail(
				diag, STATUS_NOT_FOUND,
				"'%s' has no run of this image in the scenario '%s'",
				p->options->runs.database, scenarios->data[i]);
	}
	return STATUS_OK;
}

static enum status load_runs(struct prefetch *p, struct diag *diag)
{
	enum status status = recorded_runs_load(&p->options->runs, &p->analysis,
						&p->recorded, &p->match, diag);

	if (status == STATUS_OK)
		status = check_scenarios(p, diag);
	if (status != STATUS_OK)
		return status;
	p->selected.runs = calloc(p->recorded.count, sizeof(*p->selected.runs));
	if (!p->selected.runs)
		return diag_no_memory(diag);
	for (uint32_t r = 0; r < p->recorded.count; r++)
		if (is_selected(&p->options->scenarios, p->recorded.runs[r].scenario))
			p->selected.runs[p->selected.count++] = p->recorded.runs[r];
	return simulation_init(&p->simulation, &p->analysis.graph, &p->selected, diag);
}

/* The image as it will be loaded. */
static enum status add_layout(struct prefetch *p, struct diag *diag)
{
	const struct order none = {0};

	if (p->options->relinked)
		return simulation_add_relinked(&p->simulation, &p->relinked, diag);
	return simulation_add_order(&p->simulation, "original", &none, PLACEMENT_EXCHANGE,
				    diag);
}

/* ---- the plan ---- */

/* The ranges of all touched functions, each a touch, in the order first-touch; those of one
 * block by address. */
static enum status push_touched(struct prefetch *p, const struct order *order,
				fault_range_list *ranges, struct diag *diag)
{
	const struct graph *graph = &p->analysis.graph;
	const struct move_map *map = &p->simulation.layouts.data[0].map;
	bool *touched = calloc((size_t)graph->functions.len + 1, sizeof(*touched));
	bool ok = touched != NULL;

	for (uint32_t r = 0; ok && r < p->simulation.run_count; r++)
		for (uint32_t i = 0; i < p->simulation.runs[r].touches; i++)
			touched[p->simulation.runs[r].functions[i]] = true;
	for (uint32_t i = 0; ok && i < order->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[order->blocks.data[i]];

		for (uint32_t k = 0; ok && k < block->function_count; k++) {
			uint32_t f = block->first_function + k;

			if (touched[f])
				ok = simulation_push_ranges(map, &graph->functions.data[f],
							    p->functions++, ranges);
		}
	}
	free(touched);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

static enum status make_plan(struct prefetch *p, const fault_range_list *ranges,
			     struct diag *diag)
{
	const struct simulated_layout *layout = &p->simulation.layouts.data[0];
	const struct fault_input input = {.image_size = layout->image_size,
					  .sections = layout->sections.data,
					  .section_count = layout->sections.len,
					  .ranges = ranges->data,
					  .range_count = ranges->len,
					  .touch_count = p->functions,
					  .cluster = 1};
	struct fault_result result = {0};
	enum status status = fault_model_run(&input, &result, diag);

	if (status == STATUS_OK)
		status = prefetch_plan_make(&input, &result, (uint32_t)p->options->gap,
					    &p->plan, diag);
	fault_result_release(&result);
	return status;
}

static enum status plan(struct prefetch *p, struct diag *diag)
{
	struct order order = {0};
	fault_range_list ranges = {0};
	enum status status;

	progress_step(&p->tool->progress, "planning");
	status = order_of_runs(&p->analysis.graph, &p->selected, &order, diag);
	if (status == STATUS_OK)
		status = add_layout(p, diag);
	if (status == STATUS_OK)
		status = push_touched(p, &order, &ranges, diag);
	if (status == STATUS_OK)
		status = make_plan(p, &ranges, diag);
	vec_release(&ranges);
	order_release(&order);
	return status;
}

/* ---- outputs ---- */

/* Opens the output and writes the text, which is freed; NULL: memory was out. */
static enum status write_text(struct output_file *out, const char *path, bool force,
			      char *text, size_t size, struct diag *diag)
{
	enum status status;

	if (!text)
		return diag_no_memory(diag);
	status = output_file_open(out, path, force, diag);
	if (status == STATUS_OK)
		status = output_file_write(out, text, size, diag);
	free(text);
	return status;
}

/* Both files are written before either appears. */
static enum status store(struct prefetch *p, struct diag *diag)
{
	const struct prefetch_options *o = p->options;
	const struct image *image = o->relinked ? &p->relinked.image : &p->analysis.image;
	const struct plan_image id = {
		.name = basename(o->relinked ? o->relinked : o->image),
		.hash = o->relinked ? p->relinked.hash : p->analysis.hash,
		.size_of_image = image->headers.size_of_image,
		.time_date_stamp = image->headers.time_date_stamp,
		.checksum = image->headers.checksum,
	};
	size_t size = 0;
	char *text = prefetch_plan_json(&p->plan, &id, (uint32_t)o->gap, &size);
	enum status status;

	progress_step(&p->tool->progress, "storing");
	status = write_text(&p->file, o->output, o->force, text, size, diag);
	if (status == STATUS_OK && o->header) {
		text = prefetch_plan_header(&p->plan, &id, o->prefix, &size);
		status = write_text(&p->header, o->header, o->force, text, size, diag);
	}
	if (status == STATUS_OK && o->header)
		status = output_file_commit(&p->header, 0, diag);
	if (status == STATUS_OK)
		status = output_file_commit(&p->file, 0, diag);
	return status;
}

static void report(const struct prefetch *p)
{
	const struct prefetch_options *o = p->options;
	const struct simulated_layout *layout = &p->simulation.layouts.data[0];
	struct result *r = &p->tool->result;

	name_report_warn(p->tool, &p->analysis.names, &p->analysis.named);
	if (!p->tool->json) {
		run_match_print(&p->match);
		printf("plan: %s with %s, ", human_things(p->plan.ranges.len, "range").text,
		       human_things(p->plan.pages, "page").text);
		printf("%s of them touched, of %s\n",
		       human_count(p->plan.needed_pages).text,
		       human_things(layout->code_pages, "code page").text);
		printf("touched: %s in %s\n", human_things(p->functions, "function").text,
		       human_things(p->simulation.run_count, "run").text);
		printf("wrote %s%s%s\n", o->output, o->header ? " and " : "",
		       o->header ? o->header : "");
		return;
	}
	result_put_text(r, r->root, "image", o->relinked ? o->relinked : o->image);
	result_put_text(r, r->root, "plan", o->output);
	result_put_text(r, r->root, "c_header", o->header);
	result_put_count(r, r->root, "runs", p->simulation.run_count);
	run_match_put(&p->match, r, r->root);
	result_put_count(r, r->root, "touched_functions", p->functions);
	result_put_count(r, r->root, "ranges", p->plan.ranges.len);
	result_put_count(r, r->root, "pages", p->plan.pages);
	result_put_count(r, r->root, "needed_pages", p->plan.needed_pages);
	result_put_count(r, r->root, "code_pages", layout->code_pages);
}

/* No output may take the place of another, or of an input. */
static enum status check_paths(const struct prefetch_options *o, struct diag *diag)
{
	char beside[4096] = "";
	const char *const others[] = {o->image, o->relinked, o->map ? o->map : beside,
				      o->names.pdb, o->names.linker_map};

	if (o->relinked)
		snprintf(beside, sizeof(beside), "%s.map.json", o->relinked);
	if (paths_meet(o->output, o->header))
		return diag_fail(diag, STATUS_USAGE,
				 "'%s' and '%s' are one file, an output needs a place of "
				 "its own",
				 o->output, o->header);
	if (db_uses_path(o->runs.database, o->output) || db_uses_path(o->runs.database, o->header))
		return diag_fail(diag, STATUS_USAGE,
				 "an output would take the place of a file of the database "
				 "'%s', it needs one of its own", o->runs.database);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!others[i] || !*others[i])
			continue;
		if (paths_meet(o->output, others[i]) || paths_meet(o->header, others[i]))
			return diag_fail(diag, STATUS_USAGE,
					 "an output would take the place of '%s', it needs "
					 "one of its own",
					 others[i]);
	}
	return STATUS_OK;
}

static enum status prefetch(struct tool *tool, const struct prefetch_options *options,
			    struct diag *diag)
{
	struct prefetch p = {
		.tool = tool, .options = options, .file.fd = -1, .header.fd = -1};
	enum status status = check_paths(options, diag);

	if (status == STATUS_OK)
		status = open_inputs(&p, diag);
	if (status == STATUS_OK)
		status = load_runs(&p, diag);
	if (status == STATUS_OK)
		status = plan(&p, diag);
	if (status == STATUS_OK)
		status = store(&p, diag);
	progress_end(&tool->progress);
	if (status == STATUS_OK)
		report(&p);
	output_file_discard(&p.file);
	output_file_discard(&p.header);
	prefetch_plan_release(&p.plan);
	simulation_release(&p.simulation);
	free(p.selected.runs);
	db_profile_release(&p.recorded);
	mapped_image_close(&p.relinked);
	analysis_close(&p.analysis);
	return status;
}

/* ---- the command line ---- */

static bool is_identifier(const char *word)
{
	for (const char *c = word; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' ||
		      (c > word && *c >= '0' && *c <= '9')))
			return false;
	return *word != '\0';
}

static enum status check_options(const struct prefetch_options *o, struct diag *diag)
{
	if (o->map && !o->relinked)
		return diag_fail(
			diag, STATUS_USAGE,
			"option '--map' needs the relinked image, say --relinked FILE");
	if (!is_identifier(o->prefix))
		return diag_fail(diag, STATUS_USAGE,
				 "option '--c-prefix' needs a C identifier, not '%s'",
				 o->prefix);
	return STATUS_OK;
}

enum status prefetch_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct prefetch_options o = {.prefix = "appulse_plan", .gap = GAP_PAGES,
				     .runs.min_match = MIN_MATCH_DEFAULT};
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &o.output,
			      "write the plan to FILE, as JSON", .required = true),
		OPTION_STRING("c-header", 0, "FILE", &o.header,
			      "write it to FILE too, as a C header"),
		OPTION_STRING("c-prefix", 0, "NAME", &o.prefix,
			      "what the header's names begin with (default: appulse_plan)"),
		OPTION_STRING("db", 'd', "FILE", &o.runs.database,
			      "the trace database with the runs", .required = true),
		RUN_SOURCE_OPTIONS(&o.runs),
		OPTIONS_NAMES(&o.names),
		OPTION_LIST(
			"scenario", 0, "NAME", &o.scenarios,
			"take the runs of this scenario only; may be given more than once"),
		OPTION_STRING("relinked", 0, "FILE", &o.relinked,
			      "plan for this relink of IMAGE, not for IMAGE itself"),
		OPTION_STRING(
			"map", 0, "FILE", &o.map,
			"the relink's map (default: that of --relinked with .map.json)"),
		OPTION_NUMBER("gap", 0, "PAGES", &o.gap, 0, GAP_LIMIT,
			      "make one range of pages with at most so many between "
			      "(default: 4)"),
		OPTION_FLAG("force", 'f', &o.force, "replace existing outputs"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Writes which pages of IMAGE's code the recorded runs need, in the "
			"order in which they need them first, for a loader that has the "
			"system read them before it loads the image.",
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
		status = check_options(&o, diag);
		if (status == STATUS_OK)
			status = prefetch(tool, &o, diag);
	}
	vec_release(&o.scenarios);
	command_line_release(&line);
	return status;
}
