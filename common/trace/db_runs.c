/* Runs, processes, traces and page touches in the trace database.
 *
 * Identities.  What is written twice must count once, also when the two were
 * written by different programs into different databases that are merged later.
 * So a run is named by a hash over what made it (kind, host, start, collector,
 * command, scenario), and a trace by a hash over image, process, start of the
 * process (and, for trace files, the moment the file was opened: see
 * trace/ingest.c).  A trace file only grows, so of two versions of one trace the
 * longer one holds all of the shorter one.
 */
#include "trace/db_statement.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *db_run_kind_name(enum db_run_kind kind)
{
	static const char *const names[] = {
#define X(id, name) [DB_RUN_##id] = name,
		DB_RUN_KIND_LIST(X)
#undef X
	};

	assert(kind < DB_RUN_KIND_COUNT);
	return names[kind];
}

const char *db_exit_name(enum db_exit exit)
{
	static const char *const names[] = {
#define X(id, name) [DB_EXIT_##id] = name,
		DB_EXIT_LIST(X)
#undef X
	};

	assert(exit < DB_EXIT_COUNT);
	return names[exit];
}

/* The hash of a text as hexadecimal; the text is freed, NULL is passed on. */
static bool hash_text(char *text, char ret_hex[SHA256_HEX_SIZE])
{
	struct sha256 hash;

	if (!text)
		return false;
	hash = sha256_of(text, strlen(text));
	sha256_hex(&hash, ret_hex);
	free(text);
	return true;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

bool db_run_identity(const struct db_run *run, char ret_identity[SHA256_HEX_SIZE])
{
	char *text;

	if (asprintf(&text, "run\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%s\n%s",
		     db_run_kind_name(run->kind), or_empty(run->host), run->started_ns,
		     run->collector, or_empty(run->scenario), or_empty(run->command)) < 0)
		return false;
	return hash_text(text, ret_identity);
}

enum status db_begin_run(struct db *db, const struct db_run *run, int64_t *ret_id,
			 struct diag *diag)
{
	const char *scenario =
		run->scenario && run->scenario[0] ? run->scenario : "default";
	const char *identity = run->identity;
	char hex[SHA256_HEX_SIZE];
	int64_t id = 0;
	bool found;
	enum status status;

	if (!isfinite(run->weight) || run->weight <= 0)
		return diag_fail(diag, STATUS_USAGE, "a run's weight must be above 0");
	if (!identity && !db_run_identity(run, hex))
		return diag_no_memory(diag);
	if (!identity)
		identity = hex;
	status = db_begin(db, diag);
	if (status != STATUS_OK)
		return status;
	status = db_execute(
		db,
		"INSERT INTO runs(identity, kind, scenario, weight, command,"
		" host, started_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
		" ON CONFLICT(identity) DO NOTHING",
		DB_VALUES(db_text(identity), db_text(db_run_kind_name(run->kind)),
			  db_text(scenario), db_real(run->weight), db_text(run->command),
			  db_text(run->host), db_int(run->started_ns)),
		diag);
	if (status == STATUS_OK)
		status = db_query_int(db, "SELECT id FROM runs WHERE identity = ?1",
				      DB_VALUES(db_text(identity)), &found, &id, diag);
	status = db_end(db, status, diag);
	if (status == STATUS_OK)
		*ret_id = id;
	return status;
}

enum status db_finish_run(struct db *db, int64_t run, enum db_exit exit, int code,
			  double wall_seconds, struct diag *diag)
{
	return db_execute(db,
			  "UPDATE runs SET exit = ?2, exit_code = ?3, wall_seconds = ?4"
			  " WHERE id = ?1",
			  DB_VALUES(db_int(run), db_text(db_exit_name(exit)),
				    db_int_if(exit != DB_EXIT_UNKNOWN, code),
				    db_real(wall_seconds)),
			  diag);
}

enum status db_put_process(struct db *db, const struct db_process *process, int64_t *ret_id,
			   struct diag *diag)
{
	int64_t id = 0;
	bool found;
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = db_execute(
		db,
		"INSERT INTO processes(run, pid, parent, started_ns, executable,"
		" command) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		" ON CONFLICT(run, pid, started_ns) DO UPDATE SET"
		"  parent = coalesce(parent, excluded.parent),"
		"  executable = coalesce(executable, excluded.executable),"
		"  command = coalesce(command, excluded.command)",
		DB_VALUES(db_int(process->run), db_int(process->pid),
			  db_int_if(process->parent, process->parent),
			  db_int(process->started_ns), db_text(process->executable),
			  db_text(process->command)),
		diag);
	if (status == STATUS_OK)
		status = db_query_int(db,
				      "SELECT id FROM processes WHERE run = ?1 AND pid = ?2"
				      " AND started_ns = ?3",
				      DB_VALUES(db_int(process->run), db_int(process->pid),
						db_int(process->started_ns)),
				      &found, &id, diag);
	status = db_end(db, status, diag);
	if (status == STATUS_OK)
		*ret_id = id;
	return status;
}

/* ---- traces ---- */

static enum status trace_identity(struct db *db, const struct db_trace *trace,
				  char ret_hex[SHA256_HEX_SIZE], struct diag *diag)
{
	struct db_statement s;
	bool row = false;
	char *text = NULL;
	enum status status =
		db_prepare(db, &s,
			   "SELECT i.sha256, p.pid, p.started_ns, r.identity"
			   " FROM images i, processes p JOIN runs r ON p.run = r.id"
			   " WHERE i.id = ?1 AND p.id = ?2",
			   diag);

	if (status == STATUS_OK) {
		db_bind(&s, DB_VALUES(db_int(trace->image), db_int(trace->process)));
		status = db_step(&s, &row, diag);
	}
	if (status == STATUS_OK && !row)
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "database '%s' lacks the image or process of a trace",
				   db_path(db));
	if (status == STATUS_OK &&
	    (asprintf(&text, "trace\n%s\n%" PRId64 "\n%" PRId64 "\n%s",
		      or_empty(db_column_text(&s, 0)), db_column_int(&s, 1),
		      db_column_int(&s, 2), or_empty(db_column_text(&s, 3))) < 0 ||
	     !hash_text(text, ret_hex)))
		status = diag_no_memory(diag);
	db_finalize(&s);
	return status;
}

