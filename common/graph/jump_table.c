/* Jump tables: finding where computed jumps go.
 *
 * The problem.  `jmp rax` after arithmetic goes wherever a table says, and the
 * table's entries are differences, or RVAs, that change when code moves, without any
 * relocation.  A table that is missed, or read too short or too far, breaks the
 * image; so a jump is either proven or its function is pinned.
 *
 * The way.  The value that a jump leads to is followed backwards to where it is made
 * (value_query.h).  When it is "entry of table T, plus base B", the table is read, and its
 * targets become further ways through the function.  How many entries: the bound that
 * comparisons give on all ways to the jump (value_bound.c) where there is one; otherwise as
 * many as lead to instructions, up to the next label, and no more than the index can
 * have.  What leads out of the function then is either a case in a cold part, or no
 * entry at all but chance; it is recorded as an entry, and pins what it leads to, so that
 * the word stays right either way.  A table stands in read-only data (GCC, LLVM for
 * Windows) or in the text: behind or inside its function, or in a chained row of its own
 * (MSVC).
 *
 * MSVC's tables hold RVAs, and the instruction that reads one has the table's RVA as a
 * displacement, to which a register adds the image's own address.  When the table is in
 * the text that field is a reference like others (REF_DISPLACEMENT).  Any instruction with
 * such a register counts, whether it reads a jump table or not.
 *
 * This is done in two ways.  Exploring (jump_explore.c) happens while code is still being
 * found: it enters the targets and marks tables in the text, so that they are not decoded.
 * Proving happens at the end, when all code and all labels are known.  It asks
 * everything again, with the ways that tables have shown so far; tables that show more
 * ways make those jumps be asked again whose answers rest on code that these lead to.
 * First nothing is held against labels that nothing leads to; at the end, when no table
 * does, somebody unknown may, and nothing is known there.
 *
 * A table with an entry before its bound or the next label that is no instruction
 * contradicts itself, and so does one that a label ends which stands in its midst as it
 * seems.  Then, and when a jump's value is no sum of entry and base, it is not
 * understood: it may lead anywhere in its function, in the function's other parts, and to
 * what nothing else leads to (function_family.h); all that is pinned.  So is a function in
 * which exploring has decoded what no table leads to in the end.
 *
 * Rejected: looking for instruction patterns before the jump (bases are hoisted
 * out of loops and cold parts, bounds are spilled); following all registers forwards
 * through each function (value_query.c says what it cost).
 *
 * Cost: steps are counted, one for each instruction that is looked at and each node
 * evaluated: 0.02 to 0.35 for each byte of code (observed: MSVC, Rust, GCC, clang).  Code
 * can be made that needs millions; when far too many were made no jump is understood.
 */
#include "graph/jump_solver.h"

#include <string.h>

#include "base/rva_list.h"

enum { PROVE_ROUNDS = 64 /* in which tables show new ways; none met needs three */ };

/* What looks like an entry behind the end of a table.  At its end another table must
 * begin; further on, as far as a comparison says that the table reaches, the word must be
 * in another one. */
struct entry_behind {
	struct rva jump, site;
	bool first; /* at the table's end */
};

struct proof {
	struct jump_solver solver;
	struct function_families families;
	VEC(struct entry_behind) behind;
	VEC(struct branch) entries;     /* of all tables that were understood */
	VEC(struct rva) led_to;         /* what the tables that are recorded lead to */
	VEC(struct code_extent) tables; /* in the text, that were understood */
};

/* A table in the text travels with the function that reads it, when it stands in a row of
 * it, or near. */
static void add_text_table(struct proof *proof, struct rva jump, struct rva begin,
			   uint32_t size)
{
	enum { NEAR = 8 /* functions */ };
	struct code_extent table = {begin, size};
	struct discovery *d = proof->solver.d;
	uint32_t a = graph_function_at(d->graph, jump);
	uint32_t b = graph_function_at(d->graph, begin);

	if (size == 0 || !discovery_range(d, begin))
		return;
	if (!vec_push(&proof->tables, table))
		d->out_of_memory = true;
	if (b != NO_FUNCTION && a < b &&
	    discovery_range(d, jump) == discovery_range(d, begin) &&
	    (b - a <= NEAR || solver_holds(&proof->solver, begin)))
		discovery_join(d, jump, begin);
}

