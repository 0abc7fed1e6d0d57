/* Following values backwards, from where they are used to where they are made.
 *
 * The problem.  A table's base may be loaded in another block than the jump, before a
 * loop, or before a cold part; registers are saved and reloaded; and several ways lead to
 * a place.  Following all registers forwards through whole functions, block by block to
 * a fixpoint, answers everything and costs ten times what decoding does (observed with
 * the first version of this file: 6 s for 8.6 MB of Rust).
 *
 * The way.  Only what is asked for is followed, and backwards: from the place of use
 * over the instructions before it to the one that writes the register; at a label, along
 * each branch that leads there.  What is met becomes a node of a graph, one for each
 * pair of label and variable and for each instruction that writes one; nodes name the
 * nodes that they are made of.  That is static single assignment form, made on demand
 * (Braun and others, "Simple and Efficient Construction of Static Single Assignment
 * Form").  When all nodes below a question are there they are evaluated to a fixpoint,
 * which begins with "open" everywhere and only ever loses knowledge.  Nearly all questions
 * end within a few blocks.
 *
 * Values that are equal have the same id: the node that made the value.  A label at which
 * equal values come together passes the id on, so a comparison of one register bounds its
 * copies.  In a loop a node makes other values each time; that does no harm, since
 * whoever holds an earlier one has it from a label of the loop, which is another node
 * (in the form above a definition dominates its uses).
 *
 * Of an index, and of what is compared, only this identity is asked; that ends at the first
 * instruction that does not merely copy.
 *
 * Memory is followed on the stack only, by place, named by rsp or rbp.  Where these point
 * is asked first, in two variables of their own, which depend on nothing else.  A
 * call, and a store to another place, may change a variable whose address the program has
 * taken: then only an address is kept, and marked.
 *
 * Cost: a few dozen instructions for each question.  Steps are counted over all questions
 * (discovery.flow_steps); beyond what honest code needs nothing is answered any more.
 */
#include "graph/value_query.h"

#include <string.h>

#define NO_NODE UINT32_MAX

enum {
	/* Variables: the registers, then these. */
	FRAME_RSP = REGISTER_COUNT, /* rsp as an address on the stack */
	FRAME_RBP,                  /* the same of rbp, where it is one */
	READ_OPERAND,               /* of NODE_READ */
	FIRST_STACK,                /* stack variables, and the same behind what may have
				     * changed them: 2 * i, 2 * i + 1 */
	IDENTITY = 1 << 15,         /* flag of a variable: only what it equals is asked */
	BIG = 1 << 15,              /* nodes */
	CALLERS_MAX = 8,            /* ways to a function's begin that are followed */
	PASSES = 64,                /* over the open nodes; beyond, nothing is known */
	BUCKETS_MIN = 1 << 10,
};

bool value_query_init(struct value_query *query, struct control_flow *flow)
{
	*query = (struct value_query){.flow = flow, .bucket_count = BUCKETS_MIN};
	query->buckets = calloc(BUCKETS_MIN, sizeof(*query->buckets));
	return query->buckets != NULL;
}

void value_query_release(struct value_query *query)
{
	vec_release(&query->nodes);
	vec_release(&query->operands);
	vec_release(&query->open);
	vec_release(&query->sorted);
	vec_release(&query->visits);
	free(query->buckets);
	query->buckets = NULL;
}

static uint32_t bucket_of(const struct value_query *query, struct rva at, unsigned variable)
{
	uint32_t hash = (at.v * 0x9e3779b1u) ^ (variable * 0x85ebca6bu);

	return (hash ^ hash >> 15) & (query->bucket_count - 1);
}

void value_query_forget(struct value_query *query)
{
	/* Few nodes are taken out one by one, since most questions are small. */
	if (query->nodes.len > query->bucket_count / 8) {
		memset(query->buckets, 0, query->bucket_count * sizeof(*query->buckets));
	} else {
		for (uint32_t i = 0; i < query->nodes.len; i++) {
			uint32_t b = bucket_of(query, query->nodes.data[i].at,
					       query->nodes.data[i].variable);

			while (query->buckets[b]) {
				query->buckets[b] = 0;
				b = (b + 1) & (query->bucket_count - 1);
			}
		}
	}
	query->nodes.len = query->operands.len = query->open.len = 0;
	query->stack_count = 0;
	query->frames_guessed = false;
}

bool value_query_is_big(const struct value_query *query)
{
	return query->nodes.len > BIG;
}

