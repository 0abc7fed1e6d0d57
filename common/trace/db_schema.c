/* The schema of the trace database, version 3.  docs/database.md explains it to
 * people; a change here needs a new DB_SCHEMA_VERSION, a step in db_upgrade.c that
 * upgrades older databases, and a change there.
 *
 * - Touches name functions by RVA and not by a function's row: a touch at an
 *   RVA that no analysis knows is kept, and functions can be written again.
 * - The two big tables are keyed by what they are read by and have no rowid:
 *   a touch takes some 20 bytes.
 * - The checks repeat what the programs guarantee, for databases that people
 *   edit by hand.
 */
#include "trace/db_statement.h"

#include <stddef.h>

/* Version 2 added the kind `faults`, its two tables and its views. */
#define RUN_COLUMNS                                                                \
	"("                                                                        \
	" id INTEGER PRIMARY KEY,"                                                 \
	" identity TEXT NOT NULL UNIQUE,"                                          \
	" kind TEXT NOT NULL"                                                      \
	"  CHECK(kind IN ('trace', 'pages', 'breakpoints', 'faults')),"            \
	" scenario TEXT NOT NULL,"                                                 \
	" weight REAL NOT NULL CHECK(weight > 0),"                                 \
	" command TEXT,"                                                           \
	" host TEXT,"                                                              \
	" started_ns INTEGER NOT NULL,"                                            \
	" exit TEXT NOT NULL DEFAULT 'unknown'"                                    \
	"  CHECK(exit IN ('unknown', 'not-started', 'exited', 'signaled')),"       \
	" exit_code INTEGER,"                                                      \
	" wall_seconds REAL)"

#define FAULT_TABLES                                                               \
	"CREATE TABLE fault_runs("                                                 \
	" run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"             \
	" image INTEGER NOT NULL REFERENCES images(id),"                           \
	" method TEXT NOT NULL,"                                                   \
	" counter TEXT NOT NULL,"                                                  \
	" read_ahead INTEGER CHECK(read_ahead >= 0),"                              \
	" cold INTEGER NOT NULL CHECK(cold IN (0, 1)),"                            \
	" pages INTEGER NOT NULL CHECK(pages >= 0),"                               \
	" code_pages INTEGER NOT NULL CHECK(code_pages >= 0),"                     \
	" before INTEGER CHECK(before >= 0),"                                      \
	" after INTEGER CHECK(after >= 0),"                                        \
	" lost INTEGER NOT NULL CHECK(lost >= 0),"                                 \
	" PRIMARY KEY(run, image)) WITHOUT ROWID",                                 \
	"CREATE INDEX fault_runs_image ON fault_runs(image)",                      \
	"CREATE TABLE faults("                                                     \
	" run INTEGER NOT NULL,"                                                   \
	" image INTEGER NOT NULL,"                                                 \
	" seq INTEGER NOT NULL,"                                                   \
	" page INTEGER NOT NULL"                                                   \
	"  CHECK(page BETWEEN 0 AND 4294967295 AND page % 4096 = 0),"              \
	" code INTEGER NOT NULL CHECK(code IN (0, 1)),"                            \
	" kind TEXT NOT NULL CHECK(kind IN ('hard', 'soft', 'resident')),"         \
	" access TEXT CHECK(access IN ('execute', 'data')),"                       \
	" process INTEGER REFERENCES processes(id) ON DELETE CASCADE,"             \
	" thread INTEGER,"                                                         \
	" time_ns INTEGER,"                                                        \
	" PRIMARY KEY(run, image, seq),"                                           \
	" FOREIGN KEY(run, image) REFERENCES fault_runs(run, image)"               \
	"  ON DELETE CASCADE) WITHOUT ROWID",                                      \
	"CREATE INDEX faults_process ON faults(process)"

/* Version 3 added what is known of a function beside its place. */
#define IDENTITY_TABLES                                                            \
	"CREATE TABLE identities("                                                 \
	" image INTEGER NOT NULL REFERENCES images(id) ON DELETE CASCADE,"         \
	" rva INTEGER NOT NULL CHECK(rva BETWEEN 0 AND 4294967295),"               \
	" content INTEGER NOT NULL,"                                               \
	" callees BLOB NOT NULL CHECK(length(callees) % 4 = 0),"                   \
	" PRIMARY KEY(image, rva)) WITHOUT ROWID"

