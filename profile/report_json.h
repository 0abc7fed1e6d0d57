/* What report's JSON says of layouts: pins, relinks and predicted faults. */
#ifndef APPULSE_PROFILE_REPORT_JSON_H
#define APPULSE_PROFILE_REPORT_JSON_H

#include "cli/result.h"
#include "report_subject.h"

/* The clusters for which faults are predicted, in pages. */
enum { REPORT_CLUSTER_COUNT = 4 };
extern const uint32_t report_clusters[REPORT_CLUSTER_COUNT];

/* Adds to the image's object: `size`, `movable_functions`, `pins`, `executed_pages`,
 * `relinks`, `predictions` (docs/report.md).  `runs` are all of the database. */
enum status report_put_layouts(struct result *r, json_t *object, struct db *db,
			       const struct db_run_row *runs, uint32_t run_count,
			       const struct subject *s, struct diag *diag);

#endif
