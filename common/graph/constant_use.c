/* What becomes of a constant in code that equals an RVA.
 *
 * It names code only when the image's own address is added to it.  It is no RVA when
 *
 * - it is a displacement from rsp, or from rbp where that points to the function's own
 *   stack on every way there.  A frame of more than 128 bytes has such displacements by
 *   the hundred, and a big one names many of the first functions of an image (observed:
 *   duckdb.node, one frame of 20 KB over incremental-link thunks of 5 bytes).
 *
 * Nothing is said of code in doubt: a jump that is not understood may lead to any place in
 * it, with any registers.
 */
#include "graph/constant_use.h"

#include <stdlib.h>

/* Doubts about code, not about what names it. */
static bool is_about_code(enum pin_reason reason)
{
	return reason == PIN_UNSOLVED_JUMP || reason == PIN_TABLE_CONFLICT ||
	       reason == PIN_UNDECODED || reason == PIN_OVERLAP ||
	       reason == PIN_UNKNOWN_BYTES || reason == PIN_OUTSIDE_REFERENCE;
}

static void note_doubts(struct constant_uses *uses, const struct discovery *d)
{
	for (uint32_t i = 0; i < d->doubts.len; i++) {
		uint32_t id = graph_function_at(d->graph, d->doubts.data[i].rva);

		if (id != NO_FUNCTION && is_about_code(d->doubts.data[i].reason))
			uses->doubtful[id] = 1;
	}
}

bool constant_uses_init(struct constant_uses *uses, struct discovery *d)
{
	*uses = (struct constant_uses){
		.doubtful = calloc((size_t)d->graph->functions.len + 1, 1)};
	if (!uses->doubtful)
		return false;
	if (control_flow_init(&uses->flow, d)) {
		if (value_query_init(&uses->query, &uses->flow)) {
			note_doubts(uses, d);
			return true;
		}
		control_flow_release(&uses->flow);
	}
	free(uses->doubtful);
	return false;
}

void constant_uses_release(struct constant_uses *uses)
{
	value_query_release(&uses->query);
	control_flow_release(&uses->flow);
	free(uses->doubtful);
	uses->doubtful = NULL;
}

/* Whether the register points to the stack wherever the instruction is reached. */
static bool is_frame(struct constant_uses *uses, uint8_t reg, struct rva at)
{
	uint32_t id = graph_function_at(uses->flow.d->graph, at);

	if (reg != REGISTER_RBP || id == NO_FUNCTION || uses->doubtful[id])
		return reg == REGISTER_RSP;
	if (value_query_is_big(&uses->query))
		value_query_forget(&uses->query);
	return value_query_is_frame(&uses->query, reg, at);
}

/* Whether the operand adds the constant to a place on the stack. */
static bool is_from_stack(struct constant_uses *uses, const struct operand *operand,
			  const struct code_constant *constant)
{
	return operand->kind == OPERAND_MEMORY &&
	       (uint64_t)operand->value == constant->value.v &&
	       is_frame(uses, operand->base, constant->site);
}

bool constant_is_number(struct constant_uses *uses, const struct code_constant *constant)
{
	const struct described_insn *known = control_flow_insn(&uses->flow, constant->site);
	struct insn_detail detail;

	if (!known || known->insn.constant_count > 1)
		return false;
	detail = known->detail; /* asking may drop it */
	return is_from_stack(uses, &detail.target, constant) ||
	       is_from_stack(uses, &detail.source, constant) ||
	       (detail.op == OP_ADD && detail.target.kind == OPERAND_REGISTER &&
		detail.target.reg == REGISTER_RSP);
}
