/* Following computed jumps while code is still being found: what they lead to is
 * entered, and tables in the text are marked, so that they are not decoded.  Nothing is
 * recorded; jump_table.c proves all of it again at the end. */
#include <string.h>

#include "graph/jump_solver.h"

enum { EXPLORE_ROUNDS = 64 /* of a function whose tables lead each to the next jump */ };

/* Whether a table may be read in the function. */
static bool may_read_table(const struct discovery *d, struct rva begin, uint32_t size)
{
	uint32_t i = rvas_first_from(d->entry_loads.data, d->entry_loads.len, begin);

	return i < d->entry_loads.len && rva_in(d->entry_loads.data[i], begin, size);
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

struct rva_list {
	struct rva *data;
	uint32_t len, cap;
};

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

/* Marks the tables of one function and enters what they lead to; true when a table is
 * new. */
static bool enter_targets(struct solver *s)
{
	bool found = false;

	for (uint32_t i = 0; i < s->jumps.len; i++) {
		const struct value *target = &s->jumps.data[i].target;
		uint32_t count =
			target->kind == VALUE_TARGET ? solver_table_count(s, target) : 0;

		found |= mark_table(s, target, count);
		for (uint32_t e = 0; e < count; e++) {
			struct rva to;

			if (!solver_read_entry(s, target, e, &to) || !solver_holds(s, to))
				continue;
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
	return !s->gave_up;
}

/* Collects what lea seems to take the address of in code that is not reached yet.  The
 * label that ends a table may stand in code that only this table leads to, or another;
 * read too far, the table leads into the midst of instructions and tables.  Bytes may
 * be misread here: a table that ends too early will be found too short, and pins. */
static void collect_hints(struct discovery *d, struct rva begin, uint32_t size,
			  struct rva_list *hints)
{
	const struct code_range *range = discovery_range(d, begin);
	uint32_t at = begin.v - range->begin.v, end = at + size;

	while (at < end) {
		struct insn insn;

		if ((range->map[at] & CODE_STATE) != CODE_UNKNOWN ||
		    !insn_decode(range->bytes + at, end - at, &insn)) {
			at++;
			continue;
		}
		at += insn.length;
		if (insn.field == FIELD_ADDRESS &&
		    !vec_push(hints, rva_add(range->begin, at + (uint32_t)insn.relative)))
			d->out_of_memory = true;
	}
	rvas_sort(hints->data, hints->len);
}

/* Follows one function's jumps as long as they lead to more code in it.  The first
 * `sorted` of all jumps ascend. */
static bool explore_function(struct discovery *d, enum solver_mode mode, struct rva begin,
			     uint32_t size, uint32_t sorted, bool *ret_complete)
{
	bool found = false, more = true;
	struct described described;
	int rounds = 0;
	struct rva_list hints = {0};

	*ret_complete = false;
	if (!described_init(&described, size)) {
		d->out_of_memory = true;
		return false;
	}
	/* What counts is what was decoded: a target may be no code after all. */
	while (more && !jump_solver_is_spent(d) && rounds++ < EXPLORE_ROUNDS) {
		uint32_t decoded = d->graph->decoded;
		struct solver s;

		more = false;
		hints.len = 0;
		if (mode == EXPLORE_ALL)
			collect_hints(d, begin, size, &hints);
		if (solver_init(&s, d, mode, begin, size, &described)) {
			s.hints = hints.data;
			s.hint_count = hints.len;
			solver_solve(&s, d->computed_jumps.data, sorted,
				     d->computed_jumps.len);
			more = enter_targets(&s);
			*ret_complete = is_complete(&s);
			solver_release(&s);
		}
		code_sweep_reached(d);
		more |= d->graph->decoded != decoded;
		found |= more;
	}
	described_release(&described);
	vec_release(&hints);
	return found;
}

static bool is_padding(uint8_t map)
{
	return (map & CODE_STATE) == CODE_PADDING;
}

/* Bytes that may turn out to be code or a table.  A single nop amid code was taken for
 * padding but may be a case that does nothing (GCC, -O0). */
static uint32_t count_unknown(const struct discovery *d, struct rva begin, uint32_t size)
{
	const struct code_range *range = discovery_range(d, begin);
	const uint8_t *map = range->map + (begin.v - range->begin.v);
	const uint8_t *bytes = range->bytes + (begin.v - range->begin.v);
	uint32_t unknown = 0;

	for (uint32_t i = 0; i < size; i++) {
		uint8_t state = map[i] & CODE_STATE;

		if (state == CODE_UNKNOWN ||
		    (state == CODE_PADDING && bytes[i] == 0x90 && i > 0 && i + 1 < size &&
		     !is_padding(map[i - 1]) && !is_padding(map[i + 1])))
			unknown++;
	}
	return unknown;
}

/* One round over all functions with computed jumps, `jumps` ascending; writes what
 * it leaves of them to `ret_explored`. */
static bool explore_round(struct discovery *d, enum solver_mode mode,
			  const struct rva *jumps, uint32_t count,
			  struct explored *explored, uint32_t *ret_count)
{
	struct rva begin = {0};
	uint32_t size = 0, before = 0;
	bool found = false;

	for (uint32_t i = 0; i < count && !d->out_of_memory; i++) {
		struct explored now;

		if (rva_in(jumps[i], begin, size) || jump_is_plain_tail_call(d, jumps[i]))
			continue;
		extent_of(d, jumps[i], &begin, &size);
		if (!may_read_table(d, begin, size))
			continue;
		while (before < d->explored.len &&
		       d->explored.data[before].begin.v < begin.v)
			before++;
		now = (struct explored){.begin = begin,
					.mode = (uint8_t)mode,
					.unknown = count_unknown(d, begin, size)};
		if (now.unknown == 0)
			continue; /* nothing is left to find */
		if (before < d->explored.len &&
		    d->explored.data[before].begin.v == begin.v &&
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
		jump_solver_sort(d);
		if (count)
			memcpy(jumps, d->computed_jumps.data, count * sizeof(*jumps));
		found = explore_round(d, unbounded ? EXPLORE_ALL : EXPLORE_BOUNDED, jumps,
				      count, explored, &explored_count);
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
