#include "recorded_runs.h"

enum status recorded_runs_load(const char *database, const struct sha256 *hash,
			       struct db_profile *ret_profile, struct diag *diag)
{
	struct db_profile recorded = {0};
	struct db *db = NULL;
	enum status status = db_open(database, DB_READONLY, &db, diag);

	if (status != STATUS_OK)
		return status;
	status = db_load_profile(db, hash, DB_RUN_TRACE, &recorded, diag);
	db_close(db);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && recorded.count == 0))
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "'%s' has no run of this image, record one with "
				   "appulse-profile run",
				   database);
	if (status == STATUS_OK)
		*ret_profile = recorded;
	else
		db_profile_release(&recorded);
	return status;
}
