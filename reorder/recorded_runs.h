/* The recorded runs of an image, as the subcommands of appulse-reorder use them. */
#ifndef APPULSE_REORDER_RECORDED_RUNS_H
#define APPULSE_REORDER_RECORDED_RUNS_H

#include "cli/options.h"
#include "graph/analysis.h"
#include "layout/function_match.h"
#include "trace/db.h"

/* Where runs come from. */
struct run_source {
	const char *database;
	const char *profile_of; /* the build that was recorded: a file name or the begin of a
				 * hash; NULL: the image itself, else a build of its name */
	uint64_t min_match;     /* per cent of the touched bytes that must be matched */
};

enum { MIN_MATCH_DEFAULT = 80 };

/* Which runs, beside the database itself. */
#define RUN_SOURCE_OPTIONS(source)                                                        \
	OPTION_STRING("profile-of", 0, "BUILD", &(source)->profile_of,                    \
		      "take the runs of this build of the image: a file name or the "     \
		      "begin of a SHA-256 (default: IMAGE itself, else the build of its " \
		      "name that was recorded last)"),                                    \
	OPTION_NUMBER("min-match", 0, "PERCENT", &(source)->min_match, 0, 100,            \
		      "fail when less of the touched bytes of another build are found "   \
		      "again (default: 80)")

/* What was found again of another build's runs; functions are counted once, whatever
 * number of runs touched them. */
struct run_match {
	bool other_build;
	struct sha256 build;         /* of the build that was recorded */
	uint32_t touched, matched;   /* functions */
	uint64_t touched_bytes, matched_bytes; /* of them, in the recorded build */
	uint32_t by_way[MATCH_WAY_COUNT];
	uint64_t unknown; /* touches of addresses where the recorded build has no function,
			   * over all runs */
};

/* Reads the traced runs of the image, or of another build, whose touches are then those of
 * the image's functions that are theirs; what has none is left out, and counted.  Statuses
 * of db_open, db_load_profile and function_match_make; NOT_FOUND when there is no such run;
 * STALE_PROFILE when too little was found again.  On failure nothing is owned. */
enum status recorded_runs_load(const struct run_source *source,
			       const struct analysis *analysis,
			       struct db_profile *ret_profile, struct run_match *ret_match,
			       struct diag *diag);

/* Says on stdout what was matched; nothing for the image's own runs. */
void run_match_print(const struct run_match *match);

/* The same as the object "match"; null for the image's own runs. */
void run_match_put(const struct run_match *match, struct result *result, json_t *object);

#endif
