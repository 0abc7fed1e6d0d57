/* What lists and reports read from the trace database. */
#ifndef APPULSE_TRACE_DB_REPORT_H
#define APPULSE_TRACE_DB_REPORT_H

#include "base/arena.h"
#include "trace/db.h"

/* One row of the view v_runs.  Texts are NULL when unknown. */
struct db_run_row {
	int64_t run;
	const char *kind, *scenario, *command, *host, *exit;
	const char *started; /* ISO 8601, UTC */
	double weight;
	bool has_exit_code, has_wall_seconds;
	int64_t exit_code;
	double wall_seconds;
	uint64_t processes, traces, touches, page_touches, hard_faults;
};

/* One row of the view v_images. */
struct db_image_row {
	int64_t image;
	const char *name, *hash; /* the hash in hexadecimal; never NULL */
	uint64_t size, code_size; /* bytes; 0: unknown */
	uint64_t functions, function_bytes, movable_functions, movable_bytes;
	int64_t relinked_from;    /* the input's id when it is an output; 0: it is none */
};

/* Rows ascending by start (runs; ties by identity) or by name and hash (images).
 * All is in the caller's arena. */
enum status db_list_runs(struct db *db, struct arena *arena, struct db_run_row **ret_rows,
			 uint32_t *ret_count, struct diag *diag);
enum status db_list_images(struct db *db, struct arena *arena,
			   struct db_image_row **ret_rows, uint32_t *ret_count,
			   struct diag *diag);

/* What a run has of an image. */
struct db_run_counts {
	uint64_t processes, threads, touches; /* of its traces, over all processes */
	uint64_t executed_pages, pages;       /* distinct; of a page run */
	bool incomplete;                      /* a trace of it misses records */
};
enum status db_count_run(struct db *db, int64_t run, int64_t image,
			 struct db_run_counts *ret_counts, struct diag *diag);

/* A relink of an image, with its moves ascending by the old RVA. */
struct db_relink_row {
	int64_t relink, output; /* ids: of the relink, of the image that was made */
	const char *order, *placement;
	const char *seed; /* NULL: none */
	const char *output_name, *output_hash;
	uint64_t output_size; /* bytes of the file; 0: unknown */
	struct db_move *moves;
	uint32_t move_count;
};

/* The relinks of an image, ascending by id.  All is in the caller's arena. */
enum status db_list_relinks(struct db *db, int64_t image, struct arena *arena,
			    struct db_relink_row **ret_rows, uint32_t *ret_count,
			    struct diag *diag);

/* Who touched what in a run, and when. */
struct db_run_touch {
	struct rva rva;
	uint32_t process, thread; /* as the traced system counts them */
	int64_t time_ns;          /* since the run's first process started */
};

/* All touches of an image in a run, of all its processes: by time, ties in an order
 * that does not depend on ids.  In the caller's arena. */
enum status db_list_run_touches(struct db *db, int64_t run, int64_t image,
				struct arena *arena, struct db_run_touch **ret_rows,
				uint32_t *ret_count, struct diag *diag);

#endif
