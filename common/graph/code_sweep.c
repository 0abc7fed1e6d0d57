/* Decoding all code, and recording what each instruction refers to.
 *
 * First what can be reached: from each entered place on, instruction by
 * instruction, until control does not go on; targets of branches are entered in
 * turn.  int3 and ud2 end a run as a return does: decoding on behind them gives
 * nonsense (observed: 1,095 false decode errors in one image of 26 MB).  Then
 * the holes.  A hole inside a function table entry is code that only a table
 * or exception data leads to; one between the entries is padding, a leaf that
 * nothing refers to (an island), or bytes that are not code.  A hole is taken
 * for code only when it decodes whole up to its end, nothing reads it as data,
 * and, for an island, all its branches land on instructions.
 *
 * Every byte is decoded once, or twice when it lies in a hole.
 */
#include <string.h>

#include "graph/discovery.h"

static struct rva target_of(const struct insn *insn, struct rva at)
{
	return rva_add(at, insn->length + (uint32_t)insn->relative);
}

/* Whether [at, at + length) is still unknown and crosses no boundary. */
static bool fits(const struct code_range *range, uint32_t at, uint32_t length)
{
	for (uint32_t i = 1; i < length; i++)
		if ((range->map[at + i] & CODE_STATE) != CODE_UNKNOWN ||
		    (range->map[at + i] & CODE_BOUNDARY))
			return false;
	return true;
}

static void mark(struct code_range *range, uint32_t at, uint32_t length, uint8_t first,
		 uint8_t rest)
{
	range->map[at] |= first;
	for (uint32_t i = 1; i < length; i++)
		range->map[at + i] |= rest;
}

/* A direct call, jump or branch. */
static void add_branch(struct discovery *d, const struct insn *insn, struct rva at,
		       struct ref ref, const struct runtime_function *entry)
{
	bool inside =
		entry && ref.target.v >= entry->begin.v && ref.target.v < entry->end.v;
	bool in_table = inside || discovery_table_entry(d, ref.target);
	struct branch branch = {at, ref.target};
	uint8_t *state = discovery_state(d, ref.target);

	/* Bare code that is called, or that a jump out of a function table entry leads
	 * to (a tail call), begins a function.  Whether two places in bare code are in
	 * one function is not known yet. */
	if (insn->flow == FLOW_CALL) {
		discovery_enter(d, ref.target, !in_table);
	} else {
		discovery_reach(d, ref.target);
		if (state && entry && !in_table)
			*state |= CODE_FUNCTION;
		if (!vec_push(&d->branches, branch))
			d->out_of_memory = true;
		if (inside)
			return;
	}
	if (insn->field_size < 4) {
		struct short_branch short_branch = {at, ref.target};

		if (!vec_push(&d->short_branches, short_branch))
			d->out_of_memory = true;
		return;
	}
	discovery_ref(d, ref);
}

/* The lea at `at` takes the address of something in code. */
static void take_address(struct discovery *d, struct rva at, struct rva target,
			 uint8_t *state)
{
	const struct code_range *range = discovery_range(d, at);

	discovery_take(d, target);
	if (!discovery_table_entry(d, target) &&
	    address_is_read(range, at.v - range->begin.v))
		*state |= CODE_DATA;
}

static void add_field(struct discovery *d, const struct insn *insn, struct rva at,
		      const struct runtime_function *entry)
{
	struct ref ref = {
		.site = rva_add(at, insn->field_offset),
		.target = target_of(insn, at),
		.tail = (uint8_t)(insn->length - insn->field_offset - insn->field_size),
		.size = insn->field_size,
		.enters = insn->field != FIELD_MEMORY,
	};
	uint8_t *state = discovery_state(d, ref.target);

	/* Nothing lies before an image: bytes of something else, read as an instruction. */
	if (ref.target.v > INT32_MAX) {
		discovery_doubt(d, at, PIN_UNDECODED);
		return;
	}
	if (!state)
		discovery_note_behind(d, ref.target);
	switch (insn->field) {
	case FIELD_BRANCH:
		ref.kind = REF_BRANCH;
		add_branch(d, insn, at, ref, entry);
		return;
	case FIELD_ADDRESS:
		ref.kind = REF_ADDRESS;
		if (state)
			take_address(d, at, ref.target, state);
		else if (!vec_push(&d->data_labels, ref.target))
			d->out_of_memory = true;
		break;
	default:
		ref.kind = REF_MEMORY;
		if (state)
			*state |= CODE_LABEL | CODE_DATA;
		else if (!vec_push(&d->data_labels, ref.target))
			d->out_of_memory = true;
	}
	discovery_ref(d, ref);
}

