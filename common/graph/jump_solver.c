/* Solving one computed jump: asking for the value that it jumps to, and reading the table
 * behind it.  jump_table.c tells the whole way. */
#include "graph/jump_solver.h"

#include <stdlib.h>
#include <string.h>

#include "base/rva_list.h"

enum {
	PLAIN_REACH = 12, /* instructions from a tail call back to its load */
};

bool jump_solver_is_spent(const struct discovery *d)
{
	return d->flow_steps == 0 || d->out_of_memory;
}

static int compare_jumps(const void *a, const void *b)
{
	const struct computed_jump *x = a, *y = b;

	return x->at.v < y->at.v ? -1 : x->at.v > y->at.v;
}

void jump_solver_sort(struct discovery *d)
{
	rvas_sort(d->data_labels.data, d->data_labels.len);
	rvas_sort(d->entry_loads.data, d->entry_loads.len);
	if (d->computed_jumps.len)
		qsort(d->computed_jumps.data, d->computed_jumps.len,
		      sizeof(*d->computed_jumps.data), compare_jumps);
	control_flow_sort(d);
}

bool jump_solver_init(struct jump_solver *s, struct discovery *d,
		      const struct function_families *families)
{
	*s = (struct jump_solver){.d = d, .proving = families != NULL};
	if (!control_flow_init(&s->flow, d))
		return false;
	s->flow.families = families;
	if (value_query_init(&s->query, &s->flow)) {
		s->query.hopeful = true;
		return true;
	}
	control_flow_release(&s->flow);
	return false;
}

void jump_solver_release(struct jump_solver *s)
{
	value_query_release(&s->query);
	control_flow_release(&s->flow);
}

/* A row, with the chained ones that stand behind it without a gap. */
static struct code_extent extent_of_row(const struct discovery *d,
					const struct runtime_function *entry)
{
	const struct function_table *table = &d->graph->tables.functions;
	const struct runtime_function *first = entry, *last = entry;

	while (first > table->data && control_flow_is_part(d, first->begin) &&
	       first[-1].end.v == first->begin.v)
		first--;
	while (last + 1 < table->data + table->count && last->end.v == last[1].begin.v &&
	       control_flow_is_part(d, last[1].begin))
		last++;
	return (struct code_extent){first->begin, last->end.v - first->begin.v};
}

struct code_extent jump_solver_extent(const struct discovery *d, struct rva rva)
{
	const struct runtime_function *entry = discovery_table_entry(d, rva);
	const struct code_range *range = discovery_range(d, rva);
	uint32_t begin = rva.v - range->begin.v, end = begin + 1;
	const uint8_t stop = CODE_FUNCTION | CODE_BOUNDARY;
	uint32_t id = graph_function_at(d->graph, rva);

