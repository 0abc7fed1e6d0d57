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
 * there is one; otherwise as many as lead to instructions, up to the next label.  What
 * leads out of the function then is either a case in a cold part, or no entry at all
 * but chance; it is recorded as an entry, and pins what it leads to, so that the word
 * stays right either way.  A table stands in read-only data (GCC) or in the text behind its
 * function (LLVM).
 *
 * This is done in two ways.  Exploring happens while code is still being found: it
 * enters the targets and marks tables in the text, so that they are not decoded.
 * Proving happens at the end, when all code and all labels are known, and trusts
 * nothing of before.  At every place that something outside the function leads to, all
 * knowledge ends.  A table whose bound reaches over a label, or with an entry that is
 * no instruction, contradicts itself, and so does one that a label ends which stands
 * in its midst as it seems.  Then, and when the flow of values does not reach a jump,
 * it is not understood: it may lead anywhere in its function, in the function's other
 * parts, and to what nothing else leads to (function_family.h); all that is pinned.
 *
 * Rejected: looking for instruction patterns before the jump (bases are hoisted
 * out of loops, bounds are spilled).
 *
 * Cost: each block of a function with computed jumps is visited once for each time
 * the function is looked at, and again when a join has lost knowledge, which happens
 * a few times at most.
 */
#include <string.h>

#include "graph/discovery.h"
#include "graph/function_family.h"
#include "graph/value_flow.h"

enum { TABLE_LIMIT = 65536 /* entries; none met comes near */ };

enum solver_mode {
	EXPLORE_BOUNDED, /* tables with a bound only */
	EXPLORE_ALL,
	PROVE,
};

/* A computed jump that the flow of values has reached. */
struct jump {
	struct rva at;
	bool solved;         /* needs no care, or is led by the table of `target` */
	bool conflict;       /* its table contradicts itself */
	struct value target; /* what the register holds */
};

/* The instructions of a function that were decoded so far. */
struct described {
	int32_t *index_of; /* by byte of the function: index into `data`, -1 none; owned */
	struct described_insn {
		struct insn insn;
		struct insn_detail detail;
	} *data;
	uint32_t len, cap;
};

/* A table that a label ends though another entry seems to follow: the label must be
 * another table's. */
struct open_table {
	struct rva jump, end;
};

/* What proving gathers over all functions. */
struct proof {
	struct function_families families;
	VEC(struct open_table) open;
	bool again; /* a function has got a new way into it */
};

/* One function, or before functions are known the code from one start to the next. */
struct solver {
	struct discovery *d;
	enum solver_mode mode;
	const struct code_range *range;
	struct rva begin;
	uint32_t size;                     /* bytes */
	int32_t *state_of;                 /* by byte: index into states, -1 none; owned */
	uint8_t *pending;                  /* by byte: whether the block here is to run; owned */
	uint32_t running;                  /* offset of the running block */
	bool pending_before;               /* a block before it, or itself, became pending */
	VEC(struct flow_state) states;
	VEC(bool) ran;                     /* by state: whether its block has run before */
	struct described *described;       /* borrowed */
	VEC(struct jump) jumps;
	struct proof *proof;               /* borrowed; NULL when exploring */
	uint32_t function;                 /* id; only when proving */
};

