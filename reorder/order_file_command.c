/* appulse-reorder order-file IMAGE: the order of a profile, for a linker. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "chosen_order.h"
#include "cli/human.h"
#include "cli/name_report.h"
#include "cli/options.h"
#include "commands.h"
#include "graph/analysis.h"
#include "order_list.h"
#include "recorded_runs.h"
#include "trace/probed_image.h"

struct order_file_options {
	const char *image, *output;
	struct run_source runs;
	unsigned format; /* enum order_format */
	struct name_files names;
	bool force;
};

/* Everything that the steps make, released at one place. */
struct order_file {
	struct tool *tool;
	const struct order_file_options *options;
	struct analysis analysis;
	struct db_profile recorded;
	struct run_match match;
	struct function_order order;
	struct order_list_counts counts;
	struct output_file file;
};

static enum status make_order(struct order_file *o, struct diag *diag)
{
	const struct analysis_request request = {.names = o->options->names};
	enum status status;

	progress_step(&o->tool->progress, "finding functions");
	status = analysis_open(&o->analysis, o->options->image, &request, diag);
	if (status != STATUS_OK)
		return status;
	status = image_refuse_probed(&o->analysis.image, diag);
	if (status != STATUS_OK) {
		diag_set_file(diag, o->options->image);
		return status;
	}
	status = recorded_runs_load(&o->options->runs, &o->analysis, &o->recorded, &o->match,
				    diag);
	if (status == STATUS_OK)
		status = function_order_of_runs(&o->analysis.graph, &o->recorded, &o->order,
						diag);
	return status;
}

static enum status store(struct order_file *o, struct diag *diag)
{
	size_t size = 0;
	char *text =
		order_list_text(&o->analysis.graph, &o->order,
				(enum order_format)o->options->format, &o->counts, &size);
	enum status status = text ? output_file_open(&o->file, o->options->output,
						     o->options->force, diag)
				  : diag_no_memory(diag);

	if (status == STATUS_OK)
		status = output_file_write(&o->file, text, size, diag);
	if (status == STATUS_OK)
		status = output_file_commit(&o->file, 0, diag);
	free(text);
	return status;
}

static void report(const struct order_file *o)
{
	const struct order_list_counts *c = &o->counts;
	struct result *r = &o->tool->result;

	name_report_warn(o->tool, &o->analysis.names, &o->analysis.named);
	if (o->order.unmatched)
		tool_warn(o->tool, "touched addresses that are no function's start: %u",
			  o->order.unmatched);
	if (!o->tool->json) {
		run_match_print(&o->match);
		printf("wrote %s: %s of %s\n", o->options->output,
		       human_things(c->named, "function").text,
		       human_count(o->order.functions.len).text);
		if (c->ambiguous)
			printf("ambiguous: %s whose name others bear too\n",
			       human_things(c->ambiguous, "function").text);
		if (c->unnamed)
			printf("left out: %s without a name\n",
			       human_things(c->unnamed, "function").text);
		return;
	}
	result_put_text(r, r->root, "image", o->options->image);
	result_put_text(r, r->root, "output", o->options->output);
	result_put_text(r, r->root, "format", order_format_names[o->options->format]);
	result_put_count(r, r->root, "runs", o->recorded.count);
	result_put_count(r, r->root, "touched_functions", o->order.functions.len);
	result_put_count(r, r->root, "named", c->named);
	result_put_count(r, r->root, "ambiguous", c->ambiguous);
	result_put_count(r, r->root, "unnamed", c->unnamed);
	result_put_count(r, r->root, "unmatched", o->order.unmatched);
	name_report_put(&o->analysis.names, &o->analysis.named, r, r->root);
	run_match_put(&o->match, r, r->root);
}

static enum status order_file(struct tool *tool, const struct order_file_options *options,
			      struct diag *diag)
{
	struct order_file o = {.tool = tool, .options = options, .file.fd = -1};
	enum status status = STATUS_OK;

	if (paths_meet(options->output, options->image) ||
	    db_uses_path(options->runs.database, options->output) ||
	    paths_meet(options->output, options->names.pdb) ||
	    paths_meet(options->output, options->names.linker_map))
		status = diag_fail(diag, STATUS_USAGE,
				   "the output would take the place of an input, it needs "
				   "one of its own");
	if (status == STATUS_OK)
		status = make_order(&o, diag);
	if (status == STATUS_OK)
		status = store(&o, diag);
	progress_end(&tool->progress);
	if (status == STATUS_OK)
		report(&o);
	output_file_discard(&o.file);
	function_order_release(&o.order);
	db_profile_release(&o.recorded);
	analysis_close(&o.analysis);
	return status;
}

enum status order_file_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct order_file_options o = {.runs.min_match = MIN_MATCH_DEFAULT};
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &o.output, "write the list to FILE",
			      .required = true),
		OPTION_STRING("db", 'd', "FILE", &o.runs.database,
			      "the trace database with the runs", .required = true),
		RUN_SOURCE_OPTIONS(&o.runs),
		OPTION_CHOICE("format", 0, "NAME", &o.format, order_format_names,
			      "for which linker"),
		OPTIONS_NAMES(&o.names),
		OPTION_FLAG("force", 'f', &o.force, "replace an existing output"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Writes the functions that recorded runs touched, in the order "
			"of their first touch, as a list for a linker.",
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
		status = order_file(tool, &o, diag);
	}
	command_line_release(&line);
	return status;
}
