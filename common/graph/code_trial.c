/* Whether bytes whose address is taken are code.
 *
 * The problem.  Between the functions of hand-written assembly stand its constants
 * (OpenSSL: round constants, masks, whole tables of powers), and lea takes their addresses
 * as it takes those of functions.  Linkers of mingw put lists of constructors and
 * descriptors of delayed imports there.  Most bytes decode to something, and what is
 * taken for code is moved with edited fields, and gets a thunk.
 *
 * The way.  Two questions.  Do the instructions behind the lea read or write through the
 * register (address_is_read)?  Then it is data whatever it looks like.  And does a trial
 * decode what programs have: every branch lands on an instruction of the trial or of
 * known code, every operand lies in the image, nothing is read as data, and control ends
 * (code_trial_passes)?  One instruction in six of random bytes fails, one in eighty ends
 * control; data that passes up to a chance return is followed by more data, and is in
 * doubt for that (safety_policy.c).
 *
 * Rejected: to take only what is called, or has a row in the function table.  Leaves that
 * only a table of virtual functions leads to have neither.
 *
 * Cost: what passes is decoded twice.  What fails is tried again in each round, and for
 * each label in it, so steps are counted: when more were made than there are bytes of
 * code, nothing more passes (observed: one step for 200 bytes at most).  Registers are
 * followed for lea of bare code only.
 */
#include <stdlib.h>

#include "graph/discovery.h"

enum {
	TRIAL_INSNS = 1 << 13, /* more of them belong to no leaf */
	LOOK_AHEAD = 16,       /* instructions behind a lea */
	VOLATILE = 0x0f07,     /* registers that a call may change: rax, rcx, rdx, r8-r11 */
};

struct trial {
	struct discovery *d;
	const struct code_range *range;
	uint32_t begin, at;    /* bytes from the range's begin */
	uint32_t reach;        /* the last place that a branch leads to: it goes so far */
	VEC(uint32_t) starts;  /* of instructions, ascending */
	VEC(uint32_t) targets; /* of branches into unknown bytes */
	bool failed;
};

static bool is_unknown(const struct code_range *range, uint32_t at)
{
	return (range->map[at] & CODE_STATE) == CODE_UNKNOWN;
}

/* A branch to known code is fine, one into what is not known must land on an instruction
 * of the trial; a jump or call that leaves it leads to a trial of its own. */
static void note_branch(struct trial *t, const struct insn *insn, struct rva target)
{
	const struct code_range *range = t->range;
	bool leaves = insn->flow == FLOW_CALL ||
		      (insn->flow == FLOW_JUMP && insn->field_size == 4);
	uint8_t *state = discovery_state(t->d, target);
	uint32_t to;

	if (!state || (*state & CODE_STATE) == CODE_INSIDE ||
	    (*state & CODE_STATE) == CODE_TABLE) {
		t->failed = true;
		return;
	}
	if ((*state & CODE_STATE) != CODE_UNKNOWN)
		return;
	to = target.v - range->begin.v;
	if (!rva_in(target, range->begin, range->size) || to < t->begin) {
		t->failed |= !leaves;
		return;
	}
	if (leaves && to > t->at)
		return;
	if (to > t->reach)
		t->reach = to;
	if (!vec_push(&t->targets, to))
		t->failed = true;
}

static void note_field(struct trial *t, const struct insn *insn)
{
	struct rva here = rva_add(t->range->begin, t->at);
	struct rva target = rva_add(here, insn->length + (uint32_t)insn->relative);

	if (insn->field == FIELD_BRANCH)
		note_branch(t, insn, target);
	else if (insn->field != FIELD_NONE)
		t->failed |= target.v >= t->d->image->headers.size_of_image;
}

/* Whether [at, at + length) is unknown, within one piece of code, and never read. */
static bool is_free(const struct code_range *range, uint32_t at, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (!is_unknown(range, at + i) || (range->map[at + i] & CODE_DATA) ||
		    (i > 0 && (range->map[at + i] & CODE_BOUNDARY)))
			return false;
	return true;
}

static bool goes_on(const struct insn *insn)
{
	return insn->flow != FLOW_JUMP && insn->flow != FLOW_JUMP_INDIRECT &&
	       insn->flow != FLOW_RETURN && insn->flow != FLOW_STOP;
}

/* Decodes one instruction; whether control goes on behind it in `ret_open`. */
static void try_insn(struct trial *t, bool *ret_open)
{
	const struct code_range *range = t->range;
	struct insn insn;

	if (!insn_decode(range->bytes + t->at, range->size - t->at, &insn) ||
	    insn.unlikely || !is_free(range, t->at, insn.length) ||
	    t->starts.len == TRIAL_INSNS || t->d->trial_steps == 0 ||
	    !vec_push(&t->starts, t->at)) {
		t->failed = true;
		return;
	}
	t->d->trial_steps--;
	note_field(t, &insn);
	*ret_open = goes_on(&insn);
	t->at += insn.length;
}

/* Decodes up to where control ends, and all branches have been passed. */
static void try_all(struct trial *t)
{
	bool open = true;

	while (!t->failed && (open || t->at <= t->reach)) {
		uint8_t state = t->at < t->range->size ? t->range->map[t->at] & CODE_STATE
						       : CODE_INSIDE;

		if (state == CODE_START)
			return; /* known code goes on here */
		if (state == CODE_PADDING && !open)
			t->at++;
		else if (state == CODE_UNKNOWN)
			try_insn(t, &open);
		else
			t->failed = true;
	}
}

static int compare_starts(const void *key, const void *element)
{
	uint32_t a = *(const uint32_t *)key, b = *(const uint32_t *)element;

	return (a > b) - (a < b);
}

static bool all_land(const struct trial *t)
{
	for (uint32_t i = 0; i < t->targets.len; i++)
		if (!bsearch(&t->targets.data[i], t->starts.data, t->starts.len,
			     sizeof(uint32_t), compare_starts))
			return false;
	return true;
}

bool code_trial_passes(struct discovery *d, struct rva label)
{
	const struct code_range *range = discovery_range(d, label);
	struct trial t = {.d = d, .range = range, .begin = label.v - range->begin.v};
	bool passes;

	t.at = t.begin;
	try_all(&t);
	passes = !t.failed && all_land(&t);
	vec_release(&t.starts);
	vec_release(&t.targets);
	return passes;
}

static bool is_through(const struct operand *operand, uint8_t reg)
{
	return operand->kind == OPERAND_MEMORY &&
	       (operand->base == reg || operand->index == reg);
}

bool address_is_read(const struct code_range *range, uint32_t at)
{
	struct insn_detail detail;
	struct insn insn;
	uint8_t reg;

	if (!insn_describe(range->bytes + at, range->size - at, &insn, &detail))
		return false;
	reg = detail.target.reg;
	for (int i = 0; i < LOOK_AHEAD && reg < REGISTER_COUNT; i++) {
		bool calls, jumps;

		at += insn.length;
		if (at >= range->size ||
		    !insn_describe(range->bytes + at, range->size - at, &insn, &detail))
			return false;
		calls = insn.flow == FLOW_CALL || insn.flow == FLOW_CALL_INDIRECT;
		jumps = insn.flow == FLOW_JUMP_INDIRECT || calls;
		if (detail.op != OP_LEA && !jumps && !insn.padding &&
		    (is_through(&detail.target, reg) || is_through(&detail.source, reg)))
			return true;
		if (!goes_on(&insn) || (detail.written >> reg & 1) ||
		    (calls && (VOLATILE >> reg & 1)))
			return false;
	}
	return false;
}
