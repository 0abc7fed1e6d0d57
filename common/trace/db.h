/* The trace database: the one file that the tools share.
 *
 * appulse-instrument writes images and their functions, appulse-profile writes
 * runs and touches, appulse-reorder reads profiles and writes relinks.  The
 * schema and its promise stand in docs/database.md.
 *
 * - An image is named by the SHA-256 of the original file; an instrumented copy
 *   is the same image.  A relinked output is an image of its own.
 * - A function is named by (image, RVA of its start); nothing else refers to it,
 *   so functions may be written again after touches came in.
 * - A run, and a trace in it, has an identity that is derived from what it is
 *   and not from where it is stored: whatever comes in twice counts once.
 * - Every function below that writes does so in one transaction: all or nothing.
 *   Between db_begin and db_commit they join that transaction.
 *
 * Common statuses, besides those named: NO_MEMORY; IO (cannot be read or
 * written, disk full); DATABASE (locked longer than the timeout, or a constraint
 * is broken); BAD_DATABASE (garbage, another program's file, a newer schema,
 * corrupt pages, values out of range).  Texts are UTF-8, borrowed when passed
 * in.  On failure nothing is written and the outputs are untouched.
 */
#ifndef APPULSE_TRACE_DB_H
#define APPULSE_TRACE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/diag.h"
#include "base/sha256.h"

enum { DB_SCHEMA_VERSION = 3, DB_TIMEOUT_MS = 10000 };

struct db;

enum db_mode {
	DB_READONLY,  /* must exist; works in a read-only folder too */
	DB_READWRITE, /* must exist */
	DB_CREATE,    /* made when missing */
};

/* Opens a database; the caller closes it.  NOT_FOUND when it must exist and
 * does not. */
enum status db_open(const char *path, enum db_mode mode, struct db **ret_db,
		    struct diag *diag);

/* NULL is fine.  Rolls back what was not committed. */
void db_close(struct db *db);

/* Whether a file written at `path` would be the database `database`, or one of the files
 * that SQLite keeps beside it under its name ("Temporary Files Used By SQLite"): its
 * journals and shared memory, whether they are there or not.  NULL is no file. */
bool db_uses_path(const char *database, const char *path);

/* How long to wait for another program's lock; DB_TIMEOUT_MS unless set. */
void db_set_timeout(struct db *db, int milliseconds);

/* One transaction around several calls.  They nest: an inner pair is a part of
 * the outer one.  db_rollback after a failure of any of them. */
enum status db_begin(struct db *db, struct diag *diag);
enum status db_commit(struct db *db, struct diag *diag);
void db_rollback(struct db *db);

/* Ends a transaction: commits when `status` is OK, else rolls back and keeps
 * the diagnostic; returns the first failure. */
enum status db_end(struct db *db, enum status status, struct diag *diag);

/* "3.40.1", for --version. */
const char *db_sqlite_version(void);

/* ---- images ---- */

struct db_function {
	struct rva rva;   /* of its start in the original */
	uint32_t size;    /* bytes */
	const char *name; /* NULL: unknown */
	bool movable;
	const char *pins; /* names of the pin reasons, comma-separated; NULL when movable */
	int32_t probe;    /* the probe's index in the instrumented image, -1: none */
};

struct db_image {
	int64_t id;         /* ignored when written */
	struct sha256 hash; /* of the original file */
	const char *name;   /* file name without folders */
	uint64_t size;      /* bytes of the file; 0: unknown (known from a trace only) */
	uint64_t code_size; /* bytes of its code sections; 0: unknown */
};

/* Writes the image and its functions, in any order.  An image that is known
 * already keeps its id and its touches; its functions are replaced by these
 * unless `count` is 0. */
enum status db_put_image(struct db *db, const struct db_image *image,
			 const struct db_function *functions, uint32_t count,
			 int64_t *ret_id, struct diag *diag);

/* NOT_FOUND when no image has that hash. */
enum status db_find_image(struct db *db, const struct sha256 *hash, int64_t *ret_id,
			  struct diag *diag);

/* An image with its functions, ascending by RVA.  Strings live until
 * db_image_release.  NOT_FOUND for an unknown id. */
struct db_image_functions {
	struct db_image image;
	struct db_function *functions;
	uint32_t count;
	void *storage; /* own */
};
enum status db_load_image(struct db *db, int64_t id, struct db_image_functions *ret_image,
			  struct diag *diag);
void db_image_release(struct db_image_functions *image);

/* ---- runs ---- */

