/* Solving the computed jumps of one function: reading tables, and following values
 * from block to block until nothing changes.  jump_table.c tells the whole way. */
#include "graph/jump_solver.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_sort.h"

enum {
	TABLE_LIMIT = 65536, /* entries; none met comes near */
	/* Of one function; a big image may have more.  So memory stays in proportion. */
	STATES_MIN = 1 << 14,    /* blocks; if it has more, its jumps are not understood */
	STATES_PART = 256,       /* bytes of the image for each */
	DESCRIBED_MIN = 1 << 16, /* instructions that are kept described */
	DESCRIBED_PART = 64,     /* bytes of the image for each */
};

static uint32_t at_least(const struct discovery *d, uint32_t minimum, uint32_t part)
{
	size_t limit = d->image->size / part;

	return limit > minimum ? (uint32_t)limit : minimum;
}

/* Counts steps; false when there were too many of them. */
static bool spend(struct discovery *d, uint32_t steps)
{
	if (d->flow_steps < steps) {
		d->flow_steps = 0;
		return false;
	}
	d->flow_steps -= steps;
	return true;
}

bool jump_solver_is_spent(const struct discovery *d)
{
	return d->flow_steps == 0 || d->out_of_memory;
}

static int compare_rvas(const void *a, const void *b)
{
	const struct rva *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

void rvas_sort(struct rva *rvas, uint32_t count)
{
	if (!key_sort(rvas, count, sizeof(*rvas), offsetof(struct rva, v)))
		qsort(rvas, count, sizeof(*rvas), compare_rvas);
}

void jump_solver_sort(struct discovery *d)
{
	rvas_sort(d->data_labels.data, d->data_labels.len);
	rvas_sort(d->computed_jumps.data, d->computed_jumps.len);
	rvas_sort(d->entry_loads.data, d->entry_loads.len);
}

uint32_t rvas_first_from(const struct rva *rvas, uint32_t count, struct rva rva)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rvas[middle].v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first label behind `rva` in data, or the end of the address space. */
static uint32_t next_data_label(const struct discovery *d, struct rva rva)
{
	uint32_t i =
		rvas_first_from(d->data_labels.data, d->data_labels.len, rva_add(rva, 1));

	return i < d->data_labels.len ? d->data_labels.data[i].v : UINT32_MAX;
}

/* The first byte behind `rva` in code where no table can go on. */
static uint32_t next_code_label(const struct code_range *range, struct rva rva)
{
	uint32_t at = rva.v - range->begin.v + 1, end = at + 4 * TABLE_LIMIT;

	while (at < range->size && at < end) {
		uint8_t state = range->map[at] & CODE_STATE;

		if ((range->map[at] &
		     (CODE_LABEL | CODE_FUNCTION | CODE_BOUNDARY | CODE_DATA)) ||
		    (state != CODE_UNKNOWN && state != CODE_TABLE))
			break;
		at++;
	}
	return range->begin.v + at;
}

/* How many entries the table can have before something else begins. */
static uint32_t table_limit(const struct solver *s, struct rva table)
{
	const struct code_range *range = discovery_range(s->d, table);
	uint32_t end = range ? next_code_label(range, table) : next_data_label(s->d, table);
	uint32_t hint = rvas_first_from(s->hints, s->hint_count, rva_add(table, 1)), limit;

	if (hint < s->hint_count && s->hints[hint].v < end)
		end = s->hints[hint].v;
	limit = (end - table.v) / 4;
	return limit < TABLE_LIMIT ? limit : TABLE_LIMIT;
}

bool solver_holds(const struct solver *s, struct rva rva)
{
	return rva_in(rva, s->begin, s->size);
}

/* Where entry `i` leads; false when it is not in read-only data. */
static bool entry_target(const struct solver *s, const struct value *target, uint32_t i,
			 struct rva *ret_target)
{
	struct rva site = rva_add(target->table, 4 * i);
	const uint8_t *word = image_bytes(s->d->image, site, 4);

	if (!word || !image_is_read_only(s->d->image, site))
		return false;
	*ret_target = rva_add(target->base, load_u32(word));
	return true;
}

/* Reads entry `i`; false when it can be none.  While code is still being found, what is
 * not known to be code can be a target, and what was taken for padding. */
bool solver_read_entry(const struct solver *s, const struct value *target, uint32_t i,
		       struct rva *ret_target)
{
	uint8_t *byte, state;

	if (!entry_target(s, target, i, ret_target))
		return false;
	if (ret_target->v == s->begin.v + s->size)
		return true; /* unreachable code at the end, of no bytes */
	byte = discovery_state(s->d, *ret_target);
	state = byte ? *byte & CODE_STATE : CODE_INSIDE;
	return state == CODE_START || (s->mode != PROVE && solver_holds(s, *ret_target) &&
				       (state == CODE_UNKNOWN || state == CODE_PADDING));
}

/* The number of entries of a table without a bound.  One that would lead into the
 * function, but to no instruction, is no proper end. */
static uint32_t open_count(const struct solver *s, const struct value *target,
			   uint32_t limit)
{
	uint32_t count = 0;
	struct rva to;

	while (count < limit && solver_read_entry(s, target, count, &to))
		count++;
	if (s->mode == PROVE && count < limit && entry_target(s, target, count, &to) &&
	    solver_holds(s, to))
		return 0;
	return count;
}

uint32_t solver_table_count(const struct solver *s, const struct value *target)
{
	uint32_t limit = table_limit(s, target->table), count = 0;
	uint32_t looked_at = target->bound ? target->bound : limit;
	struct rva to;

	if (target->bound > limit || (target->bound == 0 && s->mode == EXPLORE_BOUNDED))
		return 0;
	if (target->bound == 0) {
		count = open_count(s, target, limit);
	} else {
		while (count < target->bound && solver_read_entry(s, target, count, &to))
			count++;
		if (count < target->bound)
			count = 0;
	}
	return spend(s->d, 1 + looked_at / 4) ? count : 0;
}

/* Lets `state` flow to the leader at `to`, when that lies in the function. */
static void flow_to(struct solver *s, const struct flow_state *state, struct rva to)
{
	uint32_t offset = to.v - s->begin.v;

	if (!solver_holds(s, to) ||
	    (s->range->map[to.v - s->range->begin.v] & CODE_STATE) != CODE_START)
		return;
	if (s->state_of[offset] < 0) {
		if (s->states.len >= at_least(s->d, STATES_MIN, STATES_PART)) {
			s->gave_up = true;
			return;
		}
		s->state_of[offset] = (int32_t)s->states.len;
		/* Without a label, a block that begins before it may have run over it. */
		if (!vec_push(&s->states, *state) ||
		    !vec_push(&s->ran,
			      !(s->range->map[to.v - s->range->begin.v] & CODE_LABEL)))
			s->d->out_of_memory = true;
	} else if (!flow_state_join(&s->states.data[s->state_of[offset]], state, to)) {
		return;
	}
	s->pending[offset] = 1;
	s->pending_before |= offset <= s->running;
}

uint32_t solver_jump_from(const struct solver *s, struct rva at)
{
	uint32_t low = 0, high = s->jumps.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->jumps.data[middle].at.v < at.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The entry for the jump at `at`, made when there is none; NULL when memory is out. */
static struct jump *jump_at(struct solver *s, struct rva at)
{
	struct jump jump = {.at = at};
	uint32_t i = solver_jump_from(s, at);

	if (i < s->jumps.len && s->jumps.data[i].at.v == at.v)
		return &s->jumps.data[i];
	if (!vec_push(&s->jumps, jump)) {
		s->d->out_of_memory = true;
		return NULL;
	}
	spend(s->d, (s->jumps.len - i) / 8);
	memmove(&s->jumps.data[i + 1], &s->jumps.data[i],
		(s->jumps.len - 1 - i) * sizeof(jump));
	s->jumps.data[i] = jump;
	return &s->jumps.data[i];
}

/* A jump through a register that holds `target`. */
static void meet_jump(struct solver *s, const struct flow_state *state, struct rva at,
		      const struct value *target)
{
	struct jump *jump = jump_at(s, at);
	uint32_t count;

	if (!jump)
		return;
	jump->target = *target;
	jump->solved = target->kind == VALUE_WHOLE || target->kind == VALUE_ADDRESS;
	jump->conflict = false;
	if (target->survived && target->table.v != target->base.v)
		jump->target.kind = VALUE_COMPUTED; /* no table of the compiler's */
	if (jump->target.kind != VALUE_TARGET)
		return;
	count = solver_table_count(s, target);
	jump->solved = count > 0;
	jump->conflict = count == 0;
	spend(s->d, count);
	for (uint32_t i = 0; i < count && !jump_solver_is_spent(s->d); i++) {
		struct rva to;

		if (solver_read_entry(s, target, i, &to))
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
	struct value value;

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
		if (insn->jump_computed) {
			value = flow_state_read(state, at, &detail->target);
			meet_jump(s, state, at, &value);
		}
		return false;
	case FLOW_RETURN:
	case FLOW_STOP:
		return false;
	default:
		return true;
	}
}

/* The instruction at `offset` of the function, NULL when there is none or memory is
 * out. */
static const struct described_insn *describe(struct solver *s, uint32_t offset)
{
	struct described *described = s->described;
	const uint8_t *bytes = s->range->bytes + (s->begin.v - s->range->begin.v);
	struct described_insn insn;

	if (described->index_of[offset] >= 0)
		return &described->data[described->index_of[offset]];
	if (!insn_describe(bytes + offset, s->size - offset, &insn.insn, &insn.detail))
		return NULL;
	if (described->len >= at_least(s->d, DESCRIBED_MIN, DESCRIBED_PART)) {
		described->last = insn;
		return &described->last;
	}
	described->index_of[offset] = (int32_t)described->len;
	if (!vec_push(described, insn)) {
		s->d->out_of_memory = true;
		return NULL;
	}
	return &described->data[described->len - 1];
}

/* Runs one block: from a leader to the next, or to where control ends. */
static void run_block(struct solver *s, uint32_t offset)
{
	const uint8_t *map = s->range->map + (s->begin.v - s->range->begin.v);
	struct flow_state state = s->states.data[s->state_of[offset]];
	bool first = true, again = s->ran.data[s->state_of[offset]];

	s->ran.data[s->state_of[offset]] = true;
	while (offset < s->size && (map[offset] & CODE_STATE) == CODE_START) {
		struct rva here = rva_add(s->begin, offset);
		const struct described_insn *known;
		struct described_insn now;

		if (!first && ((map[offset] & CODE_LABEL) || s->state_of[offset] >= 0)) {
			flow_to(s, &state, here);
			return;
		}
		first = false;
		known = describe(s, offset);
		if (!known || !spend(s->d, 1))
			return;
		now = *known;
		if (again)
			flow_state_retire(&state, here);
		flow_state_step(&state, here, &now.insn, &now.detail);
		if (!leave(s, &state, here, &now.insn, &now.detail))
			return;
		offset += now.insn.length;
	}
}

/* Blocks run in the order of their addresses, which is nearly that of control; a
 * block then sees most of what flows into it before it runs. */
static void run_to_fixpoint(struct solver *s)
{
	do {
		uint8_t *at = s->pending;

		s->pending_before = false;
		spend(s->d, s->size / 512);
		while ((at = memchr(at, 1, s->size - (size_t)(at - s->pending))) &&
		       !jump_solver_is_spent(s->d)) {
			*at = 0;
			s->running = (uint32_t)(at - s->pending);
			run_block(s, s->running);
			at++;
		}
	} while (s->pending_before && !jump_solver_is_spent(s->d));
}

/* Whether nothing is known where control enters at the function's begin. */
static bool begins_unknown(const struct solver *s)
{
	const struct function *f;

	if (!s->proof)
		return false;
	f = &s->d->graph->functions.data[s->function];
	return f->kind == FUNCTION_CHAINED ||
	       !s->proof->families.members[s->function].called;
}

/* Enters wherever the map has all of `flags` and control has not come yet. */
static void enter_unknown(struct solver *s, uint8_t flags)
{
	const uint8_t *map = s->range->map + (s->begin.v - s->range->begin.v);
	struct flow_state state;

	for (uint32_t i = 1; i < s->size && !s->d->out_of_memory; i++) {
		if ((map[i] & flags) != flags || s->state_of[i] >= 0 ||
		    (map[i] & CODE_STATE) != CODE_START)
			continue;
		flow_state_unknown(&state, s->begin.v + i);
		flow_to(s, &state, rva_add(s->begin, i));
	}
}

/* Enters the function at its begin, and where something outside leads to; nothing is
 * known there (landing pads, labels taken as addresses, ways back from cold parts).  Then
 * wherever a label is that the flow has not come to. */
static void follow_values(struct solver *s)
{
	struct flow_state state;

	if (begins_unknown(s))
		flow_state_unknown(&state, s->begin.v);
	else
		flow_state_entry(&state, s->begin.v);
	flow_to(s, &state, s->begin);
	enter_unknown(s, CODE_LABEL | CODE_ENTERED);
	run_to_fixpoint(s);
	enter_unknown(s, CODE_LABEL);
	run_to_fixpoint(s);
}

bool described_init(struct described *described, uint32_t size)
{
	*described =
		(struct described){.index_of = malloc(size * sizeof(*described->index_of))};
	if (described->index_of)
		memset(described->index_of, 0xff, size * sizeof(*described->index_of));
	return described->index_of != NULL;
}

void described_release(struct described *described)
{
	free(described->index_of);
	vec_release(described);
}

bool solver_init(struct solver *s, struct discovery *d, enum solver_mode mode,
		 struct rva begin, uint32_t size, struct described *described)
{
	*s = (struct solver){.d = d,
			     .mode = mode,
			     .range = discovery_range(d, begin),
			     .begin = begin,
			     .size = size,
			     .described = described};
	s->state_of = malloc(size * sizeof(*s->state_of));
	s->pending = calloc(1, size);
	if (!s->state_of || !s->pending) {
		free(s->state_of);
		free(s->pending);
		d->out_of_memory = true;
		return false;
	}
	memset(s->state_of, 0xff, size * sizeof(*s->state_of));
	return true;
}

void solver_release(struct solver *s)
{
	free(s->state_of);
	free(s->pending);
	vec_release(&s->states);
	vec_release(&s->ran);
	vec_release(&s->jumps);
}

/* The instruction that ends where the one at byte `at` begins, when control can
 * come to `at` from there only; UINT32_MAX otherwise. */
static uint32_t only_way_to(const struct code_range *range, uint32_t at)
{
	const uint8_t stop = CODE_FUNCTION | CODE_BOUNDARY | CODE_LABEL;

	if (range->map[at] & stop)
		return UINT32_MAX;
	while (at > 0) {
		uint8_t state = range->map[--at] & CODE_STATE;

		if (state == CODE_START)
			return at;
		if (state != CODE_INSIDE)
			break;
	}
	return UINT32_MAX;
}

/* Whether the jump has a tail call's form, or is led by a pointer that was loaded whole
 * right before, as nearly all jumps through registers are.  They need no look at the
 * rest of their function.  What is loaded from the stack may have been computed. */
bool jump_is_plain_tail_call(const struct discovery *d, struct rva jump)
{
	enum { LOOK_BACK = 12 /* instructions */ };
	const struct code_range *range = discovery_range(d, jump);
	uint32_t at = jump.v - range->begin.v;
	struct insn_detail detail;
	struct insn insn;
	uint8_t reg;

	if (!insn_describe(range->bytes + at, range->size - at, &insn, &detail))
		return false;
	if (insn.tail_call)
		return true;
	reg = detail.target.reg;
	for (int i = 0; i < LOOK_BACK && reg < REGISTER_COUNT; i++) {
		at = only_way_to(range, at);
		if (at == UINT32_MAX ||
		    !insn_describe(range->bytes + at, range->size - at, &insn, &detail) ||
		    insn.flow == FLOW_CALL || insn.flow == FLOW_CALL_INDIRECT)
			return false;
		if (!(detail.written >> reg & 1))
			continue;
		return detail.op == OP_MOVE && detail.target.kind == OPERAND_REGISTER &&
		       detail.target.reg == reg && detail.source.kind == OPERAND_MEMORY &&
		       detail.source.size == 8 && detail.source.base != REGISTER_RSP &&
		       detail.source.base != REGISTER_RBP;
	}
	return false;
}

static bool goes_on(const struct insn *insn)
{
	return insn->flow != FLOW_JUMP && insn->flow != FLOW_JUMP_INDIRECT &&
	       insn->flow != FLOW_RETURN && insn->flow != FLOW_STOP;
}

/* Follows values through the instructions right before the jump at `at`, from the last
 * label on, where nothing is known.  True when that tells the table and its length, as it
 * does for nearly all switches: then the rest of the function need not be looked at. */
static bool solve_straight(struct solver *s, struct rva at)
{
	enum { LOOK_BACK = 24 /* instructions */ };
	uint32_t offsets[LOOK_BACK + 1], count = 0, base = s->begin.v - s->range->begin.v;
	uint32_t place = at.v - s->range->begin.v;
	const struct described_insn *known;
	struct flow_state state;
	struct value value;

	for (; place != UINT32_MAX && place >= base && count <= LOOK_BACK;
	     place = only_way_to(s->range, place))
		offsets[count++] = place - base;
	flow_state_unknown(&state, s->begin.v + offsets[count - 1]);
	spend(s->d, count);
	while (--count > 0) {
		struct rva here = rva_add(s->begin, offsets[count]);

		known = describe(s, offsets[count]);
		if (!known)
			return false;
		flow_state_step(&state, here, &known->insn, &known->detail);
		if (known->insn.flow == FLOW_BRANCH)
			flow_state_branch(&state, known->detail.condition, false);
		if (!goes_on(&known->insn))
			flow_state_unknown(&state, s->begin.v + offsets[count - 1]);
	}
	known = describe(s, offsets[0]);
	if (!known || !known->insn.jump_computed)
		return false;
	value = flow_state_read(&state, at, &known->detail.target);
	if (value.kind != VALUE_WHOLE && value.kind != VALUE_ADDRESS &&
	    (value.kind != VALUE_TARGET || value.bound == 0 ||
	     solver_table_count(s, &value) == 0))
		return false;
	meet_jump(s, &state, at, &value);
	return true;
}

static bool solves_itself(struct solver *s, struct rva jump)
{
	return !solver_holds(s, jump) || jump_is_plain_tail_call(s->d, jump) ||
	       solve_straight(s, jump);
}

/* Tries each jump of the function by the instructions before it; false when some need
 * more.  Once one does, only bounded exploring goes on. */
static bool solve_by_itself(struct solver *s, const struct rva *jumps, uint32_t sorted,
			    uint32_t count)
{
	uint32_t i = rvas_first_from(jumps, sorted, s->begin);
	bool all = true;

	spend(s->d, (count - sorted) / 16);
	for (; i < sorted && solver_holds(s, jumps[i]); i++)
		if (all || s->mode == EXPLORE_BOUNDED)
			all &= solves_itself(s, jumps[i]);
	for (i = sorted; i < count; i++)
		if (all || s->mode == EXPLORE_BOUNDED)
			all &= solves_itself(s, jumps[i]);
	return all;
}

/* Solves the function's jumps, which are among the `count` ones of discovery, of which
 * the first `sorted` ascend.  When they can't all be told from the instructions before
 * them, values are followed through the function; bounded exploring leaves that for
 * later, when most code will have been found without. */
void solver_solve(struct solver *s, const struct rva *jumps, uint32_t sorted,
		  uint32_t count)
{
	if (solve_by_itself(s, jumps, sorted, count))
		return;
	if (s->mode == EXPLORE_BOUNDED) {
		s->gave_up = true;
		return;
	}
	s->jumps.len = 0;
	s->states.len = s->ran.len = 0;
	memset(s->state_of, 0xff, s->size * sizeof(*s->state_of));
	memset(s->pending, 0, s->size);
	follow_values(s);
}
