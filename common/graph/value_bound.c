/* Upper bounds: what comparisons on the ways to a place tell about a value.
 *
 * From the place backwards along all ways, up to the node that has made the value: a
 * conditional branch on the way that follows an unsigned comparison of a value with the
 * same id bounds it, the last one on each way.  A way that comes to the node itself
 * without a comparison has no bound but what the node tells: a byte is below 256, a masked
 * value below the mask plus one, an entry of a table of bytes is below the greatest of
 * them plus one; what comes together at a label is below the bounds of what each way
 * brings.  The greatest of all ways holds.
 *
 * A table of bytes counts when it is read-only and its own index is bounded.  A bound
 * that only a size or a mask gives is no proof that a table is so long: it is "wide", and
 * who reads the table must look where it ends.  So is one by equality: a compiler asks for
 * one value to treat it apart, and the way on which it was found may end before the table
 * (observed: rustc, `if x == 255 || x == 5`, and later `if x != 255` around a table of 6).
 */
#include "graph/value_query.h"

#include <string.h>

enum {
	COMPARISON_REACH = 8, /* instructions from a branch back to its comparison */
	DEPTH = 4,            /* of tables whose index comes from one, and of labels */
	JOINED_MAX = 16,      /* ways to a label whose values are looked at one by one */
	WAYS_MAX = 1 << 14,   /* labels of one question */
	SEEN_MIN = 64,
};

/* What is still to look at, and the labels that were. */
struct ways {
	struct value_query *query;
	uint32_t id;
	struct rva made_at;
	uint8_t made_type;
	struct value_bound bound;
	bool unbounded;
	VEC(struct rva) labels; /* to look at */
	struct rva *seen;       /* owned hash set: 0 free */
	uint32_t seen_count, seen_size;
};

static bool was_seen(struct ways *ways, struct rva label)
{
	uint32_t mask, b;

	if (ways->seen_count * 2 >= ways->seen_size) {
		uint32_t size = ways->seen_size ? ways->seen_size * 2 : SEEN_MIN;
		struct rva *seen = calloc(size, sizeof(*seen));

		if (!seen) {
			ways->query->flow->d->out_of_memory = true;
			return true;
		}
		for (uint32_t i = 0; i < ways->seen_size; i++) {
			if (ways->seen[i].v == 0)
				continue;
			b = (ways->seen[i].v * 0x9e3779b1u) & (size - 1);
			while (seen[b].v)
				b = (b + 1) & (size - 1);
			seen[b] = ways->seen[i];
		}
		free(ways->seen);
		ways->seen = seen;
		ways->seen_size = size;
	}
	mask = ways->seen_size - 1;
	for (b = (label.v * 0x9e3779b1u) & mask; ways->seen[b].v; b = (b + 1) & mask)
		if (ways->seen[b].v == label.v)
			return true;
	ways->seen[b] = label;
	ways->seen_count++;
	return false;
}

/* The greatest holds, and of two that are as great the one that proves more. */
static void add_bound(struct ways *ways, struct value_bound bound)
{
	if (bound.count == 0)
		ways->unbounded = true;
	if (bound.count > ways->bound.count)
		ways->bound = bound;
	else if (bound.count == ways->bound.count)
		ways->bound.wide &= bound.wide;
}

