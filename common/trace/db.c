/* The connection to the trace database, and SQL statements on it.
 *
 * This is the only file that includes sqlite3.h.  What the tables mean is in
 * db_schema.c, and each kind of content has its own file (db_images.c,
 * db_runs.c, ...) over the small statement interface of db_statement.h.
 *
 * Whose file is it?  application_id and user_version say so; a file without
 * them is taken only when it is empty and may be created.  Everything in a
 * database is untrusted all the same: SQLite's defensive mode is on, and
 * columns are range-checked where they are read.
 *
 * Two collectors at once: write transactions begin IMMEDIATE, so that waiting
 * for the lock happens in one place, under the busy timeout, and never in the
 * middle of a transaction, where SQLite could only refuse.  Making the schema
 * is such a transaction too, that looks again once it has the lock.
 *
 * WAL lets reports read while a collector writes.  It is a wish: where the file
 * system cannot do it the database works in its rollback mode.  A database with
 * WAL in a folder that cannot be written cannot be opened the ordinary way
 * (SQLite wants its -shm file): then it is opened as immutable, if there is no
 * log left that would be missed.
 *
 * Rejected: one row per function id in touches (a re-analysis would have to
 * keep ids stable); blobs of packed touches (four times smaller, but people
 * could not query them).
 *
 * Sources: sqlite.org, "URI Filenames", "Write-Ahead Logging" (section 5,
 * read-only databases), "Defense Against The Dark Arts".
 */
#include "trace/db_statement.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { APPLICATION_ID = 0x41504c53 }; /* "APLS" */

struct db {
	sqlite3 *handle; /* owned */
	char *path;      /* owned */
	unsigned depth;  /* of nested transactions */
};

/* ---- failures ---- */

static enum status status_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return STATUS_NO_MEMORY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_ERROR: /* our SQL does not fit: the schema is not ours */
	case SQLITE_SCHEMA:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return STATUS_BAD_DATABASE;
	case SQLITE_IOERR:
	case SQLITE_FULL:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_NOLFS:
		return STATUS_IO;
	default:
		return STATUS_DATABASE;
	}
}

static enum status fail(const char *path, sqlite3 *handle, int code, struct diag *diag)
{
	enum status status = status_of(code);

	if (status == STATUS_NO_MEMORY)
		return diag_no_memory(diag);
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return diag_fail(diag, status,
				 "database '%s' is locked by another program, "
				 "try again when it has finished",
				 path);
	case SQLITE_NOTADB:
		return diag_fail(diag, status, "'%s' is not a trace database", path);
	case SQLITE_CORRUPT:
		return diag_fail(diag, status, "database '%s' is corrupt", path);
	case SQLITE_READONLY:
		return diag_fail(diag, status, "database '%s' cannot be written", path);
	case SQLITE_CANTOPEN:
		return diag_fail(diag, status, "cannot open database '%s'", path);
	case SQLITE_FULL:
		return diag_fail(diag, status, "no space left for database '%s'", path);
	default:
		return diag_fail(diag, status, "database '%s': %s", path,
				 handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
	}
}

static enum status db_fail(struct db *db, int code, struct diag *diag)
{
	return fail(db->path, db->handle, code, diag);
}

enum status db_fail_content(struct db *db, struct diag *diag, const char *what)
{
	return diag_fail(diag, STATUS_BAD_DATABASE, "database '%s' is corrupt: %s",
			 db->path, what);
}

const char *db_path(const struct db *db)
{
	return db->path;
}

const char *db_sqlite_version(void)
{
	return sqlite3_libversion();
}

/* ---- statements ---- */

enum status db_prepare(struct db *db, struct db_statement *statement, const char *sql,
		       struct diag *diag)
{
	int code;

	*statement = (struct db_statement){.db = db};
	code = sqlite3_prepare_v2(db->handle, sql, -1, &statement->handle, NULL);
	return code == SQLITE_OK ? STATUS_OK : db_fail(db, code, diag);
}