bool value_query_step(struct value_query *query, struct rva at)
{
	struct discovery *d = query->flow->d;

	if (at.v < query->low.v)
		query->low = at;
	if (at.v > query->high.v)
		query->high = at;
	if (d->flow_steps == 0 || d->out_of_memory)
		return false;
	d->flow_steps--;
	return true;
}

static void grow_buckets(struct value_query *query)
{
	uint32_t count = query->bucket_count * 2;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets) {
		query->flow->d->out_of_memory = true;
		return;
	}
	free(query->buckets);
	query->buckets = buckets;
	query->bucket_count = count;
	for (uint32_t i = 0; i < query->nodes.len; i++) {
		uint32_t b = bucket_of(query, query->nodes.data[i].at,
				       query->nodes.data[i].variable);

		while (buckets[b])
			b = (b + 1) & (count - 1);
		buckets[b] = i + 1;
	}
}

/* The node of a variable at a place, made when there is none. */
static uint32_t node_at(struct value_query *query, enum node_type type, struct rva at,
			unsigned variable)
{
	uint32_t b = bucket_of(query, at, variable);
	struct value_node node = {
		.at = at, .variable = (uint16_t)variable, .type = (uint8_t)type};

	for (; query->buckets[b]; b = (b + 1) & (query->bucket_count - 1)) {
		const struct value_node *known = &query->nodes.data[query->buckets[b] - 1];

		if (known->at.v == at.v && known->variable == variable &&
		    known->type == type)
			return query->buckets[b] - 1;
	}
	if (!vec_push(&query->nodes, node) ||
	    !vec_push(&query->open, query->nodes.len - 1)) {
		query->flow->d->out_of_memory = true;
		return 0;
	}
	query->buckets[b] = query->nodes.len;
	if (query->nodes.len > query->bucket_count / 2)
		grow_buckets(query);
	return query->nodes.len - 1;
}

enum effect {
	EFFECT_NONE,
	EFFECT_WRITES,
	EFFECT_LOSES, /* may change it */
};