static void add_constants(struct discovery *d, const struct insn *insn, struct rva at)
{
	for (unsigned i = 0; i < insn->constant_count; i++) {
		uint64_t value = insn->constants[i];
		struct code_constant constant = {at, rva_of((uint32_t)value)};

		absolute_refs_constant(d, value);
		if (value > UINT32_MAX || !discovery_range(d, constant.value))
			continue;
		if (!vec_push(&d->constants, constant))
			d->out_of_memory = true;
		if (i + 1 == insn->constant_count && insn->displacement_offset &&
		    !vec_push(&d->displaced, constant))
			d->out_of_memory = true;
	}
}

static bool goes_on(const struct insn *insn)
{
	return insn->flow != FLOW_JUMP && insn->flow != FLOW_JUMP_INDIRECT &&
	       insn->flow != FLOW_RETURN && insn->flow != FLOW_STOP;
}

/* An instruction at `at` does not fit: it, or what it reaches into, is none. */
static void doubt_both(struct discovery *d, struct rva at, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		discovery_doubt(d, rva_add(at, i), PIN_OVERLAP);
}

/* Whether `rva` is an instruction, or may be one. */
static bool may_be_instruction(const struct code_range *range, struct rva rva)
{
	uint8_t state;

	if (!rva_in(rva, range->begin, range->size))
		return false;
	state = range->map[rva.v - range->begin.v] & CODE_STATE;
	return state == CODE_START || state == CODE_UNKNOWN;
}

/* Whether [at, end) begins, or goes on, with two words side by side that lead to
 * instructions near by: a jump table of RVAs, it seems.  Instructions have such words by
 * chance once in 2^26 places of a big image, and more often in a small one. */
static bool has_table(const struct code_range *range, uint32_t at, uint32_t end)
{
	enum { NEAR = 1 << 18 /* bytes */ };
	uint32_t run = 0;

	at = (range->begin.v + at + 3) / 4 * 4 - range->begin.v;
	for (; at + 4 <= end && run < 2; at += 4) {
		uint32_t word = load_u32(range->bytes + at), here = range->begin.v + at;

		if (word - here + NEAR < 2 * NEAR &&
		    may_be_instruction(range, rva_of(word)))
			run++;
		else
			run = 0;
	}
	return run == 2;
}

/* Control runs over the end of a row of the function table: into a chained one, which
 * may hold a table as well when what ends here is a call that never returns. */
static void reach_part(struct discovery *d, struct rva rva)
{
	const struct runtime_function *entry = discovery_table_entry(d, rva);
	const struct code_range *range = discovery_range(d, rva);
	uint32_t at = rva.v - range->begin.v;

	if (entry && entry->begin.v == rva.v && at + 8 <= range->size &&
	    !has_table(range, at, at + 8))
		discovery_reach(d, rva);
}

