/* Predecessors of instructions, from the map and from sorted lists of branches.
 *
 * The sweep notes every branch that it decodes.  Exploring finds more code round by
 * round, so the list has a long sorted part and a short one; the short one is merged
 * when it has grown.  Each instruction that is looked at is decoded with its operands;
 * the last few thousand are kept, since jumps of one function are solved one after the
 * other and look at much the same.
 */
#include "graph/control_flow.h"

#include <stdlib.h>

#include "base/key_sort.h"

bool control_flow_init(struct control_flow *flow, struct discovery *d)
{
	*flow = (struct control_flow){.d = d};
	flow->described = calloc(DESCRIBED_COUNT, sizeof(*flow->described));
	return flow->described != NULL;
}

void control_flow_release(struct control_flow *flow)
{
	free(flow->described);
	flow->described = NULL;
}

static const struct code_range *range_at(struct control_flow *flow, struct rva at)
{
	if (!flow->range || !rva_in(at, flow->range->begin, flow->range->size))
		flow->range = discovery_range(flow->d, at);
	return flow->range;
}

const struct described_insn *control_flow_insn(struct control_flow *flow, struct rva at)
{
	const struct code_range *range = range_at(flow, at);
	struct described_place *place =
		&flow->described[(at.v ^ at.v >> 12) % DESCRIBED_COUNT];
	uint32_t offset;

	if (!range)
		return NULL;
	offset = at.v - range->begin.v;
	if (place->at.v != at.v || at.v == 0) {
		place->at = at;
		place->valid =
			insn_describe(range->bytes + offset, range->size - offset,
				      &place->described.insn, &place->described.detail);
	}
	return place->valid ? &place->described : NULL;
}

static bool goes_on(const struct insn *insn)
{
	return insn->flow != FLOW_JUMP && insn->flow != FLOW_JUMP_INDIRECT &&
	       insn->flow != FLOW_RETURN && insn->flow != FLOW_STOP;
}

/* The start of the instruction that ends at byte `at` of the range. */
static bool start_before(const struct code_range *range, uint32_t at, uint32_t *ret_start)
{
	while (at > 0) {
		uint8_t state = range->map[--at] & CODE_STATE;

		if (state == CODE_START) {
			*ret_start = at;
			return true;
		}
		if (state != CODE_INSIDE)
			return false;
	}
	return false;
}

bool control_flow_before(struct control_flow *flow, struct rva at, struct rva *ret_at)
{
	const struct code_range *range = range_at(flow, at);
	const struct described_insn *known;
	uint32_t start;

	if (!range || !start_before(range, at.v - range->begin.v, &start))
		return false;
	*ret_at = rva_add(range->begin, start);
	known = control_flow_insn(flow, *ret_at);
	if (!known || !goes_on(&known->insn))
		return false;
	/* A call at a function's end does not return; at a part's end it may. */
	return !(range->map[at.v - range->begin.v] & (CODE_BOUNDARY | CODE_FUNCTION)) ||
	       (known->insn.flow != FLOW_CALL && known->insn.flow != FLOW_CALL_INDIRECT) ||
	       control_flow_is_part(flow->d, at);
}

static bool is_led_to(const struct control_flow *flow, struct rva label)
{
	for (int list = 0; list < BRANCH_LISTS; list++)
		if (control_flow_branches(flow, list, label).count > 0)
			return true;
	return false;
}

bool control_flow_into_label(struct control_flow *flow, struct rva label,
			     struct rva *ret_at)
{
	const struct described_insn *known;
	struct insn insn;

	if (!control_flow_before(flow, label, ret_at))
		return false;
	known = control_flow_insn(flow, *ret_at);
	if (!known || known->insn.flow != FLOW_CALL || !is_led_to(flow, label))
		return true;
	insn = known->insn;
	return !no_return_is(&flow->no_return, flow->d,
			     rva_add(label, (uint32_t)insn.relative));
}

bool control_flow_is_label(struct control_flow *flow, struct rva at)
{
	const uint8_t flags = CODE_LABEL | CODE_FUNCTION | CODE_BOUNDARY | CODE_ENTERED;
	const struct code_range *range = range_at(flow, at);

	return !range || (range->map[at.v - range->begin.v] & flags);
}