/* The trace of that identity: its id, or 0, and its records. */
static enum status find_trace(struct db *db, const char *identity, int64_t *ret_id,
			      int64_t *ret_records, int64_t *ret_run, struct diag *diag)
{
	struct db_statement s;
	bool row = false;
	enum status status =
		db_prepare(db, &s,
			   "SELECT t.id, t.records, p.run FROM traces t"
			   " JOIN processes p ON t.process = p.id WHERE t.identity = ?1",
			   diag);

	if (status == STATUS_OK) {
		db_bind(&s, DB_VALUES(db_text(identity)));
		status = db_step(&s, &row, diag);
	}
	if (status == STATUS_OK) {
		*ret_id = row ? db_column_int(&s, 0) : 0;
		*ret_records = row ? db_column_int(&s, 1) : 0;
		*ret_run = row ? db_column_int(&s, 2) : 0;
	}
	db_finalize(&s);
	return status;
}

static enum status put_touches(struct db *db, int64_t id, const struct db_trace *trace,
			       struct diag *diag)
{
	struct db_statement insert;
	enum status status =
		db_prepare(db, &insert,
			   "INSERT INTO touches(trace, seq, rva, thread, time_ns)"
			   " VALUES(?1, ?2, ?3, ?4, ?5)",
			   diag);

	for (uint32_t i = 0; i < trace->count && status == STATUS_OK; i++) {
		const struct db_touch *t = &trace->touches[i];

		status = db_run(&insert,
				DB_VALUES(db_int(id), db_int((int64_t)t->seq),
					  db_int(t->rva.v), db_int(t->thread),
					  db_int(t->time_ns)),
				diag);
	}
	db_finalize(&insert);
	return status;
}

