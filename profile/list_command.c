/* appulse-profile list: the runs and images of a database. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/human.h"
#include "cli/options.h"
#include "cli/table.h"
#include "run_options.h"
#include "trace/db_report.h"

static enum status print_runs(const struct db_run_row *runs, uint32_t count,
			      struct diag *diag)
{
	static const struct table_column columns[] = {
		{"run", TABLE_RIGHT},       {"kind", TABLE_LEFT},
		{"scenario", TABLE_LEFT},   {"weight", TABLE_RIGHT},
		{"started", TABLE_LEFT},    {"exit", TABLE_LEFT},
		{"processes", TABLE_RIGHT}, {"touches", TABLE_RIGHT},
		{"command", TABLE_LEFT},
	};
	struct table table;
	enum status status;

	if (count == 0) {
		puts("no runs");
		return STATUS_OK;
	}
	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < count; i++) {
		const struct db_run_row *r = &runs[i];

		table_cell(&table, "%" PRId64, r->run);
		table_cell(&table, "%s", r->kind);
		table_cell(&table, "%s", r->scenario);
		table_cell(&table, "%g", r->weight);
		table_cell(&table, "%s", r->started ? r->started : "-");
		if (r->has_exit_code)
			table_cell(&table, "%s %" PRId64, r->exit, r->exit_code);
		else
			table_cell(&table, "%s", r->exit);
		table_cell(&table, "%s", human_count(r->processes).text);
		table_cell(&table, "%s", human_count(r->touches + r->page_touches +
						r->hard_faults).text);
		table_cell(&table, "%s", r->command ? r->command : "-");
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static enum status print_images(const struct db_image_row *images, uint32_t count,
				struct diag *diag)
{
	static const struct table_column columns[] = {
		{"image", TABLE_LEFT},    {"hash", TABLE_LEFT},
		{"size", TABLE_RIGHT},    {"functions", TABLE_RIGHT},
		{"movable", TABLE_RIGHT}, {"made from", TABLE_LEFT},
	};
	struct table table;
	enum status status;

	if (count == 0) {
		puts("no images");
		return STATUS_OK;
	}
	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < count; i++) {
		const struct db_image_row *m = &images[i];
		const char *input = "-";

		for (uint32_t k = 0; k < count; k++)
			if (m->relinked_from && images[k].image == m->relinked_from)
				input = images[k].hash;
		table_cell(&table, "%s", m->name);
		table_cell(&table, "%.12s", m->hash);
		table_cell(&table, "%s", m->size ? human_bytes(m->size).text : "-");
		table_cell(&table, "%s", human_count(m->functions).text);
		table_cell(&table, "%s",
			   human_percent(m->movable_functions, m->functions).text);
		table_cell(&table, "%.12s", input);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static void put_runs(struct result *r, const struct db_run_row *runs, uint32_t count)
{
	json_t *array = result_put_array(r, r->root, "runs");

	for (uint32_t i = 0; i < count; i++) {
		const struct db_run_row *row = &runs[i];
		json_t *run = result_add_object(r, array);

		result_put_count(r, run, "run", (uint64_t)row->run);
		result_put_text(r, run, "kind", row->kind);
		result_put_text(r, run, "scenario", row->scenario);
		result_put_real(r, run, "weight", row->weight);
		result_put_text(r, run, "command", row->command);
		result_put_text(r, run, "host", row->host);
		result_put_text(r, run, "started", row->started);
		result_put_text(r, run, "exit", row->exit);
		if (row->has_exit_code)
			result_put_count(r, run, "exit_code", (uint64_t)row->exit_code);
		else
			result_put_null(r, run, "exit_code");
		if (row->has_wall_seconds)
			result_put_real(r, run, "wall_seconds", row->wall_seconds);
		else
			result_put_null(r, run, "wall_seconds");
		result_put_count(r, run, "processes", row->processes);
		result_put_count(r, run, "traces", row->traces);
		result_put_count(r, run, "touches", row->touches);
		result_put_count(r, run, "page_touches", row->page_touches);
		result_put_count(r, run, "hard_faults", row->hard_faults);
	}
}

static void put_images(struct result *r, const struct db_image_row *images, uint32_t count)
{
	json_t *array = result_put_array(r, r->root, "images");

	for (uint32_t i = 0; i < count; i++) {
		const struct db_image_row *row = &images[i];
		json_t *image = result_add_object(r, array);

		result_put_count(r, image, "image", (uint64_t)row->image);
		result_put_text(r, image, "name", row->name);
		result_put_text(r, image, "sha256", row->hash);
		if (row->size)
			result_put_count(r, image, "size", row->size);
		else
			result_put_null(r, image, "size");
		result_put_count(r, image, "functions", row->functions);
		result_put_count(r, image, "function_bytes", row->function_bytes);
		result_put_count(r, image, "movable_functions", row->movable_functions);
		result_put_count(r, image, "movable_bytes", row->movable_bytes);
		if (row->relinked_from)
			result_put_count(r, image, "relinked_from",
					 (uint64_t)row->relinked_from);
		else
			result_put_null(r, image, "relinked_from");
	}
}

static enum status list(struct tool *tool, const char *database, struct diag *diag)
{
	struct arena arena;
	struct db *db = NULL;
	struct db_run_row *runs;
	struct db_image_row *images;
	uint32_t run_count, image_count;
	enum status status = database_option_check(database, diag);

	arena_init(&arena);
	if (status == STATUS_OK)
		status = db_open(database, DB_READONLY, &db, diag);
	if (status == STATUS_OK)
		status = db_list_runs(db, &arena, &runs, &run_count, diag);
	if (status == STATUS_OK)
		status = db_list_images(db, &arena, &images, &image_count, diag);
	if (status == STATUS_OK && tool->json) {
		put_runs(&tool->result, runs, run_count);
		put_images(&tool->result, images, image_count);
	} else if (status == STATUS_OK) {
		status = print_images(images, image_count, diag);
		putchar('\n');
		if (status == STATUS_OK)
			status = print_runs(runs, run_count, diag);
	}
	db_close(db);
	arena_release(&arena);
	return status;
}

enum status list_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const char *database = NULL;
	const struct option_spec options[] = {
		OPTION_DATABASE(&database),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Lists the images and runs of a trace database.",
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = list(tool, database, diag);
	command_line_release(&line);
	return status;
}