bool control_flow_is_part(const struct discovery *d, struct rva at)
{
	const struct runtime_function *row = discovery_table_entry(d, at);
	const uint8_t *info =
		row && row->begin.v == at.v ? image_bytes(d->image, row->unwind, 1) : NULL;

	return info && (*info >> 3 & UNWIND_CHAININFO);
}

bool control_flow_is_begin(struct control_flow *flow, struct rva at)
{
	const struct code_range *range = range_at(flow, at);

	return range && (range->map[at.v - range->begin.v] & CODE_FUNCTION) &&
	       !control_flow_is_part(flow->d, at);
}

enum control_entry control_flow_entry(struct control_flow *flow, struct rva at)
{
	const struct code_range *range = range_at(flow, at);
	uint8_t map = range ? range->map[at.v - range->begin.v] : 0;
	uint32_t id;

	if (!(map & CODE_ENTERED))
		return ENTRY_NONE;
	if (!flow->families)
		return map & CODE_FUNCTION ? ENTRY_CALLED : ENTRY_UNKNOWN;
	id = graph_function_starting(flow->d->graph, at);
	return id != NO_FUNCTION && flow->families->members[id].called &&
			       flow->d->graph->functions.data[id].kind != FUNCTION_CHAINED
		       ? ENTRY_CALLED
		       : ENTRY_UNKNOWN;
}

static struct branch_span span_of(const struct branch *branches, uint32_t count,
				  struct rva to)
{
	uint32_t low = 0, high = count, end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (branches[middle].to.v < to.v)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && branches[end].to.v == to.v; end++)
		;
	return (struct branch_span){branches + low, end - low};
}

struct branch_span control_flow_branches(const struct control_flow *flow, int list,
					 struct rva at)
{
	const struct discovery *d = flow->d;

	switch (list) {
	case 0:
		return span_of(d->branches.data, d->branches_merged, at);
	case 1:
		return span_of(d->branches.data + d->branches_merged,
			       d->branches.len - d->branches_merged, at);
	default:
		return span_of(d->table_branches.data, d->table_branches.len, at);
	}
}

static int compare_branches(const struct branch *x, const struct branch *y)
{
	if (x->to.v != y->to.v)
		return x->to.v < y->to.v ? -1 : 1;
	return x->from.v < y->from.v ? -1 : x->from.v > y->from.v;
}

bool branches_sort(struct branch *branches, uint32_t *count)
{
	/* By target, then by the place of the branch. */
	uint64_t *numbers = malloc(((size_t)*count + 1) * sizeof(*numbers));
	uint32_t kept = 0;
	bool sorted;

	for (uint32_t i = 0; numbers && i < *count; i++)
		numbers[i] = (uint64_t)branches[i].to.v << 32 | branches[i].from.v;
	sorted = numbers && number_sort(numbers, *count);
	for (uint32_t i = 0; sorted && i < *count; i++)
		if (i == 0 || numbers[i] != numbers[i - 1])
			branches[kept++] = (struct branch){rva_of((uint32_t)numbers[i]),
							   rva_of(numbers[i] >> 32)};
	free(numbers);
	if (sorted)
		*count = kept;
	return sorted;
}

static void merge(struct discovery *d)
{
	uint32_t a = 0, b = d->branches_merged, count = 0;
	const struct branch *old = d->branches.data;
	struct branch *all = malloc(((size_t)d->branches.len + 1) * sizeof(*all));

	if (!all) {
		d->out_of_memory = true;
		return;
	}
	while (a < d->branches_merged || b < d->branches.len)
		if (b == d->branches.len ||
		    (a < d->branches_merged && compare_branches(&old[a], &old[b]) <= 0))
			all[count++] = old[a++];
		else
			all[count++] = old[b++];
	free(d->branches.data);
	d->branches.data = all;
	d->branches.cap = count + 1;
	d->branches_merged = count;
}

void control_flow_sort(struct discovery *d)
{
	uint32_t more = d->branches.len - d->branches_merged;

	if (!branches_sort(d->branches.data + d->branches_merged, &more))
		d->out_of_memory = true;
	d->branches.len = d->branches_merged + more;
	if (more > d->branches_merged / 8)
		merge(d);
}
