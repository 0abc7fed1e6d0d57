/* Free room in a section, and filling it.
 *
 * Free room is never tracked, but computed anew from what holds bytes whenever it
 * is asked for: a sort and a sweep.  That is a few times for each section, 10 ms for
 * 100,000 blocks, and there is no second truth that could drift.
 */
#include "layout/placement_area.h"

#include <stdlib.h>
#include <string.h>

/* Adds the runs of bytes in `gap` that are no padding to the obstacles. */
static bool add_obstacles(struct placement_area *area, const struct code_range *range,
			  struct span gap)
{
	struct span run = {gap.begin, gap.begin};

	for (; run.end < gap.end; run.end++) {
		if ((range->map[run.end - range->begin.v] & CODE_STATE) != CODE_PADDING)
			continue;
		if (run.end > run.begin && !vec_push(&area->obstacles, run))
			return false;
		run.begin = run.end + 1;
	}
	return run.end <= run.begin || vec_push(&area->obstacles, run);
}

enum status placement_area_init(struct placement_area *area, struct placement_plan *plan,
				const struct code_range *range, uint32_t first_block,
				struct diag *diag)
{
	const struct graph *graph = plan->graph;
	uint32_t id = first_block, at = range->begin.v;

	*area = (struct placement_area){
		.plan = plan,
		.span = {range->begin.v, range->begin.v + range->size},
		.first_block = first_block,
	};
	for (; id < graph->blocks.len && graph->blocks.data[id].begin.v < area->span.end;
	     id++) {
		const struct block *block = &graph->blocks.data[id];

		if (!add_obstacles(area, range, (struct span){at, block->begin.v}))
			goto no_memory;
		at = block->begin.v + block->size;
	}
	area->end_block = id;
	if (add_obstacles(area, range, (struct span){at, area->span.end}))
		return STATUS_OK;
no_memory:
	placement_area_release(area);
	return diag_no_memory(diag);
}

void placement_area_release(struct placement_area *area)
{
	vec_release(&area->obstacles);
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Where the blocks of a state and of at least `least` bytes stand, ascending by id. */
static bool add_blocks(const struct placement_area *area, enum block_state state,
		       uint32_t least, span_list *spans)
{
	const struct placement_plan *plan = area->plan;

	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		uint32_t begin = plan->begins[id].v;
		struct span span = {begin, begin + plan->graph->blocks.data[id].size};

		if (plan->states[id] == state && span.end - begin >= least &&
		    !vec_push(spans, span))
			return false;
	}
	return true;
}

static bool add_held(const struct placement_area *area, bool over_cold, span_list *held)
{
	if (!add_blocks(area, BLOCK_PINNED, 0, held) ||
	    !add_blocks(area, BLOCK_PLACED, 0, held) ||
	    !add_blocks(area, BLOCK_COLD, over_cold ? PLACEMENT_LARGE : 0, held))
		return false;
	for (uint32_t i = 0; i < area->obstacles.len; i++) {
		if (!vec_push(held, area->obstacles.data[i]))
			return false;
	}
	if (held->len)
		qsort(held->data, held->len, sizeof(*held->data), compare_spans);
	return true;
}

/* Adds what is free in `within`; `*next` is the first held span that may matter. */
static bool add_free(const span_list *held, uint32_t *next, struct span within,
		     span_list *spans)
{
	struct span gap = {within.begin, within.begin};

	while (gap.begin < within.end) {
		struct span hold = {within.end, within.end};

		while (*next < held->len && held->data[*next].end <= gap.begin)
			(*next)++;
		if (*next < held->len && held->data[*next].begin < within.end)
			hold = held->data[*next];
		gap.end = hold.begin;
		if (gap.end > gap.begin && !vec_push(spans, gap))
			return false;
		gap.begin = hold.end;
	}
	return true;
}