	if (entry)
		return extent_of_row(d, entry);
	if (id != NO_FUNCTION)
		return (struct code_extent){d->graph->functions.data[id].begin,
					    d->graph->functions.data[id].size};
	while (begin > 0 && !(range->map[begin] & stop))
		begin--;
	while (end < range->size && !(range->map[end] & stop))
		end++;
	return (struct code_extent){rva_add(range->begin, begin), end - begin};
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
static uint32_t table_limit(const struct jump_solver *s, struct rva table)
{
	const struct code_range *range = discovery_range(s->d, table);
	uint32_t end = range ? next_code_label(range, table) : next_data_label(s->d, table);
	uint32_t hint = rvas_first_from(s->hints, s->hint_count, rva_add(table, 1)), limit;

	if (hint < s->hint_count && s->hints[hint].v < end)
		end = s->hints[hint].v;
	limit = (end - table.v) / 4;
	return limit < TABLE_LIMIT ? limit : TABLE_LIMIT;
}

bool solver_holds(const struct jump_solver *s, struct rva rva)
{
	return rva_in(rva, s->extent.begin, s->extent.size);
}

/* Where entry `i` leads; false when it is not in read-only data. */
static bool entry_target(const struct jump_solver *s, const struct value *target,
			 uint32_t i, struct rva *ret_target)
{
	struct rva site = rva_add(target->table, 4 * i);
	const uint8_t *word = image_bytes(s->d->image, site, 4);

	if (!word || !image_is_read_only(s->d->image, site))
		return false;
	*ret_target = rva_add(target->base, load_u32(word));
	return true;
}

enum table_entry solver_read_entry(const struct jump_solver *s, const struct value *target,
				   uint32_t i, struct rva *ret_target)
{
	uint8_t *byte, state;

	if (!entry_target(s, target, i, ret_target))
		return TABLE_ENTRY_NONE;
	/* MSVC leaves entries that are never used 0, as RVAs. */
	if (target->base.v == 0 && ret_target->v == 0)
		return TABLE_ENTRY_EMPTY;
	if (ret_target->v == s->extent.begin.v + s->extent.size)
		return TABLE_ENTRY_LEADS; /* unreachable code at the end, of no bytes */
	byte = discovery_state(s->d, *ret_target);
	state = byte ? *byte & CODE_STATE : CODE_INSIDE;
	if (state == CODE_START || (!s->proving && solver_holds(s, *ret_target) &&
				    (state == CODE_UNKNOWN || state == CODE_PADDING)))
		return TABLE_ENTRY_LEADS;
	return TABLE_ENTRY_NONE;
}

/* The number of entries of a table of which no comparison tells how long it is.  One that
 * would lead into the function, but to no instruction, is no proper end. */
static uint32_t open_count(const struct jump_solver *s, const struct value *target,
			   uint32_t limit)
{
	uint32_t count = 0;
	struct rva to;

	while (count < limit &&
	       solver_read_entry(s, target, count, &to) == TABLE_ENTRY_LEADS)
		count++;
	if (s->proving && count < limit && entry_target(s, target, count, &to) &&
	    to.v != 0 && solver_holds(s, to))
		return 0;
	return count;
}

/* Whether comparisons tell how long a table is that may have `limit` entries. */
static bool is_bounded(const struct computed_jump *jump, uint32_t limit)
{
	return jump->bound.count && !jump->bound.wide && jump->bound.count <= limit;
}

bool solver_table_is_bounded(const struct jump_solver *s, const struct computed_jump *jump)
{
	return is_bounded(jump, table_limit(s, jump->target.table));
}

bool solver_table_is_open(const struct computed_jump *jump, uint32_t count)
{
	return jump->bound.count == 0 || count < jump->bound.count;
}

bool jump_solver_spend(struct discovery *d, uint32_t steps)
{
	if (d->flow_steps < steps) {
		d->flow_steps = 0;
		return false;
	}
	d->flow_steps -= steps;
	return true;
}

uint32_t solver_table_count(const struct jump_solver *s, const struct computed_jump *jump)
{
	const struct value *target = &jump->target;
	uint32_t limit = table_limit(s, target->table), count = 0;
	uint32_t bound = jump->bound.count;
	struct rva to;

	if (bound > TABLE_LIMIT && !jump->bound.wide)
		return 0;
	if (is_bounded(jump, limit)) {
		while (count < bound && solver_read_entry(s, target, count, &to))
			count++;
		if (count < bound)
			count = 0;
	} else {
		if (bound && bound < limit)
			limit = bound;
		count = open_count(s, target, limit);
		/* A label before the bound must be where the entries end. */
		if (bound && !jump->bound.wide && count < limit)
			count = 0;
	}
	return jump_solver_spend(s->d, 1 + count / 4) ? count : 0;
}

/* Whether the jump has a tail call's form, or is led by a pointer that was loaded whole
 * right before, as nearly all jumps through registers are.  What is loaded from the stack
 * may have been computed. */
static bool is_plain_tail_call(struct jump_solver *s, struct rva at)
{
	const struct described_insn *known = control_flow_insn(&s->flow, at);
	const struct insn_detail *detail;
	uint8_t reg;

	if (!known || known->insn.tail_call)
		return known != NULL;
	reg = known->detail.target.kind == OPERAND_REGISTER ? known->detail.target.reg
							    : REGISTER_NONE;
	for (int i = 0; i < PLAIN_REACH && reg < REGISTER_COUNT; i++) {
		if (control_flow_is_label(&s->flow, at) ||
		    !control_flow_before(&s->flow, at, &at))
			return false;
		known = control_flow_insn(&s->flow, at);
		if (known->insn.flow == FLOW_CALL || known->insn.flow == FLOW_CALL_INDIRECT)
			return false;
		detail = &known->detail;
		if (!(detail->written >> reg & 1))
			continue;
		return detail->op == OP_MOVE && detail->target.kind == OPERAND_REGISTER &&
		       detail->target.reg == reg && detail->target.size == 8 &&
		       detail->source.kind == OPERAND_MEMORY && detail->source.size == 8 &&
		       detail->source.base != REGISTER_RSP &&
		       detail->source.base != REGISTER_RBP;
	}
	return false;
}

/* Addresses that only compilers keep are good for tables that only compilers make:
 * relative to themselves, or to the image. */
static bool is_compilers_own(const struct value *target)
{
	return !target->survived || target->base.v == 0 ||
	       target->table.v == target->base.v;
}

/* How many bytes of a table of bytes or words can be its own, of which only the size of
 * its index tells how long it is. */
static uint32_t clip_small_table(const struct jump_solver *s, struct rva table,
				 uint32_t size)
{
	const struct code_range *range = discovery_range(s->d, table);
	uint32_t end = range ? next_code_label(range, table) : UINT32_MAX;

	return end - table.v < size ? end - table.v : size;
}

/* The table of bytes or words that gives the index into the jump's table. */
static void find_small_table(struct jump_solver *s, struct computed_jump *jump)
{
	uint32_t id = jump->target.index;
	struct value_bound bound;
	struct value_node node;

	if (id == NO_ID || id % 4 || value_node_of_id(id) >= s->query.nodes.len)
		return;
	node = s->query.nodes.data[value_node_of_id(id)];
	if (node.value.kind != VALUE_SMALL)
		return;
	bound = value_bound_at(&s->query, node.value.index, node.at);
	if (!value_bound_of_table(s->d->image, &node.value, bound.count))
		return;
	jump->small = node.value.table;
	jump->small_size = bound.count * node.value.width;
	if (bound.wide)
		jump->small_size = clip_small_table(s, jump->small, jump->small_size);
}

void jump_solver_solve(struct jump_solver *s, struct computed_jump *jump)
{
	struct value *target = &jump->target;

	if (value_query_is_big(&s->query) || s->asked.v != s->extent.begin.v)
		value_query_forget(&s->query);
	s->asked = s->extent.begin;
	s->query.low = s->query.high = jump->at;
	s->query.guessed = false;
	jump->bound = (struct value_bound){0};
	jump->small_size = 0;
	jump->outcome = JUMP_POINTER;
	if (is_plain_tail_call(s, jump->at))
		return;
	*target = value_query_target(&s->query, jump->at);
	if (target->kind == VALUE_WHOLE || target->kind == VALUE_ADDRESS) {
		jump->outcome = JUMP_POINTER;
	} else if (target->kind == VALUE_TARGET && is_compilers_own(target)) {
		jump->outcome = JUMP_TABLE;
		jump->bound = value_bound_at(&s->query, target->index, jump->at);
		find_small_table(s, jump);
	} else {
		jump->outcome = JUMP_UNSOLVED;
	}
	jump->guessed = s->query.guessed;
	jump->low = s->query.low;
	jump->high = s->query.high;
	if (jump_solver_is_spent(s->d))
		jump->outcome = JUMP_UNSOLVED;
}

/* Tables are read at an index, and are no instructions. */
static bool may_read_table(const struct jump_solver *s, const struct operand *operand,
			   struct rva table)
{
	uint8_t *state = discovery_state(s->d, table);

