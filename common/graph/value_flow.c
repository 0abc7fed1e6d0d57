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
 *
 * Memory is only followed on the stack, by place, whichever register names it.  Any
 * store to an unknown place, and any call, may change a variable whose address the
 * program has taken, so what stands on the stack is forgotten then.  Addresses taken
 * by lea are kept but marked (value.survived): a compiler that hoists a table's base
 * out of a loop spills it into a slot of its own, which nobody else writes.  For
 * switches it makes entries relative to the table itself, and only for such tables a
 * marked address is good enough (jump_table.c); relative labels of the program's own
 * have another base.
 */
#include "graph/value_flow.h"

#include <string.h>

/* Ids: made by an instruction for a register, by a join, or by narrowing. */
static uint64_t made_id(struct rva at, unsigned what)
{
	return (uint64_t)at.v << 16 | what << 4;
}

/* Of values that are equal to no other. */
#define NO_ID 0

enum { WHAT_JOIN = 0x100, WHAT_SLOT = 0x200, WHAT_LOAD = 0x300, WHAT_OLD = 0x400 };

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

		/* Both hold; the later is the one that guards a table. */
		if (fact->bound && fact->id == id) {
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
		state->registers[r] = fresh(r == REGISTER_RSP ? VALUE_STACK : VALUE_WHOLE,
					    id << 16 | r << 4);
}

void flow_state_unknown(struct flow_state *state, uint64_t id)
{
	flow_state_entry(state, id);
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		if (r != REGISTER_RSP)
			state->registers[r].kind = VALUE_COMPUTED;
}

/* A known place on the stack: `size` bytes, `offset` from the address with id `stack`. */
struct place {
	uint64_t stack;
	int32_t offset;
	uint8_t size;
};

static const struct value *register_value(const struct flow_state *state, uint8_t reg)
{
	return reg < REGISTER_COUNT ? &state->registers[reg] : NULL;
}

static bool place_of(const struct flow_state *state, const struct operand *operand,
		     struct place *ret_place)
{
	const struct value *base = register_value(state, operand->base);

	if (operand->kind != OPERAND_MEMORY || operand->index != REGISTER_NONE || !base ||
	    base->kind != VALUE_STACK || operand->size == 0)
		return false;
	*ret_place = (struct place){base->id,
				    (int32_t)(base->table.v + (uint32_t)operand->value),
				    operand->size};
	return true;
}

/* Whether the operand may name the function's own stack.  Where nothing is known, rbp
 * may be its frame pointer. */
static bool may_be_stack(const struct flow_state *state, const struct operand *operand)
{
	const struct value *base = register_value(state, operand->base);
	const struct value *index = register_value(state, operand->index);

	return (base && base->kind == VALUE_STACK) ||
	       (index && index->kind == VALUE_STACK) ||
	       (base && operand->base == REGISTER_RBP && base->kind == VALUE_COMPUTED);
}

/* The lower `size` bytes of a value. */
static struct value lower_part(struct value value, unsigned size)
{
	if (size >= 8)
		return value;
	value.id = value.kind == VALUE_STACK ? NO_ID : narrowed_id(&value, size);
	if (value.width > size)
		value.width = (uint8_t)size;
	if (size < 4 || (value.kind != VALUE_SCALED && value.kind != VALUE_ENTRY))
		value.kind = VALUE_COMPUTED;
	return value;
}

static struct slot *find_slot(struct flow_state *state, const struct place *place)
{
	for (int i = 0; i < FLOW_SLOTS; i++) {
		struct slot *slot = &state->slots[i];

		if (slot->size >= place->size && slot->stack == place->stack &&
		    slot->offset == place->offset)
			return slot;
	}
	return NULL;
}

/* A free slot, else one whose loss matters little. */
static unsigned slot_to_replace(struct flow_state *state)
{
	unsigned first = state->next_slot;

	state->next_slot = (uint8_t)((first + 1) % FLOW_SLOTS);
	for (unsigned i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[i].size == 0)
			return i;
	for (unsigned i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[(first + i) % FLOW_SLOTS].value.kind != VALUE_ADDRESS)
			return (first + i) % FLOW_SLOTS;
	return first;
}

static void add_slot(struct flow_state *state, const struct place *place,
		     struct value value)
{
	state->slots[slot_to_replace(state)] =
		(struct slot){place->stack, place->offset, place->size, value};
}

