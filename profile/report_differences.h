/* What changed from one run to another. */
#ifndef APPULSE_PROFILE_REPORT_DIFFERENCES_H
#define APPULSE_PROFILE_REPORT_DIFFERENCES_H

#include "cli/result.h"
#include "report_subject.h"

/* Functions. */
struct difference_counts {
	uint32_t added, gone, moved;
	uint32_t common; /* touched by both */
};

/* Which function of `s` each of the other image's is: the one at the same RVA of the
 * same file, or the one that is found again in another build (layout/function_match.h).
 * Those that are none get numbers behind the functions of `s`; `ret_extra` is how many.  The caller frees the list.  NO_MEMORY. */
enum status functions_match(const struct subject *s, const struct subject *other,
			    uint32_t **ret_matched, uint32_t *ret_extra, struct diag *diag);

/* Puts what changed from `from`, a run of `other`, to `to`, a run of `s`, into an object
 * (docs/report.md, "JSON").  NO_MEMORY. */
enum status differences_put(struct result *r, json_t *object, const struct subject *s,
			    const struct db_profile_run *to, const struct subject *other,
			    const struct db_profile_run *from,
			    struct difference_counts *ret_counts, struct diag *diag);

#endif