#define DB_RUN_KIND_LIST(X)   \
	X(TRACE, "trace")     \
	X(PAGES, "pages")     \
	X(BREAKPOINTS, "breakpoints") \
	X(FAULTS, "faults")

enum db_run_kind {
#define X(id, name) DB_RUN_##id,
	DB_RUN_KIND_LIST(X)
#undef X
	DB_RUN_KIND_COUNT
};

#define DB_EXIT_LIST(X)                                                       \
	X(UNKNOWN, "unknown")         /* not finished, or traced elsewhere */ \
	X(NOT_STARTED, "not-started") /* code: the errno */                   \
	X(EXITED, "exited")           /* code: the exit code */               \
	X(SIGNALED, "signaled")       /* code: the signal's number */

enum db_exit {
#define X(id, name) DB_EXIT_##id,
	DB_EXIT_LIST(X)
#undef X
	DB_EXIT_COUNT
};

/* The names that the database and JSON show. */
const char *db_run_kind_name(enum db_run_kind kind);
const char *db_exit_name(enum db_exit exit);

struct db_run {
	enum db_run_kind kind;
	const char *identity; /* unique; NULL: made from the other fields and `collector` */
	const char *scenario; /* NULL or empty: "default" */
	double weight;        /* > 0, finite */
	const char *command;  /* as a shell would take it; NULL: unknown */
	const char *host;     /* NULL: unknown */
	int64_t started_ns;   /* since 1970, UTC */
	int64_t collector;    /* process id of the collector; only for the identity */
};

/* The identity that a run without one gets; false when memory is out. */
bool db_run_identity(const struct db_run *run, char ret_identity[SHA256_HEX_SIZE]);

/* Writes the run, or finds the one with that identity.  USAGE for a weight that
 * is not above 0. */
enum status db_begin_run(struct db *db, const struct db_run *run, int64_t *ret_id,
			 struct diag *diag);

/* Says how the run's command ended. */
enum status db_finish_run(struct db *db, int64_t run, enum db_exit exit, int code,
			  double wall_seconds, struct diag *diag);

struct db_process {
	int64_t run;
	uint32_t pid, parent;   /* as the traced system counts them; parent 0: unknown */
	int64_t started_ns;     /* since 1970, UTC */
	const char *executable; /* NULL: unknown */
	const char *command;    /* its command line; NULL: unknown */
};

/* Writes the process, or finds it by run, pid and start. */
enum status db_put_process(struct db *db, const struct db_process *process,
			   int64_t *ret_id, struct diag *diag);

/* One first touch. */
struct db_touch {
	uint64_t seq;    /* unique in its trace, ascending in the order of the touches */
	struct rva rva;  /* in the original image; need not be a known function's */
	uint32_t thread;
	int64_t time_ns; /* since the process started */
};

/* The touches of one image in one process: one trace file. */
struct db_trace {
	int64_t process, image;
	const char *identity; /* unique; NULL: made from image, run, pid and start */
	const char *hash;     /* hexadecimal SHA-256 of the file's content; NULL: no file */
	bool incomplete;      /* the process may have touched more than was recorded */
	const struct db_touch *touches;
	uint32_t count;
};

/* What became of a trace. */
enum db_trace_fate {
	DB_TRACE_NEW,
	DB_TRACE_LONGER, /* it replaced a shorter version of itself */
	DB_TRACE_KNOWN,  /* it is there already, as long or longer: nothing changed */
};

/* Writes a trace with its touches.  A trace file may come in while it still
 * grows and again later: the longer version stays, in the run that it came in
 * first. */
enum status db_put_trace(struct db *db, const struct db_trace *trace,
			 enum db_trace_fate *ret_fate, struct diag *diag);

/* Whether a trace of that identity is known; `ret_run` (may be NULL) is its run. */
enum status db_find_trace(struct db *db, const char *identity, bool *ret_found,
			  int64_t *ret_run, struct diag *diag);

/* ---- pages ---- */

enum db_access { DB_ACCESS_EXECUTE, DB_ACCESS_READ, DB_ACCESS_WRITE };

struct db_page_touch {
	uint32_t seq;       /* unique in its run, process and image, ascending */
	struct rva page;    /* a multiple of 4096 */
	uint32_t thread;
	enum db_access kind;
	int64_t time_ns;    /* since the process started */
};

/* Writes the pages of `image` that `process` (of a run of kind PAGES) touched;
 * the same process and image again replaces them. */
enum status db_put_page_touches(struct db *db, int64_t process, int64_t image,
				const struct db_page_touch *touches, uint32_t count,
				struct diag *diag);