/* Decodes from `start` until control ends, known code is met, or a boundary. */
static void sweep_run(struct discovery *d, struct rva start)
{
	struct code_range *range = discovery_range(d, start);
	const struct runtime_function *entry = discovery_table_entry(d, start);
	uint32_t at = start.v - range->begin.v;
	bool padded = false, runs_on = false;

	while (at < range->size) {
		struct rva here = rva_add(range->begin, at);
		uint8_t state = range->map[at] & CODE_STATE;
		struct insn insn;

		if (state == CODE_START || state == CODE_PADDING)
			return;
		if (state == CODE_INSIDE || state == CODE_TABLE) {
			discovery_doubt(d, here, PIN_OVERLAP);
			return;
		}
		if (at != start.v - range->begin.v && (range->map[at] & CODE_BOUNDARY)) {
			if (runs_on)
				reach_part(d, here);
			return;
		}
		if (!insn_decode(range->bytes + at, range->size - at, &insn)) {
			discovery_doubt(d, here, PIN_UNDECODED);
			return;
		}
		if (!fits(range, at, insn.length)) {
			doubt_both(d, here, insn.length);
			return;
		}
		/* Padding behind a call that never returns; more of it is no code. */
		if (padded && insn.padding && insn.flow == FLOW_STOP)
			return;
		padded = insn.padding;
		runs_on = !padded;
		mark(range, at, insn.length, CODE_START, CODE_INSIDE);
		d->graph->decoded++;
		if (insn.field != FIELD_NONE)
			add_field(d, &insn, here, entry);
		add_constants(d, &insn, here);
		if (insn.loads_entry && !vec_push(&d->entry_loads, here))
			d->out_of_memory = true;
		if (insn.jump_computed &&
		    !vec_push(&d->computed_jumps, (struct computed_jump){.at = here}))
			d->out_of_memory = true;
		if (!goes_on(&insn))
			return;
		at += insn.length;
	}
}

void code_sweep_reached(struct discovery *d)
{
	while (d->work.len > 0 && !d->out_of_memory)
		sweep_run(d, d->work.data[--d->work.len]);
}

/* A run of unknown bytes without a boundary or label inside.  What begins at a
 * label is no code that merely nobody has reached, so it is left alone. */
struct hole {
	struct code_range *range;
	uint32_t begin, end; /* bytes from the range's begin */
};

static bool next_hole(struct code_range *range, uint32_t from, struct hole *ret_hole)
{
	uint32_t begin = code_map_next_unknown(range->map, from, range->size), end;

	if (begin >= range->size)
		return false;
	end = begin + 1;
	while (end < range->size &&
	       (range->map[end] & (CODE_STATE | CODE_BOUNDARY | CODE_LABEL)) == 0)
		end++;
	*ret_hole = (struct hole){range, begin, end};
	return true;
}

/* Length of the padding instruction or byte at `at`, 0 when there is none.
 * Zero bytes pad only up to a 16-byte boundary or the hole's end: linkers fill
 * so (observed: GNU ld 2.40, lld 14). */
static uint32_t padding_at(const struct hole *hole, uint32_t at)
{
	const uint8_t *bytes = hole->range->bytes;
	uint32_t end = at;
	struct insn insn;

	if (bytes[at] == 0xcc || bytes[at] == 0x90)
		return 1;
	if (insn_decode(bytes + at, hole->end - at, &insn) && insn.padding)
		return insn.length;
	while (end < hole->end && bytes[end] == 0)
		end++;
	if (end > at && (end == hole->end || (hole->range->begin.v + end) % 16 == 0))
		return end - at;
	return 0;
}

/* Marks the padding at the hole's begin, and gives what is left of it.  Padding
 * that something refers to stays in the hole. */
static void skip_padding(struct hole *hole)
{
	while (hole->begin < hole->end) {
		uint8_t *map = hole->range->map;
		uint32_t length = padding_at(hole, hole->begin);

		if (length == 0)
			return;
		for (uint32_t i = 0; i < length; i++)
			if (map[hole->begin + i] & (CODE_LABEL | CODE_FUNCTION))
				return;
		mark(hole->range, hole->begin, length, CODE_PADDING, CODE_PADDING);
		hole->begin += length;
	}
}

/* Whether a branch from a hole to `target` lands on an instruction. */
static bool lands(const struct discovery *d, const struct hole *hole, struct rva target)
{
	uint8_t *state = discovery_state(d, target);

	if (!state)
		return false;
	/* Inside the hole the trial itself will find instruction starts. */
	return (*state & CODE_STATE) == CODE_START ||
	       rva_in(target, rva_add(hole->range->begin, hole->begin),
		      hole->end - hole->begin);
}

/* Whether the hole decodes whole, up to its end or to padding that reaches it,
 * and nothing reads it.  Control must not run from its end into something else than
 * code; at the end of a function table entry stands perhaps a call that never
 * returns.  An island's branches must land on instructions.
 *
 * Behind a call that never returns stands int3, and behind nothing else that control
 * runs on from.  What follows int3 does not count: when that moves away the hole must be
 * the same as before. */
