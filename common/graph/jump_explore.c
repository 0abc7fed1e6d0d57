/* Following computed jumps while code is still being found: what they lead to is
 * entered, and tables in the text are marked, so that they are not decoded.  No reference
 * is recorded; jump_table.c proves all of it again at the end.
 *
 * All jumps that may have something left to show are looked at, then what they lead to is
 * decoded, then the next round begins.  A jump whose table has a bound is done when its
 * targets are entered, and one in code of which every byte is understood has nothing to
 * show. */
#include <string.h>

#include "base/rva_list.h"
#include "graph/jump_solver.h"

/* What a round finds; nothing is marked before its end, since marks change answers. */
struct findings {
	VEC(struct branch) entries;     /* of tables */
	VEC(struct code_extent) tables; /* in the text */
	VEC(struct rva) hints;          /* ascending */
	bool hinted;                    /* they were collected */
	struct code_extent known;       /* whose `unknown` and `reads` are true of it */
	bool unknown, reads;
};

/* Whether a table may be read in the code. */
static bool may_read_table(const struct discovery *d, struct code_extent extent)
{
	uint32_t i = rvas_first_from(d->entry_loads.data, d->entry_loads.len, extent.begin);

	return i < d->entry_loads.len &&
	       rva_in(d->entry_loads.data[i], extent.begin, extent.size);
}

static bool is_padding(uint8_t map)
{
	return (map & CODE_STATE) == CODE_PADDING;
}

/* Whether there are bytes that may turn out to be code or a table.  A single nop amid code
 * was taken for padding but may be a case that does nothing (GCC, -O0). */
static bool has_unknown(const struct discovery *d, struct code_extent extent)
{
	const struct code_range *range = discovery_range(d, extent.begin);
	const uint8_t *map = range->map + (extent.begin.v - range->begin.v);
	const uint8_t *bytes = range->bytes + (extent.begin.v - range->begin.v);

	for (uint32_t i = 0; i < extent.size; i++) {
		uint8_t state = map[i] & CODE_STATE;

		if (state == CODE_UNKNOWN ||
		    (state == CODE_PADDING && bytes[i] == 0x90 && i > 0 &&
		     i + 1 < extent.size && !is_padding(map[i - 1]) &&
		     !is_padding(map[i + 1])))
			return true;
	}
	return false;
}

/* Collects what lea seems to take the address of in code that is not reached yet.  The
 * label that ends a table may stand in code that only this table leads to, or another,
 * also in another function; read too far, the table leads into the midst of instructions
 * and tables.  Bytes may be misread here: a table that ends too early will be found too
 * short, and pins. */
static void collect_hints(struct jump_solver *s, struct findings *found)
{
	const struct graph *graph = s->d->graph;

	for (uint32_t i = 0; i < graph->range_count && !found->hinted; i++) {
		const struct code_range *range = &graph->ranges[i];
		uint32_t at = code_map_next_unknown(range->map, 0, range->size);

		while (at < range->size) {
			struct insn insn;

			if (!insn_decode(range->bytes + at, range->size - at, &insn))
				insn = (struct insn){.length = 1};
			at += insn.length;
			if (insn.field == FIELD_ADDRESS &&
			    !vec_push(&found->hints,
				      rva_add(range->begin, at + (uint32_t)insn.relative)))
				s->d->out_of_memory = true;
			at = code_map_next_unknown(range->map, at, range->size);
		}
	}
	if (!found->hinted)
		rvas_sort(found->hints.data, found->hints.len);
	found->hinted = true;
	s->hints = found->hints.data;
	s->hint_count = found->hints.len;
}

static void add_range(struct discovery *d, struct findings *found, struct rva begin,
		      uint32_t size)
{
	struct code_extent range = {begin, size};

	if (size && discovery_range(d, begin) && !vec_push(&found->tables, range))
		d->out_of_memory = true;
}

static void add_table(struct jump_solver *s, struct computed_jump *jump,
		      struct findings *found)
{
	uint32_t count = solver_table_count(s, jump);

	add_range(s->d, found, jump->target.table, 4 * count);
	add_range(s->d, found, jump->small, jump->small_size);
	for (uint32_t i = 0; i < count; i++) {
		struct branch entry = {.from = jump->at};

		if (solver_read_entry(s, &jump->target, i, &entry.to) !=
			    TABLE_ENTRY_LEADS ||
		    !solver_holds(s, entry.to))
			continue;
		if (!vec_push(&found->entries, entry))
			s->d->out_of_memory = true;
	}
	jump->shown = true;
	jump->entered = count > 0 && !solver_table_is_open(jump, count);
}