const char *const db_schema[] = {
	"CREATE TABLE images("
	" id INTEGER PRIMARY KEY,"
	" sha256 TEXT NOT NULL UNIQUE CHECK(length(sha256) = 64),"
	" name TEXT NOT NULL,"
	" size INTEGER CHECK(size > 0),"
	" code_size INTEGER CHECK(code_size > 0))",

	"CREATE TABLE functions("
	" image INTEGER NOT NULL REFERENCES images(id) ON DELETE CASCADE,"
	" rva INTEGER NOT NULL CHECK(rva BETWEEN 0 AND 4294967295),"
	" size INTEGER NOT NULL CHECK(size BETWEEN 0 AND 4294967295),"
	" name TEXT,"
	" movable INTEGER NOT NULL CHECK(movable IN (0, 1)),"
	" pins TEXT,"
	" probe INTEGER CHECK(probe >= 0),"
	" PRIMARY KEY(image, rva)) WITHOUT ROWID",

	"CREATE TABLE runs" RUN_COLUMNS,

	"CREATE TABLE processes("
	" id INTEGER PRIMARY KEY,"
	" run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
	" pid INTEGER NOT NULL,"
	" parent INTEGER,"
	" started_ns INTEGER NOT NULL,"
	" executable TEXT,"
	" command TEXT,"
	" UNIQUE(run, pid, started_ns))",

	"CREATE TABLE traces("
	" id INTEGER PRIMARY KEY,"
	" process INTEGER NOT NULL REFERENCES processes(id) ON DELETE CASCADE,"
	" image INTEGER NOT NULL REFERENCES images(id),"
	" identity TEXT NOT NULL UNIQUE,"
	" sha256 TEXT CHECK(length(sha256) = 64),"
	" records INTEGER NOT NULL,"
	" incomplete INTEGER NOT NULL CHECK(incomplete IN (0, 1)))",

	"CREATE INDEX traces_process ON traces(process)",
	"CREATE INDEX traces_image ON traces(image)",

	"CREATE TABLE touches("
	" trace INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
	" seq INTEGER NOT NULL,"
	" rva INTEGER NOT NULL CHECK(rva BETWEEN 0 AND 4294967295),"
	" thread INTEGER NOT NULL,"
	" time_ns INTEGER NOT NULL,"
	" PRIMARY KEY(trace, seq)) WITHOUT ROWID",

	"CREATE TABLE page_touches("
	" process INTEGER NOT NULL REFERENCES processes(id) ON DELETE CASCADE,"
	" image INTEGER NOT NULL REFERENCES images(id),"
	" seq INTEGER NOT NULL,"
	" page INTEGER NOT NULL CHECK(page BETWEEN 0 AND 4294967295 AND page % 4096 = 0),"
	" thread INTEGER NOT NULL,"
	" kind TEXT NOT NULL CHECK(kind IN ('execute', 'read', 'write')),"
	" time_ns INTEGER NOT NULL,"
	" PRIMARY KEY(process, image, seq)) WITHOUT ROWID",

	"CREATE INDEX page_touches_image ON page_touches(image)",

	"CREATE TABLE relinks("
	" id INTEGER PRIMARY KEY,"
	" image INTEGER NOT NULL REFERENCES images(id),"
	" output INTEGER NOT NULL REFERENCES images(id),"
	" order_name TEXT NOT NULL,"
	" seed TEXT,"
	" placement TEXT NOT NULL,"
	" UNIQUE(image, output))",

	"CREATE INDEX relinks_output ON relinks(output)",

	"CREATE TABLE moves("
	" relink INTEGER NOT NULL REFERENCES relinks(id) ON DELETE CASCADE,"
	" old_rva INTEGER NOT NULL CHECK(old_rva BETWEEN 0 AND 4294967295),"
	" new_rva INTEGER NOT NULL CHECK(new_rva BETWEEN 0 AND 4294967295),"
	" size INTEGER NOT NULL CHECK(size BETWEEN 0 AND 4294967295),"
	" PRIMARY KEY(relink, old_rva)) WITHOUT ROWID",

	FAULT_TABLES,
	IDENTITY_TABLES,
	NULL,
};

