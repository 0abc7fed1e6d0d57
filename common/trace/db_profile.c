/* Reading what runs touched of an image, for the orders.
 *
 * A run may have had several processes, and a process several traces of one
 * image (unloaded and loaded again).  Inside a trace the sequence number is the
 * truth; across traces only the clock can tell.  So each trace's times are made
 * to never fall along its sequence (two threads may take numbers and times in
 * different order), then all touches of the run are sorted by time, stably, with
 * the traces in an order that does not depend on how the database was filled.
 */
#include "trace/db_statement.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct touch_key {
	int64_t time_ns; /* since 1970 */
	uint32_t order;  /* of reading: ascends by trace and sequence number */
	struct rva rva;
};

/* What is being collected for one run. */
struct collector {
	VEC(struct db_profile_run) runs;
	VEC(struct touch_key) touches;
};

static int by_rva(const void *a, const void *b)
{
	const struct touch_key *x = a, *y = b;

	if (x->rva.v != y->rva.v)
		return x->rva.v < y->rva.v ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_time(const void *a, const void *b)
{
	const struct touch_key *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps the first touch of each RVA, in order. */
static uint32_t first_touches(struct touch_key *touches, uint32_t count)
{
	uint32_t kept = 0;

	qsort(touches, count, sizeof(*touches), by_rva);
	for (uint32_t i = 0; i < count; i++)
		if (kept == 0 || touches[kept - 1].rva.v != touches[i].rva.v)
			touches[kept++] = touches[i];
	qsort(touches, kept, sizeof(*touches), by_time);
	return kept;
}

/* Gives the touches that were collected to the newest run; a run without any
 * is dropped. */
static bool close_run(struct collector *c)
{
	struct db_profile_run *run;

	if (c->runs.len == 0)
		return true;
	run = &c->runs.data[c->runs.len - 1];
	if (c->touches.len == 0) {
		free(run->scenario);
		c->runs.len--;
		return true;
	}
	run->count = first_touches(c->touches.data, c->touches.len);
	run->rvas = malloc(run->count * sizeof(*run->rvas));
	run->times_ns = malloc(run->count * sizeof(*run->times_ns));
	if (!run->rvas || !run->times_ns)
		return false;
	for (uint32_t i = 0; i < run->count; i++) {
		run->rvas[i] = c->touches.data[i].rva;
		run->times_ns[i] = c->touches.data[i].time_ns;
	}
	c->touches.len = 0;
	return true;
}

static enum status read_trace(struct db *db, struct db_statement *s, int64_t trace,
			      int64_t started_ns, struct collector *c, struct diag *diag)
{
	int64_t latest = INT64_MIN;
	bool row;
	enum status status;

	db_bind(s, DB_VALUES(db_int(trace)));
	while ((status = db_step(s, &row, diag)) == STATUS_OK && row) {
		struct touch_key key = {.order = c->touches.len,
					.rva = rva_of(db_column_u32(s, 0))};

		if (__builtin_add_overflow(started_ns, db_column_int(s, 1), &key.time_ns))
			return db_fail_content(db, diag, "a touch's time is out of range");
		if (key.time_ns < latest)
			key.time_ns = latest;
		latest = key.time_ns;
		if (!vec_push(&c->touches, key))
			return diag_no_memory(diag);
	}
	return status;
}

static bool open_run(struct collector *c, struct db_statement *s, enum db_run_kind kind)
{
	struct db_profile_run run = {
		.run = db_column_int(s, 0), .kind = kind, .weight = db_column_real(s, 2)};

	if (!close_run(c))
		return false;
	run.scenario = db_column_copy(s, 1);
	if (!run.scenario || !vec_push(&c->runs, run)) {
		free(run.scenario);
		return false;
	}
	return true;
}

static enum status read_runs(struct db *db, int64_t image, enum db_run_kind kind,
			     struct collector *c, struct diag *diag)
{
	struct db_statement traces = {0}, touches = {0};
	bool row = false;
	enum status status = db_prepare(
		db, &traces,
		"SELECT r.id, r.scenario, r.weight, t.id, p.started_ns"
		" FROM traces t JOIN processes p ON t.process = p.id"
		" JOIN runs r ON p.run = r.id WHERE t.image = ?1 AND r.kind = ?2"
		" ORDER BY r.started_ns, r.identity, p.started_ns, p.pid, t.identity",
		diag);

	if (status == STATUS_OK)
		status = db_prepare(db, &touches,
				    "SELECT rva, time_ns FROM touches WHERE trace = ?1"
				    " ORDER BY seq",
				    diag);
	if (status == STATUS_OK)
		db_bind(&traces, DB_VALUES(db_int(image), db_text(db_run_kind_name(kind))));
	while (status == STATUS_OK &&
	       (status = db_step(&traces, &row, diag)) == STATUS_OK && row) {
		int64_t id = db_column_int(&traces, 0);

		if ((c->runs.len == 0 || c->runs.data[c->runs.len - 1].run != id) &&
		    !open_run(c, &traces, kind))
			status = diag_no_memory(diag);
		else
			status = read_trace(db, &touches, db_column_int(&traces, 3),
					    db_column_int(&traces, 4), c, diag);
	}
	if (status == STATUS_OK && !close_run(c))
		status = diag_no_memory(diag);
	db_finalize(&traces);
	db_finalize(&touches);
	return status;
}

/* ---- which image ---- */

#define RECORDED_RUNS                                                              \
	" FROM images i JOIN traces t ON t.image = i.id"                           \
	" JOIN processes p ON t.process = p.id JOIN runs r ON p.run = r.id"        \
	" WHERE r.kind = 'trace' AND t.records > 0"

enum status db_find_recorded(struct db *db, const struct sha256 *hash, bool *ret_found,
			     int64_t *ret_id, struct diag *diag)
{
	char hex[SHA256_HEX_SIZE];

	sha256_hex(hash, hex);
	return db_query_int(db, "SELECT i.id" RECORDED_RUNS " AND i.sha256 = ?1 LIMIT 1",
			    DB_VALUES(db_text(hex)), ret_found, ret_id, diag);
}

enum status db_find_build(struct db *db, const char *build, struct sha256 *ret_hash,
			  bool *ret_found, int64_t *ret_id, struct diag *diag)
{
	struct db_statement s;
	bool row = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT i.id, i.sha256" RECORDED_RUNS
		" AND (lower(i.name) = lower(?1)"
		"  OR (length(?1) >= 8 AND substr(i.sha256, 1, length(?1)) = lower(?1)))"
		" GROUP BY i.id ORDER BY max(r.started_ns) DESC, i.sha256 LIMIT 1",
		diag);

	if (status == STATUS_OK) {
		db_bind(&s, DB_VALUES(db_text(build)));
		status = db_step(&s, &row, diag);
	}
	if (status == STATUS_OK && row) {
		*ret_id = db_column_int(&s, 0);
		if (!db_parse_hash(db_column_text(&s, 1), ret_hash))
			status = db_fail_content(db, diag, "an image without a hash");
	}
	*ret_found = row;
	db_finalize(&s);
	return status;
}

/* ---- its runs ---- */

enum status db_load_profile(struct db *db, const struct sha256 *image,
			    enum db_run_kind kind, struct db_profile *ret_profile,
			    struct diag *diag)
{
	struct collector c = {0};
	struct db_profile profile;
	int64_t id = 0;
	enum status status = db_find_image(db, image, &id, diag);

	if (status != STATUS_OK)
		return status;
	status = read_runs(db, id, kind, &c, diag);
	vec_release(&c.touches);
	profile = (struct db_profile){c.runs.data, c.runs.len};
	if (status == STATUS_OK)
		*ret_profile = profile;
	else
		db_profile_release(&profile);
	return status;
}

void db_profile_release(struct db_profile *profile)
{
	for (uint32_t i = 0; i < profile->count; i++) {
		free(profile->runs[i].scenario);
		free(profile->runs[i].rvas);
		free(profile->runs[i].times_ns);
	}
	free(profile->runs);
	memset(profile, 0, sizeof(*profile));
}

double db_profile_weight(const struct db_profile *profile, uint32_t run)
{
	const struct db_profile_run *r = &profile->runs[run];
	uint32_t same = 0;

	for (uint32_t i = 0; i < profile->count; i++)
		same += strcmp(profile->runs[i].scenario, r->scenario) == 0;
	return r->weight / same;
}
