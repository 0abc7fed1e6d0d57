/* Jump tables: finding where computed jumps go.
 *
 * The problem.  `jmp rax` after arithmetic goes wherever a table says, and the
 * table's entries are differences that change when code moves, without any
 * relocation.  A table that is missed, or read too short or too far, breaks the
 * image; so a jump is either proven or its function is pinned.
 *
 * The way.  For each function with a jump through a register, values are followed
 * through its blocks to a fixpoint (value_flow.h).  When the jumped-to value is
 * "entry of table T, plus base B", the table is read, and its targets become
 * further successors.  How many entries: the bound that a comparison gives where
 * there is one; otherwise as many as lead to instructions of the same function, up
 * to the next label.  All code was swept before, so all labels are known: a word
 * that lea or another operand names ends a table.  A table with a bound that
 * reaches over such a label, or has an entry that is no instruction, contradicts
 * itself and pins.
 *
 * Rejected: looking for instruction patterns before the jump (bases are hoisted
 * out of loops, bounds are spilled); reading tables before all code is swept.
 *
 * Cost: each block of a function with computed jumps is visited once, and again
 * when a join has lost knowledge, which happens a few times at most.
 */
#include <string.h>

#include "graph/discovery.h"
#include "graph/value_flow.h"

enum { TABLE_LIMIT = 65536 /* entries; none met comes near */ };

/* What became of one computed jump. */
struct jump {
	struct rva at;
	bool reached, solved; /* solved: proven to need no care, or by `table` */
	struct value target;  /* VALUE_TARGET when a table leads it */
};

struct solver {
	struct discovery *d;
	const struct code_range *range;
	const struct function *function;
	int32_t *state_of;                 /* by byte of the function: index into states, -1 none */
	VEC(struct flow_state) states;
	VEC(uint32_t) work;                /* offsets of leaders in the function */
	struct jump *jumps;                /* of this function, ascending */
	uint32_t jump_count;
};

