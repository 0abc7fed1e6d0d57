/* Queries of people, read-only.
 *
 * The text is theirs, so it must not be able to change anything.  Three things
 * see to that: the connection is one for reading (query_only), the statement must
 * be one that SQLite itself calls read-only, and an authorizer (db.c) refuses what
 * these two let through: attaching other files, which may create them, and
 * pragmas that set something.
 */
#include "trace/db_query.h"

#include <stdlib.h>

#include "trace/db_statement.h"

struct db_query {
	struct db_statement statement; /* owned */
	uint32_t width;
	struct db_cell cells[]; /* of the current row */
};

enum status db_query_open(struct db *db, const char *sql, struct db_query **ret_query,
			  struct diag *diag)
{
	struct db_statement statement;
	struct db_query *query;
	uint32_t width;
	enum status status = db_prepare_foreign(db, &statement, sql, diag);

	if (status != STATUS_OK)
		return status;
	width = db_column_count(&statement);
	query = calloc(1, sizeof(*query) + width * sizeof(*query->cells));
	if (!query) {
		db_finalize(&statement);
		return diag_no_memory(diag);
	}
	query->statement = statement;
	query->width = width;
	*ret_query = query;
	return STATUS_OK;
}

void db_query_close(struct db_query *query)
{
	if (query)
		db_finalize(&query->statement);
	free(query);
}

uint32_t db_query_width(const struct db_query *query)
{
	return query->width;
}

const char *db_query_name(const struct db_query *query, uint32_t column)
{
	return db_column_name(&query->statement, (int)column);
}

enum status db_query_next(struct db_query *query, const struct db_cell **ret_cells,
			  struct diag *diag)
{
	bool row;
	enum status status = db_step_foreign(&query->statement, &row, diag);

	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; row && i < query->width; i++)
		if (!db_column_cell(&query->statement, (int)i, &query->cells[i]))
			return diag_no_memory(diag);
	*ret_cells = row ? query->cells : NULL;
	return STATUS_OK;
}