	return operand->kind == OPERAND_MEMORY && operand->index < REGISTER_COUNT &&
	       state &&
	       ((*state & CODE_STATE) == CODE_UNKNOWN ||
		(*state & CODE_STATE) == CODE_TABLE);
}

/* The register of a memory operand that may hold the image's own address. */
static bool is_from_image_base(struct jump_solver *s, const struct operand *operand,
			       uint32_t displacement, struct rva at)
{
	struct value value;

	if (!may_read_table(s, operand, rva_of(displacement)) ||
	    (uint32_t)operand->value != displacement || operand->base >= REGISTER_COUNT)
		return false;
	value = value_query_register(&s->query, operand->base, at);
	if (value.kind == VALUE_ADDRESS && value.table.v == 0)
		return true;
	if (operand->scale != 1)
		return false;
	value = value_query_register(&s->query, operand->index, at);
	return value.kind == VALUE_ADDRESS && value.table.v == 0;
}

uint8_t jump_solver_displacement(struct jump_solver *s,
				 const struct code_constant *displaced)
{
	const struct described_insn *known = control_flow_insn(&s->flow, displaced->site);
	uint32_t value = displaced->value.v;
	struct described_insn now;

	if (!known || known->insn.displacement_offset == 0)
		return 0;
	if (value_query_is_big(&s->query))
		value_query_forget(&s->query);
	now = *known;
	return is_from_image_base(s, &now.detail.target, value, displaced->site) ||
			       is_from_image_base(s, &now.detail.source, value,
						  displaced->site)
		       ? now.insn.displacement_offset
		       : 0;
}