static bool is_code(const struct discovery *d, const struct hole *hole, bool island)
{
	const uint8_t *map = hole->range->map;
	uint32_t at = hole->begin;
	bool open = true; /* whether control can run on from the last instruction */
	bool call = false, stopped = false; /* whether that is a call, and int3 follows */

	while (at < hole->end) {
		struct rva here = rva_add(hole->range->begin, at);
		struct insn insn;

		if (!insn_decode(hole->range->bytes + at, hole->end - at, &insn))
			return false;
		for (unsigned i = 0; i < insn.length; i++)
			if (map[at + i] & CODE_DATA)
				return false;
		if (island && insn.field == FIELD_BRANCH &&
		    !lands(d, hole, target_of(&insn, here)))
			return false;
		if (insn.padding) {
			stopped |= insn.flow == FLOW_STOP;
		} else {
			open = goes_on(&insn);
			call = insn.flow == FLOW_CALL || insn.flow == FLOW_CALL_INDIRECT;
			stopped = false;
		}
		at += insn.length;
	}
	if (!open || stopped)
		return !open || call;
	if (hole->end == hole->range->size)
		return !island;
	return (map[hole->end] & CODE_STATE) == CODE_START ||
	       (!island && (map[hole->end] & CODE_BOUNDARY));
}

/* Whether the hole holds nothing but jumps of five bytes, as an incremental linker's
 * thunks are: two bytes of each distance and the next opcode are often words that lead to
 * code near by, in a small image. */
static bool is_run_of_jumps(const struct hole *hole)
{
	enum { JUMP_BYTES = 5, JUMP_OPCODE = 0xe9, PADDING = 0xcc };
	uint32_t at = hole->begin;

	while (hole->end - at >= JUMP_BYTES && hole->range->bytes[at] == JUMP_OPCODE)
		at += JUMP_BYTES;
	while (at < hole->end && hole->range->bytes[at] == PADDING)
		at++;
	return at == hole->end;
}

/* Decodes all of a hole that is code, run by run, padding between them. */
static void sweep_code(struct discovery *d, struct hole hole)
{
	const uint8_t *map = hole.range->map;

	while (hole.begin < hole.end && !d->out_of_memory) {
		if ((map[hole.begin] & CODE_STATE) != CODE_UNKNOWN) {
			hole.begin++;
			continue;
		}
		skip_padding(&hole);
		if (hole.begin == hole.end)
			return;
		sweep_run(d, rva_add(hole.range->begin, hole.begin));
		code_sweep_reached(d);
		if ((map[hole.begin] & CODE_STATE) == CODE_UNKNOWN)
			return; /* a branch met on the way has brought doubt */
	}
}

/* What is neither padding nor code stays unknown. */
static void sweep_hole(struct discovery *d, struct hole hole)
{
	bool island;

	skip_padding(&hole);
	if (hole.begin == hole.end || (hole.range->map[hole.begin] & CODE_LABEL))
		return;
	island = !discovery_table_entry(d, rva_add(hole.range->begin, hole.begin));
	if ((is_run_of_jumps(&hole) || !has_table(hole.range, hole.begin, hole.end)) &&
	    is_code(d, &hole, island))
		sweep_code(d, hole);
}

void code_sweep_taken(struct discovery *d)
{
	for (uint32_t i = 0; i < d->taken_labels.len && !d->out_of_memory; i++) {
		struct rva label = d->taken_labels.data[i];
		uint8_t state = *discovery_state(d, label) & CODE_STATE;

		if (state == CODE_START ||
		    (state == CODE_UNKNOWN && code_trial_passes(d, label)))
			discovery_enter(d, label, !discovery_table_entry(d, label));
		code_sweep_reached(d);
	}
}

void code_sweep_holes(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->range_count; i++) {
		struct code_range *range = &d->graph->ranges[i];
		struct hole hole = {0};

		while (!d->out_of_memory && next_hole(range, hole.end, &hole))
			sweep_hole(d, hole);
	}
}