/* Looks at one jump; without `unbounded`, only tables whose length a comparison gives are
 * read. */
static void explore(struct jump_solver *s, struct computed_jump *jump, bool unbounded,
		    bool more_code, struct findings *found)
{
	struct discovery *d = s->d;
	bool bounded;

	if (jump->outcome == JUMP_POINTER || jump->entered)
		return;
	if (!rva_in(jump->at, s->extent.begin, s->extent.size))
		s->extent = jump_solver_extent(d, jump->at);
	if (found->known.begin.v != s->extent.begin.v) {
		found->known = s->extent;
		found->reads = may_read_table(d, s->extent);
		found->unknown = found->reads && has_unknown(d, s->extent);
	}
	if (!found->reads)
		return;
	if (jump->shown && !found->unknown)
		return;
	if (jump->outcome != JUMP_TABLE && (jump->outcome == JUMP_UNTRIED || more_code))
		jump_solver_solve(s, jump);
	if (jump->outcome != JUMP_TABLE)
		return;
	s->hint_count = 0;
	bounded = solver_table_is_bounded(s, jump);
	if (!bounded && !unbounded)
		return;
	if (!bounded)
		collect_hints(s, found);
	add_table(s, jump, found);
}

/* Marks bytes of tables in the text; true when some were not marked before. */
static bool mark_table(struct discovery *d, struct code_extent table)
{
	struct code_range *range = discovery_range(d, table.begin);
	uint32_t at = table.begin.v - range->begin.v;
	bool found = false;

	for (uint32_t i = 0; i < table.size && at + i < range->size; i++) {
		if ((range->map[at + i] & CODE_STATE) == CODE_UNKNOWN) {
			range->map[at + i] |= CODE_TABLE;
			found = true;
		}
	}
	return found;
}

static bool add_branches(struct discovery *d, const struct findings *found)
{
	uint32_t before = d->table_branches.len, count;

	for (uint32_t i = 0; i < found->entries.len; i++)
		if (!vec_push(&d->table_branches, found->entries.data[i]))
			d->out_of_memory = true;
	count = d->table_branches.len;
	if (!branches_sort(d->table_branches.data, &count))
		d->out_of_memory = true;
	d->table_branches.len = count;
	return count > before;
}

/* Marks and enters what was found; true when there is more code or another table. */
static bool enter(struct discovery *d, const struct findings *found)
{
	uint32_t decoded = d->graph->decoded;
	bool more = false;

	for (uint32_t i = 0; i < found->tables.len; i++)
		more |= mark_table(d, found->tables.data[i]);
	more |= add_branches(d, found);
	for (uint32_t i = 0; i < found->entries.len; i++)
		discovery_reach(d, found->entries.data[i].to);
	code_sweep_reached(d);
	return more || d->graph->decoded != decoded;
}

/* What stands at a displacement from the image's own address is read as data: a table
 * most likely, which must not be decoded. */
static void note_displaced(struct jump_solver *s)
{
	struct discovery *d = s->d;

	for (uint32_t i = d->displaced_known; i < d->displaced.len; i++) {
		uint8_t *state = discovery_state(d, d->displaced.data[i].value);

		if ((*state & CODE_STATE) == CODE_UNKNOWN &&
		    jump_solver_displacement(s, &d->displaced.data[i]))
			*state |= CODE_LABEL | CODE_DATA;
	}
	d->displaced_known = d->displaced.len;
}

bool jump_tables_explore(struct discovery *d, bool unbounded)
{
	bool more_code = d->explored_code != d->graph->decoded, more = false;
	struct findings found = {0};
	struct jump_solver s;

	jump_solver_sort(d);
	if (!jump_solver_init(&s, d, NULL)) {
		d->out_of_memory = true;
		return false;
	}
	d->explored_code = d->graph->decoded;
	for (uint32_t i = 0; i < d->computed_jumps.len && !jump_solver_is_spent(d); i++)
		explore(&s, &d->computed_jumps.data[i], unbounded, more_code, &found);
	note_displaced(&s);
	more = enter(d, &found);
	vec_release(&found.entries);
	vec_release(&found.tables);
	vec_release(&found.hints);
	jump_solver_release(&s);
	return more && !d->out_of_memory;
}