/* Something was written to `place`, or somewhere when that is NULL. */
static void forget_slots(struct flow_state *state, const struct place *place)
{
	for (int i = 0; i < FLOW_SLOTS; i++) {
		struct slot *slot = &state->slots[i];

		if (slot->size && place && slot->stack == place->stack) {
			if (slot->offset < (int64_t)place->offset + place->size &&
			    place->offset < (int64_t)slot->offset + slot->size)
				slot->size = 0;
		} else if (slot->value.kind == VALUE_ADDRESS) {
			slot->value.survived = true;
		} else {
			slot->size = 0;
		}
	}
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
	ret_element->survived = base->survived || index->survived;
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
	if (base->kind != VALUE_ADDRESS || index->kind != VALUE_SCALED ||
	    operand->scale != 1)
		return false;
	ret_element->table = rva_add(base->table, displacement);
	ret_element->bound = index->bound;
	return true;
}

/* What a load of `operand` gives. */
static struct value load(struct flow_state *state, struct rva at,
			 const struct operand *operand)
{
	struct value value = fresh(VALUE_COMPUTED, made_id(at, WHAT_LOAD));
	struct value element;
	struct place place;

	value.width = operand->size;
	if (place_of(state, operand, &place)) {
		struct slot *slot = find_slot(state, &place);

		if (slot)
			return slot->size == place.size
				       ? slot->value
				       : lower_part(slot->value, place.size);
		value.id = made_id(at, WHAT_SLOT);
		add_slot(state, &place, value);
		return value;
	}
	if (operand->size == 4 && element_of(state, operand, &element)) {
		value.kind = VALUE_ENTRY;
		value.table = element.table;
		value.bound = element.bound;
		value.survived = element.survived;
	} else if (operand->size == 8 && !may_be_stack(state, operand)) {
		value.kind = VALUE_WHOLE;
	}
	return value;
}

struct value flow_state_read(struct flow_state *state, struct rva at,
			     const struct operand *operand)
{
	const struct value *value;

	if (operand->kind == OPERAND_MEMORY)
		return load(state, at, operand);
	/* A constant of 64 bits is an address under a relocation, or no address. */
	if (operand->kind == OPERAND_CONSTANT && operand->size == 8)
		return fresh(VALUE_WHOLE, made_id(at, WHAT_LOAD));
	value = operand->kind == OPERAND_REGISTER ? register_value(state, operand->reg)
						  : NULL;
	return value ? *value : fresh(VALUE_COMPUTED, made_id(at, WHAT_LOAD));
}

static struct value scaled(const struct flow_state *state, const struct value *index,
			   uint64_t id)
{
	struct value value = fresh(VALUE_SCALED, id);

	value.bound = fact_bound(state, narrowed_id(index, 8));
	value.survived = index->survived;
	return value;
}

/* An address on the stack, `delta` bytes from `base`. */
static struct value stack_address(const struct value *base, int64_t delta)
{
	struct value value = *base;

	value.table = rva_add(base->table, (uint32_t)delta);
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
		value.survived = base->survived;
	} else if (base && !index && base->kind == VALUE_STACK) {
		value = stack_address(base, operand->value);
	} else if (may_be_stack(state, operand)) {
		value.kind = VALUE_STACK;
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

	value.survived = a.survived || b.survived;
	if (a.kind == VALUE_STACK || b.kind == VALUE_STACK)
		value.kind = VALUE_STACK;
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
	} else if (a.kind == VALUE_ENTRY && a.width == 8) {
		value.kind = VALUE_TARGET;
		value.table = a.table;
		value.base = b.table;
		value.bound = a.bound;
	}
	return value;
}

static struct value extended(struct flow_state *state, struct rva at,
			     const struct insn_detail *detail, uint64_t id)
{
	const struct operand *source = &detail->source;
	struct value value = flow_state_read(state, at, source);

	if (detail->op == OP_ZERO_EXTEND) {
		value = lower_part(value, source->size);
		value.kind = VALUE_COMPUTED;
	} else if (source->size < 4) {
		value = fresh(VALUE_COMPUTED, id);
	} else {
		if (value.kind != VALUE_ENTRY)
			value.kind = VALUE_COMPUTED;
		value.width = 8;
	}
	return value;
}

/* add and sub: of a constant to an address, or of two values. */
static struct value added(struct flow_state *state, struct rva at,
			  const struct insn_detail *detail, uint64_t id)
{
	const struct operand *source = &detail->source;
	struct value old = state->registers[detail->target.reg];
	int64_t delta = detail->op == OP_ADD ? source->value : -source->value;

	if (detail->target.size != 8)
		return fresh(VALUE_COMPUTED, id);
	if (source->kind != OPERAND_CONSTANT && detail->op == OP_ADD)
		return sum(old, flow_state_read(state, at, source), id);
	if (source->kind == OPERAND_CONSTANT && old.kind == VALUE_STACK)
		return stack_address(&old, delta);
	if (source->kind == OPERAND_CONSTANT && old.kind == VALUE_ADDRESS) {
		old.table = rva_add(old.table, (uint32_t)delta);
		return old;
	}
	return fresh(old.kind == VALUE_STACK ? VALUE_STACK : VALUE_COMPUTED, id);
}