static bool is_call(const struct insn *insn)
{
	return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

/* The comparison whose flags the branch at `at` looks at. */
static bool comparison_before(struct value_query *query, struct rva at, struct rva *ret_at)
{
	for (int i = 0; i < COMPARISON_REACH; i++) {
		const struct described_insn *known;

		if (control_flow_is_label(query->flow, at) ||
		    !control_flow_before(query->flow, at, &at) ||
		    !value_query_step(query, at))
			return false;
		known = control_flow_insn(query->flow, at);
		if (known->detail.op == OP_COMPARE) {
			*ret_at = at;
			return true;
		}
		if (known->detail.changes_flags || is_call(&known->insn))
			return false;
	}
	return false;
}

/* Puts the constant that a register was given right before in its place: that is how MSVC
 * compares words. */
static void find_constant(struct value_query *query, struct rva at, struct operand *operand)
{
	const struct described_insn *known;

	if (operand->kind != OPERAND_REGISTER || operand->reg >= REGISTER_COUNT)
		return;
	for (int i = 0; i < COMPARISON_REACH; i++) {
		if (control_flow_is_label(query->flow, at) ||
		    !control_flow_before(query->flow, at, &at) ||
		    !value_query_step(query, at))
			return;
		known = control_flow_insn(query->flow, at);
		if (is_call(&known->insn))
			return; /* which may change it */
		if (!(known->detail.written >> operand->reg & 1))
			continue;
		if (known->detail.op == OP_MOVE && known->detail.target.size >= 4 &&
		    known->detail.target.kind == OPERAND_REGISTER &&
		    known->detail.source.kind == OPERAND_CONSTANT &&
		    known->detail.source.value >= 0 &&
		    (uint64_t)known->detail.source.value <
			    UINT64_C(1) << (8 * operand->size - 1))
			*operand = known->detail.source;
		return;
	}
}

/* The bound that a branch gives on the way on which it was taken or not, of 0 when it
 * compares something else. */
static struct value_bound bound_by_branch(struct ways *ways, struct rva branch, bool taken)
{
	struct value_query *query = ways->query;
	const struct described_insn *known = control_flow_insn(query->flow, branch);
	struct rva comparison;
	struct value_bound none = {0}, bound = {0};
	struct insn_detail detail;

	switch (known ? known->detail.condition : CONDITION_OTHER) {
	case CONDITION_ABOVE:
	case CONDITION_BELOW_EQUAL:
		if ((known->detail.condition == CONDITION_ABOVE) == taken)
			return none;
		bound.count = 1;
		break;
	case CONDITION_ABOVE_EQUAL:
	case CONDITION_BELOW:
		if ((known->detail.condition == CONDITION_ABOVE_EQUAL) == taken)
			return none;
		break;
	case CONDITION_EQUAL:
	case CONDITION_NOT_EQUAL:
		if ((known->detail.condition == CONDITION_EQUAL) != taken)
			return none;
		bound = (struct value_bound){.count = 1, .wide = true};
		break;
	default:
		return none;
	}
	if (!comparison_before(query, branch, &comparison))
		return none;
	detail = control_flow_insn(query->flow, comparison)->detail;
	find_constant(query, comparison, &detail.source);
	if (detail.source.kind != OPERAND_CONSTANT || detail.source.value < 0 ||
	    detail.source.value >= UINT32_MAX)
		return none;
	bound.count += (uint32_t)detail.source.value;
	return value_query_compared(query, comparison, detail.target.size) == ways->id
		       ? bound
		       : none;
}

static struct value_bound bound_of_maker(struct ways *ways, int depth);

/* Whether the value is made by what stands at `at`. */
static bool is_made_at(const struct ways *ways, struct rva at, bool label)
{
	return at.v == ways->made_at.v && label == (ways->made_type == NODE_LABEL);
}

/* Goes back from the instruction behind `at`, which is on a way; false when the way is at
 * its end. */
static bool go_over(struct ways *ways, struct rva at, bool taken, int depth)
{
	const struct described_insn *known = control_flow_insn(ways->query->flow, at);
	struct value_bound bound;

	if (known && known->insn.flow == FLOW_BRANCH) {
		bound = bound_by_branch(ways, at, taken);
		if (bound.count) {
			add_bound(ways, bound);
			return false;
		}
	}
	if (is_made_at(ways, at, false)) {
		add_bound(ways, bound_of_maker(ways, depth));
		return false;
	}
	return true;
}

/* Goes back from `at` to the label before it. */
static void go_back(struct ways *ways, struct rva at, int depth)
{
	struct value_query *query = ways->query;

	while (!ways->unbounded) {
		struct rva before;

		if (control_flow_is_label(query->flow, at)) {
			if (is_made_at(ways, at, true))
				add_bound(ways, bound_of_maker(ways, depth));
			else if (!was_seen(ways, at) && !vec_push(&ways->labels, at))
				query->flow->d->out_of_memory = true;
			return;
		}
		if (!value_query_step(query, at) ||
		    !control_flow_before(query->flow, at, &before)) {
			query->guessed |= query->hopeful;
			ways->unbounded |= !query->hopeful;
			return;
		}
		if (!go_over(ways, before, false, depth))
			return;
		at = before;
	}
}

/* All ways to a label. */
static void go_over_label(struct ways *ways, struct rva label, int depth)
{
	struct value_query *query = ways->query;
	uint32_t count = 0;
	struct rva before;

	if (control_flow_entry(query->flow, label) != ENTRY_NONE ||
	    ways->seen_count > WAYS_MAX) {
		ways->unbounded = true;
		return;
	}
	if (control_flow_into_label(query->flow, label, &before)) {
		count++;
		if (go_over(ways, before, false, depth))
			go_back(ways, before, depth);
	}
	for (int list = 0; list < BRANCH_LISTS; list++) {
		struct branch_span span = control_flow_branches(query->flow, list, label);

		count += span.count;
		for (uint32_t i = 0; i < span.count && !ways->unbounded; i++)
			if (go_over(ways, span.data[i].from, true, depth))
				go_back(ways, span.data[i].from, depth);
	}
	if (count == 0 && query->hopeful)
		query->guessed = true;
	else if (count == 0)
		ways->unbounded = true;
}

static bool ways_begin(struct ways *ways, struct value_query *query, uint32_t id)
{
	uint32_t node = value_node_of_id(id);

	*ways = (struct ways){.query = query, .id = id};
	if (id == NO_ID || node >= query->nodes.len)
		return false;
	ways->made_at = query->nodes.data[node].at;
	ways->made_type = query->nodes.data[node].type;
	return true;
}

/* Looks at all ways that are left. */
static struct value_bound ways_end(struct ways *ways, int depth)
{
	const struct discovery *d = ways->query->flow->d;

	while (ways->labels.len > 0 && !ways->unbounded && !d->out_of_memory)
		go_over_label(ways, ways->labels.data[--ways->labels.len], depth);
	vec_release(&ways->labels);
	free(ways->seen);
	if (ways->unbounded || d->flow_steps == 0 || d->out_of_memory)
		return (struct value_bound){0};
	return ways->bound;
}

static struct value_bound bound_at(struct value_query *query, uint32_t id, struct rva at,
				   int depth)
{
	struct ways ways;

	if (!ways_begin(&ways, query, id))
		return (struct value_bound){0};
	go_back(&ways, at, depth);
	return ways_end(&ways, depth);
}

/* The same where control leaves the instruction at `from`. */
static struct value_bound bound_behind(struct value_query *query, uint32_t id,
				       struct rva from, bool taken, int depth)
{
	struct ways ways;

	if (!ways_begin(&ways, query, id))
		return (struct value_bound){0};
	if (go_over(&ways, from, taken, depth))
		go_back(&ways, from, depth);
	return ways_end(&ways, depth);
}

/* Adds the bound of what one way brings to a label. */
static void add_way(struct ways *ways, uint32_t operand, struct rva from, bool taken,
		    int depth)
{
	struct value_query *query = ways->query;
	struct value value = query->nodes.data[query->operands.data[operand]].value;
	unsigned part = ways->id % 4;
	uint32_t id = part ? value_lower_part(value, part).id : value.id;

	/* What a loop brings back unchanged is no other value. */
	if (id != ways->id && !ways->unbounded)
		add_bound(ways, bound_behind(query, id, from, taken, depth + 1));
}

/* What comes together at a label is below the greatest of the bounds on all ways, each for
 * the value that it brings. */
static struct value_bound bound_of_label(struct value_query *query, uint32_t id, int depth)
{
	const struct value_node node = query->nodes.data[value_node_of_id(id)];
	struct ways ways = {.query = query, .id = id};
	uint32_t operand = 0;
	struct rva before;

	if (depth >= DEPTH || node.operand_count == 0 || node.operand_count > JOINED_MAX ||
	    control_flow_entry(query->flow, node.at) != ENTRY_NONE)
		return (struct value_bound){0};
	if (control_flow_into_label(query->flow, node.at, &before))
		add_way(&ways, node.operands + operand++, before, false, depth);
	for (int list = 0; list < BRANCH_LISTS; list++) {
		struct branch_span span = control_flow_branches(query->flow, list, node.at);

		for (uint32_t i = 0; i < span.count && operand < node.operand_count; i++)
			add_way(&ways, node.operands + operand++, span.data[i].from, true,
				depth);
	}
	return ways.unbounded ? (struct value_bound){0} : ways.bound;
}

uint32_t value_bound_of_table(const struct image *image, const struct value *small,
			      uint32_t count)
{
	const uint8_t *bytes = count <= UINT16_MAX + 1u ? image_bytes(image, small->table,
								      count * small->width)
							: NULL;
	uint32_t bound = 0;

	if (!bytes || !image_is_read_only(image, small->table))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t entry = small->width == 1 ? bytes[i] : load_u16(bytes + 2 * i);

		if (entry >= bound)
			bound = entry + 1;
	}
	return bound;
}

