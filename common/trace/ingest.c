/* From a trace file to the database.
 *
 * Time.  A trace counts performance counter ticks and says when, by the clock,
 * it was opened and when its process started; the database counts nanoseconds
 * from the start of the process, so that several traces of one process compare.
 * The clock's own resolution (100 ns, on some systems 15 ms) only shifts a whole
 * trace.
 *
 * A touch at an RVA that no function of the image has is stored like any other:
 * the image may be instrumented into this database later.
 */
#include "trace/ingest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 100 ns units from 1601-01-01 to 1970-01-01 (Microsoft Learn, "FILETIME
 * structure": the epoch; 134,774 days between the two). */
#define FILETIME_OF_1970 (INT64_C(134774) * 86400 * 10000000)

int64_t ingest_time_ns(uint64_t filetime)
{
	int64_t limit = INT64_MAX / 100;
	int64_t units;

	if (filetime > INT64_MAX)
		return limit * 100;
	units = (int64_t)filetime - FILETIME_OF_1970;
	if (units > limit)
		units = limit;
	if (units < -limit)
		units = -limit;
	return units * 100;
}

void ingest_identity(const struct trace_file *trace, char ret_identity[SHA256_HEX_SIZE])
{
	char image[SHA256_HEX_SIZE];
	char text[256];
	struct sha256 hash;

	sha256_hex(&trace->image_hash, image);
	snprintf(text, sizeof(text),
		 "trace file\n%s\n%" PRIu32 "\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64, image,
		 trace->process, trace->process_start, trace->opened, trace->opened_ticks);
	hash = sha256_of(text, strlen(text));
	sha256_hex(&hash, ret_identity);
}

/* The sum, or the nearest that 64 bits can say. */
static int64_t add_time(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

static struct db_touch *convert_touches(const struct trace_file *trace)
{
	struct db_touch *touches = calloc((size_t)trace->touch_count + 1, sizeof(*touches));
	int64_t started = ingest_time_ns(trace->process_start);
	int64_t opened = add_time(ingest_time_ns(trace->opened), -started);

	for (uint32_t i = 0; touches && i < trace->touch_count; i++) {
		const struct trace_touch *t = &trace->touches[i];

		touches[i] = (struct db_touch){
			.seq = t->seq,
			.rva = t->rva,
			.thread = t->thread,
			.time_ns =
				add_time(opened, trace_file_nanoseconds(trace, t->ticks)),
		};
	}
	return touches;
}

static enum status find_or_put_image(struct db *db, const struct trace_file *trace,
				     int64_t *ret_id, struct diag *diag)
{
	struct db_image image = {.hash = trace->image_hash, .name = trace->image_name};

	if (db_find_image(db, &trace->image_hash, ret_id, NULL) == STATUS_OK)
		return STATUS_OK;
	return db_put_image(db, &image, NULL, 0, ret_id, diag);
}

static enum status put_trace(struct db *db, const struct db_run *run,
			     const struct trace_file *trace, const char *hash,
			     const char *identity, const struct db_touch *touches,
			     struct ingested *result, struct diag *diag)
{
	struct db_process process = {
		.pid = trace->process,
		.parent = trace->parent,
		.started_ns = ingest_time_ns(trace->process_start),
		.executable = trace->executable[0] ? trace->executable : NULL,
	};
	struct db_trace row = {
		.identity = identity,
		.hash = hash,
		.incomplete = trace->incomplete > 0,
		.touches = touches,
		.count = trace->touch_count,
	};
	bool known = false;
	enum status status = db_find_trace(db, identity, &known, &process.run, diag);

	if (status == STATUS_OK && !known)
		status = db_begin_run(db, run, &process.run, diag);
	if (status == STATUS_OK)
		status = find_or_put_image(db, trace, &row.image, diag);
	if (status == STATUS_OK)
		status = db_put_process(db, &process, &row.process, diag);
	if (status == STATUS_OK)
		status = db_put_trace(db, &row, &result->fate, diag);
	result->run = process.run;
	return status;
}

enum status ingest_trace(struct db *db, const struct db_run *run,
			 const struct trace_file *trace, const char *hash,
			 struct ingested *ret_ingested, struct diag *diag)
{
	struct ingested result = {.empty = trace->empty};
	char identity[SHA256_HEX_SIZE];
	struct db_touch *touches;
	enum status status;

	if (trace->empty) {
		*ret_ingested = result;
		return STATUS_OK;
	}
	touches = convert_touches(trace);
	if (!touches)
		return diag_no_memory(diag);
	ingest_identity(trace, identity);
	result.touches = trace->touch_count;
	result.cut_short = trace->incomplete;
	status = db_begin(db, diag);
	if (status == STATUS_OK) {
		status = put_trace(db, run, trace, hash, identity, touches, &result, diag);
		status = db_end(db, status, diag);
	}
	free(touches);
	if (status == STATUS_OK)
		*ret_ingested = result;
	return status;
}
