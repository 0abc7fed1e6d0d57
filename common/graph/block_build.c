/* Joining functions that must move together.
 *
 * Two functions are one block when control runs from the first into the second,
 * or when a branch between them is too short to reach anywhere else.  A function
 * that ends in a call that never returns needs one byte behind the call: the
 * return address must lie in the function, or the unwinder takes its neighbour
 * for it (Windows looks up the return address itself, not the byte before it).
 * When that byte is padding it becomes part of the block; when it is the next
 * function, the two are joined.
 */
#include "graph/discovery.h"

enum ending { ENDS_CLOSED, ENDS_OPEN, ENDS_IN_CALL };

/* The start of the instruction that ends at `end`, at or behind `begin`. */
static bool last_start(const struct code_range *range, uint32_t begin, uint32_t end,
		       uint32_t *ret_start)
{
	while (end > begin) {
		end--;
		if ((range->map[end] & CODE_STATE) == CODE_START) {
			*ret_start = end;
			return true;
		}
		if ((range->map[end] & CODE_STATE) != CODE_INSIDE)
			return false;
	}
	return false;
}

/* How control leaves the end of a function.  Padding at the end is passed over:
 * a call with padding behind it inside the function never returns. */
static enum ending ending_of(const struct code_range *range, uint32_t begin, uint32_t end)
{
	bool padded = false;
	uint32_t start;

	while (end > begin && (range->map[end - 1] & CODE_STATE) == CODE_PADDING) {
		padded = true;
		end--;
	}
	while (last_start(range, begin, end, &start)) {
		struct insn insn;

		if (!insn_decode(range->bytes + start, end - start, &insn))
			return ENDS_OPEN;
		if (insn.padding && insn.flow == FLOW_NEXT) {
			/* What enters here runs on behind the padding. */
			if ((range->map[start] & CODE_LABEL) || start == begin)
				return ENDS_OPEN;
			padded = true;
			end = start;
			continue;
		}
		switch (insn.flow) {
		case FLOW_CALL:
		case FLOW_CALL_INDIRECT:
			return padded ? ENDS_CLOSED : ENDS_IN_CALL;
		case FLOW_NEXT:
		case FLOW_BRANCH:
			return ENDS_OPEN;
		default:
			return ENDS_CLOSED;
		}
	}
	return ENDS_CLOSED; /* unknown bytes: their function is pinned */
}

/* Decides for each function whether it is joined to the next, and marks guard
 * bytes by making the function's block one byte longer. */
static void join_by_flow(struct discovery *d, bool *joined, bool *guarded)
{
	struct graph *graph = d->graph;

	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];
		const struct code_range *range = discovery_range(d, f->begin);
		uint32_t begin = f->begin.v - range->begin.v, end = begin + f->size;
		bool more = i + 1 < graph->functions.len &&
			    rva_in(f[1].begin, range->begin, range->size);
		uint32_t hash = more ? guard_hash_before(d, f[1].begin) : 0;
		bool adjacent = more && f[1].begin.v - hash == f->begin.v + f->size;
		enum ending ending;

		if (f->kind == FUNCTION_BYTES)
			continue;
		ending = ending_of(range, begin, end);
		if (ending == ENDS_OPEN || (ending == ENDS_IN_CALL && adjacent)) {
			if (more)
				joined[i] = true;
			else
				discovery_doubt(d, f->begin, PIN_OVERLAP);
		} else if (ending == ENDS_IN_CALL) {
			if (end < range->size)
				guarded[i] = true;
			else
				discovery_doubt(d, f->begin, PIN_OVERLAP);
		}
	}
}

static void join_by_short_branches(struct discovery *d, bool *joined)
{
	for (uint32_t i = 0; i < d->short_branches.len; i++) {
		const struct short_branch *branch = &d->short_branches.data[i];
		uint32_t a = graph_function_at(d->graph, branch->from);
		uint32_t b = graph_function_at(d->graph, branch->to);

		if (a == NO_FUNCTION || b == NO_FUNCTION ||
		    (*discovery_state(d, branch->to) & CODE_STATE) != CODE_START ||
		    discovery_range(d, branch->from) != discovery_range(d, branch->to)) {
			discovery_doubt(d, branch->from, PIN_OVERLAP);
			discovery_doubt(d, branch->to, PIN_OVERLAP);
			continue;
		}
		for (; a < b; a++)
			joined[a] = true;
		for (; b < a; b++)
			joined[b] = true;
	}
}

/* What exception data says about several functions as about one. */
static void join_by_tables(struct discovery *d, bool *joined)
{
	for (uint32_t i = 0; i < d->joined.len; i++) {
		const struct joined_code *code = &d->joined.data[i];
		uint32_t from = graph_function_at(d->graph, code->first);
		uint32_t to = graph_function_at(d->graph, code->last);

		if (from == NO_FUNCTION || to == NO_FUNCTION || from > to ||
		    discovery_range(d, code->first) != discovery_range(d, code->last)) {
			discovery_doubt(d, code->first, PIN_UNKNOWN_HANDLER);
			discovery_doubt(d, code->last, PIN_UNKNOWN_HANDLER);
			continue;
		}
		for (; from < to; from++)
			joined[from] = true;
	}
}

static void make_blocks(struct discovery *d, const bool *joined, const bool *guarded)
{
	struct graph *graph = d->graph;

	for (uint32_t i = 0; i < graph->functions.len;) {
		struct rva begin = graph->functions.data[i].begin;
		struct rva hash = rva_of(begin.v - guard_hash_before(d, begin));
		struct block block = {.begin = hash, .first_function = i};
		uint32_t last = i;

		while (joined[last])
			last++;
		block.function_count = last - i + 1;
		block.size = graph->functions.data[last].begin.v +
			     graph->functions.data[last].size - block.begin.v +
			     guarded[last];
		for (uint32_t f = i; f <= last; f++)
			graph->functions.data[f].block = graph->blocks.len;
		if (!vec_push(&graph->blocks, block))
			d->out_of_memory = true;
		i = last + 1;
	}
}

enum status blocks_build(struct discovery *d)
{
	uint32_t count = d->graph->functions.len;
	bool *joined = calloc((size_t)count + 1, sizeof(*joined));
	bool *guarded = calloc((size_t)count + 1, sizeof(*guarded));

	if (!joined || !guarded) {
		d->out_of_memory = true;
	} else {
		join_by_flow(d, joined, guarded);
		join_by_short_branches(d, joined);
		join_by_tables(d, joined);
		make_blocks(d, joined, guarded);
	}
	free(joined);
	free(guarded);
	return STATUS_OK;
}
