/* See recorded_runs.h; docs/stale-profiles.md tells users. */
#include "recorded_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/human.h"
#include "trace/db_identities.h"

/* ---- which build ---- */

static enum status find_build(struct db *db, const struct run_source *source,
			      const struct analysis *analysis, struct run_match *match,
			      int64_t *ret_id, struct diag *diag)
{
	const char *wanted = source->profile_of;
	bool found = false;
	enum status status = STATUS_OK;

	if (!wanted)
		status = db_find_recorded(db, &analysis->hash, &found, ret_id, diag);
	match->build = analysis->hash;
	if (status != STATUS_OK || found)
		return status;
	status = db_find_build(db, wanted ? wanted : basename(analysis->image.path),
			       &match->build, &found, ret_id, diag);
	match->other_build =
		memcmp(&match->build, &analysis->hash, sizeof(match->build)) != 0;
	if (status != STATUS_OK || found)
		return status;
	if (wanted)
		return diag_fail(diag, STATUS_NOT_FOUND, "'%s' has no run of a build '%s'",
				 source->database, wanted);
	return diag_fail(diag, STATUS_NOT_FOUND,
			 "'%s' has no run of this image, nor of another build of that name; "
			 "record one with appulse-profile run, or name a build with "
			 "--profile-of",
			 source->database);
}

/* ---- from one build to the other ---- */

/* The recorded build's functions, and where they are in the image. */
struct translation {
	struct db_identities before;
	struct function_identities after;
	struct function_match match;
	bool *touched; /* of each function before */
};

static enum status translation_open(struct translation *t, struct db *db, int64_t build,
				    const struct graph *graph, struct diag *diag)
{
	enum status status = db_load_identities(db, build, &t->before, diag);

	if (status == STATUS_OK)
		status = function_identities_make(graph, &t->after, diag);
	if (status == STATUS_OK)
		status = function_match_make(&t->before.functions, &t->after, &t->match,
					     diag);
	if (status != STATUS_OK)
		return status;
	t->touched = calloc((size_t)t->match.count + 1, sizeof(*t->touched));
	return t->touched ? STATUS_OK : diag_no_memory(diag);
}

static void translation_close(struct translation *t)
{
	db_identities_release(&t->before);
	function_identities_release(&t->after);
	function_match_release(&t->match);
	free(t->touched);
}

/* Counts a touched function, once. */
static void count_touch(struct translation *t, uint32_t function, struct run_match *match)
{
	uint32_t size = t->before.functions.list[function].size;
	enum match_way way = t->match.way[function];

	if (t->touched[function])
		return;
	t->touched[function] = true;
	match->touched++;
	match->touched_bytes += size;
	match->by_way[way]++;
	if (way == MATCH_NONE)
		return;
	match->matched++;
	match->matched_bytes += size;
}

/* Keeps the touches of functions that the image has as well. */
static void translate_run(struct translation *t, struct db_profile_run *run,
			  struct run_match *match)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t function =
			function_identity_at(&t->before.functions, run->rvas[i]), to;

		if (function == NO_FUNCTION) {
			match->unknown++;
			continue;
		}
		count_touch(t, function, match);
		to = t->match.to[function];
		if (to == NO_FUNCTION)
			continue;
		run->rvas[kept] = t->after.list[to].rva;
		run->times_ns[kept++] = run->times_ns[i];
	}
	run->count = kept;
}

static enum status check_match(const struct run_source *source,
			       const struct run_match *match, struct diag *diag)
{
	if (match->matched &&
	    match->matched_bytes * 100 >= match->touched_bytes * source->min_match)
		return STATUS_OK;
	return diag_fail(diag, STATUS_STALE_PROFILE,
			 "the profile is of another build, and only %s of %s touched bytes were "
			 "found again; record a new one, or say --min-match",
			 human_count(match->matched_bytes).text,
			 human_count(match->touched_bytes).text);
}

static enum status translate(const struct run_source *source, struct db *db, int64_t build,
			     const struct graph *graph, struct db_profile *profile,
			     struct run_match *match, struct diag *diag)
{
	struct translation t = {0};
	enum status status = translation_open(&t, db, build, graph, diag);

	for (uint32_t i = 0; status == STATUS_OK && i < profile->count; i++)
		translate_run(&t, &profile->runs[i], match);
	translation_close(&t);
	return status == STATUS_OK ? check_match(source, match, diag) : status;
}

enum status recorded_runs_load(const struct run_source *source,
			       const struct analysis *analysis,
			       struct db_profile *ret_profile, struct run_match *ret_match,
			       struct diag *diag)
{
	struct db_profile recorded = {0};
	struct run_match match = {0};
	struct db *db = NULL;
	int64_t build = 0;
	enum status status = db_open(source->database, DB_READONLY, &db, diag);

	if (status == STATUS_OK)
		status = find_build(db, source, analysis, &match, &build, diag);
	if (status == STATUS_OK)
		status = db_load_profile(db, &match.build, DB_RUN_TRACE, &recorded, diag);
	if (status == STATUS_OK && match.other_build)
		status = translate(source, db, build, &analysis->graph, &recorded, &match,
				   diag);
	db_close(db);
	if (status == STATUS_OK && recorded.count == 0)
		status = diag_fail(diag, STATUS_BAD_DATABASE,
				   "'%s' has traces of this image, but none of their touches: "
				   "it is damaged",
				   source->database);
	if (status == STATUS_OK) {
		*ret_profile = recorded;
		*ret_match = match;
	} else {
		db_profile_release(&recorded);
	}
	return status;
}

/* ---- telling ---- */

static double share(const struct run_match *match)
{
	return match->touched_bytes
		       ? 100.0 * (double)match->matched_bytes / (double)match->touched_bytes
		       : 0;
}

void run_match_print(const struct run_match *match)
{
	char hash[SHA256_HEX_SIZE];

	if (!match->other_build)
		return;
	sha256_hex(&match->build, hash);
	printf("profile: of another build, %.12s: %s of %s found again, %.1f %% of %s; by "
	       "name %s, by content %s, by neighbours %s\n",
	       hash, human_count(match->matched).text,
	       human_things(match->touched, "touched function").text, share(match),
	       human_things(match->touched_bytes, "byte").text,
	       human_count(match->by_way[MATCH_NAME]).text,
	       human_count(match->by_way[MATCH_CONTENT]).text,
	       human_count(match->by_way[MATCH_NEIGHBOUR]).text);
	if (match->unknown)
		printf("left out: touches of addresses that are no function's start there: %s\n",
		       human_count(match->unknown).text);
}

void run_match_put(const struct run_match *match, struct result *result, json_t *object)
{
	char hash[SHA256_HEX_SIZE];
	json_t *part;

	if (!match->other_build) {
		result_put_text(result, object, "match", NULL);
		return;
	}
	sha256_hex(&match->build, hash);
	part = result_put_object(result, object, "match");
	result_put_text(result, part, "build", hash);
	result_put_count(result, part, "touched_functions", match->touched);
	result_put_count(result, part, "matched_functions", match->matched);
	result_put_count(result, part, "touched_bytes", match->touched_bytes);
	result_put_count(result, part, "matched_bytes", match->matched_bytes);
	for (unsigned way = MATCH_NAME; way < MATCH_WAY_COUNT; way++)
		result_put_count(result, part, match_way_names[way], match->by_way[way]);
	result_put_count(result, part, "unknown", match->unknown);
}
