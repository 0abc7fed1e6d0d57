/* Names from a file beside the image, for functions that discovery has found. */
#ifndef APPULSE_GRAPH_FUNCTION_NAMES_H
#define APPULSE_GRAPH_FUNCTION_NAMES_H

#include "graph/graph.h"
#include "symbols/symbol_set.h"

/* How a name contradicts the code. */
enum name_conflict {
	NAME_NO_INSTRUCTION, /* a function is said to begin where no instruction does */
	NAME_INSIDE,      /* one is said to begin inside of another that has unwind data */
	NAME_ENDS_INSIDE, /* one is said to end inside of an instruction */
	NAME_CONFLICT_COUNT,
};

enum { NAME_EXAMPLES = 3 };

struct name_report {
	uint32_t functions;  /* that begin with an instruction; no parts of others */
	uint32_t own, added; /* named by the image itself; by the set */
	uint32_t conflicts[NAME_CONFLICT_COUNT];
	const struct symbol *examples[NAME_EXAMPLES]; /* in the set, by address */
	uint32_t example_count;                       /* at most NAME_EXAMPLES */
	uint32_t conflict_count;
};

/* Names the functions that have no name of the image's own, and counts the symbols that
 * contradict the code.  Nothing but names changes in the graph.  They are borrowed from the
 * finished set, which must outlive the graph. */
void function_names_add(struct graph *graph, const struct symbol_set *set,
			struct name_report *ret_report);

#endif