void db_finalize(struct db_statement *statement)
{
	sqlite3_finalize(statement->handle);
	statement->handle = NULL;
}

void db_bind(struct db_statement *statement, const struct db_value *values, unsigned count)
{
	sqlite3_stmt *handle = statement->handle;

	sqlite3_reset(handle);
	assert(count == (unsigned)sqlite3_bind_parameter_count(handle));
	for (unsigned i = 0; i < count; i++) {
		const struct db_value *value = &values[i];
		int n = (int)i + 1;
		int code = SQLITE_OK;

		switch (value->type) {
		case DB_NULL:
			code = sqlite3_bind_null(handle, n);
			break;
		case DB_INT:
			code = sqlite3_bind_int64(handle, n, value->i);
			break;
		case DB_REAL:
			code = sqlite3_bind_double(handle, n, value->r);
			break;
		case DB_TEXT:
			code = sqlite3_bind_text(handle, n, value->t, -1, SQLITE_STATIC);
			break;
		case DB_BLOB:
			code = sqlite3_bind_blob64(handle, n, value->b.size ? value->b.data : "",
						   value->b.size, SQLITE_STATIC);
			break;
		}
		if (code != SQLITE_OK && statement->failed == STATUS_OK)
			statement->failed = status_of(code);
	}
}

enum status db_step(struct db_statement *statement, bool *ret_row, struct diag *diag)
{
	int code;

	if (statement->failed == STATUS_NO_MEMORY)
		return diag_no_memory(diag);
	if (statement->failed != STATUS_OK)
		return db_fail_content(statement->db, diag, "a value is out of range");
	code = sqlite3_step(statement->handle);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return db_fail(statement->db, code, diag);
	*ret_row = code == SQLITE_ROW;
	return STATUS_OK;
}

enum status db_run(struct db_statement *statement, const struct db_value *values,
		   unsigned count, struct diag *diag)
{
	bool row;
	enum status status;

	db_bind(statement, values, count);
	status = db_step(statement, &row, diag);
	assert(status != STATUS_OK || !row);
	sqlite3_reset(statement->handle);
	return status;
}

int64_t db_column_int(struct db_statement *statement, int column)
{
	return sqlite3_column_int64(statement->handle, column);
}

uint32_t db_column_u32(struct db_statement *statement, int column)
{
	int64_t value = sqlite3_column_int64(statement->handle, column);

	if (value < 0 || value > UINT32_MAX) {
		if (statement->failed == STATUS_OK)
			statement->failed = STATUS_BAD_DATABASE;
		return 0;
	}
	return (uint32_t)value;
}

double db_column_real(struct db_statement *statement, int column)
{
	return sqlite3_column_double(statement->handle, column);
}

const char *db_column_text(struct db_statement *statement, int column)
{
	return (const char *)sqlite3_column_text(statement->handle, column);
}

char *db_column_copy(struct db_statement *statement, int column)
{
	const char *text = db_column_text(statement, column);
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		statement->failed = STATUS_NO_MEMORY;
	return copy;
}

enum status db_execute(struct db *db, const char *sql, const struct db_value *values,
		       unsigned count, struct diag *diag)
{
	struct db_statement statement;
	enum status status = db_prepare(db, &statement, sql, diag);

	if (status == STATUS_OK)
		status = db_run(&statement, values, count, diag);
	db_finalize(&statement);
	return status;
}

enum status db_query_int(struct db *db, const char *sql, const struct db_value *values,
			 unsigned count, bool *ret_found, int64_t *ret_value,
			 struct diag *diag)
{
	struct db_statement statement;
	bool row = false;
	enum status status = db_prepare(db, &statement, sql, diag);

	if (status == STATUS_OK) {
		db_bind(&statement, values, count);
		status = db_step(&statement, &row, diag);
	}
	if (status == STATUS_OK) {
		*ret_found = row;
		if (row)
			*ret_value = db_column_int(&statement, 0);
	}
	db_finalize(&statement);
	return status;
}

int64_t db_last_id(struct db *db)
{
	return sqlite3_last_insert_rowid(db->handle);
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->handle);
}

