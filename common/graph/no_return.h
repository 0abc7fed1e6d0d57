/* Functions that never return.  Internal to graph/. */
#ifndef APPULSE_GRAPH_NO_RETURN_H
#define APPULSE_GRAPH_NO_RETURN_H

#include "graph/discovery.h"

enum { NO_RETURN_KNOWN = 512 };

/* What was found out already; all zero at first. */
struct no_return {
	struct {
		struct rva callee; /* 0: free */
		bool never;
	} known[NO_RETURN_KNOWN];
};

/* Whether the function at `callee` is proven never to return to who calls it.  What is not
 * decoded yet counts as returning. */
bool no_return_is(struct no_return *memory, const struct discovery *d, struct rva callee);

#endif
