/* appulse-profile merge: adds databases together. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/human.h"
#include "cli/options.h"
#include "run_options.h"

static enum status merge(struct tool *tool, const char *database,
			 const struct string_list *inputs, struct diag *diag)
{
	struct result *r = &tool->result;
	json_t *array = result_put_array(r, r->root, "inputs");
	struct db *db = NULL;
	enum status status = database_option_check(database, diag);

	if (status == STATUS_OK)
		status = db_open(database, DB_CREATE, &db, diag);
	for (uint32_t i = 0; i < inputs->len && status == STATUS_OK; i++) {
		struct db_merged merged;
		json_t *input;

		progress_step(&tool->progress, "merging");
		status = db_merge(db, inputs->data[i], &merged, diag);
		if (status != STATUS_OK)
			break;
		input = result_add_object(r, array);
		result_put_text(r, input, "db", inputs->data[i]);
		result_put_count(r, input, "images", (uint64_t)merged.images);
		result_put_count(r, input, "runs", (uint64_t)merged.runs);
		result_put_count(r, input, "traces", (uint64_t)merged.traces);
		result_put_count(r, input, "touches", (uint64_t)merged.touches);
		progress_end(&tool->progress);
		if (!tool->json)
			printf("%s: added images: %s, runs: %s, touches: %s\n",
			       inputs->data[i], human_count((uint64_t)merged.images).text,
			       human_count((uint64_t)merged.runs).text,
			       human_count((uint64_t)merged.touches).text);
	}
	db_close(db);
	return status;
}

enum status merge_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const char *database = NULL;
	const struct option_spec options[] = {
		OPTION_DATABASE(&database),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Adds what the databases IN hold to the database --db, which is "
			"made when it does not exist. What it has already counts once, so "
			"merging again changes nothing, and the order of merges does not "
			"matter.\n\n"
			"Each IN is added whole or not at all; those before one that fails "
			"stay added.",
		.arguments = "IN...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = merge(tool, database, &line.arguments, diag);
	command_line_release(&line);
	return status;
}
