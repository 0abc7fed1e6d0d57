#include "cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/utf8.h"

void table_init(struct table *table, const struct table_column *columns, uint32_t count)
{
	assert(count > 0);
	*table = (struct table){.columns = columns, .column_count = count};
}

void table_release(struct table *table)
{
	for (uint32_t i = 0; i < table->len; i++)
		free(table->data[i]);
	vec_release(table);
}

void table_cell(struct table *table, const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		table->failed = true;
		return;
	}
	utf8_clean(text, false);
	if (!vec_push(table, text)) {
		free(text);
		table->failed = true;
	}
}

static bool has_header(const struct table *table)
{
	for (uint32_t c = 0; c < table->column_count; c++)
		if (table->columns[c].title)
			return true;
	return false;
}

static size_t column_width(const struct table *table, uint32_t column)
{
	const char *title = table->columns[column].title;
	size_t width = title ? utf8_width(title) : 0;

	for (uint32_t i = column; i < table->len; i += table->column_count) {
		size_t cell = utf8_width(table->data[i]);

		if (cell > width)
			width = cell;
	}
	return width;
}

static void pad(FILE *to, size_t n, char with)
{
	while (n-- > 0)
		putc(with, to);
}

/* One line of `count` cells.  Spaces are owed until text follows them, so that
 * no line ends in one. */
static void print_line(const struct table *table, const char *const *cells, uint32_t count,
		       const size_t *widths, FILE *to)
{
	size_t owed = 0;

	for (uint32_t c = 0; c < count; c++) {
		const char *text = cells[c] ? cells[c] : "";
		size_t space = widths[c] - utf8_width(text);
		bool right = table->columns[c].align == TABLE_RIGHT;

		owed += right ? space : 0;
		if (*text) {
			pad(to, owed, ' ');
			owed = 0;
			fputs(text, to);
		}
		owed += (right ? 0 : space) + 2;
	}
	putc('\n', to);
}

static void print_header(const struct table *table, const size_t *widths,
			 const char **titles, FILE *to)
{
	for (uint32_t c = 0; c < table->column_count; c++)
		titles[c] = table->columns[c].title;
	print_line(table, titles, table->column_count, widths, to);
	for (uint32_t c = 0; c < table->column_count; c++) {
		if (c > 0)
			pad(to, 2, ' ');
		pad(to, widths[c], '-');
	}
	putc('\n', to);
}

enum status table_print(const struct table *table, FILE *to, struct diag *diag)
{
	uint32_t columns = table->column_count;
	size_t *widths = calloc(columns, sizeof(*widths));
	const char **titles = calloc(columns, sizeof(*titles));
	enum status status = STATUS_OK;

	if (table->failed || !widths || !titles) {
		status = diag_no_memory(diag);
		goto out;
	}
	for (uint32_t c = 0; c < columns; c++)
		widths[c] = column_width(table, c);
	if (has_header(table))
		print_header(table, widths, titles, to);
	for (uint32_t i = 0; i < table->len; i += columns)
		print_line(table, (const char *const *)table->data + i,
			   table->len - i < columns ? table->len - i : columns, widths, to);
out:
	free(titles);
	free(widths);
	return status;
}
