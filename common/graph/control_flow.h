/* Going backwards through code: which instructions control comes from.  Internal to
 * graph/.
 *
 * Nothing is built for a function: the map says where instructions begin, and sorted lists
 * of branches and of jump tables' entries say what leads to a label.  So parts of a
 * function that stand apart (cold parts, chained rows) need no care of their own.
 */
#ifndef APPULSE_GRAPH_CONTROL_FLOW_H
#define APPULSE_GRAPH_CONTROL_FLOW_H

#include "graph/discovery.h"
#include "graph/function_family.h"
#include "graph/no_return.h"

struct described_insn {
	struct insn insn;
	struct insn_detail detail;
};

enum { DESCRIBED_COUNT = 4096 };

struct control_flow {
	struct discovery *d;
	const struct function_families *families; /* borrowed; NULL while exploring */
	const struct code_range *range;           /* the last that was asked for */
	struct no_return no_return;
	struct described_place {
		struct rva at; /* 0: free */
		bool valid;    /* it decodes */
		struct described_insn described;
	} * described; /* owned: DESCRIBED_COUNT of them */
};

/* How control enters a place, branches and fall-through left out. */
enum control_entry {
	ENTRY_NONE,
	ENTRY_CALLED, /* as the calling convention says */
	ENTRY_UNKNOWN,
};

/* The places that lead to a label: struct branch of two sorted lists. */
struct branch_span {
	const struct branch *data;
	uint32_t count;
};

/* False when memory is out; then nothing is owned. */
bool control_flow_init(struct control_flow *flow, struct discovery *d);
void control_flow_release(struct control_flow *flow);

/* The instruction at `at`; NULL when it does not decode.  Valid until DESCRIBED_COUNT
 * others were asked for, so for the next one at least. */
const struct described_insn *control_flow_insn(struct control_flow *flow, struct rva at);

/* The instruction from which control runs on to the one at `at`; false when there is
 * none. */
bool control_flow_before(struct control_flow *flow, struct rva at, struct rva *ret_at);

/* The same for a label: a call that never returns does not run on to one that other ways
 * lead to.  Where none does, the call counts, so that something is known of dead code. */
bool control_flow_into_label(struct control_flow *flow, struct rva label,
			     struct rva *ret_at);

/* Whether control may come to `at` from elsewhere than the instruction before it. */
bool control_flow_is_label(struct control_flow *flow, struct rva at);

/* Whether a chained row of the function table begins at `at`: a part of a function. */
bool control_flow_is_part(const struct discovery *d, struct rva at);

/* Whether a function begins at `at`, no part of one. */
bool control_flow_is_begin(struct control_flow *flow, struct rva at);

enum control_entry control_flow_entry(struct control_flow *flow, struct rva at);

/* What leads to `at`, by lists: 0, branches that were there when branches were last merged;
 * 1, those that came since; 2, jumps with a table that leads there. */
enum { BRANCH_LISTS = 3 };
struct branch_span control_flow_branches(const struct control_flow *flow, int list,
					 struct rva at);

/* Sorts the branches found so far; asking needs them sorted. */
void control_flow_sort(struct discovery *d);

/* Sorts by target and source, and drops what is there twice; false when memory is out. */
bool branches_sort(struct branch *branches, uint32_t *count);

#endif
