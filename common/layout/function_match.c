/* See function_match.h.
 *
 * First come marks that only one function of each build bears: its name, then its
 * content.  From these matches on, neighbours are found (match_votes.c).  What is
 * left of equal content, as many on both sides, is matched in its order.
 */
#include "layout/match_state.h"

#include <stdlib.h>
#include <string.h>

const char *const match_way_names[MATCH_WAY_COUNT] = {
#define X(id, name) [MATCH_##id] = name,
	MATCH_LIST(X)
#undef X
};

/* ---- marks ---- */

/* A function and what it is sorted by. */
struct marked {
	const char *name; /* NULL when sorted by content */
	uint64_t content;
	uint32_t place;
};

static int by_mark(const void *a, const void *b)
{
	const struct marked *x = a, *y = b;
	int order = x->name ? strcmp(x->name, y->name) : 0;

	if (order)
		return order;
	if (x->content != y->content)
		return x->content < y->content ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static bool same_mark(const struct marked *x, const struct marked *y)
{
	return x->content == y->content && (!x->name || strcmp(x->name, y->name) == 0);
}

/* What a mark is made of. */
enum { BY_NAME = 1, BY_CONTENT = 2 };

/* The functions of a side that have no match and all parts of the mark, sorted. */
static struct marked *sort_marked(const struct match_side *side, unsigned parts,
				  uint32_t *ret_count)
{
	const struct function_identities *f = side->functions;
	struct marked *list = malloc(((size_t)f->count + 1) * sizeof(*list));
	uint32_t count = 0;

	for (uint32_t i = 0; list && i < f->count; i++) {
		const struct function_identity *one = &f->list[i];

		if (side->to[i] != NO_FUNCTION || ((parts & BY_NAME) && !one->name) ||
		    ((parts & BY_CONTENT) && !one->content))
			continue;
		list[count++] = (struct marked){parts & BY_NAME ? one->name : NULL,
						parts & BY_CONTENT ? one->content : 0, i};
	}
	if (list)
		qsort(list, count, sizeof(*list), by_mark);
	*ret_count = count;
	return list;
}

/* Length of the run of equal marks at `list[at]`. */
static uint32_t run_length(const struct marked *list, uint32_t count, uint32_t at)
{
	uint32_t end = at + 1;

	while (end < count && same_mark(&list[at], &list[end]))
		end++;
	return end - at;
}

/* Matches the functions whose mark as many bear on both sides, but at most `limit`, in
 * their order.  False when memory is out. */
static bool match_marks(struct match_state *m, unsigned parts, uint32_t limit,
			enum match_way way)
{
	uint32_t old_count, new_count, i = 0, j = 0;
	struct marked *old = sort_marked(&m->old, parts, &old_count);
	struct marked *new = sort_marked(&m->new, parts, &new_count);
	bool ok = old && new;

	while (ok && i < old_count && j < new_count) {
		uint32_t n = run_length(old, old_count, i), k = run_length(new, new_count, j);
		struct marked a = old[i], b = new[j];
		int order;

		a.place = b.place = 0;
		order = by_mark(&a, &b);
		for (uint32_t x = 0; order == 0 && n == k && n <= limit && x < n; x++)
			match_pair(m, old[i + x].place, new[j + x].place, way);
		i += order <= 0 ? n : 0;
		j += order >= 0 ? k : 0;
	}
	free(old);
	free(new);
	return ok;
}

/* ---- the lists ---- */

/* Turns "whom it refers to" around, by counting: first the ends of each function's
 * callers, which move down to their begins as the callers are filled in. */
static void list_callers(struct match_side *side)
{
	const struct function_identities *f = side->functions;

	for (uint32_t i = 0; i < f->callee_count; i++)
		if (side->callees[i] != NO_FUNCTION)
			side->first_caller[side->callees[i]]++;
	for (uint32_t i = 1; i <= f->count; i++)
		side->first_caller[i] += side->first_caller[i - 1];
	for (uint32_t i = f->count; i-- > 0;) {
		const struct function_identity *one = &f->list[i];

		for (uint32_t c = one->callee_count; c-- > 0;) {
			uint32_t callee = side->callees[one->first_callee + c];

			if (callee != NO_FUNCTION)
				side->callers[--side->first_caller[callee]] = i;
		}
	}
}

static bool side_open(struct match_side *side, const struct function_identities *functions)
{
	size_t count = functions->count, callees = functions->callee_count;

	side->functions = functions;
	side->places = malloc((count + 1) * sizeof(*side->places));
	side->to = malloc((count + 1) * sizeof(*side->to));
	side->callees = malloc((callees + 1) * sizeof(*side->callees));
	side->callers = malloc((callees + 1) * sizeof(*side->callers));
	side->first_caller = calloc(count + 1, sizeof(*side->first_caller));
	if (!side->places || !side->to || !side->callees || !side->callers || !side->first_caller)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		side->places[i] = i;
		side->to[i] = NO_FUNCTION;
	}
	for (size_t i = 0; i < callees; i++)
		side->callees[i] = function_identity_at(functions, functions->callees[i]);
	list_callers(side);
	return true;
}

static void side_close(struct match_side *side)
{
	free(side->places);
	free(side->to);
	free(side->callees);
	free(side->callers);
	free(side->first_caller);
}

enum status function_match_make(const struct function_identities *before,
				const struct function_identities *after,
				struct function_match *ret_match, struct diag *diag)
{
	struct match_state m = {.way = calloc((size_t)before->count + 1, sizeof(*m.way))};
	bool ok = m.way && side_open(&m.old, before) && side_open(&m.new, after) &&
		  match_marks(&m, BY_NAME, 1, MATCH_NAME) &&
		  match_marks(&m, BY_NAME | BY_CONTENT, 1, MATCH_NAME) &&
		  match_marks(&m, BY_CONTENT, 1, MATCH_CONTENT) && match_neighbours(&m) &&
		  match_marks(&m, BY_CONTENT, UINT32_MAX, MATCH_CONTENT) &&
		  match_neighbours(&m);

	if (ok) {
		*ret_match = (struct function_match){m.old.to, m.way, before->count};
		m.old.to = NULL;
		m.way = NULL;
	}
	side_close(&m.old);
	side_close(&m.new);
	free(m.way);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

void function_match_release(struct function_match *match)
{
	free(match->to);
	free(match->way);
	memset(match, 0, sizeof(*match));
}
