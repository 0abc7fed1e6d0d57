/* Merging databases.
 *
 * Everything has a name that does not depend on the database it is in (an
 * image's hash, a run's and a trace's identity, a process's run, pid and start),
 * so merging is a union by name.  Where the two sides know the same thing in two
 * states, the fuller one stays: the analysis with more functions, the finished
 * run, the longer trace.  That makes merging idempotent, and its order free.
 *
 * The source is attached read-only, and the whole merge is one transaction of
 * plain INSERT ... SELECT: a merge of millions of touches stays inside SQLite.
 */
#include "trace/db_statement.h"

#include <string.h>

/* Source rows of images, processes and traces with the ids that they have
 * here. */
#define SOURCE_IMAGE                                                                       \
	"(SELECT s.id AS source_id, i.id AS id FROM source.images s"                       \
	" JOIN main.images i ON i.sha256 = s.sha256)"
#define SOURCE_PROCESS                                                                     \
	"(SELECT s.id AS source_id, p.id AS id FROM source.processes s"                    \
	" JOIN source.runs q ON s.run = q.id"                                              \
	" JOIN main.runs r ON r.identity = q.identity"                                     \
	" JOIN main.processes p ON p.run = r.id AND p.pid = s.pid"                         \
	"  AND p.started_ns = s.started_ns)"
#define SOURCE_RELINK                                                                      \
	"(SELECT s.id AS source_id, l.id AS id FROM source.relinks s"                      \
	" JOIN " SOURCE_IMAGE " a ON a.source_id = s.image"                                \
	" JOIN " SOURCE_IMAGE " b ON b.source_id = s.output"                               \
	" JOIN main.relinks l ON l.image = a.id AND l.output = b.id)"

/* One step of a merge, and the count that its changes go to. */
struct merge_step {
	const char *sql;
	size_t count;    /* offset in struct db_merged, or NOT_COUNTED */
	int64_t version; /* of the source that has it; 0: any */
};

enum { NOT_COUNTED = -1 };
#define COUNTED(member) offsetof(struct db_merged, member)

