/* What changed from one run to another, of the same image or of two builds of it.
 *
 * New: touched by the later run only; gone: by the earlier one only; moved: touched by
 * both, but not in the longest sequence of functions that both have in the same order.
 * Counting every function whose place is another one was rejected: one new function at
 * the start would move all.  The page does the same for any two of its runs
 * (report/differences.js); a test holds the two against each other.
 */
#include "report_differences.h"

#include <stdlib.h>
#include <string.h>

#include "layout/function_match.h"

/* ---- functions of two builds ---- */

/* Places in the lists of both builds are the same as in their images. */
static enum status match_builds(const struct subject *s, const struct subject *other,
				uint32_t *matched, struct diag *diag)
{
	struct function_match match;
	enum status status = function_match_make(&other->identities.functions,
						 &s->identities.functions, &match, diag);

	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; i < match.count; i++)
		matched[i] = match.to[i];
	function_match_release(&match);
	return STATUS_OK;
}

enum status functions_match(const struct subject *s, const struct subject *other,
			    uint32_t **ret_matched, uint32_t *ret_extra, struct diag *diag)
{
	uint32_t extra = 0;
	uint32_t *matched = calloc((size_t)other->image.count + 1, sizeof(*matched));
	bool same = strcmp(s->row->hash, other->row->hash) == 0;
	enum status status = matched ? STATUS_OK : diag_no_memory(diag);

	for (uint32_t i = 0; same && matched && i < other->image.count; i++) {
		uint32_t f = function_at(&s->image, other->image.functions[i].rva);

		matched[i] = f < s->image.count ? f : NO_FUNCTION;
	}
	if (status == STATUS_OK && !same)
		status = match_builds(s, other, matched, diag);
	if (status != STATUS_OK) {
		free(matched);
		return status;
	}
	for (uint32_t i = 0; i < other->image.count; i++)
		if (matched[i] == NO_FUNCTION)
			matched[i] = s->image.count + extra++;
	*ret_matched = matched;
	*ret_extra = extra;
	return STATUS_OK;
}

/* ---- two runs ---- */

/* What two runs have of each function: its place in their order from 1, or 0. */
struct places {
	uint32_t *from, *to;  /* owned, by function */
	uint32_t *order;      /* owned: the functions that both touch, in the order of `to` */
	uint32_t common;
	bool *kept;           /* owned, by place in `order`: in the longest common sequence */
};

static void places_release(struct places *p)
{
	free(p->from);
	free(p->to);
	free(p->order);
	free(p->kept);
}

/* `matched` translates the functions of another image; NULL: none. */
static void note_places(const struct subject *s, const struct db_profile_run *run,
			const uint32_t *matched, uint32_t *places)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);

		if (f < s->image.count)
			places[matched ? matched[f] : f] = ++n;
	}
}

/* Marks a longest sequence that has the same order in both runs: a longest rising
 * subsequence of the places in `from` (patience sorting, n log n). */
static bool mark_kept(struct places *p)
{
	uint32_t n = p->common, length = 0;
	uint32_t *tails = calloc((size_t)n + 1, sizeof(*tails));
	uint32_t *before = calloc((size_t)n + 1, sizeof(*before));
	bool ok = tails && before;

	for (uint32_t i = 0; ok && i < n; i++) {
		uint32_t low = 0, high = length;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (p->from[p->order[tails[middle]]] < p->from[p->order[i]])
				low = middle + 1;
			else
				high = middle;
		}
		before[i] = low ? tails[low - 1] : UINT32_MAX;
		tails[low] = i;
		if (low == length)
			length++;
	}
	for (uint32_t i = ok && length ? tails[length - 1] : UINT32_MAX; i != UINT32_MAX;
	     i = before[i])
		p->kept[i] = true;
	free(tails);
	free(before);
	return ok;
}

