/* SQL statements without SQLite's header: what the files db_*.c use to read and
 * write the database.  Private to them and db.c.
 *
 * Values are bound and read by type.  Errors of both are sticky: a value that
 * cannot be bound, or a column that is out of range, fails the next db_step,
 * so a loop over rows tests one status.
 */
#ifndef APPULSE_TRACE_DB_STATEMENT_H
#define APPULSE_TRACE_DB_STATEMENT_H

#include "trace/db.h"
#include "trace/db_query.h"

struct sqlite3_stmt;

struct db_statement {
	struct db *db;               /* borrowed */
	struct sqlite3_stmt *handle; /* owned; NULL when not prepared */
	enum status failed;          /* sticky, of binding and reading */
};

struct db_value {
	enum { DB_NULL, DB_INT, DB_REAL, DB_TEXT, DB_BLOB } type;
	union {
		int64_t i;
		double r;
		const char *t;
		struct {
			const void *data;
			uint32_t size; /* bytes */
		} b;
	};
};

static inline struct db_value db_int(int64_t i)
{
	return (struct db_value){.type = DB_INT, .i = i};
}

static inline struct db_value db_real(double r)
{
	return (struct db_value){.type = DB_REAL, .r = r};
}

/* NULL becomes SQL's NULL. */
static inline struct db_value db_text(const char *t)
{
	return (struct db_value){.type = t ? DB_TEXT : DB_NULL, .t = t};
}

static inline struct db_value db_blob(const void *data, uint32_t size)
{
	return (struct db_value){.type = DB_BLOB, .b = {data, size}};
}

/* `i`, or NULL when `known` is false. */
static inline struct db_value db_int_if(bool known, int64_t i)
{
	return (struct db_value){.type = known ? DB_INT : DB_NULL, .i = i};
}

#define DB_VALUES(...)                             \
	(const struct db_value[]){__VA_ARGS__},    \
	sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value)

/* Prepares a statement of ours; the caller finalizes.  On failure nothing is
 * owned, and finalizing is fine still. */
enum status db_prepare(struct db *db, struct db_statement *statement, const char *sql,
		       struct diag *diag);
void db_finalize(struct db_statement *statement);

/* Resets and binds parameters 1 to `count`.  Texts must live until the next
 * bind or finalize: use as db_bind(&s, DB_VALUES(db_int(1), db_text("x"))). */
void db_bind(struct db_statement *statement, const struct db_value *values, unsigned count);

/* The next row, or the end. */
enum status db_step(struct db_statement *statement, bool *ret_row, struct diag *diag);

/* Bind and step a statement that returns no rows. */
enum status db_run(struct db_statement *statement, const struct db_value *values,
		   unsigned count, struct diag *diag);

/* Columns of the row, from 0.  A NULL is 0 or NULL.  Text lives until the next
 * step.  db_column_u32 fails (sticky) for values that do not fit. */
int64_t db_column_int(struct db_statement *statement, int column);
uint32_t db_column_u32(struct db_statement *statement, int column);
double db_column_real(struct db_statement *statement, int column);
const char *db_column_text(struct db_statement *statement, int column);

/* A heap copy of the text, NULL for a NULL; sticky NO_MEMORY. */
char *db_column_copy(struct db_statement *statement, int column);

/* The same for SQL that a user wrote: one statement that only reads, or USAGE. */
enum status db_prepare_foreign(struct db *db, struct db_statement *statement,
			       const char *sql, struct diag *diag);
enum status db_step_foreign(struct db_statement *statement, bool *ret_row,
			    struct diag *diag);

/* What a statement gives, whatever it is.  The name and a cell's bytes live as for
 * db_column_text; false when memory is out. */
uint32_t db_column_count(const struct db_statement *statement);
const char *db_column_name(const struct db_statement *statement, int column);
bool db_column_cell(struct db_statement *statement, int column, struct db_cell *ret_cell);

/* Prepare, run once, finalize. */
enum status db_execute(struct db *db, const char *sql, const struct db_value *values,
		       unsigned count, struct diag *diag);

/* The first column of the first row, `ret_found` false without a row. */
enum status db_query_int(struct db *db, const char *sql, const struct db_value *values,
			 unsigned count, bool *ret_found, int64_t *ret_value,
			 struct diag *diag);

/* The rowid of the last insert. */
int64_t db_last_id(struct db *db);

/* Rows that the last statement changed. */
int64_t db_changes(struct db *db);

/* Opens the database at `path`, which db_open has accepted, under the name
 * "source" for reading, and closes it.  Not inside a transaction. */
enum status db_attach(struct db *db, const char *path, struct diag *diag);
void db_detach(struct db *db);

/* The path that db_open was given, for messages. */
const char *db_path(const struct db *db);

/* "corrupt" in the words of db.c: STATUS_BAD_DATABASE for a value that our
 * programs do not write. */
enum status db_fail_content(struct db *db, struct diag *diag, const char *what);

/* Lower-case hexadecimal of 64 digits; false for anything else, NULL too. */
bool db_parse_hash(const char *hex, struct sha256 *ret_hash);

/* Statements, NULL-terminated (db_schema.c): the schema's tables, and its views. */
extern const char *const db_schema[];
extern const char *const db_views[];

/* What makes the tables of the version before those of this one, and the tables alone
 * that it adds; ascending by version, and a row without one behind them. */
struct db_step_up {
	int version;
	const char *const *upgrade, *const *additions;
};
extern const struct db_step_up db_steps_up[];

/* Runs any SQL without results. */
enum status db_execute_text(struct db *db, const char *sql, struct diag *diag);

/* Makes a database of an older version one of ours, in one transaction.  Not inside a
 * transaction.  (db_upgrade.c) */
enum status db_upgrade(struct db *db, struct diag *diag);

/* Lets a database of an older version be read as one of ours: what it lacks is there for this
 * connection only, and empty.  (db_upgrade.c) */
enum status db_pretend(struct db *db, struct diag *diag);

/* The schema version that the file has. */
enum status db_version(struct db *db, int64_t *ret_version, struct diag *diag);

#endif