/* One of two whole pointers is a whole pointer. */
static struct value either(const struct value *a, const struct value *b, uint64_t id)
{
	if (a->kind == VALUE_STACK || b->kind == VALUE_STACK)
		return fresh(VALUE_STACK, id);
	return fresh(is_whole(a) && is_whole(b) ? VALUE_WHOLE : VALUE_COMPUTED, id);
}

/* The value that an instruction writes into its target register. */
static struct value result_of(struct flow_state *state, struct rva at,
			      const struct insn *insn, const struct insn_detail *detail)
{
	const struct operand *target = &detail->target, *source = &detail->source;
	uint64_t id = made_id(at, target->reg & 15u);
	struct value value = fresh(VALUE_COMPUTED, id), other;

	switch (detail->op) {
	case OP_MOVE:
		if (target->size >= 4)
			value = lower_part(flow_state_read(state, at, source),
					   target->size);
		break;
	case OP_ZERO_EXTEND:
	case OP_SIGN_EXTEND:
		value = extended(state, at, detail, id);
		break;
	case OP_LEA:
		if (target->size == 8)
			value = lea_value(state, at, insn, source, id);
		break;
	case OP_ADD:
	case OP_SUBTRACT:
		value = added(state, at, detail, id);
		break;
	case OP_SHIFT_LEFT:
		if (source->kind == OPERAND_CONSTANT && source->value == 2 &&
		    target->size >= 4)
			value = scaled(state, &state->registers[target->reg], id);
		break;
	case OP_CONDITIONAL_MOVE:
		other = flow_state_read(state, at, source);
		if (target->size == 8)
			value = either(&state->registers[target->reg], &other, id);
		break;
	default:
		break;
	}
	return value;
}

static void compare(struct flow_state *state, struct rva at,
		    const struct insn_detail *detail)
{
	struct value left;

	state->compared = detail->source.kind == OPERAND_CONSTANT &&
			  detail->source.value >= 0 && detail->source.value < UINT32_MAX;
	if (!state->compared)
		return;
	left = lower_part(flow_state_read(state, at, &detail->target), detail->target.size);
	state->compared_id = left.id;
	if (left.id == NO_ID || left.kind == VALUE_STACK)
		state->compared = false;
	state->compared_constant = (uint32_t)detail->source.value;
}

void flow_state_retire(struct flow_state *state, struct rva at)
{
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		if (state->registers[r].id >> 16 == at.v)
			state->registers[r].id = made_id(at, WHAT_OLD | r);
	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		if (state->slots[i].value.id >> 16 == at.v)
			state->slots[i].value.id = made_id(at, WHAT_OLD | 0x40 | i);
		if (state->slots[i].stack >> 16 == at.v)
			state->slots[i].size = 0;
	}
	for (unsigned i = 0; i < FLOW_FACTS; i++)
		if (state->facts[i].id >> 16 == at.v)
			state->facts[i].bound = 0;
	if (state->compared_id >> 16 == at.v)
		state->compared = false;
}

/* Registers that a call leaves as it likes (x64 calling convention).  A compiler that
 * knows the callee goes on using those that it does not touch (observed: GCC 12.2 keeps
 * a table's base in r11), and no compiler uses one that it does not know. */
static void after_call(struct flow_state *state, struct rva at)
{
	static const uint8_t volatile_registers[] = {0, 1, 2, 8, 9, 10, 11};

	for (unsigned i = 0; i < sizeof(volatile_registers); i++) {
		uint8_t reg = volatile_registers[i];

		if (reg != 0 && state->registers[reg].kind == VALUE_ADDRESS)
			state->registers[reg].survived = true;
		else
			state->registers[reg] = fresh(
				reg == 0 ? VALUE_WHOLE : VALUE_COMPUTED, made_id(at, reg));
	}
}

static void store(struct flow_state *state, struct rva at, const struct insn_detail *detail)
{
	struct value value = fresh(VALUE_COMPUTED, made_id(at, WHAT_SLOT));
	struct place place;

	if (detail->store == STORE_NONE)
		return;
	if (detail->store == STORE_OTHER || !place_of(state, &detail->target, &place)) {
		forget_slots(state, NULL);
		return;
	}
	value.width = place.size;
	if (detail->op == OP_MOVE && place.size >= 4)
		value = lower_part(flow_state_read(state, at, &detail->source), place.size);
	forget_slots(state, &place);
	add_slot(state, &place, value);
}

