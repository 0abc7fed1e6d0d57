/* Lists and counts for people.  Lists come from the views, so that what reports
 * show and what a query by hand shows cannot differ. */
#include "trace/db_report.h"

#include <string.h>

#include "base/vec.h"
#include "trace/db_statement.h"

/* A copy in the arena, NULL for SQL's NULL; sticky NO_MEMORY. */
static const char *text_at(struct db_statement *s, struct arena *arena, int column)
{
	const char *text = db_column_text(s, column);
	char *copy = text ? arena_strndup(arena, text, strlen(text)) : NULL;

	if (text && !copy)
		s->failed = STATUS_NO_MEMORY;
	return copy;
}

static uint64_t count_at(struct db_statement *s, int column)
{
	int64_t n = db_column_int(s, column);

	if (n < 0)
		s->failed = STATUS_BAD_DATABASE;
	return (uint64_t)n;
}

/* Moves `count` rows of `size` bytes into the arena. */
static void *into_arena(struct arena *arena, const void *rows, uint32_t count, size_t size)
{
	void *copy = arena_array(arena, count, size);

	if (copy && count)
		memcpy(copy, rows, count * size);
	return copy;
}

static void read_run_row(struct db_statement *s, struct arena *arena,
			 struct db_run_row *row)
{
	*row = (struct db_run_row){
		.run = db_column_int(s, 0),
		.kind = text_at(s, arena, 1),
		.scenario = text_at(s, arena, 2),
		.weight = db_column_real(s, 3),
		.command = text_at(s, arena, 4),
		.host = text_at(s, arena, 5),
		.started = text_at(s, arena, 6),
		.exit = text_at(s, arena, 7),
		.has_exit_code = db_column_text(s, 8) != NULL,
		.exit_code = db_column_int(s, 8),
		.has_wall_seconds = db_column_text(s, 9) != NULL,
		.wall_seconds = db_column_real(s, 9),
		.processes = count_at(s, 10),
		.traces = count_at(s, 11),
		.touches = count_at(s, 12),
		.page_touches = count_at(s, 13),
		.hard_faults = count_at(s, 14),
	};
}

enum status db_list_runs(struct db *db, struct arena *arena, struct db_run_row **ret_rows,
			 uint32_t *ret_count, struct diag *diag)
{
	VEC(struct db_run_row) rows = {0};
	struct db_statement s;
	struct db_run_row *copy = NULL;
	bool row = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT v.run, v.kind, v.scenario, v.weight, v.command, v.host, v.started,"
		" v.exit, v.exit_code, v.wall_seconds, v.processes, v.traces, v.touches,"
		" v.page_touches, v.hard_faults FROM v_runs v JOIN runs r ON r.id = v.run"
		" ORDER BY r.started_ns, r.identity",
		diag);

	while (status == STATUS_OK && (status = db_step(&s, &row, diag)) == STATUS_OK &&
	       row) {
		struct db_run_row one;

		read_run_row(&s, arena, &one);
		if (!vec_push(&rows, one))
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	if (status == STATUS_OK) {
		copy = into_arena(arena, rows.data, rows.len, sizeof(*copy));
		if (!copy)
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK) {
		*ret_rows = copy;
		*ret_count = rows.len;
	}
	vec_release(&rows);
	return status;
}

static void read_image_row(struct db_statement *s, struct arena *arena,
			   struct db_image_row *row)
{
	*row = (struct db_image_row){
		.image = db_column_int(s, 0),
		.name = text_at(s, arena, 1),
		.hash = text_at(s, arena, 2),
		.size = count_at(s, 3),
		.code_size = count_at(s, 4),
		.functions = count_at(s, 5),
		.function_bytes = count_at(s, 6),
		.movable_functions = count_at(s, 7),
		.movable_bytes = count_at(s, 8),
		.relinked_from = db_column_int(s, 9),
	};
	if (!row->name || !row->hash)
		s->failed = s->failed ? s->failed : STATUS_BAD_DATABASE;
}