static int compare_rvas(const void *a, const void *b)
{
	const struct rva *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

static void sort_rvas(struct rva *rvas, uint32_t count)
{
	if (count > 0)
		qsort(rvas, count, sizeof(*rvas), compare_rvas);
}

static void sort_labels(struct discovery *d)
{
	sort_rvas(d->data_labels.data, d->data_labels.len);
	sort_rvas(d->computed_jumps.data, d->computed_jumps.len);
	sort_rvas(d->entry_loads.data, d->entry_loads.len);
}

/* The index of the first of sorted `rvas` at or behind `rva`. */
static uint32_t first_from(const struct rva *rvas, uint32_t count, struct rva rva)
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

/* Whether a table may be read in the function. */
static bool may_read_table(const struct discovery *d, struct rva begin, uint32_t size)
{
	uint32_t i = first_from(d->entry_loads.data, d->entry_loads.len, begin);

	return i < d->entry_loads.len && rva_in(d->entry_loads.data[i], begin, size);
}

/* The first label behind `rva` in data, or the end of the address space. */
static uint32_t next_data_label(const struct discovery *d, struct rva rva)
{
	uint32_t i = first_from(d->data_labels.data, d->data_labels.len, rva_add(rva, 1));

	return i < d->data_labels.len ? d->data_labels.data[i].v : UINT32_MAX;
}

/* The first byte behind `rva` in code where no table can go on. */
static uint32_t next_code_label(const struct code_range *range, struct rva rva)
{
	uint32_t at = rva.v - range->begin.v + 1;

	while (at < range->size) {
		uint8_t state = range->map[at] & CODE_STATE;

		if ((range->map[at] & (CODE_LABEL | CODE_FUNCTION | CODE_BOUNDARY | CODE_DATA)) ||
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
	uint32_t limit = (end - table.v) / 4;

	return limit < TABLE_LIMIT ? limit : TABLE_LIMIT;
}

static bool in_function(const struct solver *s, struct rva rva)
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
static bool read_entry(const struct solver *s, const struct value *target, uint32_t i,
		       struct rva *ret_target)
{
	uint8_t *byte, state;

	if (!entry_target(s, target, i, ret_target))
		return false;
	if (ret_target->v == s->begin.v + s->size)
		return true; /* unreachable code at the end, of no bytes */
	byte = discovery_state(s->d, *ret_target);
	state = byte ? *byte & CODE_STATE : CODE_INSIDE;
	return state == CODE_START ||
	       (s->mode != PROVE && in_function(s, *ret_target) &&
		(state == CODE_UNKNOWN || state == CODE_PADDING));
}

/* The number of entries of a table without a bound.  One that would lead into the
 * function, but to no instruction, is no proper end. */
static uint32_t open_count(const struct solver *s, const struct value *target, uint32_t limit)
{
	uint32_t count = 0;
	struct rva to;

	while (count < limit && read_entry(s, target, count, &to))
		count++;
	if (s->mode == PROVE && count < limit && entry_target(s, target, count, &to) &&
	    in_function(s, to))
		return 0;
	return count;
}

/* The number of entries, 0 when the table contradicts itself. */
static uint32_t table_count(const struct solver *s, const struct value *target)
{
	uint32_t limit = table_limit(s, target->table), count = 0;
	struct rva to;

	if (target->bound == 0)
		return s->mode == EXPLORE_BOUNDED ? 0 : open_count(s, target, limit);
	if (target->bound > limit)
		return 0;
	for (; count < target->bound; count++)
		if (!read_entry(s, target, count, &to))
			return 0;
	return count;
}

/* Lets `state` flow to the leader at `to`, when that lies in the function. */
static void flow_to(struct solver *s, const struct flow_state *state, struct rva to)
{
	uint32_t offset = to.v - s->begin.v;

	if (!in_function(s, to) ||
	    (s->range->map[to.v - s->range->begin.v] & CODE_STATE) != CODE_START)
		return;
	if (s->state_of[offset] < 0) {
		s->state_of[offset] = (int32_t)s->states.len;
		/* Without a label, a block that begins before it may have run over it. */
		if (!vec_push(&s->states, *state) ||
		    !vec_push(&s->ran, !(s->range->map[to.v - s->range->begin.v] & CODE_LABEL)))
			s->d->out_of_memory = true;
	} else if (!flow_state_join(&s->states.data[s->state_of[offset]], state, to)) {
		return;
	}
	s->pending[offset] = 1;
	s->pending_before |= offset <= s->running;
}

/* The entry for the jump at `at`, made when there is none; NULL when memory is out. */
static struct jump *jump_at(struct solver *s, struct rva at)
{
	struct jump jump = {.at = at};

	for (uint32_t i = 0; i < s->jumps.len; i++)
		if (s->jumps.data[i].at.v == at.v)
			return &s->jumps.data[i];
	if (!vec_push(&s->jumps, jump)) {
		s->d->out_of_memory = true;
		return NULL;
	}
	return &s->jumps.data[s->jumps.len - 1];
}

/* A jump through a register that holds `target`. */
static void meet_jump(struct solver *s, const struct flow_state *state, struct rva at,
		      const struct value *target, bool is_tail_call)
{
	struct jump *jump = jump_at(s, at);
	uint32_t count;

	if (!jump)
		return;
	jump->target = *target;
	jump->solved = target->kind == VALUE_WHOLE || target->kind == VALUE_ADDRESS ||
		       (target->kind == VALUE_SAVED && is_tail_call);
	jump->conflict = false;
	if (target->survived && target->table.v != target->base.v)
		jump->target.kind = VALUE_COMPUTED; /* no table of the compiler's */
	if (jump->target.kind != VALUE_TARGET)
		return;
	count = table_count(s, target);
	jump->solved = count > 0;
	jump->conflict = count == 0;
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
			meet_jump(s, state, at, &value, insn->tail_call);
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
		if (!known)
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
		while ((at = memchr(at, 1, s->size - (size_t)(at - s->pending))) &&
		       !s->d->out_of_memory) {
			*at = 0;
			s->running = (uint32_t)(at - s->pending);
			run_block(s, s->running);
			at++;
		}
	} while (s->pending_before && !s->d->out_of_memory);
}

/* Whether nothing is known where control enters at the function's begin. */
static bool begins_unknown(const struct solver *s)
{
	const struct function *f;

	if (!s->proof)
		return false;
	f = &s->d->graph->functions.data[s->function];
	return f->kind == FUNCTION_CHAINED || !s->proof->families.members[s->function].called;
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

static bool described_init(struct described *described, uint32_t size)
{
	*described = (struct described){.index_of = malloc(size * sizeof(*described->index_of))};
	if (described->index_of)
		memset(described->index_of, 0xff, size * sizeof(*described->index_of));
	return described->index_of != NULL;
}

static void described_release(struct described *described)
{
	free(described->index_of);
	vec_release(described);
}

static bool solver_init(struct solver *s, struct discovery *d, enum solver_mode mode,
			struct rva begin, uint32_t size, struct described *described)
{
	*s = (struct solver){.d = d, .mode = mode, .range = discovery_range(d, begin),
			     .begin = begin, .size = size, .described = described};
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

static void solver_release(struct solver *s)
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

/* Whether the jump is led by a pointer that was loaded whole right before: a tail
 * call, as nearly all jumps through registers are.  They need no look at the rest of
 * their function.  What is loaded from the stack may have been computed. */
static bool is_plain_tail_call(const struct discovery *d, struct rva jump)
{
	enum { LOOK_BACK = 12 /* instructions */ };
	const struct code_range *range = discovery_range(d, jump);
	uint32_t at = jump.v - range->begin.v;
	struct insn_detail detail;
	struct insn insn;
	uint8_t reg;

	if (!insn_describe(range->bytes + at, range->size - at, &insn, &detail))
		return false;
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
	    (value.kind != VALUE_TARGET || value.bound == 0 || table_count(s, &value) == 0))
		return false;
	meet_jump(s, &state, at, &value, known->insn.tail_call);
	return true;
}

static bool solves_itself(struct solver *s, struct rva jump)
{
	return !in_function(s, jump) || is_plain_tail_call(s->d, jump) || solve_straight(s, jump);
}

/* Solves the function's jumps, which are among the `count` ones of discovery, of which
 * the first `sorted` ascend.  When they can't all be told from the instructions before
 * them, values are followed through the function. */
static void solve_jumps(struct solver *s, const struct rva *jumps, uint32_t sorted,
			uint32_t count)
{
	uint32_t i = first_from(jumps, sorted, s->begin);

	while (i < sorted && in_function(s, jumps[i]) && solves_itself(s, jumps[i]))
		i++;
	if (i == sorted || !in_function(s, jumps[i]))
		for (i = sorted; i < count && solves_itself(s, jumps[i]);)
			i++;
	if (i == count)
		return;
	s->jumps.len = 0;
	s->states.len = s->ran.len = 0;
	memset(s->state_of, 0xff, s->size * sizeof(*s->state_of));
	memset(s->pending, 0, s->size);
	follow_values(s);
}

/* The code from the function's start at or before `rva` to the next. */
static void extent_of(const struct discovery *d, struct rva rva, struct rva *ret_begin,
		      uint32_t *ret_size)
{
	const struct runtime_function *entry = discovery_table_entry(d, rva);
	const struct code_range *range = discovery_range(d, rva);
	uint32_t begin = rva.v - range->begin.v, end = begin + 1;
	const uint8_t stop = CODE_FUNCTION | CODE_BOUNDARY;

	if (entry) {
		*ret_begin = entry->begin;
		*ret_size = entry->end.v - entry->begin.v;
		return;
	}
	while (begin > 0 && !(range->map[begin] & stop))
		begin--;
	while (end < range->size && !(range->map[end] & stop))
		end++;
	*ret_begin = rva_add(range->begin, begin);
	*ret_size = end - begin;
}

/* Marks a table in the text; true when it was not marked before. */
static bool mark_table(struct solver *s, const struct value *target, uint32_t count)
{
	struct code_range *range = discovery_range(s->d, target->table);
	uint32_t at;
	bool found = false;

	if (!range)
		return false;
	at = target->table.v - range->begin.v;
	for (uint32_t i = 0; i < 4 * count; i++) {
		if ((range->map[at + i] & CODE_STATE) == CODE_UNKNOWN) {
			range->map[at + i] |= CODE_TABLE;
			found = true;
		}
	}
	return found;
}

/* Enters what the tables of one function lead to; true when that is new. */
static bool enter_targets(struct solver *s)
{
	bool found = false;

	for (uint32_t i = 0; i < s->jumps.len; i++) {
		const struct value *target = &s->jumps.data[i].target;
		uint32_t count = target->kind == VALUE_TARGET ? table_count(s, target) : 0;

		found |= mark_table(s, target, count);
		for (uint32_t e = 0; e < count; e++) {
			struct rva to;

			if (!read_entry(s, target, e, &to) || !in_function(s, to))
				continue;
			found |= (*discovery_state(s->d, to) & CODE_STATE) != CODE_START;
			discovery_reach(s->d, to);
		}
	}
	return found;
}

/* Whether all computed jumps met were understood. */
static bool is_complete(const struct solver *s)
{
	for (uint32_t i = 0; i < s->jumps.len; i++)
		if (!s->jumps.data[i].solved)
			return false;
	return true;
}

/* Follows one function's jumps as long as they lead to more code in it.  The first
 * `sorted` of all jumps ascend. */
static bool explore_function(struct discovery *d, enum solver_mode mode, struct rva begin,
			     uint32_t size, uint32_t sorted, bool *ret_complete)
{
	bool found = false, more = true;
	struct described described;

	*ret_complete = false;
	if (!described_init(&described, size)) {
		d->out_of_memory = true;
		return false;
	}
	while (more && !d->out_of_memory) {
		struct solver s;

		more = false;
		if (solver_init(&s, d, mode, begin, size, &described)) {
			solve_jumps(&s, d->computed_jumps.data, sorted, d->computed_jumps.len);
			more = enter_targets(&s);
			*ret_complete = is_complete(&s);
			solver_release(&s);
		}
		found |= more;
		code_sweep_reached(d);
	}
	described_release(&described);
	return found;
}

static uint32_t count_unknown(const struct discovery *d, struct rva begin, uint32_t size)
{
	const struct code_range *range = discovery_range(d, begin);
	const uint8_t *map = range->map + (begin.v - range->begin.v);
	uint32_t unknown = 0;

	for (uint32_t i = 0; i < size; i++)
		unknown += (map[i] & CODE_STATE) == CODE_UNKNOWN;
	return unknown;
}

/* One round over all functions with computed jumps, `jumps` ascending; writes what
 * it leaves of them to `ret_explored`. */
static bool explore_round(struct discovery *d, enum solver_mode mode, const struct rva *jumps,
			  uint32_t count, struct explored *explored, uint32_t *ret_count)
{
	struct rva begin = {0};
	uint32_t size = 0, before = 0;
	bool found = false;

	for (uint32_t i = 0; i < count && !d->out_of_memory; i++) {
		struct explored now;

		if (rva_in(jumps[i], begin, size) || is_plain_tail_call(d, jumps[i]))
			continue;
		extent_of(d, jumps[i], &begin, &size);
		if (!may_read_table(d, begin, size))
			continue;
		while (before < d->explored.len && d->explored.data[before].begin.v < begin.v)
			before++;
		now = (struct explored){.begin = begin,
					.mode = (uint8_t)mode,
					.unknown = count_unknown(d, begin, size)};
		if (before < d->explored.len && d->explored.data[before].begin.v == begin.v &&
		    d->explored.data[before].unknown == now.unknown &&
		    (d->explored.data[before].complete ||
		     d->explored.data[before].mode == now.mode)) {
			now.complete = d->explored.data[before].complete;
		} else {
			found |= explore_function(d, mode, begin, size, count,
						  &now.complete);
			now.unknown = count_unknown(d, begin, size);
		}
		explored[(*ret_count)++] = now;
	}
	return found;
}

bool jump_tables_explore(struct discovery *d, bool unbounded)
{
	uint32_t count = d->computed_jumps.len, explored_count = 0;
	struct rva *jumps = malloc(((size_t)count + 1) * sizeof(*jumps));
	struct explored *explored = malloc(((size_t)count + 1) * sizeof(*explored));
	bool found = false;

	if (jumps && explored) {
		/* A copy, because exploring finds more jumps; they have their turn in the
		 * next round. */
		sort_labels(d);
		if (count)
			memcpy(jumps, d->computed_jumps.data, count * sizeof(*jumps));
		found = explore_round(d, unbounded ? EXPLORE_ALL : EXPLORE_BOUNDED, jumps, count,
				      explored, &explored_count);
		vec_release(&d->explored);
		d->explored.data = explored;
		d->explored.len = explored_count;
		d->explored.cap = count + 1;
	} else {
		d->out_of_memory = true;
		free(explored);
	}
	free(jumps);
	return found && !d->out_of_memory;
}

/* An entry of a proven table that leads to `to`. */
static void add_entry(struct solver *s, const struct value *target, struct rva site, struct rva to)
{
	struct ref ref = {.site = site, .target = to, .base = target->base, .kind = REF_TABLE,
			  .size = 4};
	uint8_t *state = discovery_state(s->d, to);

	/* Labels of the program's own, relative to another label: what looks like one more
	 * of them behind the last must not count. */
	if (in_function(s, to) && in_function(s, target->base) && !in_function(s, target->table))
		return;
	if (!in_function(s, to)) {
		if (!state || (*state & CODE_STATE) != CODE_START)
			return; /* the function's end */
		s->proof->again |= function_families_join(&s->proof->families, s->d,
							  s->function, to);
		if (!target->bound)
			discovery_doubt(s->d, to, PIN_UNSOLVED_JUMP);
	}
	discovery_ref(s->d, ref);
}

static void add_table(struct solver *s, const struct jump *jump)
{
	const struct value *target = &jump->target;
	struct jump_table table = {.table = target->table, .base = target->base,
				   .jump = jump->at, .count = table_count(s, target)};
	struct open_table open = {jump->at, rva_add(table.table, 4 * table.count)};
	struct rva to;

	for (uint32_t i = 0; i < table.count; i++)
		if (read_entry(s, target, i, &to))
			add_entry(s, target, rva_add(table.table, 4 * i), to);
	if (!target->bound && read_entry(s, target, table.count, &to) &&
	    !vec_push(&s->proof->open, open))
		s->d->out_of_memory = true;
	if (!vec_push(&s->d->graph->jump_tables, table))
		s->d->out_of_memory = true;
}

static const struct jump *reached_jump(const struct solver *s, struct rva at)
{
	for (uint32_t i = 0; i < s->jumps.len; i++)
		if (s->jumps.data[i].at.v == at.v)
			return &s->jumps.data[i];
	return NULL;
}

static void doubt_jump(struct discovery *d, struct proof *proof, struct rva jump, bool conflict)
{
	discovery_doubt(d, jump, conflict ? PIN_TABLE_CONFLICT : PIN_UNSOLVED_JUMP);
	proof->families.members[graph_function_at(d->graph, jump)].unsolved = true;
}

static void prove_solved(struct solver *s, const struct rva *jumps, uint32_t count)
{
	solve_jumps(s, jumps, count, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct jump *jump = reached_jump(s, jumps[i]);

		if (is_plain_tail_call(s->d, jumps[i]))
			continue;
		if (!jump || !jump->solved)
			doubt_jump(s->d, s->proof, jumps[i], jump && jump->conflict);
		else if (jump->target.kind == VALUE_TARGET)
			add_table(s, jump);
	}
}

/* Proves the `count` jumps of one function. */
static void prove_function(struct discovery *d, struct proof *proof, uint32_t id,
			   const struct rva *jumps, uint32_t count)
{
	const struct function *function = &d->graph->functions.data[id];
	struct described described;
	struct solver s;

	if (!described_init(&described, function->size)) {
		d->out_of_memory = true;
		return;
	}
	if (solver_init(&s, d, PROVE, function->begin, function->size, &described)) {
		s.proof = proof;
		s.function = id;
		prove_solved(&s, jumps, count);
		solver_release(&s);
	}
	described_release(&described);
}

static void prove_all(struct discovery *d, struct proof *proof)
{
	const struct rva *jumps = d->computed_jumps.data;

	for (uint32_t i = 0, end; i < d->computed_jumps.len && !d->out_of_memory; i = end) {
		uint32_t id = graph_function_at(d->graph, jumps[i]);
		const struct function *f;

		end = i + 1;
		if (id == NO_FUNCTION || is_plain_tail_call(d, jumps[i]))
			continue;
		f = &d->graph->functions.data[id];
		while (end < d->computed_jumps.len && rva_in(jumps[end], f->begin, f->size))
			end++;
		prove_function(d, proof, id, jumps + i, end - i);
	}
}

/* A label that ends a table must be where another begins. */
static void doubt_open_tables(struct discovery *d, struct proof *proof)
{
	uint32_t count = d->graph->jump_tables.len;
	struct rva *starts = malloc(((size_t)count + 1) * sizeof(*starts));

	if (!starts) {
		d->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		starts[i] = d->graph->jump_tables.data[i].table;
	sort_rvas(starts, count);
	for (uint32_t i = 0; i < proof->open.len; i++) {
		struct rva end = proof->open.data[i].end;
		uint32_t at = first_from(starts, count, end);

		if (at == count || starts[at].v != end.v)
			doubt_jump(d, proof, proof->open.data[i].jump, true);
	}
	free(starts);
}

/* Tables that lead into other functions are new ways into them, and then what was
 * proven for those may not hold: all is done again until there are no more. */
void jump_tables_prove(struct discovery *d)
{
	uint32_t refs = d->graph->refs.len, doubts = d->doubts.len;
	struct proof proof = {0};

	sort_labels(d);
	if (!function_families_init(&proof.families, d)) {
		d->out_of_memory = true;
		return;
	}
	do {
		proof.again = false;
		proof.open.len = 0;
		d->graph->refs.len = refs;
		d->graph->jump_tables.len = 0;
		d->doubts.len = doubts;
		prove_all(d, &proof);
	} while (proof.again && !d->out_of_memory);
	doubt_open_tables(d, &proof);
	function_families_doubt(&proof.families, d);
	function_families_release(&proof.families);
	vec_release(&proof.open);
}
