/* Databases of older versions.
 *
 * Opened for writing, a database is upgraded for good, in one transaction that looks
 * again once it has the lock: another program may have done it meanwhile.  A table that
 * others refer to is replaced, as SQLite documents it: with foreign keys off, made anew,
 * filled, the old one dropped, renamed; then all references are checked.
 *
 * Opened for reading it cannot be changed.  What it lacks is made in the connection's
 * own temporary schema, which SQLite searches first: tables without rows, and the views
 * of this version over what is there.
 *
 * Source: sqlite.org, "ALTER TABLE", section 7.
 */
#include "trace/db_statement.h"

#include <stdio.h>
#include <string.h>

static enum status execute_all(struct db *db, const char *const *list, struct diag *diag)
{
	enum status status = STATUS_OK;

	for (; *list && status == STATUS_OK; list++)
		status = db_execute_text(db, *list, diag);
	return status;
}

/* Drops the views of any version. */
static enum status drop_views(struct db *db, struct diag *diag)
{
	char sql[160];
	bool row = true;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && row) {
		struct db_statement s;

		status = db_prepare(db, &s,
				    "SELECT name FROM sqlite_master WHERE type = 'view'"
				    " AND name GLOB 'v_[a-z_]*' AND length(name) < 64 LIMIT 1",
				    diag);
		if (status == STATUS_OK)
			status = db_step(&s, &row, diag);
		if (status == STATUS_OK && row)
			snprintf(sql, sizeof(sql), "DROP VIEW \"%s\"",
				 db_column_text(&s, 0));
		db_finalize(&s);
		if (status == STATUS_OK && row)
			status = db_execute_text(db, sql, diag);
	}
	return status;
}

static enum status check_references(struct db *db, struct diag *diag)
{
	int64_t broken = 0;
	bool found;
	enum status status =
		db_query_int(db, "SELECT count(*) FROM pragma_foreign_key_check", NULL, 0,
			     &found, &broken, diag);

	if (status == STATUS_OK && broken)
		return db_fail_content(db, diag, "rows refer to others that are not there");
	return status;
}

static enum status upgrade_locked(struct db *db, struct diag *diag)
{
	int64_t version;
	char text[64];
	enum status status = db_version(db, &version, diag);

	if (status != STATUS_OK || version >= DB_SCHEMA_VERSION)
		return status;
	status = drop_views(db, diag);
	for (const struct db_step_up *up = db_steps_up; up->version && status == STATUS_OK; up++)
		if (version < up->version)
			status = execute_all(db, up->upgrade, diag);
	if (status == STATUS_OK)
		status = execute_all(db, db_views, diag);
	if (status == STATUS_OK)
		status = check_references(db, diag);
	snprintf(text, sizeof(text), "PRAGMA user_version = %d", DB_SCHEMA_VERSION);
	return status == STATUS_OK ? db_execute_text(db, text, diag) : status;
}

enum status db_upgrade(struct db *db, struct diag *diag)
{
	enum status status = db_execute_text(db, "PRAGMA foreign_keys = OFF", diag);

	if (status == STATUS_OK)
		status = db_begin(db, diag);
	if (status != STATUS_OK)
		return status;
	status = db_end(db, upgrade_locked(db, diag), diag);
	if (status == STATUS_OK)
		status = db_execute_text(db, "PRAGMA foreign_keys = ON", diag);
	return status;
}

/* "CREATE ..." as "CREATE TEMP ...", without references, which temporary tables cannot
 * have; indexes are left out. */
static enum status execute_temporary(struct db *db, const char *sql, struct diag *diag)
{
	static const char create[] = "CREATE ";
	char text[4096];

	if (strncmp(sql, "CREATE INDEX", 12) == 0)
		return STATUS_OK;
	snprintf(text, sizeof(text), "CREATE TEMP %s", sql + sizeof(create) - 1);
	return db_execute_text(db, text, diag);
}

enum status db_pretend(struct db *db, struct diag *diag)
{
	int64_t version;
	enum status status = db_version(db, &version, diag);

	for (const struct db_step_up *up = db_steps_up; up->version && status == STATUS_OK; up++)
		for (const char *const *sql = up->additions;
		     version < up->version && *sql && status == STATUS_OK; sql++)
			status = execute_temporary(db, *sql, diag);
	for (const char *const *sql = db_views; *sql && status == STATUS_OK; sql++)
		status = execute_temporary(db, *sql, diag);
	return status;
}
