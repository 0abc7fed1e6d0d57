/* Tables of text for people, columns aligned.
 *
 *     static const struct table_column columns[] = {
 *             {"function", TABLE_LEFT}, {"size", TABLE_RIGHT}};
 *     struct table table;
 *
 *     table_init(&table, columns, 2);
 *     for (...) {
 *             table_cell(&table, "%s", name);
 *             table_cell(&table, "%s", human_count(size).text);
 *     }
 *     status = table_print(&table, stdout, diag);
 *     table_release(&table);
 *
 * Cells fill the rows from left to right.  Memory running out is sticky and
 * told by table_print.
 */
#ifndef APPULSE_CLI_TABLE_H
#define APPULSE_CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table_column {
	const char *title; /* NULL in all columns: no header */
	enum table_align align;
};

struct table {
	const struct table_column *columns; /* borrowed */
	uint32_t column_count;              /* at least 1 */
	char **data;                        /* owned cells, row by row */
	uint32_t len, cap;
	bool failed;                        /* memory ran out */
};

void table_init(struct table *table, const struct table_column *columns, uint32_t count);
void table_release(struct table *table);

/* Sets the next cell.  Bytes that a terminal might obey are shown as '?'. */
void table_cell(struct table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes header, a rule and the rows, two spaces between columns and none at
 * the ends of lines; a last row may be incomplete.  NO_MEMORY.  Write errors are
 * left in the stream: tool_finish checks stdout. */
enum status table_print(const struct table *table, FILE *to, struct diag *diag);

#endif