/* ---- statements of users ---- */

/* Whether the pragma tells something and does nothing.  Some take a table's name. */
static bool is_telling(const char *pragma, const char *value)
{
	static const char *const with_name[] = {"table_info", "table_xinfo", "table_list",
						"index_list", "index_info",
						"foreign_key_list"};
	static const char *const plain[] = {"user_version", "application_id",
					    "schema_version"};

	for (unsigned i = 0; i < sizeof(with_name) / sizeof(*with_name); i++)
		if (sqlite3_stricmp(pragma, with_name[i]) == 0)
			return true;
	for (unsigned i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (sqlite3_stricmp(pragma, plain[i]) == 0)
			return !value;
	return false;
}

/* What a statement that only reads may do. */
static int authorize_reading(void *unused, int action, const char *first,
			     const char *second, const char *schema, const char *view)
{
	(void)unused, (void)schema, (void)view;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_FUNCTION:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_PRAGMA:
		return is_telling(first, second) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* Whether only spaces and semicolons are left.  Comments count as a statement. */
static bool is_blank(const char *sql)
{
	return sql[strspn(sql, "; \t\r\n")] == '\0';
}

/* A failure for which the text may be to blame. */
static enum status fail_foreign(struct db *db, int code, struct diag *diag)
{
	switch (code & 0xff) {
	case SQLITE_AUTH:
	case SQLITE_READONLY:
		return diag_fail(diag, STATUS_USAGE,
				 "only queries that read are allowed (%s)",
				 sqlite3_errmsg(db->handle));
	case SQLITE_ERROR:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
	case SQLITE_CONSTRAINT:
		return diag_fail(diag, STATUS_USAGE, "%s", sqlite3_errmsg(db->handle));
	default:
		return db_fail(db, code, diag);
	}
}

enum status db_prepare_foreign(struct db *db, struct db_statement *statement,
			       const char *sql, struct diag *diag)
{
	const char *tail = "";
	enum status status = STATUS_OK;
	int code;

	*statement = (struct db_statement){.db = db};
	sqlite3_set_authorizer(db->handle, authorize_reading, NULL);
	code = sqlite3_prepare_v2(db->handle, sql, -1, &statement->handle, &tail);
	sqlite3_set_authorizer(db->handle, NULL, NULL);
	if (code != SQLITE_OK)
		status = fail_foreign(db, code, diag);
	else if (!statement->handle)
		status = diag_fail(diag, STATUS_USAGE, "the query is empty");
	else if (!is_blank(tail))
		status = diag_fail(diag, STATUS_USAGE,
				   "one statement at a time, there is more: '%s'", tail);
	else if (!sqlite3_stmt_readonly(statement->handle) ||
		 sqlite3_column_count(statement->handle) == 0)
		status = diag_fail(diag, STATUS_USAGE,
				   "only queries that read are allowed");
	else if (sqlite3_bind_parameter_count(statement->handle) != 0)
		status = diag_fail(diag, STATUS_USAGE,
				   "parameters have no value here, write it out");
	if (status != STATUS_OK)
		db_finalize(statement);
	return status;
}

enum status db_step_foreign(struct db_statement *statement, bool *ret_row,
			    struct diag *diag)
{
	int code = sqlite3_step(statement->handle);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return fail_foreign(statement->db, code, diag);
	*ret_row = code == SQLITE_ROW;
	return STATUS_OK;
}

uint32_t db_column_count(const struct db_statement *statement)
{
	return (uint32_t)sqlite3_column_count(statement->handle);
}

const char *db_column_name(const struct db_statement *statement, int column)
{
	const char *name = sqlite3_column_name(statement->handle, column);

	return name ? name : "";
}

bool db_column_cell(struct db_statement *statement, int column, struct db_cell *ret_cell)
{
	static const enum db_cell_type types[] = {
		[SQLITE_INTEGER] = DB_CELL_INT, [SQLITE_FLOAT] = DB_CELL_REAL,
		[SQLITE_TEXT] = DB_CELL_TEXT,   [SQLITE_BLOB] = DB_CELL_BLOB,
		[SQLITE_NULL] = DB_CELL_NULL,
	};
	sqlite3_stmt *handle = statement->handle;
	struct db_cell cell = {.type = types[sqlite3_column_type(handle, column)]};

	if (cell.type == DB_CELL_INT)
		cell.i = sqlite3_column_int64(handle, column);
	if (cell.type == DB_CELL_REAL)
		cell.r = sqlite3_column_double(handle, column);
	if (cell.type == DB_CELL_TEXT)
		cell.text = (const char *)sqlite3_column_text(handle, column);
	if (cell.type == DB_CELL_BLOB)
		cell.text = sqlite3_column_blob(handle, column);
	if (cell.type == DB_CELL_TEXT || cell.type == DB_CELL_BLOB)
		cell.size = (size_t)sqlite3_column_bytes(handle, column);
	if (!cell.text && cell.size)
		return false;
	if (!cell.text)
		cell.text = "";
	*ret_cell = cell;
	return cell.type != DB_CELL_TEXT ||
	       sqlite3_errcode(sqlite3_db_handle(handle)) != SQLITE_NOMEM;
}

/* ---- transactions ---- */

enum status db_execute_text(struct db *db, const char *sql, struct diag *diag)
{
	int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? STATUS_OK : db_fail(db, code, diag);
}

enum status db_begin(struct db *db, struct diag *diag)
{
	enum status status = db_execute_text(
		db, db->depth == 0 ? "BEGIN IMMEDIATE" : "SAVEPOINT inner_part", diag);

	if (status == STATUS_OK)
		db->depth++;
	return status;
}

enum status db_commit(struct db *db, struct diag *diag)
{
	enum status status;

	assert(db->depth > 0);
	/* SQLite rolls back by itself when the disk is full or memory is out. */
	if (sqlite3_get_autocommit(db->handle)) {
		db->depth--;
		return diag_fail(diag, STATUS_DATABASE,
				 "database '%s': a transaction was rolled back", db->path);
	}
	status = db_execute_text(db, db->depth == 1 ? "COMMIT" : "RELEASE inner_part", diag);
	if (status != STATUS_OK)
		db_rollback(db);
	else
		db->depth--;
	return status;
}

void db_rollback(struct db *db)
{
	assert(db->depth > 0);
	if (!sqlite3_get_autocommit(db->handle))
		(void)db_execute_text(db,
				   db->depth == 1
					   ? "ROLLBACK"
					   : "ROLLBACK TO inner_part; RELEASE inner_part",
				   NULL);
	db->depth--;
}

enum status db_end(struct db *db, enum status status, struct diag *diag)
{
	if (status == STATUS_OK)
		return db_commit(db, diag);
	db_rollback(db);
	return status;
}

/* ---- opening ---- */

/* `path` as a URI with a query, on the heap; NULL when memory is out. */
static char *uri_of(const char *path, const char *query)
{
	static const char hex[] = "0123456789abcdef";
	size_t size = strlen("file://") + 3 * strlen(path) + strlen(query) + 1;
	char *uri = malloc(size);
	char *p = uri;

	if (!uri)
		return NULL;
	p = stpcpy(p, path[0] == '/' ? "file://" : "file:");
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (strchr("?#%", c)) {
			*p++ = '%';
			*p++ = hex[c >> 4];
			*p++ = hex[c & 15];
		} else {
			*p++ = (char)c;
		}
	}
	strcpy(p, query);
	return uri;
}

/* Whether a log with content stands beside the database. */
static bool has_log(const char *path)
{
	struct stat st;
	char log[PATH_MAX];
	int n = snprintf(log, sizeof(log), "%s-wal", path);

	if (n < 0 || (size_t)n >= sizeof(log))
		return true;
	return stat(log, &st) == 0 && st.st_size > 0;
}

static int open_uri(struct db *db, const char *query, int flags)
{
	char *uri = uri_of(db->path, query);
	int code = SQLITE_NOMEM;

	if (uri)
		code = sqlite3_open_v2(uri, &db->handle, flags | SQLITE_OPEN_URI, NULL);
	free(uri);
	if (code != SQLITE_OK)
		return code;
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, DB_TIMEOUT_MS);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* The first read of the file; nothing was read up to here. */
	return sqlite3_exec(db->handle,
			    "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;"
			    "SELECT count(*) FROM sqlite_master",
			    NULL, NULL, NULL);
}