static int compare_rvas(const void *a, const void *b)
{
	const struct rva *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

/* The first data label behind `rva`, or the end of the address space. */
static uint32_t next_label(const struct discovery *d, struct rva rva)
{
	uint32_t low = 0, high = d->data_labels.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->data_labels.data[middle].v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->data_labels.len ? d->data_labels.data[low].v : UINT32_MAX;
}

/* Reads entry `i`; false when it is not in read-only data or leads to no
 * instruction. */
static bool read_entry(const struct solver *s, const struct value *target, uint32_t i,
		       struct rva *ret_target)
{
	struct rva site = rva_add(target->table, 4 * i);
	const uint8_t *word = image_bytes(s->d->image, site, 4);
	uint8_t *state;

	if (!word || !image_is_read_only(s->d->image, site))
		return false;
	*ret_target = rva_add(target->base, load_u32(word));
	state = discovery_state(s->d, *ret_target);
	return state && (*state & CODE_STATE) == CODE_START;
}

static bool in_function(const struct solver *s, struct rva rva)
{
	return rva_in(rva, s->function->begin, s->function->size);
}

/* The number of entries, 0 when the table contradicts itself. */
static uint32_t table_count(const struct solver *s, const struct value *target)
{
	uint32_t limit = (next_label(s->d, target->table) - target->table.v) / 4;
	uint32_t count = 0;
	struct rva to;

	if (target->bound) {
		if (target->bound > limit || target->bound > TABLE_LIMIT)
			return 0;
		for (; count < target->bound; count++)
			if (!read_entry(s, target, count, &to))
				return 0;
		return count;
	}
	while (count < limit && count < TABLE_LIMIT && read_entry(s, target, count, &to) &&
	       in_function(s, to))
		count++;
	return count;
}

/* Lets `state` flow to the leader at `to`, when that lies in the function. */
static void flow_to(struct solver *s, const struct flow_state *state, struct rva to)
{
	uint32_t offset = to.v - s->function->begin.v;

	if (!in_function(s, to) ||
	    (s->range->map[to.v - s->range->begin.v] & CODE_STATE) != CODE_START)
		return;
	if (s->state_of[offset] < 0) {
		s->state_of[offset] = (int32_t)s->states.len;
		if (!vec_push(&s->states, *state))
			s->d->out_of_memory = true;
	} else if (!flow_state_join(&s->states.data[s->state_of[offset]], state, to)) {
		return;
	}
	if (!vec_push(&s->work, offset))
		s->d->out_of_memory = true;
}

static struct jump *find_jump(struct solver *s, struct rva at)
{
	for (uint32_t i = 0; i < s->jump_count; i++)
		if (s->jumps[i].at.v == at.v)
			return &s->jumps[i];
	return NULL;
}

/* A jump through a register that holds `target`. */
static void meet_jump(struct solver *s, struct flow_state *state, struct rva at,
		      const struct value *target)
{
	struct jump *jump = find_jump(s, at);
	uint32_t count;

	if (!jump)
		return;
	jump->reached = true;
	jump->target = *target;
	jump->solved = target->kind == VALUE_WHOLE || target->kind == VALUE_ADDRESS;
	if (target->kind != VALUE_TARGET)
		return;
	count = table_count(s, target);
	jump->solved = count > 0;
	for (uint32_t i = 0; i < count; i++) {
		struct rva to;

		if (read_entry(s, target, i, &to))
			flow_to(s, state, to);
	}
}

/* Lets control leave the instruction at `at`; true when it goes on to the next
 * instruction in the same state. */
static bool leave(struct solver *s, struct flow_state *state, struct rva at,
		  const struct insn *insn, const struct insn_detail *detail)
{
	struct rva next = rva_add(at, insn->length);
	struct rva target = rva_add(next, (uint32_t)insn->relative);
	struct flow_state taken;

	switch (insn->flow) {
	case FLOW_BRANCH:
		taken = *state;
		flow_state_branch(&taken, detail->condition, true);
		flow_to(s, &taken, target);
		flow_state_branch(state, detail->condition, false);
		return true;
	case FLOW_JUMP:
		flow_to(s, state, target);
		return false;
	case FLOW_JUMP_INDIRECT:
		if (insn->jump_register && detail->target.reg < REGISTER_COUNT)
			meet_jump(s, state, at, &state->registers[detail->target.reg]);
		return false;
	case FLOW_RETURN:
	case FLOW_STOP:
		return false;
	default:
		return true;
	}
}

/* Runs one block: from a leader to the next, or to where control ends. */
static void run_block(struct solver *s, uint32_t offset)
{
	uint32_t at = s->function->begin.v - s->range->begin.v + offset;
	uint32_t end = s->function->begin.v - s->range->begin.v + s->function->size;
	struct flow_state state = s->states.data[s->state_of[offset]];
	bool first = true;

	while (at < end && (s->range->map[at] & CODE_STATE) == CODE_START) {
		struct rva here = rva_add(s->range->begin, at);
		struct insn_detail detail;
		struct insn insn;

		if (!first && (s->range->map[at] & CODE_LABEL)) {
			flow_to(s, &state, here);
			return;
		}
		first = false;
		if (!insn_decode(s->range->bytes + at, end - at, &insn) ||
		    !insn_describe(s->range->bytes + at, end - at, &detail))
			return;
		flow_state_step(&state, here, &insn, &detail);
		if (!leave(s, &state, here, &insn, &detail))
			return;
		at += insn.length;
	}
}

static void run_to_fixpoint(struct solver *s)
{
	while (s->work.len > 0 && !s->d->out_of_memory)
		run_block(s, s->work.data[--s->work.len]);
}

/* Enters the function at its begin; then wherever something else than the flow
 * seen so far leads (landing pads, labels taken as addresses): nothing is known
 * there. */
static void follow_values(struct solver *s)
{
	uint32_t base = s->function->begin.v - s->range->begin.v;
	struct flow_state state;

	flow_state_entry(&state, s->function->begin.v);
	flow_to(s, &state, s->function->begin);
	run_to_fixpoint(s);
	for (uint32_t i = 0; i < s->function->size && !s->d->out_of_memory; i++) {
		uint8_t map = s->range->map[base + i];

		if ((map & CODE_STATE) != CODE_START || !(map & CODE_LABEL) || s->state_of[i] >= 0)
			continue;
		flow_state_unknown(&state, s->function->begin.v + i);
		flow_to(s, &state, rva_add(s->function->begin, i));
		run_to_fixpoint(s);
	}
}

static void add_table(struct solver *s, const struct jump *jump)
{
	struct graph *graph = s->d->graph;
	struct jump_table table = {.table = jump->target.table, .base = jump->target.base,
				   .jump = jump->at, .count = table_count(s, &jump->target)};

	for (uint32_t i = 0; i < table.count; i++) {
		struct ref ref = {.site = rva_add(table.table, 4 * i), .base = table.base,
				  .kind = REF_TABLE, .size = 4};

		if (!read_entry(s, &jump->target, i, &ref.target))
			return;
		discovery_ref(s->d, ref);
		discovery_enter(s->d, ref.target, false);
	}
	if (!vec_push(&graph->jump_tables, table))
		s->d->out_of_memory = true;
}

static void solve_function(struct solver *s)
{
	s->state_of = malloc(s->function->size * sizeof(*s->state_of));
	if (!s->state_of) {
		s->d->out_of_memory = true;
		return;
	}
	memset(s->state_of, 0xff, s->function->size * sizeof(*s->state_of));
	follow_values(s);
	for (uint32_t i = 0; i < s->jump_count; i++) {
		struct jump *jump = &s->jumps[i];

		if (!jump->reached || !jump->solved)
			discovery_doubt(s->d, jump->at, PIN_UNSOLVED_JUMP);
		else if (jump->target.kind == VALUE_TARGET)
			add_table(s, jump);
	}
	free(s->state_of);
	vec_release(&s->states);
	vec_release(&s->work);
}

/* Sorts labels and adds the words under relocations, which are no entries. */
static void prepare_labels(struct discovery *d)
{
	const struct relocations *relocs = &d->graph->tables.relocs;

	for (uint32_t i = 0; i < relocs->count; i++)
		if (!vec_push(&d->data_labels, relocs->data[i].site))
			d->out_of_memory = true;
	if (d->data_labels.len > 0)
		qsort(d->data_labels.data, d->data_labels.len, sizeof(*d->data_labels.data),
		      compare_rvas);
}

enum status jump_tables_solve(struct discovery *d)
{
	struct jump *jumps = calloc((size_t)d->computed_jumps.len + 1, sizeof(*jumps));

	prepare_labels(d);
	if (!jumps)
		return diag_no_memory(d->diag);
	if (d->computed_jumps.len > 0)
		qsort(d->computed_jumps.data, d->computed_jumps.len,
		      sizeof(*d->computed_jumps.data), compare_rvas);
	for (uint32_t i = 0; i < d->computed_jumps.len; i++)
		jumps[i].at = d->computed_jumps.data[i];
	for (uint32_t i = 0; i < d->computed_jumps.len && !d->out_of_memory;) {
		uint32_t id = graph_function_at(d->graph, jumps[i].at), end = i + 1;
		struct solver solver = {.d = d, .jumps = jumps + i};

		if (id == NO_FUNCTION) {
			i++;
			continue;
		}
		solver.function = &d->graph->functions.data[id];
		solver.range = discovery_range(d, jumps[i].at);
		while (end < d->computed_jumps.len &&
		       rva_in(jumps[end].at, solver.function->begin, solver.function->size))
			end++;
		solver.jump_count = end - i;
		solve_function(&solver);
		i = end;
	}
	free(jumps);
	return STATUS_OK;
}
