/* What is known of an image's functions beside their place: graph/function_identity.h. */
#ifndef APPULSE_TRACE_DB_IDENTITIES_H
#define APPULSE_TRACE_DB_IDENTITIES_H

#include "graph/function_identity.h"
#include "trace/db.h"

/* Writes the contents and the callees; what was known of the image before is replaced. */
enum status db_put_identities(struct db *db, int64_t image,
			      const struct function_identities *identities,
			      struct diag *diag);

/* The functions of an image.  Those of an image that an older version analysed have
 * their name alone.  Names live until db_identities_release. */
struct db_identities {
	struct function_identities functions;
	void *storage; /* own */
};
enum status db_load_identities(struct db *db, int64_t image,
			       struct db_identities *ret_identities, struct diag *diag);
void db_identities_release(struct db_identities *identities);

#endif