static void push(struct flow_state *state, struct rva at, const struct insn_detail *detail)
{
	struct value *rsp = &state->registers[REGISTER_RSP];
	struct value value = flow_state_read(state, at, &detail->target);
	struct place place;

	if (detail->target.kind != OPERAND_CONSTANT && detail->target.size != 8) {
		forget_slots(state, NULL);
		*rsp = fresh(VALUE_STACK, made_id(at, REGISTER_RSP));
		return;
	}
	*rsp = stack_address(rsp, -8);
	place = (struct place){rsp->id, (int32_t)rsp->table.v, 8};
	forget_slots(state, &place);
	add_slot(state, &place, value);
}

static void pop(struct flow_state *state, struct rva at, const struct insn_detail *detail)
{
	static const struct operand top = {.kind = OPERAND_MEMORY,
					   .size = 8,
					   .base = REGISTER_RSP,
					   .index = REGISTER_NONE};
	const struct operand *target = &detail->target;
	struct value *rsp = &state->registers[REGISTER_RSP];
	struct value value = load(state, at, &top);

	*rsp = target->size == 8 ? stack_address(rsp, 8)
				 : fresh(VALUE_STACK, made_id(at, REGISTER_RSP));
	if (target->kind != OPERAND_REGISTER)
		forget_slots(state, NULL);
	else if (target->reg < REGISTER_COUNT)
		state->registers[target->reg] =
			target->size == 8 ? value
					  : fresh(VALUE_COMPUTED, made_id(at, target->reg));
}

static void write_registers(struct flow_state *state, struct rva at,
			    const struct insn *insn, const struct insn_detail *detail)
{
	const struct operand *target = &detail->target;
	uint16_t written = detail->written;

	if (detail->op != OP_OTHER && target->kind == OPERAND_REGISTER &&
	    target->reg < REGISTER_COUNT) {
		state->registers[target->reg] = result_of(state, at, insn, detail);
		written &= (uint16_t) ~(1u << target->reg);
	}
	for (unsigned r = 0; r < REGISTER_COUNT; r++)
		if (written >> r & 1)
			state->registers[r] = fresh(VALUE_COMPUTED, made_id(at, r));
}

void flow_state_step(struct flow_state *state, struct rva at, const struct insn *insn,
		     const struct insn_detail *detail)
{
	struct value *rsp = &state->registers[REGISTER_RSP];

	if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT) {
		after_call(state, at);
		forget_slots(state, NULL);
		state->compared = false;
		return;
	}
	if (detail->op == OP_COMPARE) {
		compare(state, at, detail);
		return;
	}
	if (detail->changes_flags)
		state->compared = false;
	if (detail->op == OP_PUSH) {
		push(state, at, detail);
	} else if (detail->op == OP_POP) {
		pop(state, at, detail);
	} else {
		store(state, at, detail);
		write_registers(state, at, insn, detail);
	}
	/* Whatever was done to it, it points to the stack. */
	if (rsp->kind != VALUE_STACK)
		*rsp = fresh(VALUE_STACK, made_id(at, REGISTER_RSP));
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
		  (condition == CONDITION_BELOW && taken)) &&
		 constant > 0)
		add_fact(state, state->compared_id, constant);
}

static bool same_value(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->width == b->width && a->survived == b->survived &&
	       a->table.v == b->table.v && a->base.v == b->base.v && a->bound == b->bound &&
	       a->id == b->id;
}

/* Whether more is known of it than an id and what it may be used for.  Addresses on
 * the stack are known by their id. */
static bool is_followed(const struct value *value)
{
	return value->kind != VALUE_WHOLE && value->kind != VALUE_COMPUTED &&
	       value->kind != VALUE_STACK;
}

/* The best that holds for both; it only ever loses knowledge, so joins end. */
static bool join_value(struct value *into, const struct value *from, uint64_t id)
{
	struct value joined;

	if (same_value(into, from))
		return false;
	joined = either(into, from, id);
	if (into->kind == from->kind && into->table.v == from->table.v &&
	    into->base.v == from->base.v && is_followed(into) &&
	    (into->kind != VALUE_ENTRY || into->width == from->width)) {
		joined = *into;
		joined.survived = into->survived || from->survived;
		if (into->bound != from->bound)
			joined.bound = into->bound && from->bound
					       ? (into->bound > from->bound ? into->bound
									    : from->bound)
					       : 0;
		joined.id = into->id == from->id ? into->id : id;
	}
	joined.width = into->width > from->width ? into->width : from->width;
	if (same_value(into, &joined))
		return false;
	*into = joined;
	return true;
}

static bool join_slots(struct flow_state *into, const struct flow_state *from,
		       struct rva at)
{
	bool changed = false;

	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		struct slot *slot = &into->slots[i];
		struct place place = {slot->stack, slot->offset, slot->size};
		struct slot *other;

		if (slot->size == 0)
			continue;
		other = find_slot((struct flow_state *)from, &place);
		if (!other || other->size != slot->size) {
			slot->size = 0;
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
