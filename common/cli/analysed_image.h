/* An analysed image on its way into the database. */
#ifndef APPULSE_CLI_ANALYSED_IMAGE_H
#define APPULSE_CLI_ANALYSED_IMAGE_H

#include "graph/analysis.h"
#include "trace/db.h"

/* Writes the image under `name`, its functions and their identities, in one transaction.
 * `probe_of` has the probe of each function of the graph, -1 for none; NULL: no probes.
 * Statuses of db_put_image. */
enum status db_put_analysed(struct db *db, const struct analysis *analysis, const char *name,
			    const int32_t *probe_of, int64_t *ret_id, struct diag *diag);

#endif
