/* The recorded runs of an image, as the subcommands of appulse-reorder use them. */
#ifndef APPULSE_REORDER_RECORDED_RUNS_H
#define APPULSE_REORDER_RECORDED_RUNS_H

#include "trace/db.h"

/* Reads the traced runs of the image whose file has the hash `hash` from the database at
 * that path.  Statuses of db_open and db_load_profile; NOT_FOUND when there is no such run.
 * On failure nothing is owned. */
enum status recorded_runs_load(const char *database, const struct sha256 *hash,
			       struct db_profile *ret_profile, struct diag *diag);

#endif