static enum status find_places(const struct subject *s, const struct db_profile_run *to,
			       const struct subject *other,
			       const struct db_profile_run *from, const uint32_t *matched,
			       uint32_t functions, struct places *p, struct diag *diag)
{
	size_t n = (size_t)functions + 1;

	p->from = calloc(n, sizeof(*p->from));
	p->to = calloc(n, sizeof(*p->to));
	p->order = calloc(n, sizeof(*p->order));
	p->kept = calloc(n, sizeof(*p->kept));
	if (!p->from || !p->to || !p->order || !p->kept)
		return diag_no_memory(diag);
	note_places(other, from, matched, p->from);
	note_places(s, to, NULL, p->to);
	for (uint32_t i = 0; i < to->count; i++) {
		uint32_t f = function_at(&s->image, to->rvas[i]);

		if (f < s->image.count && p->from[f])
			p->order[p->common++] = f;
	}
	return mark_kept(p) ? STATUS_OK : diag_no_memory(diag);
}

/* ---- as JSON ---- */

static void put_place(struct result *r, json_t *one, const char *key, uint32_t place)
{
	if (place)
		result_put_count(r, one, key, place);
	else
		result_put_null(r, one, key);
}

static void put_function(struct result *r, json_t *array, const char *what,
			 const struct db_function *function, const struct places *p, uint32_t f)
{
	json_t *one = result_add_object(r, array);

	result_put_text(r, one, "what", what);
	result_put_count(r, one, "rva", function->rva.v);
	result_put_text(r, one, "function", function->name);
	result_put_count(r, one, "size", function->size);
	put_place(r, one, "from", p->from[f]);
	put_place(r, one, "to", p->to[f]);
}

/* New ones and moved ones in the order of `to`, then those that are gone. */
static void put_functions(struct result *r, json_t *object, const struct subject *s,
			  const struct db_profile_run *to, const struct subject *other,
			  const struct db_profile_run *from, const uint32_t *matched,
			  const struct places *p, struct difference_counts *counts)
{
	json_t *array = result_put_array(r, object, "functions");
	uint32_t common = 0;

	for (uint32_t i = 0; i < to->count; i++) {
		uint32_t f = function_at(&s->image, to->rvas[i]);

		if (f == s->image.count || (p->from[f] && p->kept[common++]))
			continue;
		if (p->from[f])
			counts->moved++;
		else
			counts->added++;
		put_function(r, array, p->from[f] ? "moved" : "new", &s->image.functions[f], p,
			     f);
	}
	for (uint32_t i = 0; i < from->count; i++) {
		uint32_t f = function_at(&other->image, from->rvas[i]);

		if (f == other->image.count || p->to[matched[f]])
			continue;
		counts->gone++;
		put_function(r, array, "gone", &other->image.functions[f], p, matched[f]);
	}
	counts->common = p->common;
}

enum status differences_put(struct result *r, json_t *object, const struct subject *s,
			    const struct db_profile_run *to, const struct subject *other,
			    const struct db_profile_run *from,
			    struct difference_counts *ret_counts, struct diag *diag)
{
	struct difference_counts counts = {0};
	struct places p = {0};
	uint32_t *matched = NULL, extra = 0;
	enum status status = functions_match(s, other, &matched, &extra, diag);

	if (status == STATUS_OK)
		status = find_places(s, to, other, from, matched, s->image.count + extra, &p,
				     diag);
	if (status == STATUS_OK) {
		result_put_count(r, object, "from_run", (uint64_t)from->run);
		result_put_count(r, object, "to_run", (uint64_t)to->run);
		put_functions(r, object, s, to, other, from, matched, &p, &counts);
		result_put_count(r, object, "new", counts.added);
		result_put_count(r, object, "gone", counts.gone);
		result_put_count(r, object, "moved", counts.moved);
		result_put_count(r, object, "common", counts.common);
		*ret_counts = counts;
	}
	places_release(&p);
	free(matched);
	return status;
}
