/* appulse-reorder verify OLD NEW: the verifier on its own. */
#include <stdio.h>

#include "cli/human.h"
#include "cli/name_report.h"
#include "cli/options.h"
#include "commands.h"
#include "graph/analysis.h"
#include "layout/verify.h"
#include "mapped_image.h"

struct verify_options {
	const char *original, *relinked;
	const char *map; /* NULL: beside the relinked image */
	struct string_list pins;
	struct name_files names;
};

static void report(struct tool *tool, const struct verify_report *verified, uint32_t moves)
{
	struct result *result = &tool->result;

	if (!tool->json) {
		printf("verified: %s moved, %s, %s, %s, %s, %s\n",
		       human_things(moves, "block").text,
		       human_things(verified->functions, "function").text,
		       human_things(verified->instructions, "instruction").text,
		       human_things(verified->references, "reference").text,
		       human_things(verified->relocations, "relocation").text,
		       human_things(verified->table_entries, "table row").text);
		return;
	}
	result_put_count(result, result->root, "moved_blocks", moves);
	result_put_count(result, result->root, "functions", verified->functions);
	result_put_count(result, result->root, "instructions", verified->instructions);
	result_put_count(result, result->root, "references", verified->references);
	result_put_count(result, result->root, "relocations", verified->relocations);
	result_put_count(result, result->root, "table_entries", verified->table_entries);
}

static enum status verify(struct tool *tool, const struct verify_options *o, struct diag *diag)
{
	struct analysis original = {0};
	struct mapped_image relinked;
	struct verify_report verified = {0};
	const struct analysis_request request = {.pins = {o->pins.data, o->pins.len},
						 .names = o->names};
	enum status status;

	progress_step(&tool->progress, "reading");
	status = mapped_image_open(&relinked, o->relinked, o->map, diag);
	if (status == STATUS_OK)
		status = analysis_open(&original, o->original, &request, diag);
	if (status == STATUS_OK)
		status = mapped_image_check_original(&relinked, o->original, &original.hash,
						     diag);
	progress_step(&tool->progress, "verifying");
	if (status == STATUS_OK)
		status = verify_relink(&original.graph, &relinked.image,
				       relinked.map.moves.data, relinked.map.moves.len,
				       &verified, diag);
	if (status == STATUS_VERIFY)
		diag_set_file(diag, o->relinked);
	progress_end(&tool->progress);
	if (status == STATUS_OK) {
		name_report_warn(tool, &original.names, &original.named);
		report(tool, &verified, relinked.map.moves.len);
	}
	analysis_close(&original);
	mapped_image_close(&relinked);
	return status;
}

enum status verify_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct verify_options o = {0};
	const struct option_spec options[] = {
		OPTION_STRING("map", 0, "FILE", &o.map,
			      "where each block went (default: NEW.map.json)"),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "prove that this code of OLD has not moved: as in "
			    "'appulse-reorder --help'"),
		OPTIONS_NAMES(&o.names),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Proves that NEW is OLD with its blocks moved as the map says: reads NEW "
			"afresh and compares every instruction, reference and table. Ends with "
			"exit code 4 and the first difference when it is not.",
		.arguments = "OLD NEW", .min = 2, .max = 2,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.original = line.arguments.data[0];
		o.relinked = line.arguments.data[1];
		status = verify(tool, &o, diag);
	}
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
