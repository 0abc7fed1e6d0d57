/* appulse-profile query: a question to the trace database, in SQL.
 *
 * Text is for people, CSV and JSON for programs.  CSV is that of RFC 4180 but for
 * its line ends, which are those of Unix.  NULL is an empty field and an empty text
 * is "", so the two can be told apart.  Rows are written as they come: what is large
 * is not kept in memory, but for a table, whose columns must be measured first.
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/options.h"
#include "cli/table.h"
#include "run_options.h"
#include "trace/db_query.h"

struct query {
	struct tool *tool;
	const char *database;
	bool csv;
};

/* A cell as text on the heap, NULL when memory is out.  Bytes of a blob are given
 * in hexadecimal, as SQL writes them. */
static char *cell_text(const struct db_cell *cell)
{
	static const char hex[] = "0123456789abcdef";
	char *text = NULL, *p;

	switch (cell->type) {
	case DB_CELL_NULL:
		return strdup("");
	case DB_CELL_INT:
		return asprintf(&text, "%" PRId64, cell->i) < 0 ? NULL : text;
	case DB_CELL_REAL:
		return asprintf(&text, "%.15g", cell->r) < 0 ? NULL : text;
	case DB_CELL_TEXT:
		return strdup(cell->text);
	case DB_CELL_BLOB:
		break;
	}
	p = text = malloc(2 * cell->size + 4);
	if (!text)
		return NULL;
	p = stpcpy(p, "x'");
	for (size_t i = 0; i < cell->size; i++) {
		*p++ = hex[(unsigned char)cell->text[i] >> 4];
		*p++ = hex[(unsigned char)cell->text[i] & 15];
	}
	strcpy(p, "'");
	return text;
}

/* ---- text ---- */

static enum status fill_table(struct db_query *rows, struct table *table,
			      struct table_column *columns, struct diag *diag)
{
	uint32_t width = db_query_width(rows);
	const struct db_cell *cells;
	enum status status;

	while ((status = db_query_next(rows, &cells, diag)) == STATUS_OK && cells)
		for (uint32_t i = 0; i < width; i++) {
			char *text = cell_text(&cells[i]);

			if (!text)
				return diag_no_memory(diag);
			if (cells[i].type == DB_CELL_TEXT || cells[i].type == DB_CELL_BLOB)
				columns[i].align = TABLE_LEFT;
			table_cell(table, "%s",
				   cells[i].type == DB_CELL_NULL ? "-" : text);
			free(text);
		}
	return status;
}

/* Columns that hold numbers only are aligned at their right. */
static enum status print_text(struct db_query *rows, struct diag *diag)
{
	uint32_t width = db_query_width(rows);
	struct table_column *columns = calloc(width, sizeof(*columns));
	char **titles = calloc(width, sizeof(*titles));
	enum status status = columns && titles ? STATUS_OK : diag_no_memory(diag);
	struct table table;

	for (uint32_t i = 0; status == STATUS_OK && i < width; i++) {
		titles[i] = strdup(db_query_name(rows, i));
		if (!titles[i]) {
			status = diag_no_memory(diag);
			break;
		}
		utf8_clean(titles[i], false);
		columns[i] = (struct table_column){titles[i], TABLE_RIGHT};
	}
	if (status == STATUS_OK) {
		table_init(&table, columns, width);
		status = fill_table(rows, &table, columns, diag);
		if (status == STATUS_OK)
			status = table_print(&table, stdout, diag);
		table_release(&table);
	}
	for (uint32_t i = 0; titles && i < width; i++)
		free(titles[i]);
	free(titles);
	free(columns);
	return status;
}

/* ---- CSV ---- */