/* ---- faults ---- */

enum db_fault_kind {
	DB_FAULT_HARD,     /* the page had to be read from the disk */
	DB_FAULT_SOFT,     /* it was in memory */
	DB_FAULT_RESIDENT, /* it came into memory, but not by a fault that was seen */
};

/* How the access to the page is known. */
enum db_fault_access { DB_FAULT_UNKNOWN, DB_FAULT_EXECUTE, DB_FAULT_DATA };

struct db_fault {
	struct rva page;  /* a multiple of 4096 */
	bool code;        /* of an executable section that cannot be written */
	enum db_fault_kind kind;
	enum db_fault_access access;
	int64_t process;  /* as db_put_process gave it; 0: unknown */
	uint32_t thread;  /* 0: unknown */
	int64_t time_ns;  /* since the command was started; < 0: unknown */
};

/* What a run of kind FAULTS found of one image. */
struct db_fault_run {
	int64_t run, image;
	const char *method, *counter;  /* names, as docs/fault-runs.md lists them */
	int64_t read_ahead;            /* KiB; < 0: as the disk has it */
	bool cold;                     /* the image was evicted before */
	uint32_t pages, code_pages;    /* of the image's file that are mapped */
	int64_t before, after;         /* of them in memory before and after; < 0: unknown */
	uint64_t lost;                 /* events that could not be recorded */
	const struct db_fault *faults; /* in their order */
	uint32_t count;
};

/* Writes the faults; the same run and image again replaces them. */
enum status db_put_faults(struct db *db, const struct db_fault_run *run,
			  struct diag *diag);

/* ---- relinks ---- */

struct db_move {
	struct rva old_rva, new_rva;
	uint32_t size; /* bytes */
};

struct db_relink {
	int64_t image;           /* the input */
	struct sha256 output;    /* of the output file */
	const char *output_name; /* file name without folders */
	uint64_t output_size;    /* bytes of the output file */
	const char *order;       /* "first-touch", ... */
	uint64_t seed;           /* meaningful for order "random" */
	const char *placement;   /* "exchange", "append" */
	const struct db_move *moves;
	uint32_t move_count;
};

/* Writes the relink, with the output as an image without functions; the same
 * input and output again replaces the former. */
enum status db_put_relink(struct db *db, const struct db_relink *relink,
			  int64_t *ret_output_image, struct diag *diag);

/* ---- profiles ---- */

/* What one run touched of one image. */
struct db_profile_run {
	int64_t run;
	enum db_run_kind kind;
	char *scenario;
	double weight;
	struct rva *rvas; /* in the order of their first touch, each once, over all
			   * processes of the run */
	int64_t *times_ns; /* of each: since 1970, UTC; never falls */
	uint32_t count;   /* at least 1 */
};

/* Runs ascend by start and identity, so merged databases give the same profile
 * whatever the order in which they were merged. */
struct db_profile {
	struct db_profile_run *runs;
	uint32_t count;
};

/* The image's id, if a traced run touched it. */
enum status db_find_recorded(struct db *db, const struct sha256 *hash, bool *ret_found,
			     int64_t *ret_id, struct diag *diag);

/* The image that `build` names, by its file name or the begin of its hash, with traced runs;
 * of several the one with the latest run.  Names are compared without case, as Windows
 * does for ASCII. */
enum status db_find_build(struct db *db, const char *build, struct sha256 *ret_hash,
			  bool *ret_found, int64_t *ret_id, struct diag *diag);

/* Reads all runs of `kind` (TRACE or BREAKPOINTS) that touched the image; none
 * gives count 0.  NOT_FOUND when the image is unknown.  On failure nothing is
 * owned. */
enum status db_load_profile(struct db *db, const struct sha256 *image,
			    enum db_run_kind kind, struct db_profile *ret_profile,
			    struct diag *diag);
void db_profile_release(struct db_profile *profile);

/* The run's share of its scenario's weight: runs of one scenario share it, so that running
 * it more often does not make it more important (docs/orders.md). */
double db_profile_weight(const struct db_profile *profile, uint32_t run);

/* ---- merging ---- */

/* What a merge added. */
struct db_merged {
	int64_t images, runs, traces, touches;
};

/* Adds all that the database at `path` holds and this one lacks.  The order of
 * merges makes no difference to profiles, and merging again adds nothing.  Not
 * inside a transaction. */
enum status db_merge(struct db *db, const char *path, struct db_merged *ret_merged,
		     struct diag *diag);

#endif
