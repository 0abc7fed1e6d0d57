/* Takes one trace file into the database. */
#ifndef APPULSE_TRACE_INGEST_H
#define APPULSE_TRACE_INGEST_H

#include "trace/db.h"
#include "trace/trace_file.h"

/* A trace file in the words of the database. */
struct ingested {
	bool empty;                  /* the process ended before it recorded anything:
				      * nothing was written, the rest is 0 */
	enum db_trace_fate fate;
	int64_t run;                 /* that the trace is in: the run asked for, or the one
				      * that it came in first */
	uint32_t touches, cut_short; /* records, and those that a kill cut short */
};

/* Moments of trace files (FILETIME) as the database counts them, in ns since
 * 1970; those beyond what 64 bits can say become the nearest that can. */
int64_t ingest_time_ns(uint64_t filetime);

/* The identity that ingest_trace gives the trace: it depends on image, process
 * and the moment at which the trace was opened, so a file that grew is the same
 * trace still. */
void ingest_identity(const struct trace_file *trace, char ret_identity[SHA256_HEX_SIZE]);

/* Writes the trace, its process and, when the database does not know them, its
 * run and image, in one transaction.  `hash` is the file's content in hexadecimal
 * or NULL.  A trace that is known keeps its run, and `run` is not written. */
enum status ingest_trace(struct db *db, const struct db_run *run,
			 const struct trace_file *trace, const char *hash,
			 struct ingested *ret_ingested, struct diag *diag);

#endif