/* The parts of a function between which a table leads stay together: where they stand
 * apart, it could not be read while code is still being found. */
static void join_parts(struct discovery *d, struct rva a, struct rva b)
{
	if (graph_function_at(d->graph, a) == graph_function_at(d->graph, b))
		return;
	if (a.v < b.v)
		discovery_join(d, a, b);
	else
		discovery_join(d, b, a);
}

/* An entry of a proven table that leads to `to`. */
static void add_entry(struct proof *proof, const struct computed_jump *jump,
		      struct rva site, struct rva to, bool open)
{
	const struct jump_solver *s = &proof->solver;
	struct ref ref = {.site = site,
			  .target = to,
			  .base = jump->target.base,
			  .kind = REF_TABLE,
			  .size = 4};
	uint8_t *state = discovery_state(s->d, to);

	/* Labels of the program's own, relative to another label: what looks like one more
	 * of them behind the last must not count. */
	if (solver_holds(s, to) && solver_holds(s, jump->target.base) &&
	    !solver_holds(s, jump->target.table))
		return;
	if (solver_holds(s, to))
		join_parts(s->d, jump->at, to);
	if (!solver_holds(s, to)) {
		if (!state || (*state & CODE_STATE) != CODE_START)
			return; /* the function's end */
		function_families_join(&proof->families, s->d,
				       graph_function_at(s->d->graph, jump->at), to);
		if (open)
			discovery_doubt(s->d, to, PIN_UNSOLVED_JUMP);
	}
	discovery_ref(s->d, ref);
}

static void doubt_jump(struct proof *proof, const struct computed_jump *jump, bool conflict)
{
	struct discovery *d = proof->solver.d;

	discovery_doubt(d, jump->at, conflict ? PIN_TABLE_CONFLICT : PIN_UNSOLVED_JUMP);
	proof->families.members[graph_function_at(d->graph, jump->at)].unsolved = true;
}

/* Behind a table that ends before its bound, or without one. */
static void add_entries_behind(struct proof *proof, const struct computed_jump *jump,
			       uint32_t count)
{
	struct jump_solver *s = &proof->solver;
	bool cut = !jump->bound.wide && jump->bound.count > count;
	uint32_t until = cut ? jump->bound.count : count + 1;

	if (!jump_solver_spend(s->d, until - count)) {
		doubt_jump(proof, jump, false);
		return;
	}
	for (uint32_t i = count; i < until; i++) {
		struct entry_behind entry = {jump->at, rva_add(jump->target.table, 4 * i),
					     i == count};
		struct rva to = {0};
		bool leads =
			solver_read_entry(s, &jump->target, i, &to) == TABLE_ENTRY_LEADS;

		/* Into the function, but to no known instruction: no proof that it is none.
		 */
		if ((leads || (cut && solver_holds(s, to))) &&
		    !vec_push(&proof->behind, entry))
			s->d->out_of_memory = true;
	}
}

static void add_table(struct proof *proof, const struct computed_jump *jump)
{
	struct jump_solver *s = &proof->solver;
	uint32_t count = solver_table_count(s, jump);
	bool is_open = solver_table_is_open(jump, count);
	struct jump_table table = {.table = jump->target.table,
				   .base = jump->target.base,
				   .jump = jump->at,
				   .count = count};
	struct rva to;

	if (count == 0) {
		doubt_jump(proof, jump, true);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (solver_read_entry(s, &jump->target, i, &to) != TABLE_ENTRY_LEADS)
			continue;
		add_entry(proof, jump, rva_add(table.table, 4 * i), to, is_open);
		if (!vec_push(&proof->led_to, to))
			s->d->out_of_memory = true;
	}
	if (is_open)
		add_entries_behind(proof, jump, count);
	if (!vec_push(&s->d->graph->jump_tables, table))
		s->d->out_of_memory = true;
	add_text_table(proof, jump->at, table.table, 4 * count);
	add_text_table(proof, jump->at, jump->small, jump->small_size);
}

