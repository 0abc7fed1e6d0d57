/* The abstract values behind jump tables, and what instructions do to them.
 *
 * The forms met (observed: GCC 12.2 and clang 14, -O0 to -O2):
 *
 *     lea  rdx, [table]              lea    rdx, [rax*4]        ; -O0
 *     movsxd rax, [rdx + rax*4]      lea    rax, [table]
 *     add  rax, rdx                  mov    eax, [rdx + rax]
 *     jmp  rax                       cdqe
 *                                    lea    rdx, [table]
 *                                    add    rax, rdx
 *
 * with the base hoisted out of loops into any register or spilled, and the bound
 * by `cmp index, n` and `ja` before, the index in a register or in memory.  Ids
 * carry a comparison's bound from the register that was compared to copies of
 * the same value.
 */
#include "graph/value_flow.h"

#include <string.h>

/* Ids: made by an instruction for a register, by a join, or by narrowing. */
static uint64_t made_id(struct rva at, unsigned what)
{
	return (uint64_t)at.v << 16 | what << 4;
}

enum { WHAT_JOIN = 0x100, WHAT_SLOT = 0x200, WHAT_LOAD = 0x300, WHAT_OLD = 0x400,
       WHAT_STORED = 0x500 };

static struct value fresh(enum value_kind kind, uint64_t id)
{
	return (struct value){.kind = (uint8_t)kind, .width = 8, .id = id};
}

static bool is_whole(const struct value *value)
{
	return value->kind == VALUE_WHOLE || value->kind == VALUE_ADDRESS;
}

static uint64_t narrowed_id(const struct value *value, unsigned size)
{
	if (size >= 4 || size >= value->width)
		return value->id;
	return value->id | size;
}

static uint32_t fact_bound(const struct flow_state *state, uint64_t id)
{
	for (int i = 0; i < FLOW_FACTS; i++)
		if (state->facts[i].bound && state->facts[i].id == id)
			return state->facts[i].bound;
	return 0;
}

static void add_fact(struct flow_state *state, uint64_t id, uint32_t bound)
{
	for (int i = 0; i < FLOW_FACTS; i++) {
		struct fact *fact = &state->facts[i];

		if (fact->bound && fact->id == id) {
			if (bound < fact->bound)
				fact->bound = bound;
			return;
		}
	}
	state->facts[state->next_fact] = (struct fact){id, bound};
	state->next_fact = (uint8_t)((state->next_fact + 1) % FLOW_FACTS);
}

void flow_state_entry(struct flow_state *state, uint64_t id)
{
	memset(state, 0, sizeof(*state));
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		state->registers[r] = fresh(VALUE_WHOLE, id << 16 | r << 4);
}

void flow_state_unknown(struct flow_state *state, uint64_t id)
{
	flow_state_entry(state, id);
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		state->registers[r].kind = VALUE_COMPUTED;
}

static bool is_slot(const struct operand *operand)
{
	return operand->kind == OPERAND_MEMORY && operand->index == REGISTER_NONE &&
	       (operand->base == REGISTER_RSP || operand->base == REGISTER_RBP) &&
	       operand->value >= INT32_MIN && operand->value <= INT32_MAX;
}

static struct slot *find_slot(struct flow_state *state, const struct operand *operand)
{
	for (int i = 0; i < FLOW_SLOTS; i++) {
		struct slot *slot = &state->slots[i];

		if (slot->base == operand->base && slot->displacement == operand->value)
			return slot;
	}
	return NULL;
}

static void set_slot(struct flow_state *state, const struct operand *operand,
		     struct value value)
{
	struct slot *slot = find_slot(state, operand);

	if (!slot) {
		slot = &state->slots[state->next_slot];
		state->next_slot = (uint8_t)((state->next_slot + 1) % FLOW_SLOTS);
	}
	*slot = (struct slot){operand->base, (int32_t)operand->value, value};
}

static void forget_slots(struct flow_state *state, uint8_t base)
{
	for (int i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[i].base == base)
			state->slots[i].base = 0;
}

/* Something may have written to any local variable whose address is known elsewhere:
 * what a variable holds is another value now.  Addresses and what is being computed
 * from a table are the compiler's own and no variable. */
static void forget_variables(struct flow_state *state, struct rva at)
{
	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		struct value *value = &state->slots[i].value;

		if (value->kind == VALUE_COMPUTED || value->kind == VALUE_WHOLE) {
			value->id = made_id(at, WHAT_STORED | i);
			value->width = 8;
		}
	}
}

