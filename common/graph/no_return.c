/* Functions that never return: what a compiler lays behind a call of one is another case,
 * with other registers.
 *
 * Rust calls its panics in the midst of functions, and new versions put no trap behind
 * such a call (observed: rustc of 2025, LLVM's "no trap after noreturn").  A function that
 * seems to return then spoils what is known of the registers at the label behind.
 *
 * A function never returns when its row of the function table has no handler, so that no
 * landing pad or __except block goes on somewhere else, is code from end to end, has no
 * return and no computed jump, ends in a call, a stop or a jump, and leaves by direct jumps
 * only to its like.  What it calls at its end does not return, as everywhere
 * (docs/discovery.md).
 */
#include "graph/no_return.h"

#include "graph/control_flow.h"

enum { DEPTH = 4 }; /* of functions that end in a jump to another */

static bool never_returns(const struct discovery *d, struct rva callee, int depth);

/* Whether control, where it goes on from the instruction at `at`, stays in the row or never
 * returns from where it leaves to. */
static bool stays(const struct discovery *d, const struct runtime_function *row,
		  struct rva at, const struct insn *insn, int depth)
{
	struct rva target = rva_add(at, insn->length + (uint32_t)insn->relative);
	uint8_t *state;

	switch (insn->flow) {
	case FLOW_RETURN:
	case FLOW_JUMP_INDIRECT:
		return false;
	case FLOW_JUMP:
	case FLOW_BRANCH:
		if (!rva_in(target, row->begin, row->end.v - row->begin.v))
			return never_returns(d, target, depth - 1);
		state = discovery_state(d, target);
		return state && (*state & CODE_STATE) == CODE_START;
	default:
		return true;
	}
}

static bool is_plain_row(const struct discovery *d, const struct runtime_function *row)
{
	const uint8_t *info = image_bytes(d->image, row->unwind, 1);
	const uint8_t flags = UNWIND_EHANDLER | UNWIND_UHANDLER | UNWIND_CHAININFO;

	return info && !(*info >> 3 & flags) && row->end.v > row->begin.v;
}

static bool never_returns(const struct discovery *d, struct rva callee, int depth)
{
	const struct runtime_function *row = discovery_table_entry(d, callee);
	const struct code_range *range = discovery_range(d, callee);
	struct insn insn = {.flow = FLOW_NEXT};
	uint32_t at, end;

	if (depth == 0 || !row || row->begin.v != callee.v || !range ||
	    !is_plain_row(d, row) || row->end.v - range->begin.v > range->size)
		return false;
	end = row->end.v - range->begin.v;
	for (at = callee.v - range->begin.v; at < end; at += insn.length) {
		uint8_t state = range->map[at] & CODE_STATE;

		if ((state != CODE_START && state != CODE_PADDING) ||
		    !insn_decode(range->bytes + at, end - at, &insn) ||
		    !stays(d, row, rva_add(range->begin, at), &insn, depth))
			return false;
	}
	return insn.flow != FLOW_NEXT && insn.flow != FLOW_BRANCH &&
	       !control_flow_is_part(d, row->end);
}

bool no_return_is(struct no_return *memory, const struct discovery *d, struct rva callee)
{
	uint32_t i = (callee.v * 0x9e3779b1u) >> 23;

	_Static_assert(NO_RETURN_KNOWN == 1 << (32 - 23), "the hash's bits");
	if (memory->known[i].callee.v != callee.v || callee.v == 0) {
		memory->known[i].callee = callee;
		memory->known[i].never = never_returns(d, callee, DEPTH);
	}
	return memory->known[i].never;
}