static int compare_extents(const void *a, const void *b)
{
	const struct code_extent *x = a, *y = b;

	return x->begin.v < y->begin.v ? -1 : x->begin.v > y->begin.v;
}

/* What was taken for tables while code was being found, and was not proven, is unknown. */
static void settle_marks(struct proof *proof)
{
	const struct graph *graph = proof->solver.d->graph;
	uint32_t table = 0, end = 0;

	if (proof->tables.len)
		qsort(proof->tables.data, proof->tables.len, sizeof(*proof->tables.data),
		      compare_extents);
	for (uint32_t r = 0; r < graph->range_count; r++) {
		const struct code_range *range = &graph->ranges[r];

		for (uint32_t i = 0; i < range->size; i++) {
			uint32_t rva = range->begin.v + i;
			uint8_t state = range->map[i] & CODE_STATE;

			if (state != CODE_TABLE && state != CODE_UNKNOWN)
				continue;
			for (; table < proof->tables.len &&
			       proof->tables.data[table].begin.v <= rva;
			     table++) {
				const struct code_extent *known =
					&proof->tables.data[table];

				if (known->begin.v + known->size > end)
					end = known->begin.v + known->size;
			}
			range->map[i] &= (uint8_t)~CODE_STATE;
			if (rva < end)
				range->map[i] |= CODE_TABLE;
		}
	}
}

static bool is_known(const struct discovery *d, const struct branch *entry)
{
	uint32_t low = 0, high = d->table_branches.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct branch *known = &d->table_branches.data[middle];

		if (known->to.v < entry->to.v ||
		    (known->to.v == entry->to.v && known->from.v < entry->from.v))
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->table_branches.len &&
	       d->table_branches.data[low].to.v == entry->to.v &&
	       d->table_branches.data[low].from.v == entry->from.v;
}

/* Where the jump's table leads, as far as no table was known to. */
static void collect_entries(struct proof *proof, const struct computed_jump *jump)
{
	struct jump_solver *s = &proof->solver;
	uint32_t count = jump->outcome == JUMP_TABLE ? solver_table_count(s, jump) : 0;

	for (uint32_t i = 0; i < count; i++) {
		struct branch entry = {.from = jump->at};
		uint8_t *state;

		if (solver_read_entry(s, &jump->target, i, &entry.to) != TABLE_ENTRY_LEADS)
			continue;
		state = discovery_state(s->d, entry.to);
		if (!state || (*state & CODE_STATE) != CODE_START || is_known(s->d, &entry))
			continue;
		if (!vec_push(&proof->entries, entry))
			s->d->out_of_memory = true;
	}
}

/* Whether the jump stands in a function. */
static bool counts(const struct discovery *d, const struct computed_jump *jump)
{
	return graph_function_at(d->graph, jump->at) != NO_FUNCTION;
}

static void enter_extent(struct proof *proof, const struct computed_jump *jump)
{
	struct jump_solver *s = &proof->solver;

	if (!rva_in(jump->at, s->extent.begin, s->extent.size))
		s->extent = jump_solver_extent(s->d, jump->at);
}

/* Whether one of the new entries, ascending by target, leads into what was looked at when
 * the jump was solved. */
