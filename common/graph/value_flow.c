/* The abstract values behind jump tables, and what instructions do to them.
 *
 * The forms met:
 *
 *     lea  rdx, [table]              lea    rdx, [rax*4]        ; GCC -O0
 *     movsxd rax, [rdx + rax*4]      lea    rax, [table]
 *     add  rax, rdx                  mov    eax, [rdx + rax]
 *     jmp  rax                       cdqe
 *                                    lea    rdx, [table]
 *                                    add    rax, rdx
 *
 *     lea   rdx, [image base]                                   ; MSVC
 *     movzx eax, byte [rdx + rax + bytes]
 *     mov   ecx, [rdx + rax*4 + table]
 *     add   rcx, rdx
 *     jmp   rcx
 *
 * (observed: GCC 12.2, clang 14, rustc; MSVC 2005 to 2022), with the base hoisted out
 * of loops into any register or spilled, and the bound by `cmp index, n` and `ja` before,
 * the index in a register or in memory.  MSVC's entries are RVAs, zero-extended, and
 * its displacements are RVAs too.
 *
 * Addresses taken by lea are kept where something may have changed them, but marked
 * (value.survived): a compiler that hoists a table's base out of a loop spills it into a
 * slot of its own, which nobody else writes.  For switches it makes entries relative to
 * the table itself, or to the image, and only for such tables a marked address is good
 * enough (jump_solver.c); relative labels of the program's own have another base.
 */
#include "graph/value_flow.h"

struct value value_fresh(enum value_kind kind, uint32_t id)
{
	return (struct value){.kind = (uint8_t)kind, .width = 8, .id = id};
}

static bool is_whole(const struct value *value)
{
	return value->kind == VALUE_WHOLE || value->kind == VALUE_ADDRESS;
}

struct value value_lower_part(struct value value, unsigned size)
{
	unsigned part = value.id % 4; /* that it is already, extended with zeros; 0: none */

	if (size >= 8)
		return value;
	if (value.kind == VALUE_STACK)
		value.id = NO_ID;
	else if (size < 4 && size < value.width && value.id != NO_ID &&
		 (part == 0 || size < part))
		value.id = value.id / 4 * 4 + size;
	if (value.width > size)
		value.width = (uint8_t)size;
	if (value.kind == VALUE_SMALL && size >= value.width)
		return value;
	if (size < 4 || (value.kind != VALUE_SCALED && value.kind != VALUE_ENTRY))
		value.kind = VALUE_COMPUTED;
	return value;
}

bool value_same(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->width == b->width && a->survived == b->survived &&
	       a->table.v == b->table.v && a->base.v == b->base.v && a->id == b->id &&
	       a->index == b->index;
}

/* One of two whole pointers is a whole pointer. */
static struct value either(const struct value *a, const struct value *b, uint32_t id)
{
	if (a->kind == VALUE_STACK || b->kind == VALUE_STACK)
		return value_fresh(VALUE_STACK, id);
	return value_fresh(is_whole(a) && is_whole(b) ? VALUE_WHOLE : VALUE_COMPUTED, id);
}

/* Whether more is known of it than an id and what it may be used for. */
static bool is_followed(const struct value *value)
{
	return value->kind != VALUE_WHOLE && value->kind != VALUE_COMPUTED &&
	       value->kind != VALUE_STACK;
}

/* An id tells that values are equal, whatever their kinds; a place on the stack is an id
 * and the offset from it. */
static bool are_equal(const struct value *a, const struct value *b)
{
	bool stack = a->kind == VALUE_STACK || b->kind == VALUE_STACK;

	return a->id == b->id &&
	       (!stack || (a->kind == b->kind && a->table.v == b->table.v));
}

struct value value_join(const struct value *a, const struct value *b, uint32_t id)
{
	bool equal = are_equal(a, b);
	struct value joined;

	if (a->kind == VALUE_OPEN)
		return *b;
	if (b->kind == VALUE_OPEN || value_same(a, b))
		return *a;
	joined = either(a, b, id);
	if (a->kind == b->kind && a->table.v == b->table.v && a->base.v == b->base.v &&
	    is_followed(a) &&
	    ((a->kind != VALUE_ENTRY && a->kind != VALUE_SMALL) || a->width == b->width)) {
		joined = *a;
		joined.survived = a->survived || b->survived;
		joined.index = a->index == b->index ? a->index : NO_ID;
	}
	joined.id = equal ? a->id : id;
	if (equal && a->kind == VALUE_STACK)
		joined.table = a->table;
	joined.width = a->width > b->width ? a->width : b->width;
	return joined;
}