enum status db_list_images(struct db *db, struct arena *arena,
			   struct db_image_row **ret_rows, uint32_t *ret_count,
			   struct diag *diag)
{
	VEC(struct db_image_row) rows = {0};
	struct db_statement s;
	struct db_image_row *copy = NULL;
	bool row = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT v.image, v.name, v.sha256, v.size, v.code_size, v.functions,"
		" v.function_bytes, v.movable_functions, v.movable_bytes,"
		" (SELECT min(l.image) FROM relinks l WHERE l.output = v.image"
		"  AND l.image <> v.image)"
		" FROM v_images v ORDER BY v.name, v.sha256",
		diag);

	while (status == STATUS_OK && (status = db_step(&s, &row, diag)) == STATUS_OK &&
	       row) {
		struct db_image_row one;

		read_image_row(&s, arena, &one);
		if (!vec_push(&rows, one))
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	if (status == STATUS_OK) {
		copy = into_arena(arena, rows.data, rows.len, sizeof(*copy));
		if (!copy)
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK) {
		*ret_rows = copy;
		*ret_count = rows.len;
	}
	vec_release(&rows);
	return status;
}

/* The first row of a query about a run and an image. */
static enum status count_row(struct db *db, const char *sql, int64_t run, int64_t image,
			     struct db_statement *s, struct diag *diag)
{
	bool row;
	enum status status = db_prepare(db, s, sql, diag);

	if (status != STATUS_OK)
		return status;
	db_bind(s, DB_VALUES(db_int(run), db_int(image)));
	return db_step(s, &row, diag);
}

enum status db_count_run(struct db *db, int64_t run, int64_t image,
			 struct db_run_counts *ret_counts, struct diag *diag)
{
	struct db_run_counts counts = {0};
	struct db_statement s = {0};
	enum status status = count_row(
		db,
		"SELECT count(DISTINCT p.id), count(u.seq), coalesce(max(t.incomplete), 0)"
		" FROM processes p JOIN traces t ON t.process = p.id"
		" LEFT JOIN touches u ON u.trace = t.id WHERE p.run = ?1 AND t.image = ?2",
		run, image, &s, diag);

	counts.processes = status == STATUS_OK ? count_at(&s, 0) : 0;
	counts.touches = status == STATUS_OK ? count_at(&s, 1) : 0;
	counts.incomplete = status == STATUS_OK && db_column_int(&s, 2) != 0;
	db_finalize(&s);
	if (status == STATUS_OK)
		status = count_row(db,
				   "SELECT count(*) FROM (SELECT DISTINCT p.id, u.thread"
				   " FROM processes p JOIN traces t ON t.process = p.id"
				   " JOIN touches u ON u.trace = t.id"
				   " WHERE p.run = ?1 AND t.image = ?2)",
				   run, image, &s, diag);
	counts.threads = status == STATUS_OK ? count_at(&s, 0) : 0;
	db_finalize(&s);
	if (status == STATUS_OK)
		status = count_row(
			db,
			"SELECT count(DISTINCT g.page), count(DISTINCT"
			" CASE g.kind WHEN 'execute' THEN g.page END)"
			" FROM page_touches g JOIN processes p ON g.process = p.id"
			" WHERE p.run = ?1 AND g.image = ?2",
			run, image, &s, diag);
	counts.pages = status == STATUS_OK ? count_at(&s, 0) : 0;
	counts.executed_pages = status == STATUS_OK ? count_at(&s, 1) : 0;
	db_finalize(&s);
	if (status == STATUS_OK)
		*ret_counts = counts;
	return status;
}

/* ---- relinks ---- */

static enum status read_moves(struct db *db, struct arena *arena, struct db_relink_row *row,
			      struct diag *diag)
{
	VEC(struct db_move) moves = {0};
	struct db_statement s;
	bool more = false;
	enum status status = db_prepare(db, &s,
					"SELECT old_rva, new_rva, size FROM moves"
					" WHERE relink = ?1 ORDER BY old_rva",
					diag);

