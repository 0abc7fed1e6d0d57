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
 * a few times at most.  That is half a step for each byte of code, 1.4 at most
 * (observed: DLLs of GCC, GNAT, clang and Wine).  Code can be made that needs millions;
 * so steps are counted, and when far too many were made no jump is understood.
 */
#include "graph/jump_solver.h"

/* An entry of a proven table that leads to `to`. */
static void add_entry(struct solver *s, const struct value *target, struct rva site,
		      struct rva to)
{
	struct ref ref = {.site = site,
			  .target = to,
			  .base = target->base,
			  .kind = REF_TABLE,
			  .size = 4};
	uint8_t *state = discovery_state(s->d, to);

	/* Labels of the program's own, relative to another label: what looks like one more
	 * of them behind the last must not count. */
	if (solver_holds(s, to) && solver_holds(s, target->base) &&
	    !solver_holds(s, target->table))
		return;
	if (!solver_holds(s, to)) {
		if (!state || (*state & CODE_STATE) != CODE_START)
			return; /* the function's end */
		s->proof->again |=
			function_families_join(&s->proof->families, s->d, s->function, to);
		if (!target->bound)
			discovery_doubt(s->d, to, PIN_UNSOLVED_JUMP);
	}
	discovery_ref(s->d, ref);
}

static void add_table(struct solver *s, const struct jump *jump)
{
	const struct value *target = &jump->target;
	struct jump_table table = {.table = target->table,
				   .base = target->base,
				   .jump = jump->at,
				   .count = solver_table_count(s, target)};
	struct open_table open = {jump->at, rva_add(table.table, 4 * table.count)};
	struct rva to;

	for (uint32_t i = 0; i < table.count; i++)
		if (solver_read_entry(s, target, i, &to))
			add_entry(s, target, rva_add(table.table, 4 * i), to);
	if (!target->bound && solver_read_entry(s, target, table.count, &to) &&
	    !vec_push(&s->proof->open, open))
		s->d->out_of_memory = true;
	if (!vec_push(&s->d->graph->jump_tables, table))
		s->d->out_of_memory = true;
}

static const struct jump *reached_jump(const struct solver *s, struct rva at)
{
	uint32_t i = solver_jump_from(s, at);

	return i < s->jumps.len && s->jumps.data[i].at.v == at.v ? &s->jumps.data[i] : NULL;
}

static void doubt_jump(struct discovery *d, struct proof *proof, struct rva jump,
		       bool conflict)
{
	discovery_doubt(d, jump, conflict ? PIN_TABLE_CONFLICT : PIN_UNSOLVED_JUMP);
	proof->families.members[graph_function_at(d->graph, jump)].unsolved = true;
}

/* Makes labels of what the tables lead to in the function; true when one is new.  Then
 * what was found by reading code backwards over it, or forwards, may not hold. */
static bool label_targets(struct solver *s)
{
	bool found = false;

	for (uint32_t i = 0; i < s->jumps.len; i++) {
		const struct value *target = &s->jumps.data[i].target;
		uint32_t count =
			target->kind == VALUE_TARGET ? solver_table_count(s, target) : 0;

		for (uint32_t e = 0; e < count; e++) {
			struct rva to;
			uint8_t *state;

			if (!solver_read_entry(s, target, e, &to) || !solver_holds(s, to))
				continue;
			state = discovery_state(s->d, to);
			found |= !(*state & CODE_LABEL);
			*state |= CODE_LABEL;
		}
	}
	return found;
}

static void record_jumps(struct solver *s, const struct rva *jumps, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct jump *jump = reached_jump(s, jumps[i]);

		if (jump_is_plain_tail_call(s->d, jumps[i]))
			continue;
		if (!jump || !jump->solved || s->gave_up)
			doubt_jump(s->d, s->proof, jumps[i], jump && jump->conflict);
		else if (jump->target.kind == VALUE_TARGET)
			add_table(s, jump);
	}
}

/* Solves the jumps with all labels known; records them then, and returns false. */
static bool prove_again(struct discovery *d, struct proof *proof, uint32_t id,
			const struct rva *jumps, uint32_t count,
			struct described *described)
{
	const struct function *function = &d->graph->functions.data[id];
	struct solver s;
	bool again;

	if (!solver_init(&s, d, PROVE, function->begin, function->size, described))
		return false;
	s.proof = proof;
	s.function = id;
	solver_solve(&s, jumps, count, count);
	again = label_targets(&s);
	if (!again)
		record_jumps(&s, jumps, count);
	solver_release(&s);
	return again;
}

/* Proves the `count` jumps of one function. */
static void prove_function(struct discovery *d, struct proof *proof, uint32_t id,
			   const struct rva *jumps, uint32_t count)
{
	const struct function *function = &d->graph->functions.data[id];
	struct described described;

	if (!described_init(&described, function->size)) {
		d->out_of_memory = true;
		return;
	}
	while (prove_again(d, proof, id, jumps, count, &described))
		;
	described_release(&described);
}

static void prove_all(struct discovery *d, struct proof *proof)
{
	const struct rva *jumps = d->computed_jumps.data;

	for (uint32_t i = 0, end; i < d->computed_jumps.len && !d->out_of_memory; i = end) {
		uint32_t id = graph_function_at(d->graph, jumps[i]);
		const struct function *f;
		bool plain = true;

		end = i + 1;
		if (id == NO_FUNCTION)
			continue;
		f = &d->graph->functions.data[id];
		while (end < d->computed_jumps.len && rva_in(jumps[end], f->begin, f->size))
			end++;
		for (uint32_t k = i; k < end && plain; k++)
			plain = jump_is_plain_tail_call(d, jumps[k]);
		if (!plain)
			prove_function(d, proof, id, jumps + i, end - i);
	}
}

/* Too many steps were made: which jumps were not looked at depends on where they
 * stand, so none is taken for understood. */
static void doubt_all(struct discovery *d, struct proof *proof)
{
	for (uint32_t i = 0; i < d->computed_jumps.len; i++) {
		struct rva jump = d->computed_jumps.data[i];

		if (graph_function_at(d->graph, jump) != NO_FUNCTION &&
		    !jump_is_plain_tail_call(d, jump))
			doubt_jump(d, proof, jump, false);
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
	rvas_sort(starts, count);
	for (uint32_t i = 0; i < proof->open.len; i++) {
		struct rva end = proof->open.data[i].end;
		uint32_t at = rvas_first_from(starts, count, end);

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

	jump_solver_sort(d);
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
	} while (proof.again && !jump_solver_is_spent(d));
	if (jump_solver_is_spent(d))
		doubt_all(d, &proof);
	doubt_open_tables(d, &proof);
	function_families_doubt(&proof.families, d);
	function_families_release(&proof.families);
	vec_release(&proof.open);
}
