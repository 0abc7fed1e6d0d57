/* What the user wants left where it is, as words on the command line: ranges of RVAs,
 * and names of exports, COFF symbols and the files beside the image. */
#ifndef APPULSE_GRAPH_PIN_RANGES_H
#define APPULSE_GRAPH_PIN_RANGES_H

#include "graph/graph.h"
#include "symbols/symbol_set.h"

/* "0x1000-0x2000" (the end is exclusive), "0x1000" or "name"; borrowed. */
struct pin_words {
	const char *const *data;
	uint32_t len;
};

/* A range and the word that it comes from. */
struct named_range {
	struct pin_range range;
	uint32_t word; /* index */
};

struct pin_ranges {
	VEC(struct named_range) named; /* in the words' sequence */
	VEC(struct pin_range) ranges;  /* the same ranges alone */
};

/* Finds out what the words mean in `image`, with `names` of a file beside it, or NULL.  A name that several symbols share means
 * all of them; a name or a single RVA means the function that it lies in.  USAGE for a
 * word that is no range, an empty or reversed range, one that is not wholly in code, a
 * name that there is not or that is no code; NO_MEMORY, and what the readers of exports
 * and symbols answer.  On failure nothing is owned. */
enum status pin_ranges_find(struct image *image, const struct pin_words *words,
			    const struct symbol_set *names, struct pin_ranges *ret_ranges,
			    struct diag *diag);
void pin_ranges_release(struct pin_ranges *ranges);

/* USAGE when a range holds nothing of any function of the graph. */
enum status pin_ranges_check(const struct pin_ranges *ranges, const struct graph *graph,
			     const struct pin_words *words, struct diag *diag);

#endif