/* The table's entry that base + scale * index + displacement names. */
static bool element_of(const struct operand *operand, const struct value_inputs *in,
		       struct value *ret_element)
{
	const struct value *base = &in->source, *index = &in->index;
	uint32_t displacement = (uint32_t)operand->value;

	*ret_element = value_fresh(VALUE_ELEMENT, NO_ID);
	if (operand->base >= REGISTER_COUNT)
		return false;
	if (operand->index == REGISTER_NONE) {
		if (base->kind != VALUE_ELEMENT)
			return false;
		*ret_element = *base;
		ret_element->table = rva_add(base->table, displacement);
		return true;
	}
	if (index->kind == VALUE_ADDRESS && operand->scale == 1) {
		const struct value *swap = base;

		base = index;
		index = swap;
	}
	if (base->kind != VALUE_ADDRESS)
		return false;
	ret_element->survived = base->survived || index->survived;
	ret_element->table = rva_add(base->table, displacement);
	if (operand->scale == 4) {
		ret_element->index = index->id;
		return true;
	}
	ret_element->index = index->index;
	return index->kind == VALUE_SCALED && operand->scale == 1;
}

/* An entry of a table of bytes or words. */
static bool small_of(const struct operand *operand, const struct value_inputs *in,
		     struct value *ret_small)
{
	const struct value *base = &in->source;
	uint32_t id = in->index_id;

	if (operand->base >= REGISTER_COUNT || operand->index >= REGISTER_COUNT ||
	    operand->size > 2 || operand->scale != operand->size)
		return false;
	if (in->index.kind == VALUE_ADDRESS && operand->scale == 1) {
		base = &in->index;
		id = in->source_id;
	}
	if (base->kind != VALUE_ADDRESS)
		return false;
	ret_small->kind = VALUE_SMALL;
	ret_small->table = rva_add(base->table, (uint32_t)operand->value);
	ret_small->survived = base->survived;
	ret_small->index = id;
	return true;
}

/* Whether the operand may name the function's own stack.  Where nothing is known, rbp
 * may be its frame pointer. */
static bool may_be_stack(const struct operand *operand, const struct value_inputs *in)
{
	bool base = operand->base < REGISTER_COUNT, index = operand->index < REGISTER_COUNT;

	return (base && in->source.kind == VALUE_STACK) ||
	       (index && in->index.kind == VALUE_STACK) ||
	       (operand->base == REGISTER_RBP && in->source.kind == VALUE_COMPUTED);
}

static struct value load(const struct operand *operand, const struct value_inputs *in,
			 uint32_t id)
{
	struct value value = value_fresh(VALUE_COMPUTED, id), element;

	if (in->variable)
		return in->source;
	value.width = operand->size;
	if (operand->size == 4 && element_of(operand, in, &element)) {
		value.kind = VALUE_ENTRY;
		value.table = element.table;
		value.index = element.index;
		value.survived = element.survived;
	} else if (operand->size == 8 && !may_be_stack(operand, in)) {
		value.kind = VALUE_WHOLE;
	} else {
		small_of(operand, in, &value);
	}
	return value;
}

struct value value_read(const struct operand *operand, const struct value_inputs *in,
			uint32_t id)
{
	if (operand->kind == OPERAND_MEMORY)
		return load(operand, in, id);
	/* A constant of 64 bits is an address under a relocation, or no address. */
	if (operand->kind == OPERAND_CONSTANT && operand->size == 8)
		return value_fresh(VALUE_WHOLE, id);
	if (operand->kind == OPERAND_REGISTER && operand->reg < REGISTER_COUNT)
		return in->source;
	return value_fresh(VALUE_COMPUTED, id);
}

static struct value scaled(const struct value *index, uint32_t id)
{
	struct value value = value_fresh(VALUE_SCALED, id);

	value.index = index->id;
	value.survived = index->survived;
	return value;
}