static const struct value *register_value(const struct flow_state *state, uint8_t reg)
{
	return reg < REGISTER_COUNT ? &state->registers[reg] : NULL;
}

/* The table element that a memory operand means: base + 4 * index. */
static bool element_of(const struct flow_state *state, const struct operand *operand,
		       struct value *ret_element)
{
	const struct value *base = register_value(state, operand->base);
	const struct value *index = register_value(state, operand->index);
	uint32_t displacement = (uint32_t)operand->value;
	uint64_t index_id;

	*ret_element = fresh(VALUE_ELEMENT, 0);
	if (base && !index && base->kind == VALUE_ELEMENT) {
		*ret_element = *base;
		ret_element->table = rva_add(base->table, displacement);
		return true;
	}
	if (!base || !index)
		return false;
	if (index->kind == VALUE_ADDRESS && operand->scale == 1) {
		const struct value *swap = base;

		base = index;
		index = swap;
	} else if (operand->scale == 4 && base->kind == VALUE_ADDRESS) {
		index_id = narrowed_id(index, 8);
		ret_element->table = rva_add(base->table, displacement);
		ret_element->bound = fact_bound(state, index_id);
		return true;
	}
	if (base->kind != VALUE_ADDRESS || index->kind != VALUE_SCALED || operand->scale != 1)
		return false;
	ret_element->table = rva_add(base->table, displacement);
	ret_element->bound = index->bound;
	return true;
}

/* What a load of `operand` gives. */
static struct value load(struct flow_state *state, struct rva at, const struct operand *operand)
{
	struct value value = fresh(operand->size == 8 ? VALUE_WHOLE : VALUE_COMPUTED,
				   made_id(at, WHAT_LOAD));
	struct value element;

	value.width = operand->size;
	if (is_slot(operand)) {
		struct slot *slot = find_slot(state, operand);

		if (slot)
			return slot->value;
		value.id = made_id(at, WHAT_SLOT);
		set_slot(state, operand, value);
		return value;
	}
	if (operand->size == 4 && element_of(state, operand, &element)) {
		value.kind = VALUE_ENTRY;
		value.table = element.table;
		value.bound = element.bound;
	}
	return value;
}

static struct value operand_value(struct flow_state *state, struct rva at,
				  const struct operand *operand)
{
	const struct value *value;

	if (operand->kind == OPERAND_MEMORY)
		return load(state, at, operand);
	value = operand->kind == OPERAND_REGISTER ? register_value(state, operand->reg) : NULL;
	return value ? *value : fresh(VALUE_COMPUTED, made_id(at, WHAT_LOAD));
}

static struct value scaled(const struct flow_state *state, const struct value *index,
			   uint64_t id)
{
	struct value value = fresh(VALUE_SCALED, id);

	value.bound = fact_bound(state, narrowed_id(index, 8));
	return value;
}

static struct value lea_value(const struct flow_state *state, struct rva at,
			      const struct insn *insn, const struct operand *operand,
			      uint64_t id)
{
	const struct value *base = register_value(state, operand->base);
	const struct value *index = register_value(state, operand->index);
	struct value value = fresh(VALUE_COMPUTED, id);

	if (operand->base == REGISTER_RIP) {
		value.kind = VALUE_ADDRESS;
		value.table = rva_add(at, insn->length + (uint32_t)insn->relative);
	} else if (base && !index && base->kind == VALUE_ADDRESS) {
		value.kind = VALUE_ADDRESS;
		value.table = rva_add(base->table, (uint32_t)operand->value);
	} else if (!base && index && operand->scale == 4 && operand->value == 0) {
		value = scaled(state, index, id);
	} else if (base && index && element_of(state, operand, &value)) {
		value.id = id;
	} else {
		value = fresh(VALUE_COMPUTED, id);
	}
	return value;
}

static struct value sum(struct value a, struct value b, uint64_t id)
{
	struct value value = fresh(VALUE_COMPUTED, id);

	if (b.kind != VALUE_ADDRESS) {
		struct value swap = a;

		a = b;
		b = swap;
	}
	if (b.kind != VALUE_ADDRESS)
		return value;
	if (a.kind == VALUE_SCALED) {
		value.kind = VALUE_ELEMENT;
		value.table = b.table;
		value.bound = a.bound;
	} else if (a.kind == VALUE_ENTRY) {
		value.kind = VALUE_TARGET;
		value.table = a.table;
		value.base = b.table;
		value.bound = a.bound;
	}
	return value;
}

