/* Questions that people ask the trace database in SQL of their own. */
#ifndef APPULSE_TRACE_DB_QUERY_H
#define APPULSE_TRACE_DB_QUERY_H

#include "trace/db.h"

enum db_cell_type { DB_CELL_NULL, DB_CELL_INT, DB_CELL_REAL, DB_CELL_TEXT, DB_CELL_BLOB };

/* One value of a row. */
struct db_cell {
	enum db_cell_type type;
	int64_t i;
	double r;
	const char *text; /* TEXT, or a BLOB's bytes; any bytes, NUL too, and a NUL behind */
	size_t size;      /* bytes of `text` */
};

struct db_query;

/* Prepares one statement that only reads; db_query_close afterwards, before the
 * database is closed.  USAGE when `sql` is no SQL, several statements, none, or
 * would change anything, this file or another: the message is SQLite's.  Also
 * BAD_DATABASE, IO, DATABASE, NO_MEMORY. */
enum status db_query_open(struct db *db, const char *sql, struct db_query **ret_query,
			  struct diag *diag);

/* NULL is fine. */
void db_query_close(struct db_query *query);

/* How many values each row has: at least 1. */
uint32_t db_query_width(const struct db_query *query);

/* The name of a column, as SQL gives it; lives until the query is closed. */
const char *db_query_name(const struct db_query *query, uint32_t column);

/* The next row: its cells, borrowed until the next call, or NULL at the end.
 * USAGE when SQL fails on the values (a sum that overflows). */
enum status db_query_next(struct db_query *query, const struct db_cell **ret_cells,
			  struct diag *diag);

#endif