static bool is_call(const struct insn *insn)
{
	return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

/* Registers that a call leaves as it likes (x64 calling convention): rax, rcx, rdx, r8
 * to r11.  A compiler that knows the callee goes on using those that it does not touch
 * (observed: GCC 12.2 keeps a table's base in r11), and no compiler uses one that it
 * does not know. */
static enum effect effect_of_call(unsigned variable)
{
	const uint16_t volatile_registers = 0x0f07;

	if (variable == 0)
		return EFFECT_WRITES;
	return volatile_registers >> variable & 1 ? EFFECT_LOSES : EFFECT_NONE;
}

/* What rsp or rbp points to. */
static struct value frame_at(struct value_query *query, unsigned variable, struct rva at);
static void solve_from(struct value_query *query, uint32_t first);

/* Where the instruction at `at` names the stack: an operand's place as the id of an
 * address and the offset to it. */
static bool place_of(struct value_query *query, struct rva at,
		     const struct operand *operand, struct stack_variable *ret_place)
{
	struct value frame;

	if (operand->kind != OPERAND_MEMORY || operand->index != REGISTER_NONE ||
	    operand->size == 0 ||
	    (operand->base != REGISTER_RSP && operand->base != REGISTER_RBP))
		return false;
	frame = frame_at(query, operand->base == REGISTER_RSP ? FRAME_RSP : FRAME_RBP, at);
	if (frame.kind != VALUE_STACK)
		return false;
	*ret_place = (struct stack_variable){
		frame.id, (int32_t)(frame.table.v + (uint32_t)operand->value),
		operand->size};
	return true;
}

/* Where push writes. */
static bool place_of_push(struct value_query *query, struct rva at,
			  struct stack_variable *ret_place)
{
	struct value frame = frame_at(query, FRAME_RSP, at);

	*ret_place = (struct stack_variable){frame.id, (int32_t)(frame.table.v - 8), 8};
	return frame.kind == VALUE_STACK;
}

static bool pushes_8(const struct insn_detail *detail)
{
	return detail->target.kind == OPERAND_CONSTANT || detail->target.size == 8;
}

static enum effect effect_on_stack(struct value_query *query, struct rva at,
				   const struct insn *insn,
				   const struct insn_detail *detail, unsigned variable)
{
	const struct stack_variable *v = &query->stack[(variable - FIRST_STACK) / 2];
	struct stack_variable place;
	bool known;

	if (is_call(insn))
		return EFFECT_LOSES;
	if (detail->op == OP_PUSH)
		known = pushes_8(detail) && place_of_push(query, at, &place);
	else if (detail->store == STORE_NONE)
		return detail->op == OP_POP && detail->target.kind != OPERAND_REGISTER
			       ? EFFECT_LOSES
			       : EFFECT_NONE;
	else
		known = detail->store == STORE_TARGET &&
			place_of(query, at, &detail->target, &place);
	if (!known || place.stack != v->stack)
		return EFFECT_LOSES;
	return place.offset < (int64_t)v->offset + v->size &&
			       v->offset < (int64_t)place.offset + place.size
		       ? EFFECT_WRITES
		       : EFFECT_NONE;
}

static unsigned without_identity(unsigned variable)
{
	return variable & ~(unsigned)IDENTITY;
}

static enum effect effect_on(struct value_query *query, struct rva at, unsigned variable)
{
	const struct described_insn *known = control_flow_insn(query->flow, at);
	struct described_insn now;

	if (!known)
		return EFFECT_LOSES;
	variable = without_identity(variable);
	if (variable >= FIRST_STACK) {
		now = *known; /* asking for the frame may drop it */
		return effect_on_stack(query, at, &now.insn, &now.detail, variable);
	}
	if (variable == FRAME_RSP || variable == FRAME_RBP) {
		unsigned reg = variable == FRAME_RSP ? REGISTER_RSP : REGISTER_RBP;

		return !is_call(&known->insn) && (known->detail.written >> reg & 1)
			       ? EFFECT_WRITES
			       : EFFECT_NONE;
	}
	if (is_call(&known->insn))
		return effect_of_call(variable);
	return known->detail.written >> variable & 1 ? EFFECT_WRITES : EFFECT_NONE;
}

/* Whether the variable is one that something may have changed already. */
static bool has_survived(unsigned variable)
{
	variable = without_identity(variable);
	return variable >= FIRST_STACK && (variable - FIRST_STACK) % 2;
}

static uint32_t find(struct value_query *query, unsigned variable, struct rva at);

/* The node of the variable as the instruction at `at` leaves it. */
static uint32_t find_behind(struct value_query *query, unsigned variable, struct rva at)
{
	switch (effect_on(query, at, variable)) {
	case EFFECT_WRITES:
		return node_at(query, NODE_WRITTEN, at, variable);
	case EFFECT_LOSES:
		if (!has_survived(variable))
			return node_at(query, NODE_LOST, at, variable);
		break;
	case EFFECT_NONE:
		break;
	}
	return find(query, variable, at);
}

/* The node of the variable as the instruction at `at` finds it. */
static uint32_t find(struct value_query *query, unsigned variable, struct rva at)
{
	while (value_query_step(query, at)) {
		struct rva before;
		enum effect effect;

		if (control_flow_is_label(query->flow, at))
			return node_at(query, NODE_LABEL, at, variable);
		if (!control_flow_before(query->flow, at, &before))
			break;
		effect = effect_on(query, before, variable);
		if (effect == EFFECT_WRITES)
			return node_at(query, NODE_WRITTEN, before, variable);
		if (effect == EFFECT_LOSES && !has_survived(variable))
			return node_at(query, NODE_LOST, before, variable);
		at = before;
	}
	return node_at(query, NODE_UNKNOWN, at, variable);
}

static struct value frame_at(struct value_query *query, unsigned variable, struct rva at)
{
	uint32_t first = query->open.len, node = find(query, variable, at);

	solve_from(query, first);
	query->frames_guessed |= query->nodes.data[node].guessed;
	return query->nodes.data[node].value;
}

/* The variable for a place on the stack; 0 when there are too many. */
static unsigned stack_variable(struct value_query *query,
			       const struct stack_variable *place)
{
	uint32_t i;

	for (i = 0; i < query->stack_count; i++)
		if (query->stack[i].stack == place->stack &&
		    query->stack[i].offset == place->offset &&
		    query->stack[i].size == place->size)
			return FIRST_STACK + 2 * i;
	if (i == STACK_VARIABLES)
		return 0;
	query->stack[query->stack_count++] = *place;
	return FIRST_STACK + 2 * i;
}

static bool push_operand(struct value_query *query, uint32_t operand)
{
	if (vec_push(&query->operands, operand))
		return true;
	query->flow->d->out_of_memory = true;
	return false;
}

/* The node of a register that an instruction reads; `flag` may be IDENTITY. */
static uint32_t read_register(struct value_query *query, uint8_t reg, unsigned flag,
			      struct rva at)
{
	if (reg >= REGISTER_COUNT || reg == REGISTER_RSP)
		return NO_NODE;
	return find(query, reg | flag, at);
}

/* The operands of a node, as struct value_inputs has them. */
enum {
	INPUT_TARGET,
	INPUT_SOURCE,
	INPUT_INDEX,
	INPUT_SOURCE_ID,
	INPUT_INDEX_ID,
	INPUT_COUNT
};

static void set_inputs(struct value_query *query, uint32_t node, const uint32_t *inputs)
{
	query->nodes.data[node].operands = query->operands.len;
	query->nodes.data[node].operand_count = INPUT_COUNT;
	for (int i = 0; i < INPUT_COUNT; i++)
		push_operand(query, inputs[i]);
}

/* Whether the operand may read a table of bytes or words: one at a displacement from the
 * image's own address. */
static bool may_be_small(const struct operand *source)
{
	return source->size <= 2 && source->scale == source->size &&
	       source->base < REGISTER_COUNT && source->index < REGISTER_COUNT &&
	       source->value > UINT16_MAX / 16;
}

/* The base and index of a memory operand that is no variable. */
static void find_base(struct value_query *query, const struct operand *source,
		      unsigned flag, struct rva at, uint32_t *inputs)
{
	if (may_be_small(source)) {
		inputs[INPUT_SOURCE] = read_register(query, source->base, 0, at);
		inputs[INPUT_SOURCE_ID] = read_register(query, source->base, IDENTITY, at);
		inputs[INPUT_INDEX] = read_register(query, source->index, 0, at);
		inputs[INPUT_INDEX_ID] = read_register(query, source->index, IDENTITY, at);
	} else if (!flag) {
		inputs[INPUT_SOURCE] = read_register(query, source->base, 0, at);
		inputs[INPUT_INDEX] = read_register(query, source->index,
						    source->scale > 1 ? IDENTITY : 0, at);
	}
}

/* What a node reads: what the target register held when `target` is one, and `source`. */
static void add_inputs(struct value_query *query, uint32_t node, uint8_t target,
		       const struct operand *source)
{
	unsigned flag = query->nodes.data[node].variable & IDENTITY, variable = 0;
	uint32_t inputs[] = {NO_NODE, NO_NODE, NO_NODE, NO_NODE, NO_NODE};
	struct rva at = query->nodes.data[node].at;
	struct stack_variable place;

	inputs[INPUT_TARGET] = read_register(query, target, flag, at);
	if (source->kind == OPERAND_REGISTER) {
		inputs[INPUT_SOURCE] = read_register(query, source->reg, flag, at);
	} else if (source->kind == OPERAND_MEMORY) {
		if (place_of(query, at, source, &place))
			variable = stack_variable(query, &place);
		if (variable) {
			inputs[INPUT_SOURCE] = find(query, variable | flag, at);
			query->nodes.data[node].is_variable = true;
		} else {
			find_base(query, source, flag, at, inputs);
		}
	}
	set_inputs(query, node, inputs);
}

/* lea reads no memory. */
static void add_lea_inputs(struct value_query *query, uint32_t node,
			   const struct operand *source)
{
	uint32_t inputs[] = {NO_NODE, NO_NODE, NO_NODE, NO_NODE, NO_NODE};
	struct rva at = query->nodes.data[node].at;

	inputs[INPUT_SOURCE] = read_register(query, source->base, 0, at);
	inputs[INPUT_INDEX] =
		read_register(query, source->index, source->scale > 1 ? IDENTITY : 0, at);
	set_inputs(query, node, inputs);
}

/* Shifting makes an index of what it finds. */
static void add_shift_inputs(struct value_query *query, uint32_t node, uint8_t target)
{
	uint32_t inputs[] = {NO_NODE, NO_NODE, NO_NODE, NO_NODE, NO_NODE};

	inputs[INPUT_TARGET] =
		read_register(query, target, IDENTITY, query->nodes.data[node].at);
	set_inputs(query, node, inputs);
}

static const struct operand stack_top = {
	.kind = OPERAND_MEMORY, .size = 8, .base = REGISTER_RSP, .index = REGISTER_NONE};

/* What is written to a register. */
static void expand_register(struct value_query *query, uint32_t node)
{
	const struct described_insn *known =
		control_flow_insn(query->flow, query->nodes.data[node].at);
	unsigned variable = without_identity(query->nodes.data[node].variable);
	bool identity = query->nodes.data[node].variable & IDENTITY;
	struct insn_detail detail;

	if (!known || is_call(&known->insn))
		return;
	detail = known->detail;
	if (detail.target.kind != OPERAND_REGISTER || detail.target.reg != variable)
		return;
	switch (detail.op) {
	case OP_MOVE:
	case OP_ZERO_EXTEND:
	case OP_SIGN_EXTEND:
		add_inputs(query, node, REGISTER_NONE, &detail.source);
		return;
	case OP_POP:
		add_inputs(query, node, REGISTER_NONE, &stack_top);
		return;
	default:
		break;
	}
	if (identity)
		return;
	switch (detail.op) {
	case OP_LEA:
		add_lea_inputs(query, node, &detail.source);
		break;
	case OP_SHIFT_LEFT:
		add_shift_inputs(query, node, (uint8_t)variable);
		break;
	case OP_ADD:
	case OP_SUBTRACT:
	case OP_CONDITIONAL_MOVE:
		add_inputs(query, node, (uint8_t)variable, &detail.source);
		break;
	default:
		break;
	}
}

/* What is stored over a variable; only a whole one is followed. */
static void expand_stack(struct value_query *query, uint32_t node)
{
	struct rva at = query->nodes.data[node].at;
	const struct stack_variable v =
		query->stack[(without_identity(query->nodes.data[node].variable) -
			      FIRST_STACK) /
			     2];
	const struct described_insn *known = control_flow_insn(query->flow, at);
	struct stack_variable place;
	struct insn_detail detail;

	if (!known)
		return;
	detail = known->detail;
	if (detail.op == OP_PUSH) {
		if (place_of_push(query, at, &place) && place.offset == v.offset)
			add_inputs(query, node, REGISTER_NONE, &detail.target);
	} else if (detail.op == OP_MOVE && v.size >= 4 &&
		   place_of(query, at, &detail.target, &place) &&
		   place.offset == v.offset && place.size >= v.size) {
		add_inputs(query, node, REGISTER_NONE, &detail.source);
	}
}

static void expand_frame(struct value_query *query, uint32_t node)
{
	struct rva at = query->nodes.data[node].at;
	const struct described_insn *known = control_flow_insn(query->flow, at);
	struct insn_detail detail;
	uint8_t own, reg;
	uint32_t operand;

	if (!known)
		return;
	detail = known->detail;
	own = query->nodes.data[node].variable == FRAME_RSP ? REGISTER_RSP : REGISTER_RBP;
	switch (detail.op) {
	case OP_POP:
		if (detail.target.kind == OPERAND_REGISTER && detail.target.reg == own)
			return; /* whatever was saved */
		reg = own;
		break;
	case OP_PUSH:
	case OP_ADD:
	case OP_SUBTRACT:
		reg = own;
		break;
	case OP_MOVE:
		reg = detail.source.kind == OPERAND_REGISTER ? detail.source.reg
							     : REGISTER_NONE;
		break;
	case OP_LEA:
		reg = detail.source.index == REGISTER_NONE ? detail.source.base
							   : REGISTER_NONE;
		break;
	default:
		return;
	}
	if (reg != REGISTER_RSP && reg != REGISTER_RBP)
		return;
	operand = find(query, reg == REGISTER_RSP ? FRAME_RSP : FRAME_RBP, at);
	query->nodes.data[node].operands = query->operands.len;
	query->nodes.data[node].operand_count = push_operand(query, operand);
}

static uint32_t count_branches(const struct value_query *query, struct rva at)
{
	uint32_t count = 0;

	for (int list = 0; list < BRANCH_LISTS; list++)
		count += control_flow_branches(query->flow, list, at).count;
	return count;
}

/* All that leads to a label.  Operands are found first, since finding adds others. */
static void expand_label(struct value_query *query, uint32_t node)
{
	struct rva at = query->nodes.data[node].at, before;
	unsigned variable = query->nodes.data[node].variable;
	VEC(uint32_t) found = {0};
	bool pushed = true;

	if (control_flow_is_begin(query->flow, at) &&
	    count_branches(query, at) > CALLERS_MAX)
		return; /* a function that many end with */
	if (control_flow_into_label(query->flow, at, &before))
		pushed = vec_push(&found, find_behind(query, variable, before));
	for (int list = 0; list < BRANCH_LISTS && pushed; list++) {
		struct branch_span span = control_flow_branches(query->flow, list, at);

		for (uint32_t i = 0;
		     i < span.count && pushed && value_query_step(query, span.data[i].from);
		     i++)
			pushed = vec_push(&found,
					  find_behind(query, variable, span.data[i].from));
	}
	query->nodes.data[node].operands = query->operands.len;
	query->nodes.data[node].operand_count = found.len;
	for (uint32_t i = 0; i < found.len; i++)
		pushed &= push_operand(query, found.data[i]);
	if (!pushed)
		query->flow->d->out_of_memory = true;
	vec_release(&found);
}

/* What may have changed at a place: only a pointer's old value matters. */
static void expand_lost(struct value_query *query, uint32_t node)
{
	struct rva at = query->nodes.data[node].at;
	unsigned variable = query->nodes.data[node].variable;
	uint32_t operand;

	if (variable & IDENTITY)
		return;
	if (variable >= FIRST_STACK) {
		if (query->stack[(variable - FIRST_STACK) / 2].size != 8)
			return;
		variable = FIRST_STACK + ((variable - FIRST_STACK) | 1);
	}
	operand = find(query, variable, at);
	query->nodes.data[node].operands = query->operands.len;
	query->nodes.data[node].operand_count = push_operand(query, operand);
}

static void expand(struct value_query *query, uint32_t node)
{
	unsigned variable = without_identity(query->nodes.data[node].variable);
	const struct described_insn *known;
	struct operand target;

	switch (query->nodes.data[node].type) {
	case NODE_LABEL:
		expand_label(query, node);
		break;
	case NODE_WRITTEN:
		if (variable >= FIRST_STACK)
			expand_stack(query, node);
		else if (variable >= REGISTER_COUNT)
			expand_frame(query, node);
		else
			expand_register(query, node);
		break;
	case NODE_LOST:
		expand_lost(query, node);
		break;
	case NODE_READ:
		known = control_flow_insn(query->flow, query->nodes.data[node].at);
		if (!known)
			break;
		target = known->detail.target;
		add_inputs(query, node, REGISTER_NONE, &target);
		break;
	default:
		break;
	}
}

/* What is known of a variable that is not followed from anywhere. */
static struct value unknown_value(unsigned variable, uint32_t id)
{
	bool stack = variable == FRAME_RSP || variable == REGISTER_RSP;

	return value_fresh(stack ? VALUE_STACK : VALUE_COMPUTED, id);
}

static struct value label_value(struct value_query *query, const struct value_node *node,
				uint32_t id)
{
	enum control_entry entry = control_flow_entry(query->flow, node->at);
	struct value value = {.kind = VALUE_OPEN}, entered;
	unsigned variable = without_identity(node->variable);

	if (entry == ENTRY_NONE && node->operand_count == 0 && query->hopeful)
		return value;
	if (entry != ENTRY_NONE || node->operand_count == 0) {
		value = unknown_value(variable, id);
		if (entry == ENTRY_CALLED && variable < REGISTER_COUNT)
			value.kind = VALUE_WHOLE;
	}
	for (uint32_t i = 0; i < node->operand_count; i++) {
		entered = query->nodes.data[query->operands.data[node->operands + i]].value;
		value = value_join(&value, &entered, id);
	}
	if (variable != FRAME_RSP && variable != FRAME_RBP)
		return value;
	/* Two different places on the stack are a third one, or none. */
	if (value.kind == VALUE_STACK && value.id == id)
		value = unknown_value(node->variable, id);
	return value;
}

static struct value frame_value(const struct value_query *query,
				const struct value_node *node,
				const struct insn_detail *detail, uint32_t id)
{
	struct value value;
	int64_t delta = 0;

	if (node->operand_count == 0)
		return unknown_value(node->variable, id);
	value = query->nodes.data[query->operands.data[node->operands]].value;
	if (value.kind == VALUE_OPEN)
		return value;
	switch (detail->op) {
	case OP_PUSH:
		delta = pushes_8(detail) ? -8 : 1;
		break;
	case OP_POP:
		delta = detail->target.size == 8 ? 8 : 1;
		break;
	case OP_LEA:
		delta = detail->source.value;
		break;
	case OP_ADD:
		delta = detail->source.kind == OPERAND_CONSTANT ? detail->source.value : 1;
		break;
	case OP_SUBTRACT:
		delta = detail->source.kind == OPERAND_CONSTANT ? -detail->source.value : 1;
		break;
	default:
		break;
	}
	if (value.kind != VALUE_STACK || delta == 1 ||
	    (detail->op != OP_PUSH && detail->target.size != 8))
		return unknown_value(node->variable, id);
	value.table = rva_add(value.table, (uint32_t)delta);
	return value;
}

/* What an operand's node has, or what is known without one. */
static struct value input(const struct value_query *query, const struct value_node *node,
			  uint32_t i)
{
	uint32_t operand = query->operands.data[node->operands + i];

	/* Only rsp is read without asking. */
	return operand == NO_NODE ? value_fresh(VALUE_STACK, NO_ID)
				  : query->nodes.data[operand].value;
}

static struct value written_value(struct value_query *query, const struct value_node *node,
				  uint32_t id)
{
	const struct described_insn *known = control_flow_insn(query->flow, node->at);
	unsigned variable = without_identity(node->variable);
	struct value_inputs inputs = {.variable = node->is_variable};
	const struct insn_detail *detail;
	struct value value;

	if (!known)
		return unknown_value(variable, id);
	detail = &known->detail;
	if (variable == FRAME_RSP || variable == FRAME_RBP)
		return frame_value(query, node, detail, id);
	if (is_call(&known->insn))
		return value_fresh(VALUE_WHOLE, id);
	if (node->operand_count == 0)
		return value_fresh(VALUE_COMPUTED, id);
	inputs.target = input(query, node, INPUT_TARGET);
	inputs.source = input(query, node, INPUT_SOURCE);
	inputs.index = input(query, node, INPUT_INDEX);
	inputs.source_id = input(query, node, INPUT_SOURCE_ID).id;
	inputs.index_id = input(query, node, INPUT_INDEX_ID).id;
	if (inputs.target.kind == VALUE_OPEN || inputs.source.kind == VALUE_OPEN ||
	    inputs.index.kind == VALUE_OPEN)
		return (struct value){.kind = VALUE_OPEN};
	if (variable < REGISTER_COUNT && node->type == NODE_WRITTEN)
		return value_result(node->at, &known->insn, detail, &inputs, id);
	/* Read, stored or pushed. */
	value = value_read(node->type == NODE_READ || detail->op == OP_PUSH
				   ? &detail->target
				   : &detail->source,
			   &inputs, id);
	if (variable >= FIRST_STACK)
		value = value_lower_part(value,
					 query->stack[(variable - FIRST_STACK) / 2].size);
	return value;
}

static struct value lost_value(const struct value_query *query,
			       const struct value_node *node, uint32_t id)
{
	struct value value = value_fresh(VALUE_COMPUTED, id);

	if (node->operand_count == 0)
		return value;
	value = query->nodes.data[query->operands.data[node->operands]].value;
	if (value.kind == VALUE_ADDRESS)
		value.survived = true;
	else if (value.kind != VALUE_OPEN)
		value = value_fresh(VALUE_COMPUTED, id);
	return value;
}

static bool rests_on_guess(const struct value_query *query, const struct value_node *node)
{
	if (node->type == NODE_UNKNOWN ||
	    (node->type == NODE_LABEL && node->operand_count == 0))
		return query->hopeful;
	for (uint32_t i = 0; i < node->operand_count; i++) {
		uint32_t operand = query->operands.data[node->operands + i];

		if (operand != NO_NODE && query->nodes.data[operand].guessed)
			return true;
	}
	return false;
}

static struct value evaluate(struct value_query *query, uint32_t i)
{
	const struct value_node node = query->nodes.data[i];
	uint32_t id = value_id_of_node(i);
	struct value value;

	switch (node.type) {
	case NODE_LABEL:
		value = label_value(query, &node, id);
		break;
	case NODE_WRITTEN:
	case NODE_READ:
		value = written_value(query, &node, id);
		break;
	case NODE_LOST:
		value = lost_value(query, &node, id);
		break;
	default:
		value = query->hopeful ? (struct value){.kind = VALUE_OPEN}
				       : unknown_value(without_identity(node.variable), id);
		break;
	}
	/* What may have changed is an address, or not known. */
	if (has_survived(node.variable) && value.kind != VALUE_OPEN &&
	    value.kind != VALUE_ADDRESS)
		value = value_fresh(VALUE_COMPUTED, id);
	return value;
}

/* Puts the open nodes into an order in which operands stand before what is made of them,
 * but for loops.  Then a pass or two settles nearly everything. */
static void sort_open(struct value_query *query, uint32_t first)
{
	uint32_t count = query->open.len, kept = first;
	struct visit visit;

	query->visits.len = 0;
	for (uint32_t i = first; i < count; i++)
		query->nodes.data[query->open.data[i]].visited = false;
	for (uint32_t i = first; i < count; i++) {
		visit = (struct visit){query->open.data[i], 0};
		if (query->nodes.data[visit.node].visited)
			continue;
		query->nodes.data[visit.node].visited = true;
		if (!vec_push(&query->visits, visit))
			break;
		while (query->visits.len > 0) {
			struct visit *top = &query->visits.data[query->visits.len - 1];
			const struct value_node *node = &query->nodes.data[top->node];

			if (top->operand == node->operand_count) {
				if (!vec_push(&query->sorted, top->node))
					query->flow->d->out_of_memory = true;
				query->visits.len--;
				continue;
			}
			visit = (struct visit){
				query->operands.data[node->operands + top->operand++], 0};
			if (visit.node == NO_NODE ||
			    query->nodes.data[visit.node].answered ||
			    query->nodes.data[visit.node].visited)
				continue;
			query->nodes.data[visit.node].visited = true;
			if (!vec_push(&query->visits, visit))
				query->flow->d->out_of_memory = true;
		}
	}
	for (uint32_t i = 0; i < query->sorted.len && kept < count; i++)
		query->open.data[kept++] = query->sorted.data[i];
	query->sorted.len = 0;
}

/* Evaluates the open nodes once; whether a value has changed. */
static bool pass(struct value_query *query, uint32_t first)
{
	bool changed = false;

	for (uint32_t i = first; i < query->open.len; i++) {
		struct value_node *node = &query->nodes.data[query->open.data[i]];
		struct value value = evaluate(query, query->open.data[i]);
		bool guessed = rests_on_guess(query, node);

		if (value_same(&node->value, &value) && node->guessed == guessed)
			continue;
		node->guessed = guessed;
		node->value = value;
		changed = true;
	}
	return changed;
}

/* Finds the nodes that those from `first` on are made of, and evaluates all of them. */
static void solve_from(struct value_query *query, uint32_t first)
{
	struct discovery *d = query->flow->d;
	int passes = 0;

	for (uint32_t i = first; i < query->open.len && !d->out_of_memory; i++)
		expand(query, query->open.data[i]);
	sort_open(query, first);
	while (!d->out_of_memory && pass(query, first) && passes++ < PASSES)
		if (d->flow_steps > query->open.len - first)
			d->flow_steps -= query->open.len - first;
		else
			d->flow_steps = 0;
	for (uint32_t i = first; i < query->open.len; i++) {
		struct value_node *open = &query->nodes.data[query->open.data[i]];

		/* A loop that nothing leads into. */
		if (open->value.kind == VALUE_OPEN || passes >= PASSES ||
		    d->flow_steps == 0)
			open->value = unknown_value(without_identity(open->variable),
						    value_id_of_node(query->open.data[i]));
		open->answered = true;
	}
	query->open.len = first;
}

static struct value answer(struct value_query *query, uint32_t node)
{
	solve_from(query, 0);
	query->guessed |= query->nodes.data[node].guessed || query->frames_guessed;
	return query->nodes.data[node].value;
}

struct value value_query_register(struct value_query *query, uint8_t reg, struct rva at)
{
	if (reg >= REGISTER_COUNT || reg == REGISTER_RSP || query->flow->d->out_of_memory)
		return value_fresh(VALUE_STACK, NO_ID);
	return answer(query, find(query, reg, at));
}

bool value_query_is_frame(struct value_query *query, uint8_t reg, struct rva at)
{
	if (reg != REGISTER_RBP || query->flow->d->out_of_memory)
		return reg == REGISTER_RSP;
	return frame_at(query, FRAME_RBP, at).kind == VALUE_STACK;
}

struct value value_query_target(struct value_query *query, struct rva at)
{
	if (query->flow->d->out_of_memory)
		return value_fresh(VALUE_COMPUTED, NO_ID);
	return answer(query, node_at(query, NODE_READ, at, READ_OPERAND));
}

uint32_t value_query_compared(struct value_query *query, struct rva at, unsigned size)
{
	struct value value;

	if (query->flow->d->out_of_memory)
		return NO_ID;
	value = answer(query, node_at(query, NODE_READ, at, READ_OPERAND | IDENTITY));
	return value.kind == VALUE_STACK ? NO_ID : value_lower_part(value, size).id;
}

unsigned value_query_variable(const struct value_node *node)
{
	return without_identity(node->variable);
}