static enum status open_handle(struct db *db, enum db_mode mode, struct diag *diag)
{
	int flags = SQLITE_OPEN_READWRITE | (mode == DB_CREATE ? SQLITE_OPEN_CREATE : 0);
	int code = open_uri(db, "", flags);

	/* A reader opens for writing too, so that the last one to close the
	 * database removes its log and -shm file; SQLite itself falls back when the
	 * file cannot be written. */
	if (mode == DB_READONLY && !has_log(db->path) &&
	    ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY)) {
		sqlite3_close(db->handle);
		db->handle = NULL;
		code = open_uri(db, "?immutable=1", SQLITE_OPEN_READONLY);
	}
	return code == SQLITE_OK ? STATUS_OK : db_fail(db, code, diag);
}

static enum status pragma_int(struct db *db, const char *sql, int64_t *ret_value,
			      struct diag *diag)
{
	bool found;

	return db_query_int(db, sql, NULL, 0, &found, ret_value, diag);
}

/* What the file says that it is. */
struct label {
	int64_t application, version, tables;
};

static enum status read_label(struct db *db, struct label *ret_label, struct diag *diag)
{
	struct label label = {0};
	enum status status =
		pragma_int(db, "PRAGMA application_id", &label.application, diag);

	if (status == STATUS_OK)
		status = pragma_int(db, "PRAGMA user_version", &label.version, diag);
	if (status == STATUS_OK)
		status = pragma_int(db, "SELECT count(*) FROM sqlite_master", &label.tables,
				    diag);
	if (status == STATUS_OK)
		*ret_label = label;
	return status;
}