static const struct merge_step steps[] = {
	{"INSERT INTO images(sha256, name, size, code_size)"
	 " SELECT sha256, name, size, code_size FROM source.images WHERE true"
	 " ORDER BY id ON CONFLICT(sha256) DO NOTHING",
	 COUNTED(images)},
	{"UPDATE main.images AS i SET size = coalesce(i.size, s.size),"
	 " code_size = coalesce(i.code_size, s.code_size)"
	 " FROM source.images s WHERE s.sha256 = i.sha256"
	 "  AND (i.size IS NULL OR i.code_size IS NULL)",
	 (size_t)NOT_COUNTED},
	{"CREATE TEMP TABLE better_functions AS"
	 " SELECT m.source_id, m.id FROM " SOURCE_IMAGE " m"
	 " WHERE (SELECT count(*) FROM source.functions f WHERE f.image = m.source_id)"
	 "  > (SELECT count(*) FROM main.functions f WHERE f.image = m.id)",
	 (size_t)NOT_COUNTED},
	{"DELETE FROM main.functions WHERE image IN (SELECT id FROM better_functions)",
	 (size_t)NOT_COUNTED},
	{"INSERT INTO main.functions(image, rva, size, name, movable, pins, probe)"
	 " SELECT b.id, f.rva, f.size, f.name, f.movable, f.pins, f.probe"
	 " FROM better_functions b JOIN source.functions f ON f.image = b.source_id",
	 (size_t)NOT_COUNTED},
	{"DROP TABLE temp.better_functions", (size_t)NOT_COUNTED},
	{"CREATE TEMP TABLE better_identities AS"
	 " SELECT m.source_id, m.id FROM " SOURCE_IMAGE " m"
	 " WHERE (SELECT count(*) FROM source.identities f WHERE f.image = m.source_id)"
	 "  > (SELECT count(*) FROM main.identities f WHERE f.image = m.id)",
	 (size_t)NOT_COUNTED, 3},
	{"DELETE FROM main.identities WHERE image IN (SELECT id FROM better_identities)",
	 (size_t)NOT_COUNTED, 3},
	{"INSERT INTO main.identities(image, rva, content, callees)"
	 " SELECT b.id, f.rva, f.content, f.callees"
	 " FROM better_identities b JOIN source.identities f ON f.image = b.source_id",
	 (size_t)NOT_COUNTED, 3},
	{"DROP TABLE temp.better_identities", (size_t)NOT_COUNTED, 3},
	{"INSERT INTO main.runs(identity, kind, scenario, weight, command, host,"
	 " started_ns, exit, exit_code, wall_seconds)"
	 " SELECT identity, kind, scenario, weight, command, host, started_ns, exit,"
	 "  exit_code, wall_seconds FROM source.runs WHERE true ORDER BY id"
	 " ON CONFLICT(identity) DO NOTHING",
	 COUNTED(runs)},
	{"UPDATE main.runs AS r SET exit = s.exit, exit_code = s.exit_code,"
	 " wall_seconds = s.wall_seconds FROM source.runs s"
	 " WHERE s.identity = r.identity AND r.exit = 'unknown' AND s.exit <> 'unknown'",
	 (size_t)NOT_COUNTED},
	{"INSERT INTO main.processes(run, pid, parent, started_ns, executable, command)"
	 " SELECT r.id, s.pid, s.parent, s.started_ns, s.executable, s.command"
	 " FROM source.processes s JOIN source.runs q ON s.run = q.id"
	 " JOIN main.runs r ON r.identity = q.identity WHERE true ORDER BY s.id"
	 " ON CONFLICT(run, pid, started_ns) DO NOTHING",
	 (size_t)NOT_COUNTED},
	/* Traces that the source has and the target lacks or has shorter. */
	{"CREATE TEMP TABLE longer_traces AS"
	 " SELECT s.id AS source_id, t.id AS old_id FROM source.traces s"
	 " LEFT JOIN main.traces t ON t.identity = s.identity"
	 " WHERE t.id IS NULL OR t.records < s.records",
	 (size_t)NOT_COUNTED},
	{"DELETE FROM main.traces WHERE id IN (SELECT old_id FROM longer_traces)",
	 (size_t)NOT_COUNTED},
	{"INSERT INTO main.traces(process, image, identity, sha256, records, incomplete)"
	 " SELECT p.id, i.id, s.identity, s.sha256, s.records, s.incomplete"
	 " FROM longer_traces n JOIN source.traces s ON s.id = n.source_id"
	 " JOIN " SOURCE_PROCESS " p ON p.source_id = s.process"
	 " JOIN " SOURCE_IMAGE " i ON i.source_id = s.image ORDER BY s.id",
	 COUNTED(traces)},
	{"INSERT INTO main.touches(trace, seq, rva, thread, time_ns)"
	 " SELECT t.id, u.seq, u.rva, u.thread, u.time_ns"
	 " FROM longer_traces n JOIN source.traces s ON s.id = n.source_id"
	 " JOIN main.traces t ON t.identity = s.identity"
	 " JOIN source.touches u ON u.trace = s.id",
	 COUNTED(touches)},
	{"DROP TABLE temp.longer_traces", (size_t)NOT_COUNTED},
	{"INSERT INTO main.page_touches(process, image, seq, page, thread, kind, time_ns)"
	 " SELECT p.id, i.id, g.seq, g.page, g.thread, g.kind, g.time_ns"
	 " FROM source.page_touches g"
	 " JOIN " SOURCE_PROCESS " p ON p.source_id = g.process"
	 " JOIN " SOURCE_IMAGE " i ON i.source_id = g.image WHERE true"
	 " ON CONFLICT(process, image, seq) DO NOTHING",
	 (size_t)NOT_COUNTED},
	/* Of runs that are there already nothing is added. */
	{"CREATE TEMP TABLE new_fault_runs AS"
	 " SELECT s.run AS source_run, s.image AS source_image, r.id AS run, i.id AS image"
	 " FROM source.fault_runs s JOIN source.runs q ON s.run = q.id"
	 " JOIN main.runs r ON r.identity = q.identity"
	 " JOIN " SOURCE_IMAGE " i ON i.source_id = s.image"
	 " WHERE NOT EXISTS (SELECT 1 FROM main.fault_runs k"
	 "  WHERE k.run = r.id AND k.image = i.id)",
	 (size_t)NOT_COUNTED, 2},
	{"INSERT INTO main.fault_runs(run, image, method, counter, read_ahead, cold, pages,"
	 " code_pages, before, after, lost)"
	 " SELECT n.run, n.image, s.method, s.counter, s.read_ahead, s.cold, s.pages,"
	 "  s.code_pages, s.before, s.after, s.lost FROM temp.new_fault_runs n"
	 " JOIN source.fault_runs s ON s.run = n.source_run AND s.image = n.source_image",
	 (size_t)NOT_COUNTED, 2},
	{"INSERT INTO main.faults(run, image, seq, page, code, kind, access, process, thread,"
	 " time_ns)"
	 " SELECT n.run, n.image, f.seq, f.page, f.code, f.kind, f.access, p.id, f.thread,"
	 "  f.time_ns FROM temp.new_fault_runs n"
	 " JOIN source.faults f ON f.run = n.source_run AND f.image = n.source_image"
	 " LEFT JOIN " SOURCE_PROCESS " p ON p.source_id = f.process",
	 (size_t)NOT_COUNTED, 2},
	{"DROP TABLE temp.new_fault_runs", (size_t)NOT_COUNTED, 2},
	{"INSERT INTO main.relinks(image, output, order_name, seed, placement)"
	 " SELECT a.id, b.id, s.order_name, s.seed, s.placement FROM source.relinks s"
	 " JOIN " SOURCE_IMAGE " a ON a.source_id = s.image"
	 " JOIN " SOURCE_IMAGE " b ON b.source_id = s.output WHERE true ORDER BY s.id"
	 " ON CONFLICT(image, output) DO NOTHING",
	 (size_t)NOT_COUNTED},
	{"INSERT INTO main.moves(relink, old_rva, new_rva, size)"
	 " SELECT l.id, m.old_rva, m.new_rva, m.size FROM source.moves m"
	 " JOIN " SOURCE_RELINK " l ON l.source_id = m.relink WHERE true"
	 " ON CONFLICT(relink, old_rva) DO NOTHING",
	 (size_t)NOT_COUNTED},
};

static enum status merge_attached(struct db *db, int64_t version,
				  struct db_merged *ret_merged, struct diag *diag)
{
	struct db_merged merged = {0};
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && status == STATUS_OK; i++) {
		if (version < steps[i].version)
			continue;
		status = db_execute(db, steps[i].sql, NULL, 0, diag);
		if (status == STATUS_OK && steps[i].count != (size_t)NOT_COUNTED)
			*(int64_t *)((char *)&merged + steps[i].count) = db_changes(db);
	}
	status = db_end(db, status, diag);
	if (status == STATUS_OK)
		*ret_merged = merged;
	return status;
}

enum status db_merge(struct db *db, const char *path, struct db_merged *ret_merged,
		     struct diag *diag)
{
	struct db *source;
	int64_t version = 0;
	enum status status = db_open(path, DB_READONLY, &source, diag);

	if (status != STATUS_OK)
		return status;
	status = db_version(source, &version, diag);
	if (status == STATUS_OK)
		status = db_attach(db, path, diag);
	if (status == STATUS_OK) {
		status = merge_attached(db, version, ret_merged, diag);
		if (status != STATUS_OK && diag)
			diag_set_file(diag, path);
		db_detach(db);
	}
	db_close(source);
	return status;
}
