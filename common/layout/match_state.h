/* What the ways of matching share; for function_match.c and match_votes.c only. */
#ifndef APPULSE_LAYOUT_MATCH_STATE_H
#define APPULSE_LAYOUT_MATCH_STATE_H

#include "layout/function_match.h"

struct match_side {
	const struct function_identities *functions;
	uint32_t *places;  /* 0, 1, 2, ...: all functions as a list, in the image's order */
	uint32_t *to;      /* of each function, its place in the other list, or NO_FUNCTION */
	uint32_t *callees; /* places in the list, as functions->callees; NO_FUNCTION for one
			    * that the list lacks */
	uint32_t *first_caller; /* of each function, and one more: into `callers` */
	uint32_t *callers;      /* places of the functions that refer to it, ascending */
};

struct match_state {
	struct match_side old, new;
	uint8_t *way; /* of each old function */
};

/* Matches two functions that have no match yet. */
static inline void match_pair(struct match_state *m, uint32_t old, uint32_t new,
			      enum match_way way)
{
	m->old.to[old] = new;
	m->new.to[new] = old;
	m->way[old] = (uint8_t)way;
}

/* Lets all matches vote for their neighbours, again and again until nothing new comes of
 * it.  False when memory is out. */
bool match_neighbours(struct match_state *m);

#endif