enum status db_version(struct db *db, int64_t *ret_version, struct diag *diag)
{
	return pragma_int(db, "PRAGMA user_version", ret_version, diag);
}

static bool label_is_empty(const struct label *label)
{
	return label->application == 0 && label->version == 0 && label->tables == 0;
}

static enum status write_schema(struct db *db, struct diag *diag)
{
	struct label label;
	char text[80];
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = read_label(db, &label, diag);
	if (status != STATUS_OK || !label_is_empty(&label))
		return db_end(db, status, diag); /* another program made it meanwhile */
	for (const char *const *sql = db_schema; *sql && status == STATUS_OK; sql++)
		status = db_execute_text(db, *sql, diag);
	for (const char *const *sql = db_views; *sql && status == STATUS_OK; sql++)
		status = db_execute_text(db, *sql, diag);
	snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION_ID, DB_SCHEMA_VERSION);
	if (status == STATUS_OK)
		status = db_execute_text(db, text, diag);
	return db_end(db, status, diag);
}

static enum status check_label(struct db *db, enum db_mode mode, struct diag *diag)
{
	struct label label;
	enum status status = read_label(db, &label, diag);

	if (status == STATUS_OK && mode == DB_CREATE && label_is_empty(&label)) {
		status = write_schema(db, diag);
		if (status == STATUS_OK)
			status = read_label(db, &label, diag);
	}
	if (status != STATUS_OK)
		return status;
	if (label.application != APPLICATION_ID || label.version < 1)
		return diag_fail(diag, STATUS_BAD_DATABASE, "'%s' is not a trace database",
				 db->path);
	if (label.version > DB_SCHEMA_VERSION)
		return diag_fail(diag, STATUS_BAD_DATABASE,
				 "database '%s' was written by a newer version of this "
				 "program (schema %lld, this one reads up to %d)",
				 db->path, (long long)label.version, DB_SCHEMA_VERSION);
	if (label.version < DB_SCHEMA_VERSION)
		status = mode == DB_READONLY ? db_pretend(db, diag) : db_upgrade(db, diag);
	return status;
}