static bool concerns(const struct proof *proof, const struct computed_jump *jump)
{
	uint32_t low = 0, high = proof->entries.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (proof->entries.data[middle].to.v < jump->low.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < proof->entries.len && proof->entries.data[low].to.v <= jump->high.v;
}

/* Makes the new ways known: labels, and entries that values are followed through. */
static void take_over_entries(struct proof *proof)
{
	struct discovery *d = proof->solver.d;
	uint32_t count;

	if (!branches_sort(proof->entries.data, &proof->entries.len))
		d->out_of_memory = true;
	for (uint32_t i = 0; i < proof->entries.len; i++) {
		*discovery_state(d, proof->entries.data[i].to) |= CODE_LABEL;
		if (!vec_push(&d->table_branches, proof->entries.data[i]))
			d->out_of_memory = true;
	}
	count = d->table_branches.len;
	if (!branches_sort(d->table_branches.data, &count))
		d->out_of_memory = true;
	d->table_branches.len = count;
	value_query_forget(&proof->solver.query);
}

enum which_jumps { ALL_JUMPS, GUESSED_JUMPS, CONCERNED_JUMPS };

static void solve(struct proof *proof, enum which_jumps which)
{
	struct discovery *d = proof->solver.d;

	for (uint32_t i = 0; i < d->computed_jumps.len; i++) {
		struct computed_jump *jump = &d->computed_jumps.data[i];

		if (!counts(d, jump) || (which == GUESSED_JUMPS && !jump->guessed) ||
		    (which == CONCERNED_JUMPS && !concerns(proof, jump)))
			continue;
		enter_extent(proof, jump);
		jump_solver_solve(&proof->solver, jump);
	}
}

/* Makes the ways known that the tables show; false when there are no new ones. */
static bool show_ways(struct proof *proof)
{
	struct discovery *d = proof->solver.d;

	proof->entries.len = 0;
	for (uint32_t i = 0; i < d->computed_jumps.len; i++) {
		if (!counts(d, &d->computed_jumps.data[i]))
			continue;
		enter_extent(proof, &d->computed_jumps.data[i]);
		collect_entries(proof, &d->computed_jumps.data[i]);
	}
	if (proof->entries.len == 0)
		return false;
	take_over_entries(proof);
	return true;
}

/* Solves all jumps, and again those that new ways concern, until there are none.  A label
 * that nothing leads to is then left to by something that nobody knows, and what was
 * guessed without it is solved once more. */
static void solve_all(struct proof *proof)
{
	enum which_jumps which = ALL_JUMPS;

	for (int round = 0; round < PROVE_ROUNDS; round++) {
		solve(proof, which);
		if (jump_solver_is_spent(proof->solver.d))
			return;
		which = CONCERNED_JUMPS;
		if (show_ways(proof))
			continue;
		if (!proof->solver.query.hopeful)
			return;
		proof->solver.query.hopeful = false;
		value_query_forget(&proof->solver.query);
		which = GUESSED_JUMPS;
	}
	proof->solver.d->flow_steps = 0;
}

/* Records what the jumps lead to.  When too many steps were made, which jumps were not
 * looked at depends on where they stand, so none is taken for understood. */
static void record_all(struct proof *proof)
{
	struct discovery *d = proof->solver.d;
	bool spent = jump_solver_is_spent(d);

	for (uint32_t i = 0; i < d->computed_jumps.len; i++) {
		struct computed_jump *jump = &d->computed_jumps.data[i];

		if (!counts(d, jump))
			continue;
		enter_extent(proof, jump);
		if (spent || jump->outcome == JUMP_UNSOLVED ||
		    jump->outcome == JUMP_UNTRIED)
			doubt_jump(proof, jump, false);
		else if (jump->outcome == JUMP_TABLE)
			add_table(proof, jump);
	}
}

/* Bytes behind a function's row that are tables and nothing else belong to it. */
static void name_table_functions(const struct proof *proof)
{
	const struct graph *graph = proof->solver.d->graph;

	for (uint32_t i = 0; i < proof->tables.len; i++) {
		uint32_t id = graph_function_at(graph, proof->tables.data[i].begin);
		struct function *f = id == NO_FUNCTION ? NULL : &graph->functions.data[id];
		const uint8_t *map;
		uint32_t at = 0;

		if (!f || f->kind != FUNCTION_BYTES)
			continue;
		map = discovery_state(proof->solver.d, f->begin);
		while (at < f->size && (map[at] & CODE_STATE) == CODE_TABLE)
			at++;
		if (at == f->size)
			f->kind = FUNCTION_CHAINED;
	}
}

/* All tables, ascending; none ends before one ahead of it, so that the last that begins at
 * or before a word tells whether the word is in one.  On the heap; NULL: no memory. */
static struct code_extent *sorted_tables(const struct graph *graph)
{
	uint32_t count = graph->jump_tables.len;
	struct code_extent *tables = malloc(((size_t)count + 1) * sizeof(*tables));

	if (!tables)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		tables[i] = (struct code_extent){graph->jump_tables.data[i].table,
						 4 * graph->jump_tables.data[i].count};
	if (count)
		qsort(tables, count, sizeof(*tables), compare_extents);
	for (uint32_t i = 1; i < count; i++) {
		uint32_t end = tables[i - 1].begin.v + tables[i - 1].size;

		if (end > tables[i].begin.v + tables[i].size)
			tables[i].size = end - tables[i].begin.v;
	}
	return tables;
}

static bool is_explained(const struct code_extent *tables, uint32_t count,
			 const struct entry_behind *entry)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tables[middle].begin.v <= entry->site.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	if (entry->first)
		return tables[low - 1].begin.v == entry->site.v;
	return rva_in(entry->site, tables[low - 1].begin, tables[low - 1].size);
}

