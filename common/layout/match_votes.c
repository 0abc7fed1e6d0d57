/* Matching by neighbourhood.
 *
 * Where two functions are matched, what stands in the same place to each of them is
 * probably the same as well: the callees between two callees that are matched, the
 * only callers that are not, the functions between them in the image.  Each such
 * pair gets a vote.  A pair is taken when neither of its functions has a better one,
 * or another as good.
 */
#include "layout/match_state.h"

#include <stdlib.h>

enum {
	ROUNDS_MAX = 16,    /* each needs time in the number of references */
	AHEAD_MAX = 32,     /* callees that are looked through for the next matched one */
	VOTE_EDGE = 1,      /* beside a matched one, where more stand on one side */
	VOTE_PLACE = 2,     /* same place among equally many */
	VOTE_CONTENT = 2,   /* and the same content */
	VOTES_NEEDED = 2,
};

struct vote {
	uint32_t old, new, weight;
};

struct candidate {
	uint32_t votes;
	bool tied;
};

struct election {
	struct match_state *m;
	VEC(struct vote) votes;
	bool failed; /* memory is out */
};

/* A function may grow, but hardly to three times its size. */
static bool alike(const struct function_identity *a, const struct function_identity *b)
{
	uint64_t small = a->size < b->size ? a->size : b->size;
	uint64_t large = a->size < b->size ? b->size : a->size;

	return large <= 3 * small + 64;
}

static void vote(struct election *e, uint32_t old, uint32_t new, uint32_t weight)
{
	const struct match_state *m = e->m;
	const struct function_identity *a, *b;

	if (old == NO_FUNCTION || new == NO_FUNCTION || m->old.to[old] != NO_FUNCTION ||
	    m->new.to[new] != NO_FUNCTION)
		return;
	a = &m->old.functions->list[old];
	b = &m->new.functions->list[new];
	if (!alike(a, b))
		return;
	if (a->content && a->content == b->content)
		weight += VOTE_CONTENT;
	if (!vec_push(&e->votes, ((struct vote){old, new, weight})))
		e->failed = true;
}

/* ---- who votes ---- */

/* Two lists between matched functions: by place when they are equally long, else only
 * those beside the matched ones. */
static void vote_between(struct election *e, const uint32_t *old, uint32_t old_count,
			 const uint32_t *new, uint32_t new_count)
{
	if (old_count == new_count) {
		for (uint32_t i = 0; i < old_count; i++)
			vote(e, old[i], new[i], VOTE_PLACE);
	} else if (old_count && new_count) {
		vote(e, old[0], new[0], VOTE_EDGE);
		vote(e, old[old_count - 1], new[new_count - 1], VOTE_EDGE);
	}
}

/* How far `list` leads on to `wanted`; AHEAD_MAX when it does not soon. */
static uint32_t ahead(const uint32_t *list, uint32_t count, uint32_t wanted)
{
	uint32_t i = 0;

	while (i < count && i < AHEAD_MAX && list[i] != wanted)
		i++;
	return i < count ? i : AHEAD_MAX;
}

static void vote_callees(struct election *e, uint32_t old, uint32_t new)
{
	const struct match_side *a = &e->m->old, *b = &e->m->new;
	const struct function_identity *f = &a->functions->list[old];
	const struct function_identity *g = &b->functions->list[new];
	const uint32_t *x = a->callees + f->first_callee, *y = b->callees + g->first_callee;
	uint32_t n = f->callee_count, k = g->callee_count, i = 0, j = 0;

	for (uint32_t at = 0; at < n; at++) {
		uint32_t to = x[at] == NO_FUNCTION ? NO_FUNCTION : a->to[x[at]], skip;

		if (to == NO_FUNCTION)
			continue;
		skip = ahead(y + j, k - j, to);
		if (skip == AHEAD_MAX)
			continue;
		vote_between(e, x + i, at - i, y + j, skip);
		i = at + 1;
		j += skip + 1;
	}
	vote_between(e, x + i, n - i, y + j, k - j);
}

/* The only caller without a match, or NO_FUNCTION. */
static uint32_t lone_caller(const struct match_side *side, uint32_t function)
{
	uint32_t lone = NO_FUNCTION;

	for (uint32_t i = side->first_caller[function]; i < side->first_caller[function + 1];
	     i++) {
		uint32_t caller = side->callers[i];

		if (side->to[caller] != NO_FUNCTION || caller == lone)
			continue;
		if (lone != NO_FUNCTION)
			return NO_FUNCTION;
		lone = caller;
	}
	return lone;
}

static void collect(struct election *e)
{
	const struct match_side *old = &e->m->old;
	uint32_t last = NO_FUNCTION;

	for (uint32_t i = 0; i < old->functions->count && !e->failed; i++) {
		uint32_t to = old->to[i];

		if (to == NO_FUNCTION)
			continue;
		vote_callees(e, i, to);
		vote(e, lone_caller(old, i), lone_caller(&e->m->new, to), VOTE_PLACE);
		/* Objects are linked in their order. */
		if (last != NO_FUNCTION && old->to[last] < to)
			vote_between(e, old->places + last + 1, i - last - 1,
				     e->m->new.places + old->to[last] + 1,
				     to - old->to[last] - 1);
		last = i;
	}
}

/* ---- who is elected ---- */

static int by_pair(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return x->new < y->new ? -1 : x->new > y->new;
}

static void count_for(struct candidate *best, const struct vote *sum)
{
	if (sum->weight > best->votes)
		*best = (struct candidate){.votes = sum->weight};
	else if (sum->weight == best->votes)
		best->tied = true;
}

/* Adds up the votes of each pair, and takes the pairs that are best for both. */
static bool elect(struct election *e, uint32_t *ret_taken)
{
	struct match_state *m = e->m;
	struct candidate *old = calloc((size_t)m->old.functions->count + 1, sizeof(*old));
	struct candidate *new = calloc((size_t)m->new.functions->count + 1, sizeof(*new));
	uint32_t sums = 0;
	bool ok = old && new;

	if (ok && e->votes.len)
		qsort(e->votes.data, e->votes.len, sizeof(*e->votes.data), by_pair);
	for (uint32_t i = 0; ok && i < e->votes.len; i++) {
		struct vote *sum = sums ? &e->votes.data[sums - 1] : NULL;

		if (sum && by_pair(sum, &e->votes.data[i]) == 0)
			sum->weight += e->votes.data[i].weight;
		else
			e->votes.data[sums++] = e->votes.data[i];
	}
	for (uint32_t i = 0; ok && i < sums; i++) {
		count_for(&old[e->votes.data[i].old], &e->votes.data[i]);
		count_for(&new[e->votes.data[i].new], &e->votes.data[i]);
	}
	*ret_taken = 0;
	for (uint32_t i = 0; ok && i < sums; i++) {
		const struct vote *v = &e->votes.data[i];

		if (v->weight < VOTES_NEEDED || v->weight < old[v->old].votes ||
		    v->weight < new[v->new].votes || old[v->old].tied || new[v->new].tied)
			continue;
		match_pair(m, v->old, v->new, MATCH_NEIGHBOUR);
		++*ret_taken;
	}
	free(old);
	free(new);
	return ok;
}

bool match_neighbours(struct match_state *m)
{
	bool ok = true;
	uint32_t taken = 1;

	for (unsigned round = 0; ok && taken && round < ROUNDS_MAX; round++) {
		struct election e = {.m = m};

		collect(&e);
		ok = !e.failed && elect(&e, &taken);
		vec_release(&e.votes);
	}
	return ok;
}