/* The value that an instruction writes into its target register. */
static struct value result_of(struct flow_state *state, struct rva at, const struct insn *insn,
			      const struct insn_detail *detail)
{
	const struct operand *target = &detail->target, *source = &detail->source;
	uint64_t id = made_id(at, target->reg & 15u);
	struct value value = fresh(VALUE_COMPUTED, id), old;

	switch (detail->op) {
	case OP_MOVE:
		if (source->kind == OPERAND_CONSTANT || target->size < 4)
			break;
		value = operand_value(state, at, source);
		if (target->size == 4 && value.width > 4)
			value.width = 4;
		break;
	case OP_ZERO_EXTEND:
		value = operand_value(state, at, source);
		value.id = narrowed_id(&value, source->size);
		if (value.width > source->size)
			value.width = source->size;
		value.kind = VALUE_COMPUTED;
		break;
	case OP_SIGN_EXTEND:
		value = operand_value(state, at, source);
		if (source->size < 4) {
			value = fresh(VALUE_COMPUTED, id);
		} else if (value.kind != VALUE_ENTRY) {
			value.kind = VALUE_COMPUTED;
			value.width = 8;
		}
		break;
	case OP_LEA:
		if (target->size == 8)
			value = lea_value(state, at, insn, source, id);
		break;
	case OP_ADD:
		if (target->size != 8)
			break;
		old = state->registers[target->reg];
		if (source->kind == OPERAND_CONSTANT && old.kind == VALUE_ADDRESS) {
			value = old;
			value.table = rva_add(old.table, (uint32_t)source->value);
		} else if (source->kind != OPERAND_CONSTANT) {
			value = sum(old, operand_value(state, at, source), id);
		}
		break;
	case OP_SHIFT_LEFT:
		if (source->kind == OPERAND_CONSTANT && source->value == 2)
			value = scaled(state, &state->registers[target->reg], id);
		break;
	case OP_CONDITIONAL_MOVE:
		/* One of two whole pointers is a whole pointer. */
		old = operand_value(state, at, source);
		if (is_whole(&old) && is_whole(&state->registers[target->reg]))
			value.kind = VALUE_WHOLE;
		break;
	default:
		break;
	}
	return value;
}

static void compare(struct flow_state *state, struct rva at, const struct insn_detail *detail)
{
	struct value left;

	state->compared = detail->source.kind == OPERAND_CONSTANT && detail->source.value >= 0 &&
			  detail->source.value < UINT32_MAX;
	if (!state->compared)
		return;
	left = operand_value(state, at, &detail->target);
	state->compared_id = narrowed_id(&left, detail->target.size);
	state->compared_constant = (uint32_t)detail->source.value;
}

void flow_state_retire(struct flow_state *state, struct rva at)
{
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		if (state->registers[r].id >> 16 == at.v)
			state->registers[r].id = made_id(at, WHAT_OLD | r);
	for (unsigned i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[i].value.id >> 16 == at.v)
			state->slots[i].value.id = made_id(at, WHAT_OLD | 0x40 | i);
	for (unsigned i = 0; i < FLOW_FACTS; i++)
		if (state->facts[i].id >> 16 == at.v)
			state->facts[i].bound = 0;
	if (state->compared_id >> 16 == at.v)
		state->compared = false;
}

/* Registers that a call leaves as it likes (x64 calling convention). */
static void after_call(struct flow_state *state, struct rva at)
{
	static const uint8_t volatile_registers[] = {0, 1, 2, 8, 9, 10, 11};

	for (unsigned i = 0; i < sizeof(volatile_registers); i++) {
		uint8_t reg = volatile_registers[i];

		state->registers[reg] = fresh(reg == 0 ? VALUE_WHOLE : VALUE_COMPUTED,
					      made_id(at, reg));
	}
}

/* A write to memory.  It may overlap any variable; a whole move into a slot is the
 * one that we can follow. */
static void store(struct flow_state *state, struct rva at, const struct insn_detail *detail)
{
	struct value value = fresh(VALUE_COMPUTED, made_id(at, WHAT_SLOT));
	bool followed = is_slot(&detail->target) && detail->op == OP_MOVE &&
			detail->target.size >= 4;

	if (followed)
		value = operand_value(state, at, &detail->source);
	forget_variables(state, at);
	if (followed || (is_slot(&detail->target) && find_slot(state, &detail->target)))
		set_slot(state, &detail->target, value);
}