enum status placement_area_free(const struct placement_area *area, const span_list *within,
				bool over_cold, span_list *ret_spans, struct diag *diag)
{
	span_list held = {0}, spans = {0};
	uint32_t next = 0;
	bool complete = add_held(area, over_cold, &held);

	for (uint32_t i = 0; complete && i < within->len; i++)
		complete = add_free(&held, &next, within->data[i], &spans);
	vec_release(&held);
	if (!complete) {
		vec_release(&spans);
		return diag_no_memory(diag);
	}
	*ret_spans = spans;
	return STATUS_OK;
}

static void fill_span(struct placement_plan *plan, struct block_queue *queue,
		      struct span span, uint32_t lookahead)
{
	uint32_t id;
	struct rva begin;

	for (;;) {
		id = block_queue_take(queue, rva_of(span.begin), span.end - span.begin,
				      lookahead, &begin);
		if (id == NO_BLOCK)
			return;
		plan->begins[id] = begin;
		plan->states[id] = BLOCK_PLACED;
		span.begin = begin.v + plan->graph->blocks.data[id].size;
	}
}

enum status placement_area_fill(struct placement_area *area, const block_list *sequence,
				const span_list *spans, uint32_t lookahead,
				struct diag *diag)
{
	struct placement_plan *plan = area->plan;
	struct block_queue queue;
	block_list waiting = {0};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < sequence->len; i++) {
		if (plan->states[sequence->data[i]] == BLOCK_WAITING &&
		    !vec_push(&waiting, sequence->data[i]))
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		status = block_queue_init(&queue, plan->graph, waiting.data, waiting.len,
					  diag);
	if (status == STATUS_OK) {
		for (uint32_t i = 0; i < spans->len; i++)
			fill_span(plan, &queue, spans->data[i], lookahead);
		block_queue_release(&queue);
	}
	vec_release(&waiting);
	return status;
}

enum status placement_area_displace(struct placement_area *area, struct diag *diag)
{
	struct placement_plan *plan = area->plan;
	span_list placed = {0};
	uint32_t i = 0;

	if (!add_blocks(area, BLOCK_PLACED, 0, &placed)) {
		vec_release(&placed);
		return diag_no_memory(diag);
	}
	if (placed.len)
		qsort(placed.data, placed.len, sizeof(*placed.data), compare_spans);
	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		const struct block *block = &plan->graph->blocks.data[id];

		while (i < placed.len && placed.data[i].end <= block->begin.v)
			i++;
		if (i < placed.len && placed.data[i].begin < block->begin.v + block->size &&
		    plan->states[id] == BLOCK_COLD)
			plan->states[id] = BLOCK_WAITING;
	}
	vec_release(&placed);
	return STATUS_OK;
}

void placement_area_clear(struct placement_area *area, struct span within)
{
	struct placement_plan *plan = area->plan;

	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		const struct block *block = &plan->graph->blocks.data[id];

		if (plan->states[id] == BLOCK_COLD && block->begin.v < within.end &&
		    block->begin.v + block->size > within.begin)
			plan->states[id] = BLOCK_WAITING;
	}
}

enum status snapshot_take(struct snapshot *snapshot, const struct placement_area *area,
			  struct diag *diag)
{
	const struct placement_plan *plan = area->plan;
	size_t count = area->end_block - area->first_block;

	snapshot->begins = malloc((count + 1) * sizeof(*snapshot->begins));
	snapshot->states = malloc(count + 1);
	if (!snapshot->begins || !snapshot->states)
		return diag_no_memory(diag);
	memcpy(snapshot->begins, plan->begins + area->first_block,
	       count * sizeof(*snapshot->begins));
	memcpy(snapshot->states, plan->states + area->first_block, count);
	return STATUS_OK;
}

void snapshot_restore(const struct snapshot *snapshot, struct placement_area *area)
{
	size_t count = area->end_block - area->first_block;

	memcpy(area->plan->begins + area->first_block, snapshot->begins,
	       count * sizeof(*snapshot->begins));
	memcpy(area->plan->states + area->first_block, snapshot->states, count);
}

void snapshot_release(struct snapshot *snapshot)
{
	free(snapshot->begins);
	free(snapshot->states);
	memset(snapshot, 0, sizeof(*snapshot));
}