const char *const db_views[] = {
	"CREATE VIEW v_images AS"
	" SELECT i.id AS image, i.name, i.sha256, i.size, i.code_size,"
	"  count(f.rva) AS functions,"
	"  coalesce(sum(f.size), 0) AS function_bytes,"
	"  coalesce(sum(f.movable), 0) AS movable_functions,"
	"  coalesce(sum(f.size * f.movable), 0) AS movable_bytes"
	" FROM images i LEFT JOIN functions f ON f.image = i.id GROUP BY i.id",

	"CREATE VIEW v_runs AS"
	" SELECT r.id AS run, r.kind, r.scenario, r.weight, r.command, r.host,"
	"  strftime('%Y-%m-%dT%H:%M:%SZ', r.started_ns / 1000000000, 'unixepoch')"
	"   AS started,"
	"  r.exit, r.exit_code, r.wall_seconds,"
	"  (SELECT count(*) FROM processes p WHERE p.run = r.id) AS processes,"
	"  (SELECT count(*) FROM traces t JOIN processes p ON t.process = p.id"
	"   WHERE p.run = r.id) AS traces,"
	"  (SELECT coalesce(sum(t.records), 0) FROM traces t"
	"   JOIN processes p ON t.process = p.id WHERE p.run = r.id) AS touches,"
	"  (SELECT count(*) FROM page_touches g JOIN processes p ON g.process = p.id"
	"   WHERE p.run = r.id) AS page_touches,"
	"  (SELECT count(*) FROM faults f WHERE f.run = r.id AND f.kind = 'hard')"
	"   AS hard_faults"
	" FROM runs r",

	"CREATE VIEW v_first_touch AS"
	" SELECT i.name AS image, i.sha256, r.id AS run, r.scenario, p.pid AS process,"
	"  u.thread, u.seq, u.time_ns / 1e6 AS time_ms, u.rva,"
	"  printf('0x%x', u.rva) AS rva_hex, f.name AS function, f.size,"
	"  f.rva IS NOT NULL AS known"
	" FROM touches u JOIN traces t ON u.trace = t.id"
	" JOIN images i ON t.image = i.id"
	" JOIN processes p ON t.process = p.id JOIN runs r ON p.run = r.id"
	" LEFT JOIN functions f ON f.image = t.image AND f.rva = u.rva",

	"CREATE VIEW v_functions_touched AS"
	" SELECT i.name AS image, i.sha256, u.rva, printf('0x%x', u.rva) AS rva_hex,"
	"  f.name AS function, f.size, f.movable, f.pins,"
	"  count(DISTINCT p.run) AS runs, count(DISTINCT p.id) AS processes"
	" FROM touches u JOIN traces t ON u.trace = t.id"
	" JOIN images i ON t.image = i.id JOIN processes p ON t.process = p.id"
	" LEFT JOIN functions f ON f.image = t.image AND f.rva = u.rva"
	" GROUP BY t.image, u.rva",

	"CREATE VIEW v_pages AS"
	" SELECT i.name AS image, i.sha256, r.id AS run, r.scenario, p.pid AS process,"
	"  g.thread, g.seq, g.time_ns / 1e6 AS time_ms, g.page,"
	"  printf('0x%x', g.page) AS page_hex, g.kind"
	" FROM page_touches g JOIN images i ON g.image = i.id"
	" JOIN processes p ON g.process = p.id JOIN runs r ON p.run = r.id",

	"CREATE VIEW v_page_counts AS"
	" SELECT i.name AS image, i.sha256, p.run AS run, r.scenario,"
	"  count(DISTINCT g.page) AS pages,"
	"  count(DISTINCT CASE g.kind WHEN 'execute' THEN g.page END) AS executed_pages"
	" FROM page_touches g JOIN images i ON g.image = i.id"
	" JOIN processes p ON g.process = p.id JOIN runs r ON p.run = r.id"
	" GROUP BY g.image, p.run",

	"CREATE VIEW v_faults AS"
	" SELECT i.name AS image, i.sha256, f.run, r.scenario, p.pid AS process,"
	"  f.thread, f.seq, f.time_ns / 1e6 AS time_ms, f.page,"
	"  printf('0x%x', f.page) AS page_hex, f.code, f.kind, f.access"
	" FROM faults f JOIN images i ON f.image = i.id JOIN runs r ON f.run = r.id"
	" LEFT JOIN processes p ON f.process = p.id",

	"CREATE VIEW v_fault_counts AS"
	" SELECT i.name AS image, i.sha256, u.run, r.scenario, u.method, u.counter,"
	"  u.read_ahead, u.cold, u.pages, u.code_pages, u.before, u.after, u.lost,"
	"  count(CASE f.kind WHEN 'hard' THEN 1 END) AS hard_faults,"
	"  count(DISTINCT CASE f.kind WHEN 'hard' THEN f.page END) AS hard_pages,"
	"  count(DISTINCT CASE WHEN f.kind = 'hard' AND f.code THEN f.page END)"
	"   AS hard_code_pages,"
	"  count(CASE f.kind WHEN 'soft' THEN 1 END) AS soft_faults"
	" FROM fault_runs u JOIN images i ON u.image = i.id JOIN runs r ON u.run = r.id"
	" LEFT JOIN faults f ON f.run = u.run AND f.image = u.image"
	" GROUP BY u.run, u.image",

	"CREATE VIEW v_relinks AS"
	" SELECT l.id AS relink, a.name AS input, a.sha256 AS input_sha256,"
	"  b.name AS output, b.sha256 AS output_sha256, l.order_name, l.seed,"
	"  l.placement, (SELECT count(*) FROM moves m WHERE m.relink = l.id) AS moves"
	" FROM relinks l JOIN images a ON l.image = a.id JOIN images b ON l.output = b.id",

	"CREATE VIEW v_functions AS"
	" SELECT i.name AS image, i.sha256, f.rva, printf('0x%x', f.rva) AS rva_hex,"
	"  f.name AS function, f.size, f.movable, f.pins, coalesce(u.runs, 0) AS runs,"
	"  coalesce(u.scenarios, 0) AS scenarios"
	" FROM functions f JOIN images i ON f.image = i.id"
	" LEFT JOIN (SELECT t.image AS image, x.rva AS rva, count(DISTINCT r.id) AS runs,"
	"   count(DISTINCT r.scenario) AS scenarios"
	"  FROM touches x JOIN traces t ON x.trace = t.id"
	"  JOIN processes p ON t.process = p.id JOIN runs r ON p.run = r.id"
	"  GROUP BY t.image, x.rva) u ON u.image = f.image AND u.rva = f.rva",

	"CREATE VIEW v_scenario_functions AS"
	" SELECT i.name AS image, i.sha256, r.scenario, u.rva,"
	"  printf('0x%x', u.rva) AS rva_hex, f.name AS function, f.size,"
	"  count(DISTINCT r.id) AS runs, min(u.time_ns) / 1e6 AS earliest_ms"
	" FROM touches u JOIN traces t ON u.trace = t.id"
	" JOIN images i ON t.image = i.id"
	" JOIN processes p ON t.process = p.id JOIN runs r ON p.run = r.id"
	" LEFT JOIN functions f ON f.image = t.image AND f.rva = u.rva"
	" GROUP BY t.image, r.scenario, u.rva",

	"CREATE VIEW v_moves AS"
	" SELECT l.id AS relink, l.order_name, a.name AS image, a.sha256, m.old_rva,"
	"  printf('0x%x', m.old_rva) AS old_hex, m.new_rva,"
	"  printf('0x%x', m.new_rva) AS new_hex, m.size, f.name AS function"
	" FROM moves m JOIN relinks l ON m.relink = l.id JOIN images a ON l.image = a.id"
	" LEFT JOIN functions f ON f.image = l.image AND f.rva = m.old_rva",
	NULL,
};

/* The table `runs` is made anew, for a constraint cannot be changed; nothing that
 * refers to it notices, since foreign keys are off meanwhile. */
static const char *const upgrade_to_2[] = {
	"CREATE TABLE new_runs" RUN_COLUMNS,
	"INSERT INTO new_runs SELECT id, identity, kind, scenario, weight, command, host,"
	" started_ns, exit, exit_code, wall_seconds FROM runs",
	"DROP TABLE runs",
	"ALTER TABLE new_runs RENAME TO runs",
	FAULT_TABLES,
	NULL,
};

static const char *const additions_2[] = {FAULT_TABLES, NULL};
static const char *const additions_3[] = {IDENTITY_TABLES, NULL};

const struct db_step_up db_steps_up[] = {
	{2, upgrade_to_2, additions_2},
	{3, additions_3, additions_3},
	{0, NULL, NULL},
};
