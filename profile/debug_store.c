/* Writing a debugger's log into the database. */
#include "debug_session.h"

#include <stdlib.h>
#include <string.h>

/* A touch of an image that was asked for; sorted by process and image they are
 * what goes into the database together. */
struct group_key {
	uint32_t process, image;
	uint32_t touch; /* index into the log: the order */
};

static int by_group(const void *a, const void *b)
{
	const struct group_key *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->touch < y->touch ? -1 : x->touch > y->touch;
}

/* Sets the bit of `rva`; whether it was set before. */
static bool test_and_set(uint8_t *bits, uint32_t rva)
{
	bool was = bits[rva / 8] & 1 << rva % 8;

	bits[rva / 8] |= (uint8_t)(1 << rva % 8);
	return was;
}

/* Drops touches of what the same process touched before, in an earlier load of the
 * image; gives how many are left.  `bits` are clear before and after. */
static uint32_t drop_repeated(const struct debug_session *s, struct group_key *keys,
			      uint32_t count, uint8_t *bits)
{
	const struct debugger_touch *touches = s->debugger.log.touches.data;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!test_and_set(bits, touches[keys[i].touch].rva.v))
			keys[kept++] = keys[i];
	for (uint32_t i = 0; i < kept; i++)
		bits[touches[keys[i].touch].rva.v / 8] = 0;
	return kept;
}

static void count_touches(struct debug_session *s, const struct group_key *keys,
			  uint32_t count)
{
	struct debug_image *image = &s->images[keys[0].image];

	for (uint32_t i = 0; i < count; i++) {
		const struct debugger_touch *touch = &s->debugger.log.touches.data[keys[i].touch];

		if (test_and_set(image->seen, touch->rva.v))
			continue;
		image->touched++;
		image->executed += touch->access == DEBUGGER_EXECUTE;
	}
}

static enum status put_pages(struct debug_session *s, struct db *db, int64_t process,
			     const struct group_key *keys, uint32_t count,
			     struct diag *diag)
{
	static const enum db_access kinds[] = {
		[DEBUGGER_EXECUTE] = DB_ACCESS_EXECUTE,
		[DEBUGGER_READ] = DB_ACCESS_READ,
		[DEBUGGER_WRITE] = DB_ACCESS_WRITE,
	};
	struct db_page_touch *pages = calloc(count, sizeof(*pages));
	enum status status;

	if (!pages)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < count; i++) {
		const struct debugger_touch *touch = &s->debugger.log.touches.data[keys[i].touch];

		pages[i] = (struct db_page_touch){
			.seq = keys[i].touch, .page = touch->rva, .thread = touch->thread,
			.kind = kinds[touch->access],
			.time_ns = debugger_log_ns(&s->debugger.log,
						   &s->debugger.log.processes.data[keys[i].process],
						   touch->ticks),
		};
	}
	status = db_put_page_touches(db, process, s->images[keys[0].image].id, pages, count,
				     diag);
	free(pages);
	return status;
}

static enum status put_starts(struct debug_session *s, struct db *db, int64_t process,
			      const struct group_key *keys, uint32_t count,
			      struct diag *diag)
{
	struct db_touch *touches = calloc(count, sizeof(*touches));
	struct db_trace trace = {
		.process = process, .image = s->images[keys[0].image].id,
		.incomplete = !s->debugger.log.processes.data[keys[0].process].ended,
		.touches = touches, .count = count,
	};
	enum db_trace_fate fate;
	enum status status;

	if (!touches)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < count; i++) {
		const struct debugger_touch *touch = &s->debugger.log.touches.data[keys[i].touch];

		touches[i] = (struct db_touch){
			.seq = keys[i].touch, .rva = touch->rva, .thread = touch->thread,
			.time_ns = debugger_log_ns(&s->debugger.log,
						   &s->debugger.log.processes.data[keys[i].process],
						   touch->ticks),
		};
	}
	status = db_put_trace(db, &trace, &fate, diag);
	free(touches);
	return status;
}

/* Writes the touches of one image in one process. */
static enum status put_group(struct debug_session *s, struct db *db,
			     struct group_key *keys, uint32_t count, struct diag *diag)
{
	const struct debugger_process *p = &s->debugger.log.processes.data[keys[0].process];
	struct db_process process = {
		.run = s->run, .pid = p->pid, .started_ns = p->started_ns,
		.executable = p->path[0] ? p->path : NULL,
	};
	uint32_t size = s->images[keys[0].image].image.headers.size_of_image;
	uint8_t *bits = calloc(size / 8 + 1, 1);
	enum status status;
	int64_t id;

	if (!bits)
		return diag_no_memory(diag);
	count = drop_repeated(s, keys, count, bits);
	free(bits);
	count_touches(s, keys, count);
	status = db_put_process(db, &process, &id, diag);
	if (status != STATUS_OK)
		return status;
	return s->mode == DEBUGGER_PAGES ? put_pages(s, db, id, keys, count, diag)
					 : put_starts(s, db, id, keys, count, diag);
}

static enum status put_groups(struct debug_session *s, struct db *db, struct diag *diag)
{
	struct group_key *keys = calloc((size_t)s->debugger.log.touches.len + 1, sizeof(*keys));
	enum status status = keys ? STATUS_OK : diag_no_memory(diag);
	uint32_t count = 0;

	for (uint32_t i = 0; keys && i < s->debugger.log.touches.len; i++) {
		uint32_t image = s->debugger.log.touches.data[i].image;

		if (s->wanted[image] != DEBUG_OTHER)
			keys[count++] = (struct group_key){s->debugger.log.images.data[image].process,
							   s->wanted[image], i};
	}
	if (count > 0)
		qsort(keys, count, sizeof(*keys), by_group);
	for (uint32_t i = 0, n; i < count && status == STATUS_OK; i += n) {
		for (n = 1; i + n < count && keys[i + n].process == keys[i].process &&
			    keys[i + n].image == keys[i].image;)
			n++;
		status = put_group(s, db, keys + i, n, diag);
	}
	free(keys);
	return status;
}

/* Finds or writes the images; what is known of one already stays. */
static enum status put_images(struct debug_session *s, struct db *db, struct diag *diag)
{
	for (uint32_t i = 0; i < s->image_count; i++) {
		struct debug_image *image = &s->images[i];
		struct db_image row = {.hash = image->hash, .name = image->name,
				       .size = image->image.size};
		enum status status = db_find_image(db, &image->hash, &image->id, NULL);

		for (uint32_t k = 0; k < image->image.section_count; k++)
			if (image->image.sections[k].characteristics & SECTION_EXECUTE)
				row.code_size += image->image.sections[k].virtual_size;
		if (status == STATUS_NOT_FOUND)
			status = db_put_image(db, &row, NULL, 0, &image->id, diag);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

enum status debug_session_store(struct debug_session *session, struct db *db,
				struct diag *diag)
{
	const struct debugger_run *debugger = &session->debugger;
	enum db_exit exit = debugger->log.ended ? debugger->exit.exit : DB_EXIT_UNKNOWN;
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = put_images(session, db, diag);
	if (status == STATUS_OK)
		status = db_begin_run(db, &session->description.run, &session->run, diag);
	if (status == STATUS_OK)
		status = put_groups(session, db, diag);
	if (status == STATUS_OK)
		status = db_finish_run(db, session->run, exit, debugger->exit.code,
				       debugger->exit.wall_seconds, diag);
	if (status == STATUS_OK)
		return db_commit(db, diag);
	db_rollback(db);
	return status;
}