static struct value lea_value(struct rva at, const struct insn *insn,
			      const struct operand *operand, const struct value_inputs *in,
			      uint32_t id)
{
	bool base = operand->base < REGISTER_COUNT, index = operand->index < REGISTER_COUNT;
	struct value value = value_fresh(VALUE_COMPUTED, id);

	if (operand->base == REGISTER_RIP) {
		value.kind = VALUE_ADDRESS;
		value.table = rva_add(at, insn->length + (uint32_t)insn->relative);
	} else if (base && !index && in->source.kind == VALUE_ADDRESS) {
		value.kind = VALUE_ADDRESS;
		value.table = rva_add(in->source.table, (uint32_t)operand->value);
		value.survived = in->source.survived;
	} else if (may_be_stack(operand, in)) {
		value.kind = VALUE_STACK;
	} else if (!base && index && operand->scale == 4 && operand->value == 0) {
		value = scaled(&in->index, id);
	} else if (element_of(operand, in, &value)) {
		value.id = id;
	} else {
		value = value_fresh(VALUE_COMPUTED, id);
	}
	return value;
}

/* The image's own address has RVA 0: RVAs are added to it, zero-extended or not. */
static bool makes_target(const struct value *entry, const struct value *base)
{
	return entry->kind == VALUE_ENTRY && (entry->width == 8 || base->table.v == 0);
}

static struct value sum(struct value a, struct value b, uint32_t id)
{
	struct value value = value_fresh(VALUE_COMPUTED, id);

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
	value.index = a.index;
	if (a.kind == VALUE_SCALED) {
		value.kind = VALUE_ELEMENT;
		value.table = b.table;
	} else if (makes_target(&a, &b)) {
		value.kind = VALUE_TARGET;
		value.table = a.table;
		value.base = b.table;
	}
	return value;
}

static struct value extended(const struct insn_detail *detail,
			     const struct value_inputs *in, uint32_t id)
{
	const struct operand *source = &detail->source;
	struct value value = value_read(source, in, id);

	if (detail->target.size < 4) {
		value = value_fresh(VALUE_COMPUTED, id); /* what stands above stays */
	} else if (detail->op == OP_ZERO_EXTEND) {
		value = value_lower_part(value, source->size);
		if (value.kind != VALUE_SMALL)
			value.kind = VALUE_COMPUTED;
	} else if (source->size < 4) {
		value = value_fresh(VALUE_COMPUTED, id);
	} else {
		if (value.kind != VALUE_ENTRY && value.kind != VALUE_SMALL)
			value.kind = VALUE_COMPUTED;
		if (value.kind != VALUE_SMALL)
			value.width = 8;
	}
	return value;
}

/* add and sub: of a constant to an address, or of two values. */
static struct value added(const struct insn_detail *detail, const struct value_inputs *in,
			  uint32_t id)
{
	const struct operand *source = &detail->source;
	struct value old = in->target;
	int64_t delta = detail->op == OP_ADD ? source->value : -source->value;

	if (detail->target.size != 8)
		return value_fresh(VALUE_COMPUTED, id);
	if (source->kind != OPERAND_CONSTANT && detail->op == OP_ADD)
		return sum(old, value_read(source, in, id), id);
	if (source->kind == OPERAND_CONSTANT && old.kind == VALUE_ADDRESS) {
		old.table = rva_add(old.table, (uint32_t)delta);
		return old;
	}
	return value_fresh(old.kind == VALUE_STACK ? VALUE_STACK : VALUE_COMPUTED, id);
}

struct value value_result(struct rva at, const struct insn *insn,
			  const struct insn_detail *detail, const struct value_inputs *in,
			  uint32_t id)
{
	const struct operand *target = &detail->target, *source = &detail->source;
	struct value value = value_fresh(VALUE_COMPUTED, id), other;

	switch (detail->op) {
	case OP_MOVE:
		if (target->size >= 4)
			value = value_lower_part(value_read(source, in, id), target->size);
		break;
	case OP_ZERO_EXTEND:
	case OP_SIGN_EXTEND:
		value = extended(detail, in, id);
		break;
	case OP_LEA:
		if (target->size == 8)
			value = lea_value(at, insn, source, in, id);
		break;
	case OP_ADD:
	case OP_SUBTRACT:
		value = added(detail, in, id);
		break;
	case OP_SHIFT_LEFT:
		if (source->kind == OPERAND_CONSTANT && source->value == 2 &&
		    target->size >= 4)
			value = scaled(&in->target, id);
		break;
	case OP_CONDITIONAL_MOVE:
		other = value_read(source, in, id);
		if (target->size == 8)
			value = either(&in->target, &other, id);
		break;
	case OP_POP:
		if (target->size == 8)
			value = in->source;
		break;
	default:
		break;
	}
	return value;
}