static enum status insert_trace(struct db *db, const struct db_trace *trace,
				const char *identity, struct diag *diag)
{
	enum status status = db_execute(
		db,
		"INSERT INTO traces(process, image, identity, sha256, records, incomplete)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
		DB_VALUES(db_int(trace->process), db_int(trace->image), db_text(identity),
			  db_text(trace->hash), db_int(trace->count),
			  db_int(trace->incomplete)),
		diag);

	return status == STATUS_OK ? put_touches(db, db_last_id(db), trace, diag) : status;
}

/* The trace keeps its id and its process. */
static enum status replace_trace(struct db *db, int64_t id, const struct db_trace *trace,
				 struct diag *diag)
{
	enum status status = db_execute(db, "DELETE FROM touches WHERE trace = ?1",
					DB_VALUES(db_int(id)), diag);

	if (status == STATUS_OK)
		status = db_execute(db,
				    "UPDATE traces SET sha256 = ?2, records = ?3,"
				    " incomplete = ?4 WHERE id = ?1",
				    DB_VALUES(db_int(id), db_text(trace->hash),
					      db_int(trace->count),
					      db_int(trace->incomplete)),
				    diag);
	return status == STATUS_OK ? put_touches(db, id, trace, diag) : status;
}

enum status db_put_trace(struct db *db, const struct db_trace *trace,
			 enum db_trace_fate *ret_fate, struct diag *diag)
{
	char hex[SHA256_HEX_SIZE];
	const char *identity = trace->identity ? trace->identity : hex;
	enum db_trace_fate fate = DB_TRACE_NEW;
	int64_t id = 0, records = 0, run;
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	if (!trace->identity)
		status = trace_identity(db, trace, hex, diag);
	if (status == STATUS_OK)
		status = find_trace(db, identity, &id, &records, &run, diag);
	if (id && records >= trace->count)
		fate = DB_TRACE_KNOWN;
	else if (id)
		fate = DB_TRACE_LONGER;
	if (status == STATUS_OK && fate == DB_TRACE_NEW)
		status = insert_trace(db, trace, identity, diag);
	if (status == STATUS_OK && fate == DB_TRACE_LONGER)
		status = replace_trace(db, id, trace, diag);
	status = db_end(db, status, diag);
	if (status == STATUS_OK && ret_fate)
		*ret_fate = fate;
	return status;
}

enum status db_find_trace(struct db *db, const char *identity, bool *ret_found,
			  int64_t *ret_run, struct diag *diag)
{
	int64_t id, records, run;
	enum status status = find_trace(db, identity, &id, &records, &run, diag);

	if (status != STATUS_OK)
		return status;
	*ret_found = id != 0;
	if (id && ret_run)
		*ret_run = run;
	return STATUS_OK;
}

/* ---- pages ---- */

enum status db_put_page_touches(struct db *db, int64_t process, int64_t image,
				const struct db_page_touch *touches, uint32_t count,
				struct diag *diag)
{
	static const char *const kinds[] = {
		[DB_ACCESS_EXECUTE] = "execute",
		[DB_ACCESS_READ] = "read",
		[DB_ACCESS_WRITE] = "write",
	};
	struct db_statement insert = {0};
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status =
		db_execute(db, "DELETE FROM page_touches WHERE process = ?1 AND image = ?2",
			   DB_VALUES(db_int(process), db_int(image)), diag);
	if (status == STATUS_OK)
		status = db_prepare(db, &insert,
				    "INSERT INTO page_touches(process, image, seq, page,"
				    " thread, kind, time_ns)"
				    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
				    diag);
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
		const struct db_page_touch *t = &touches[i];

		status = db_run(&insert,
				DB_VALUES(db_int(process), db_int(image), db_int(t->seq),
					  db_int(t->page.v), db_int(t->thread),
					  db_text(kinds[t->kind]), db_int(t->time_ns)),
				diag);
	}
	db_finalize(&insert);
	return db_end(db, status, diag);
}