static void print_field(const char *text, bool quote)
{
	if (!quote && !strpbrk(text, ",\"\r\n")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

/* A terminal must not obey what a database holds. */
static void print_foreign(char *text, bool quote)
{
	if (isatty(STDOUT_FILENO))
		utf8_clean(text, false);
	print_field(text, quote);
}

static enum status print_csv(struct db_query *rows, struct diag *diag)
{
	uint32_t width = db_query_width(rows);
	const struct db_cell *cells;
	enum status status;

	for (uint32_t i = 0; i < width; i++) {
		char *name = strdup(db_query_name(rows, i));

		if (!name)
			return diag_no_memory(diag);
		if (i)
			putchar(',');
		print_foreign(name, name[0] == '\0');
		free(name);
	}
	putchar('\n');
	while ((status = db_query_next(rows, &cells, diag)) == STATUS_OK && cells) {
		for (uint32_t i = 0; i < width; i++) {
			char *text = cell_text(&cells[i]);

			if (!text)
				return diag_no_memory(diag);
			if (i)
				putchar(',');
			print_foreign(text, cells[i].type == DB_CELL_TEXT && !text[0]);
			free(text);
		}
		putchar('\n');
	}
	return status;
}

/* ---- JSON ---- */

static enum status put_cell(struct result *r, json_t *row, const struct db_cell *cell,
			    struct diag *diag)
{
	char *text;

	switch (cell->type) {
	case DB_CELL_NULL:
		result_add_null(r, row);
		return STATUS_OK;
	case DB_CELL_INT:
		result_add_integer(r, row, cell->i);
		return STATUS_OK;
	case DB_CELL_REAL:
		result_add_real(r, row, cell->r);
		return STATUS_OK;
	default:
		text = cell_text(cell);
		if (!text)
			return diag_no_memory(diag);
		result_add_text(r, row, text);
		free(text);
		return STATUS_OK;
	}
}

static enum status put_rows(struct result *r, struct db_query *rows, struct diag *diag)
{
	uint32_t width = db_query_width(rows);
	json_t *columns = result_put_array(r, r->root, "columns");
	json_t *array = result_put_array(r, r->root, "rows");
	const struct db_cell *cells;
	enum status status;

	for (uint32_t i = 0; i < width; i++)
		result_add_text(r, columns, db_query_name(rows, i));
	while ((status = db_query_next(rows, &cells, diag)) == STATUS_OK && cells) {
		json_t *row = result_add_array(r, array);

		for (uint32_t i = 0; i < width && status == STATUS_OK; i++)
			status = put_cell(r, row, &cells[i], diag);
		if (status != STATUS_OK)
			break;
	}
	return status;
}

/* ---- the whole ---- */

static enum status query(const struct query *q, const char *sql, struct diag *diag)
{
	struct db *db = NULL;
	struct db_query *rows = NULL;
	enum status status = database_option_check(q->database, diag);

	if (status == STATUS_OK && q->csv && q->tool->json)
		status = diag_fail(diag, STATUS_USAGE,
				   "options '--csv' and '--json' exclude each other");
	if (status == STATUS_OK)
		status = db_open(q->database, DB_READONLY, &db, diag);
	if (status == STATUS_OK)
		status = db_query_open(db, sql, &rows, diag);
	if (status == STATUS_OK && q->tool->json)
		status = put_rows(&q->tool->result, rows, diag);
	else if (status == STATUS_OK && q->csv)
		status = print_csv(rows, diag);
	else if (status == STATUS_OK)
		status = print_text(rows, diag);
	db_query_close(rows);
	db_close(db);
	return status;
}

enum status query_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct query q = {.tool = tool};
	const struct option_spec options[] = {
		OPTION_DATABASE(&q.database),
		OPTION_FLAG("csv", 0, &q.csv, "print the rows as CSV, a header first"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Answers a question in SQL, which can read all of the database and "
			"change nothing. The views v_... are made for this: v_images, "
			"v_runs, v_first_touch, v_functions, v_functions_touched, "
			"v_scenario_functions, v_pages, v_page_counts, v_relinks, v_moves."
			"\n\n"
			"An example: \"SELECT rva_hex, function FROM v_first_touch WHERE run = "
			"1 ORDER BY time_ms LIMIT 20\". More in docs/queries.md; columns in "
			"docs/database.md.",
		.arguments = "SQL",
		.min = 1,
		.max = 1,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = query(&q, line.arguments.data[0], diag);
	command_line_release(&line);
	return status;
}