void flow_state_step(struct flow_state *state, struct rva at, const struct insn *insn,
		     const struct insn_detail *detail)
{
	const struct operand *target = &detail->target;

	if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT) {
		after_call(state, at);
		forget_variables(state, at);
		state->compared = false;
		return;
	}
	if (detail->op == OP_COMPARE) {
		compare(state, at, detail);
		return;
	}
	if (detail->changes_flags)
		state->compared = false;
	if (detail->writes_memory)
		store(state, at, detail);
	if (detail->op != OP_OTHER && target->kind == OPERAND_REGISTER &&
	    target->reg < REGISTER_COUNT) {
		state->registers[target->reg] = result_of(state, at, insn, detail);
	} else {
		for (unsigned r = 0; r < REGISTER_COUNT; r++)
			if (detail->written >> r & 1)
				state->registers[r] = fresh(VALUE_COMPUTED, made_id(at, r));
	}
	if (detail->written >> REGISTER_RSP & 1)
		forget_slots(state, REGISTER_RSP);
	if (detail->written >> REGISTER_RBP & 1)
		forget_slots(state, REGISTER_RBP);
}

void flow_state_branch(struct flow_state *state, enum insn_condition condition, bool taken)
{
	uint32_t constant = state->compared_constant;

	if (!state->compared)
		return;
	if ((condition == CONDITION_ABOVE && !taken) ||
	    (condition == CONDITION_BELOW_EQUAL && taken))
		add_fact(state, state->compared_id, constant + 1);
	else if (((condition == CONDITION_ABOVE_EQUAL && !taken) ||
		  (condition == CONDITION_BELOW && taken)) && constant > 0)
		add_fact(state, state->compared_id, constant);
}

static bool same_value(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->width == b->width && a->table.v == b->table.v &&
	       a->base.v == b->base.v && a->bound == b->bound && a->id == b->id;
}

/* The best that holds for both; it only ever loses knowledge, so joins end. */
static bool join_value(struct value *into, const struct value *from, uint64_t id)
{
	struct value joined;

	if (same_value(into, from))
		return false;
	joined = fresh(is_whole(into) && is_whole(from) ? VALUE_WHOLE : VALUE_COMPUTED, id);
	if (into->kind == from->kind && into->table.v == from->table.v &&
	    into->base.v == from->base.v &&
	    (into->kind != VALUE_WHOLE && into->kind != VALUE_COMPUTED)) {
		joined = *into;
		if (into->bound != from->bound)
			joined.bound = into->bound && from->bound
					       ? (into->bound > from->bound ? into->bound : from->bound)
					       : 0;
		joined.id = into->id == from->id ? into->id : id;
	}
	joined.width = into->width > from->width ? into->width : from->width;
	if (same_value(into, &joined))
		return false;
	*into = joined;
	return true;
}

static bool join_slots(struct flow_state *into, const struct flow_state *from, struct rva at)
{
	bool changed = false;

	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		struct slot *slot = &into->slots[i];
		struct operand name = {.base = slot->base, .value = slot->displacement};
		struct slot *other;

		if (slot->base == 0)
			continue;
		other = find_slot((struct flow_state *)from, &name);
		if (!other) {
			slot->base = 0;
			changed = true;
		} else if (join_value(&slot->value, &other->value,
				      made_id(at, WHAT_JOIN | 0x40 | i))) {
			changed = true;
		}
	}
	return changed;
}

static bool join_facts(struct flow_state *into, const struct flow_state *from)
{
	bool changed = false;

	for (unsigned i = 0; i < FLOW_FACTS; i++) {
		struct fact *fact = &into->facts[i];
		uint32_t bound;

		if (fact->bound == 0)
			continue;
		bound = fact_bound(from, fact->id);
		if (bound == 0 || bound > fact->bound) {
			fact->bound = bound;
			changed = true;
		}
	}
	return changed;
}

bool flow_state_join(struct flow_state *into, const struct flow_state *from, struct rva at)
{
	bool changed = false;

	if (memcmp(into, from, sizeof(*into)) == 0)
		return false;
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		changed |= join_value(&into->registers[r], &from->registers[r],
				      made_id(at, WHAT_JOIN | r));
	changed |= join_slots(into, from, at);
	changed |= join_facts(into, from);
	if (into->compared && (!from->compared || from->compared_id != into->compared_id ||
			       from->compared_constant != into->compared_constant)) {
		into->compared = false;
		changed = true;
	}
	return changed;
}