/* A label that ends a table must be where another begins. */
static void doubt_entries_behind(struct proof *proof)
{
	struct discovery *d = proof->solver.d;
	struct code_extent *tables = sorted_tables(d->graph);

	if (!tables) {
		d->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < proof->behind.len; i++) {
		const struct entry_behind *entry = &proof->behind.data[i];
		struct computed_jump jump = {.at = entry->jump};

		if (!is_explained(tables, d->graph->jump_tables.len, entry))
			doubt_jump(proof, &jump, true);
	}
	free(tables);
}

/* Whether something leads to `at` that is no table. */
static bool is_code_anyway(struct control_flow *flow, struct rva at)
{
	const uint8_t *state = discovery_state(flow->d, at);
	struct rva before;

	return !state || (*state & (CODE_ENTERED | CODE_FUNCTION)) ||
	       control_flow_branches(flow, 0, at).count > 0 ||
	       control_flow_branches(flow, 1, at).count > 0 ||
	       control_flow_before(flow, at, &before);
}

/* What was taken for an entry while code was being found, and is none of a table: it was
 * read too far before a label was known.  What was decoded there may be no code. */
static void doubt_stray_entries(struct proof *proof)
{
	struct discovery *d = proof->solver.d;

	rvas_sort(proof->led_to.data, proof->led_to.len);
	for (uint32_t i = 0; i < d->table_branches.len; i++) {
		struct rva to = d->table_branches.data[i].to;
		uint32_t at = rvas_first_from(proof->led_to.data, proof->led_to.len, to);

		if ((at == proof->led_to.len || proof->led_to.data[at].v != to.v) &&
		    !is_code_anyway(&proof->solver.flow, to))
			discovery_doubt(d, to, PIN_TABLE_CONFLICT);
	}
}

/* Displacements that are RVAs of places in the code, since a register holds the image's
 * own address: MSVC's way to its jump tables. */
static void add_displaced(struct proof *proof)
{
	struct jump_solver *s = &proof->solver;
	struct discovery *d = s->d;

	for (uint32_t i = 0; i < d->displaced.len && !jump_solver_is_spent(d); i++) {
		const struct code_constant *displaced = &d->displaced.data[i];
		struct ref ref = {
			.target = displaced->value, .kind = REF_DISPLACEMENT, .size = 4};
		uint8_t offset = jump_solver_displacement(s, displaced);

		if (offset == 0)
			continue;
		ref.site = rva_add(displaced->site, offset);
		discovery_ref(d, ref);
	}
}

void jump_tables_prove(struct discovery *d)
{
	struct proof proof = {0};

	if (!function_families_init(&proof.families, d)) {
		d->out_of_memory = true;
		return;
	}
	jump_solver_sort(d);
	if (jump_solver_init(&proof.solver, d, &proof.families)) {
		solve_all(&proof);
		add_displaced(&proof);
		record_all(&proof);
		settle_marks(&proof);
		name_table_functions(&proof);
		doubt_entries_behind(&proof);
		doubt_stray_entries(&proof);
		function_families_doubt(&proof.families, d);
		jump_solver_release(&proof.solver);
	} else {
		d->out_of_memory = true;
	}
	function_families_release(&proof.families);
	vec_release(&proof.behind);
	vec_release(&proof.entries);
	vec_release(&proof.led_to);
	vec_release(&proof.tables);
}
