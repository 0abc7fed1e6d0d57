/* What makes a function the same function in two builds of an image.
 *
 * A function has three marks: its name, a hash of its content that does not
 * depend on any address, and the functions that it refers to.  The content is
 * its bytes, with each field that depends on an address replaced by what it
 * leads to: the name of a function or an import, the text or the constant that
 * is read, the place inside the function itself.  Two functions with the same
 * content do the same as far as these marks tell.
 */
#ifndef APPULSE_GRAPH_FUNCTION_IDENTITY_H
#define APPULSE_GRAPH_FUNCTION_IDENTITY_H

#include "graph/graph.h"

struct function_identity {
	struct rva rva;   /* of its start */
	uint32_t size;    /* bytes */
	const char *name; /* NULL: unknown */
	uint64_t content; /* hash; 0: unknown */
	uint32_t first_callee, callee_count; /* in the list's callees */
};

/* Ascending by RVA, each once. */
struct function_identities {
	struct function_identity *list;
	uint32_t count;
	struct rva *callees; /* starts of other functions that the function's code refers to,
			      * in the order of the references, repeated as often */
	uint32_t callee_count;
};

/* The identities of all functions whose bytes are understood.  Names are those of
 * the graph, borrowed.  NO_MEMORY; on failure nothing is owned. */
enum status function_identities_make(const struct graph *graph,
				     struct function_identities *ret_identities,
				     struct diag *diag);
/* The place in the list of the function that begins at `rva`, or NO_FUNCTION. */
uint32_t function_identity_at(const struct function_identities *identities, struct rva rva);

void function_identities_release(struct function_identities *identities);

#endif