	if (status == STATUS_OK)
		db_bind(&s, DB_VALUES(db_int(row->relink)));
	while (status == STATUS_OK && (status = db_step(&s, &more, diag)) == STATUS_OK &&
	       more) {
		struct db_move move = {.old_rva = rva_of(db_column_u32(&s, 0)),
				       .new_rva = rva_of(db_column_u32(&s, 1)),
				       .size = db_column_u32(&s, 2)};

		if (!vec_push(&moves, move))
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	if (status == STATUS_OK) {
		row->moves = into_arena(arena, moves.data, moves.len, sizeof(*moves.data));
		row->move_count = moves.len;
		if (!row->moves)
			status = diag_no_memory(diag);
	}
	vec_release(&moves);
	return status;
}

static void read_relink_row(struct db_statement *s, struct arena *arena,
			    struct db_relink_row *row)
{
	*row = (struct db_relink_row){
		.relink = db_column_int(s, 0),
		.output = db_column_int(s, 1),
		.order = text_at(s, arena, 2),
		.placement = text_at(s, arena, 3),
		.seed = text_at(s, arena, 4),
		.output_name = text_at(s, arena, 5),
		.output_hash = text_at(s, arena, 6),
		.output_size = count_at(s, 7),
	};
	if (!row->order || !row->placement || !row->output_name || !row->output_hash)
		s->failed = s->failed ? s->failed : STATUS_BAD_DATABASE;
}

enum status db_list_relinks(struct db *db, int64_t image, struct arena *arena,
			    struct db_relink_row **ret_rows, uint32_t *ret_count,
			    struct diag *diag)
{
	VEC(struct db_relink_row) rows = {0};
	struct db_statement s;
	struct db_relink_row *copy = NULL;
	bool more = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT l.id, l.output, l.order_name, l.placement, l.seed, b.name, b.sha256,"
		" b.size FROM relinks l JOIN images b ON l.output = b.id"
		" WHERE l.image = ?1 ORDER BY l.id",
		diag);

	if (status == STATUS_OK)
		db_bind(&s, DB_VALUES(db_int(image)));
	while (status == STATUS_OK && (status = db_step(&s, &more, diag)) == STATUS_OK &&
	       more) {
		struct db_relink_row one;

		read_relink_row(&s, arena, &one);
		if (!vec_push(&rows, one))
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	for (uint32_t i = 0; i < rows.len && status == STATUS_OK; i++)
		status = read_moves(db, arena, &rows.data[i], diag);
	if (status == STATUS_OK) {
		copy = into_arena(arena, rows.data, rows.len, sizeof(*copy));
		if (!copy)
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK) {
		*ret_rows = copy;
		*ret_count = rows.len;
	}
	vec_release(&rows);
	return status;
}

/* ---- touches ---- */

enum status db_list_run_touches(struct db *db, int64_t run, int64_t image,
				struct arena *arena, struct db_run_touch **ret_rows,
				uint32_t *ret_count, struct diag *diag)
{
	VEC(struct db_run_touch) rows = {0};
	struct db_statement s;
	struct db_run_touch *copy = NULL;
	bool more = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT u.rva, p.pid, u.thread, u.time_ns + p.started_ns -"
		"  (SELECT min(q.started_ns) FROM processes q WHERE q.run = ?1) AS at"
		" FROM processes p JOIN traces t ON t.process = p.id"
		" JOIN touches u ON u.trace = t.id WHERE p.run = ?1 AND t.image = ?2"
		" ORDER BY at, p.started_ns, p.pid, t.identity, u.seq",
		diag);

	if (status == STATUS_OK)
		db_bind(&s, DB_VALUES(db_int(run), db_int(image)));
	while (status == STATUS_OK && (status = db_step(&s, &more, diag)) == STATUS_OK &&
	       more) {
		struct db_run_touch touch = {.rva = rva_of(db_column_u32(&s, 0)),
					     .process = db_column_u32(&s, 1),
					     .thread = db_column_u32(&s, 2),
					     .time_ns = db_column_int(&s, 3)};

		if (!vec_push(&rows, touch))
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	if (status == STATUS_OK) {
		copy = into_arena(arena, rows.data, rows.len, sizeof(*copy));
		if (!copy)
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK) {
		*ret_rows = copy;
		*ret_count = rows.len;
	}
	vec_release(&rows);
	return status;
}
