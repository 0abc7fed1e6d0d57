/* appulse-profile breakpoints: which functions a run reaches, by a breakpoint on
 * each function's start.
 *
 * This is how order files are traced without instrumentation.  It is slow and it
 * patches the program's code, and it shares nothing with the probes: so it is what
 * a trace is compared with.  Which functions there are is taken from the database,
 * where appulse-instrument has written them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/human.h"
#include "cli/table.h"
#include "commands.h"
#include "debug_session.h"
#include "graph/pin_reason.h"

enum { STARTS_VERSION = 1, LINE_BYTES = 80 };

/* Whether the comma-separated list holds that word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n == length && memcmp(list, word, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* Whether an int3 at the function's start is safe: not when it may be no code, or
 * not the start of an instruction, or is read as data.  (The lists of constructors
 * that mingw-w64 lays behind the code look like functions of zero bytes.) */
static bool may_break(const struct db_function *function)
{
	for (int i = 0; i < PIN_REASON_COUNT; i++)
		if ((PINS_UNPROBED >> i & 1) &&
		    has_word(function->pins, pin_reason_name((enum pin_reason)i)))
			return false;
	return true;
}

/* Writes the function starts of an image as the debugger reads them. */
static enum status write_starts(struct debug_image *image,
				const struct db_image_functions *known, struct diag *diag)
{
	const struct pe_headers *h = &image->image.headers;
	char *text = malloc(((size_t)known->count + 1) * LINE_BYTES), *p = text, *first;
	enum status status;

	if (!text)
		return diag_no_memory(diag);
	p += sprintf(p, "appulse-starts %d %" PRIx32 " %" PRIx32 " %" PRIx32 "\n",
		     STARTS_VERSION, h->size_of_image, h->time_date_stamp, h->checksum);
	first = p;
	for (uint32_t i = 0; i < known->count; i++) {
		const struct db_function *f = &known->functions[i];
		const uint8_t *byte = image_bytes(&image->image, f->rva, 1);

		if (byte && image_is_code(&image->image, f->rva) && may_break(f))
			p += sprintf(p, "%" PRIx32 " %02x\n", f->rva.v, *byte);
	}
	if (p == first)
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "no function of '%s' may have a breakpoint, all are in doubt "
				   "or left alone by --pin", image->image.path);
	else
		status = file_write(image->starts, text, (size_t)(p - text), true, diag);
	free(text);
	return status;
}

static enum status prepare_image(struct debug_session *s, uint32_t index, struct db *db,
				 struct diag *diag)
{
	struct debug_image *image = &s->images[index];
	struct db_image_functions known;
	enum status status = db_find_image(db, &image->hash, &image->id, NULL);

	if (status == STATUS_NOT_FOUND)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "the database knows no functions of '%s', run "
				 "appulse-instrument on it first", image->image.path);
	if (status == STATUS_OK)
		status = db_load_image(db, image->id, &known, diag);
	if (status != STATUS_OK)
		return status;
	if (known.count == 0)
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "the database knows no functions of '%s', run "
				   "appulse-instrument on it first", image->image.path);
	else if (asprintf(&image->starts, "%s/starts-%" PRIu32, s->debugger.folder, index) < 0) {
		image->starts = NULL;
		status = diag_no_memory(diag);
	} else {
		status = write_starts(image, &known, diag);
	}
	db_image_release(&known);
	return status;
}

static void tell_json(const struct debug_session *session, struct result *r)
{
	json_t *images = result_put_array(r, r->root, "images");

	for (uint32_t i = 0; i < session->image_count; i++) {
		const struct debug_image *image = &session->images[i];
		json_t *object = debug_session_tell_image(session, i, r, images);

		result_put_count(r, object, "functions", image->places);
		result_put_count(r, object, "planted_functions", image->watched);
		result_put_count(r, object, "touched_functions", image->touched);
	}
}

static enum status tell_people(const struct debug_session *session, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"image", TABLE_LEFT}, {"functions", TABLE_RIGHT},
		{"breakpoints", TABLE_RIGHT}, {"touched", TABLE_RIGHT},
		{"share", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (uint32_t i = 0; i < session->image_count; i++) {
		const struct debug_image *image = &session->images[i];

		table_cell(&table, "%s", image->name);
		table_cell(&table, "%s", human_count(image->places).text);
		table_cell(&table, "%s", human_count(image->watched).text);
		table_cell(&table, "%s", human_count(image->touched).text);
		table_cell(&table, "%s",
			   human_percent(image->touched, image->watched).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static enum status trace(struct tool *tool, const struct run_options *run,
			 const struct string_list *images, char **command,
			 struct diag *diag)
{
	struct debug_session session;
	struct db *db = NULL;
	enum status status = debug_session_init(&session, DEBUGGER_BREAKPOINTS, images, diag);

	if (status == STATUS_OK)
		status = db_open(run->database, DB_READWRITE, &db, diag);
	for (uint32_t i = 0; status == STATUS_OK && i < session.image_count; i++)
		status = prepare_image(&session, i, db, diag);
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

enum status breakpoints_command(struct tool *tool, int argc, char **argv, struct diag *diag)
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
		.description =
			"Runs COMMAND under a debugger that puts a breakpoint on the start of "
			"every function of each image, once, and stores which are reached, in "
			"order, as a run of kind 'breakpoints'. The images are the originals, "
			"whose functions appulse-instrument has written into the database.\n\n"
			"COMMAND starts a Windows program, as in 'wine app.exe ARG'; its child "
			"processes are watched too.\n\n"
			"This shares nothing with the probes and is slow: it is there to check "
			"a trace.",
		.takes_command = true,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);
	double weight;

	if (status == STATUS_OK && !line.answered)
		status = run_options_check(&run, &weight, diag);
	if (status == STATUS_OK && !line.answered)
		status = trace(tool, &run, &images, line.command, diag);
	vec_release(&images);
	command_line_release(&line);
	return status;
}
