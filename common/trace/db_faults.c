/* Runs of kind `faults` in the trace database. */
#include "trace/db_statement.h"

static enum status put_run(struct db *db, const struct db_fault_run *r, struct diag *diag)
{
	enum status status =
		db_execute(db, "DELETE FROM fault_runs WHERE run = ?1 AND image = ?2",
			   DB_VALUES(db_int(r->run), db_int(r->image)), diag);

	if (status != STATUS_OK)
		return status;
	return db_execute(
		db,
		"INSERT INTO fault_runs(run, image, method, counter, read_ahead, cold,"
		" pages, code_pages, before, after, lost)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
		DB_VALUES(db_int(r->run), db_int(r->image), db_text(r->method),
			  db_text(r->counter), db_int_if(r->read_ahead >= 0, r->read_ahead),
			  db_int(r->cold), db_int(r->pages), db_int(r->code_pages),
			  db_int_if(r->before >= 0, r->before),
			  db_int_if(r->after >= 0, r->after), db_int((int64_t)r->lost)),
		diag);
}

static enum status put_faults(struct db *db, const struct db_fault_run *r,
			      struct diag *diag)
{
	static const char *const kinds[] = {
		[DB_FAULT_HARD] = "hard",
		[DB_FAULT_SOFT] = "soft",
		[DB_FAULT_RESIDENT] = "resident",
	};
	static const char *const accesses[] = {
		[DB_FAULT_UNKNOWN] = NULL,
		[DB_FAULT_EXECUTE] = "execute",
		[DB_FAULT_DATA] = "data",
	};
	struct db_statement insert;
	enum status status =
		db_prepare(db, &insert,
			   "INSERT INTO faults(run, image, seq, page, code, kind, access,"
			   " process, thread, time_ns)"
			   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
			   diag);

	for (uint32_t i = 0; i < r->count && status == STATUS_OK; i++) {
		const struct db_fault *f = &r->faults[i];

		status = db_run(&insert,
				DB_VALUES(db_int(r->run), db_int(r->image), db_int(i),
					  db_int(f->page.v), db_int(f->code),
					  db_text(kinds[f->kind]),
					  db_text(accesses[f->access]),
					  db_int_if(f->process != 0, f->process),
					  db_int_if(f->thread != 0, f->thread),
					  db_int_if(f->time_ns >= 0, f->time_ns)),
				diag);
	}
	db_finalize(&insert);
	return status;
}

enum status db_put_faults(struct db *db, const struct db_fault_run *run, struct diag *diag)
{
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = put_run(db, run, diag);
	if (status == STATUS_OK)
		status = put_faults(db, run, diag);
	return db_end(db, status, diag);
}