/* What the instruction leaves in the register is below, when it is a mask of all that is
 * used of it: the lower `part` bytes, 0 for all; 0 when it is none.  A mask of a byte or
 * a word leaves what stands above. */
static uint32_t mask_of(const struct insn_detail *detail, unsigned reg, unsigned part)
{
	const struct operand *target = &detail->target, *source = &detail->source;
	bool whole = target->size >= 4 || (part && part <= target->size);

	return detail->op == OP_AND && whole && target->kind == OPERAND_REGISTER &&
			       target->reg == reg && source->kind == OPERAND_CONSTANT &&
			       source->value >= 0 && source->value <= UINT16_MAX
		       ? (uint32_t)source->value + 1
		       : 0;
}

/* What the instruction that makes the value tells about it. */
static struct value_bound bound_of_maker(struct ways *ways, int depth)
{
	struct value_query *query = ways->query;
	const struct value_node node = query->nodes.data[value_node_of_id(ways->id)];
	unsigned part = ways->id % 4; /* bytes, 0: all */
	struct value_bound bound = {.wide = true};
	const struct described_insn *known;
	uint32_t mask;

	if (part)
		bound.count = 1u << 8 * part;
	else if (node.value.width < 4)
		bound.count = 1u << 8 * node.value.width;
	if (node.value.kind == VALUE_SMALL && part == 0 && depth < DEPTH) {
		struct value_bound index =
			bound_at(query, node.value.index, node.at, depth + 1);
		uint32_t count = index.wide
					 ? 0
					 : value_bound_of_table(query->flow->d->image,
								&node.value, index.count);

		return count ? (struct value_bound){.count = count} : bound;
	}
	if (node.type == NODE_LABEL) {
		struct value_bound joined = bound_of_label(query, ways->id, depth);

		return joined.count ? joined : bound;
	}
	known = node.type == NODE_WRITTEN ? control_flow_insn(query->flow, node.at) : NULL;
	mask = known ? mask_of(&known->detail, value_query_variable(&node), part) : 0;
	if (mask && (bound.count == 0 || mask < bound.count))
		bound.count = mask;
	return bound;
}

struct value_bound value_bound_at(struct value_query *query, uint32_t id, struct rva at)
{
	return bound_at(query, id, at, 0);
}