/* The views that a later version of the programs has added: for a reader they are
 * made for this connection only. */
static enum status add_views(struct db *db, enum db_mode mode, struct diag *diag)
{
	static const char create[] = "CREATE VIEW ";
	enum status status = STATUS_OK;

	for (const char *const *sql = db_views; *sql && status == STATUS_OK; sql++) {
		const char *name = *sql + strlen(create);
		char *text, *word;
		bool found;
		int64_t one;

		word = strndup(name, strcspn(name, " "));
		if (!word || asprintf(&text, "CREATE%s VIEW IF NOT EXISTS %s",
				      mode == DB_READONLY ? " TEMP" : "", name) < 0) {
			free(word);
			return diag_no_memory(diag);
		}
		status = db_query_int(db, "SELECT 1 FROM sqlite_master WHERE name = ?1",
				      DB_VALUES(db_text(word)), &found, &one, diag);
		if (status == STATUS_OK && !found)
			status = db_execute_text(db, text, diag);
		free(word);
		free(text);
	}
	return status;
}

enum status db_open(const char *path, enum db_mode mode, struct db **ret_db,
		    struct diag *diag)
{
	struct db *db;
	struct stat st;
	enum status status;

	if (path[0] == '\0' ||
	    (mode != DB_CREATE && stat(path, &st) != 0 && errno == ENOENT))
		return diag_fail(diag, STATUS_NOT_FOUND, "there is no database '%s'", path);
	db = calloc(1, sizeof(*db));
	if (!db)
		return diag_no_memory(diag);
	db->path = strdup(path);
	status = db->path ? open_handle(db, mode, diag) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = check_label(db, mode, diag);
	if (status == STATUS_OK)
		status = add_views(db, mode, diag);
	if (status == STATUS_OK && mode == DB_READONLY)
		status = db_execute_text(db, "PRAGMA query_only = ON", diag);
	if (status != STATUS_OK) {
		db_close(db);
		return status;
	}
	if (mode != DB_READONLY)
		(void)db_execute_text(db, "PRAGMA journal_mode = WAL", NULL);
	*ret_db = db;
	return STATUS_OK;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}

bool db_uses_path(const char *database, const char *path)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
	char real[PATH_MAX], beside[PATH_MAX + sizeof("-journal")];

	if (!database || !path)
		return false;
	if (paths_meet(database, path))
		return true;
	/* They stand beside the file that a symbolic link leads to. */
	if (!realpath(database, real))
		snprintf(real, sizeof(real), "%s", database);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		snprintf(beside, sizeof(beside), "%s%s", real, suffixes[i]);
		if (paths_meet(beside, path))
			return true;
	}
	return false;
}

void db_set_timeout(struct db *db, int milliseconds)
{
	sqlite3_busy_timeout(db->handle, milliseconds);
}

enum status db_attach(struct db *db, const char *path, struct diag *diag)
{
	static const char *const queries[] = {"?mode=ro", "?mode=ro&immutable=1"};
	bool found;
	int64_t count;
	enum status status = STATUS_OK;

	assert(db->depth == 0);
	for (unsigned i = 0; i < 2; i++) {
		char *uri = uri_of(path, queries[i]);

		if (!uri)
			return diag_no_memory(diag);
		status = db_execute(db, "ATTACH ?1 AS source", DB_VALUES(db_text(uri)),
				    diag);
		free(uri);
		if (status == STATUS_OK)
			status = db_query_int(db, "SELECT count(*) FROM source.images",
					      NULL, 0, &found, &count, diag);
		if (status != STATUS_IO || has_log(path))
			break;
		db_detach(db);
	}
	if (status != STATUS_OK) {
		db_detach(db);
		if (diag)
			diag_set_file(diag, path);
	}
	return status;
}

void db_detach(struct db *db)
{
	(void)db_execute_text(db, "DETACH source", NULL);
}
