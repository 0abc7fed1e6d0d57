/* appulse-profile pages: which code pages of an image a run touches, exactly. */
#include <stdio.h>

#include "cli/human.h"
#include "cli/table.h"
#include "commands.h"
#include "debug_session.h"

static void tell_json(const struct debug_session *session, struct result *r)
{
	json_t *images = result_put_array(r, r->root, "images");

	for (uint32_t i = 0; i < session->image_count; i++) {
		const struct debug_image *image = &session->images[i];
		json_t *object = debug_session_tell_image(session, i, r, images);

		result_put_count(r, object, "code_pages", image->places);
		result_put_count(r, object, "guarded_pages", image->watched);
		result_put_count(r, object, "touched_pages", image->touched);
		result_put_count(r, object, "executed_pages", image->executed);
	}
}

static enum status tell_people(const struct debug_session *session, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"image", TABLE_LEFT}, {"code pages", TABLE_RIGHT}, {"touched", TABLE_RIGHT},
		{"share", TABLE_RIGHT}, {"only read", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (uint32_t i = 0; i < session->image_count; i++) {
		const struct debug_image *image = &session->images[i];

		table_cell(&table, "%s", image->name);
		table_cell(&table, "%s", human_count(image->places).text);
		table_cell(&table, "%s", human_count(image->touched).text);
		table_cell(&table, "%s", human_percent(image->touched, image->places).text);
		table_cell(&table, "%s",
			   human_count(image->touched - image->executed).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static enum status measure(struct tool *tool, const struct run_options *run,
			   const struct string_list *images, char **command,
			   struct diag *diag)
{
	struct debug_session session;
	struct db *db = NULL;
	enum status status = debug_session_init(&session, DEBUGGER_PAGES, images, diag);

	if (status == STATUS_OK)
		status = db_open(run->database, DB_CREATE, &db, diag);
	if (status == STATUS_OK)
		status = debug_session_run(&session, tool, run, command, diag);
	if (status == STATUS_OK)
		status = debug_session_store(&session, db, diag);
	if (status == STATUS_OK) {
		debug_session_tell(&session, tool, run->database);
		tell_json(&session, &tool->result);
		status = tool->json ? STATUS_OK : tell_people(&session, diag);
	}
	if (status == STATUS_OK)
		status = child_status(&session.debugger.exit, command[0], diag);
	db_close(db);
	debug_session_release(&session);
	return status;
}

enum status pages_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct run_options run = {0};
	struct string_list images = {0};
	const struct option_spec options[] = {
		OPTION_LIST("image", 'i', "FILE", &images,
			    "watch this image; may be given more than once",
			    .required = true),
		OPTIONS_RUN(&run),
		OPTION_COMMAND_OUTPUT(&run),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description = "Runs COMMAND under a debugger that guards the code pages of "
			       "each image, and stores which of them are touched, in order, "
			       "as a run of kind 'pages'.\n\n"
			       "COMMAND starts a Windows program, as in 'wine app.exe ARG'; "
			       "its child processes are watched too.",
		.takes_command = true,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);
	double weight;

	if (status == STATUS_OK && !line.answered)
		status = run_options_check(&run, &weight, diag);
	if (status == STATUS_OK && !line.answered)
		status = measure(tool, &run, &images, line.command, diag);
	vec_release(&images);
	command_line_release(&line);
	return status;
}
