/* Exchange: hot blocks together, displaced cold ones into the holes they left.
 *
 * Four steps for a section:
 *
 *   1. choose a window of pages (placement_window.c says how);
 *   2. fill the pages outside it that are touched in any case, from the sequence's
 *      end, so that the first functions of a run stand together in the window;
 *   3. fill the window from its begin on, around what is pinned there, in sequence;
 *      what finds no room up to the section's end goes before the window;
 *   4. displaced cold blocks go into the holes: the smallest hole first, each time
 *      with the largest block that fits.
 *
 * Step 4 is the hard one.  The holes have as many bytes as the displaced blocks, but
 * they are as many and as small as the hot blocks that left them, so the largest of
 * the displaced blocks may find no hole.  Then cold blocks near the window are
 * displaced too, in ever wider reach: that makes one large hole, and the small
 * blocks among them fill the small holes.  So nothing is left over, or a few blocks,
 * for a new section, and as few cold blocks move as that allows.  When even hot
 * blocks find no room (nearly all are hot, as in a random order), the reach also
 * takes back what was placed at the section's end, for the same effect.
 *
 * In steps 3 and 4 what finds no room goes first in another round.
 *
 * Rejected: sliding all cold blocks together, which moves every block of the
 * section, and a search for the best packing, which gains a few bytes in a page.
 */
#include "layout/placement_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "layout/placement_window.h"

enum {
	HOT_LOOKAHEAD = 64,  /* blocks; how far one may come before its turn */
	COLD_LOOKAHEAD = 32, /* the same, in the sequence of falling sizes */
	ROUNDS = 3,          /* of filling again with those first that found no room */
	FIRST_REACH = 4096,  /* bytes; each further reach is twice as wide */
	REACH_PRICE = 512,   /* bytes of reach that may be spent to save one byte */
	SECTION_COST = 512,  /* bytes of file that a new section costs at least */
};

/* Bytes of the area's blocks that wait. */
static uint32_t waiting_bytes(const struct placement_area *area)
{
	uint32_t bytes = 0;

	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		if (area->plan->states[id] == BLOCK_WAITING)
			bytes += area->plan->graph->blocks.data[id].size;
	}
	return bytes;
}

/* Moves the blocks of `sequence` that wait to its front, in their sequence. */
static enum status advance_waiting(const struct placement_area *area, block_list *sequence,
				   struct diag *diag)
{
	block_list others = {0};
	uint32_t count = 0;

	if (!vec_reserve(&others, sequence->len))
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < sequence->len; i++) {
		uint32_t id = sequence->data[i];

		if (area->plan->states[id] == BLOCK_WAITING)
			sequence->data[count++] = id;
		else
			others.data[others.len++] = id;
	}
	if (others.len)
		memcpy(sequence->data + count, others.data,
		       others.len * sizeof(*others.data));
	vec_release(&others);
	return STATUS_OK;
}

/* Fills in rounds until nothing waits.  `sequence` is reordered; `start` is the
 * area as it stands now. */
static enum status fill_in_rounds(struct placement_area *area, const struct snapshot *start,
				  block_list *sequence, const span_list *spans,
				  uint32_t lookahead, struct diag *diag)
{
	enum status status = placement_area_fill(area, sequence, spans, lookahead, diag);

	for (int round = 1;
	     status == STATUS_OK && round < ROUNDS && waiting_bytes(area) > 0; round++) {
		status = advance_waiting(area, sequence, diag);
		snapshot_restore(start, area);
		if (status == STATUS_OK)
			status =
				placement_area_fill(area, sequence, spans, lookahead, diag);
	}
	return status;
}

static enum status fill_touched(struct placement_area *area, const block_list *hot,
				const struct placement_window *window, struct diag *diag)
{
	block_list backward = {0};
	span_list spans = {0};
	enum status status = placement_area_free(area, &window->touched, true, &spans, diag);

	for (uint32_t i = hot->len; status == STATUS_OK && i > 0; i--) {
		if (!vec_push(&backward, hot->data[i - 1]))
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		status = placement_area_fill(area, &backward, &spans, HOT_LOOKAHEAD, diag);
	vec_release(&spans);
	vec_release(&backward);
	return status;
}

/* The free spans from the window's begin on, then those before it, the nearest
 * first. */
static enum status list_window_spans(const struct placement_area *area, uint32_t begin,
				     span_list *ret_spans, struct diag *diag)
{
	struct span behind = {begin, area->span.end}, before = {area->span.begin, begin};
	span_list within = {&behind, 1, 1}, more = {0};
	enum status status = placement_area_free(area, &within, true, ret_spans, diag);

	if (status != STATUS_OK)
		return status;
	within.data = &before;
	status = placement_area_free(area, &within, true, &more, diag);
	for (uint32_t i = more.len; status == STATUS_OK && i > 0; i--) {
		if (!vec_push(ret_spans, more.data[i - 1]))
			status = diag_no_memory(diag);
	}
	vec_release(&more);
	return status;
}

static enum status fill_window(struct placement_area *area, block_list *hot,
			       const struct placement_window *window, struct diag *diag)
{
	struct snapshot start = {0};
	span_list spans = {0};
	enum status status = list_window_spans(area, window->span.begin, &spans, diag);

	if (status == STATUS_OK)
		status = snapshot_take(&start, area, diag);
	if (status == STATUS_OK)
		status = fill_in_rounds(area, &start, hot, &spans, HOT_LOOKAHEAD, diag);
	snapshot_release(&start);
	vec_release(&spans);
	return status;
}

/* Makes placed blocks wait again that begin in the last `reach` bytes. */
static void take_back(struct placement_area *area, uint32_t reach)
{
	struct placement_plan *plan = area->plan;

	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		if (plan->states[id] == BLOCK_PLACED &&
		    area->span.end - plan->begins[id].v <= reach)
			plan->states[id] = BLOCK_WAITING;
	}
}

/* A block with its size, so that the sort needs no context. */
struct sized_block {
	uint32_t size, id;
};

static int compare_sizes_falling(const void *a, const void *b)
{
	const struct sized_block *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The area's waiting blocks, the largest first. */
static enum status list_by_size(const struct placement_area *area, block_list *ret_list,
				struct diag *diag)
{
	VEC(struct sized_block) blocks = {0};
	bool complete = true;

	for (uint32_t id = area->first_block; complete && id < area->end_block; id++) {
		struct sized_block block = {area->plan->graph->blocks.data[id].size, id};

		if (area->plan->states[id] == BLOCK_WAITING)
			complete = vec_push(&blocks, block);
	}
	if (complete && blocks.len)
		qsort(blocks.data, blocks.len, sizeof(*blocks.data), compare_sizes_falling);
	for (uint32_t i = 0; complete && i < blocks.len; i++)
		complete = vec_push(ret_list, blocks.data[i].id);
	vec_release(&blocks);
	return complete ? STATUS_OK : diag_no_memory(diag);
}

static int compare_holes(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	uint32_t size_x = x->end - x->begin, size_y = y->end - y->begin;

	if (size_x != size_y)
		return size_x < size_y ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static enum status fill_holes(struct placement_area *area, struct diag *diag)
{
	span_list whole = {&area->span, 1, 1}, holes = {0};
	block_list waiting = {0};
	struct snapshot start = {0};
	enum status status = list_by_size(area, &waiting, diag);

	if (status == STATUS_OK)
		status = placement_area_free(area, &whole, false, &holes, diag);
	if (status == STATUS_OK)
		status = snapshot_take(&start, area, diag);
	if (status == STATUS_OK && holes.len) {
		qsort(holes.data, holes.len, sizeof(*holes.data), compare_holes);
		status = fill_in_rounds(area, &start, &waiting, &holes, COLD_LOOKAHEAD,
					diag);
	}
	snapshot_release(&start);
	vec_release(&waiting);
	vec_release(&holes);
	return status;
}

/* `span` and `reach` bytes on both sides of it, inside `within`. */
static struct span widen(struct span span, uint32_t reach, struct span within)
{
	return (struct span){
		span.begin - within.begin > reach ? span.begin - reach : within.begin,
		within.end - span.end > reach ? span.end + reach : within.end,
	};
}

/* Fills the holes after clearing more room in the reach given, from `start` on. */
static enum status attempt(struct placement_area *area, const struct snapshot *start,
			   struct span window, bool hot_waits, uint32_t reach,
			   struct diag *diag)
{
	snapshot_restore(start, area);
	if (reach) {
		placement_area_clear(area, widen(window, reach, area->span));
		if (hot_waits)
			take_back(area, reach);
	}
	return fill_holes(area, diag);
}

/* Fills the holes, with the reach that is worth its price. */
static enum status settle(struct placement_area *area, struct span window,
			  struct diag *diag)
{
	struct snapshot start = {0};
	bool hot_waits = waiting_bytes(area) > 0;
	uint32_t size = area->span.end - area->span.begin, reach = 0;
	uint32_t best_reach = 0, last_reach = 0, least_cost = UINT32_MAX;
	enum status status = placement_area_displace(area, diag);

	if (status == STATUS_OK)
		status = snapshot_take(&start, area, diag);
	while (status == STATUS_OK && reach < size) {
		uint32_t left, cost;

		status = attempt(area, &start, window, hot_waits, reach, diag);
		left = waiting_bytes(area);
		cost = left + (left ? SECTION_COST : 0) + reach / REACH_PRICE;
		last_reach = reach;
		if (cost < least_cost) {
			least_cost = cost;
			best_reach = reach;
		}
		if (left == 0)
			break;
		reach = reach ? reach * 2 : FIRST_REACH;
	}
	if (status == STATUS_OK && best_reach != last_reach)
		status = attempt(area, &start, window, hot_waits, best_reach, diag);
	snapshot_release(&start);
	return status;
}

enum status placement_exchange(struct placement_area *area, block_list *hot,
			       struct diag *diag)
{
	struct placement_window window = {0};
	enum status status = placement_window_choose(area, &window, diag);

	if (status == STATUS_OK)
		status = fill_touched(area, hot, &window, diag);
	if (status == STATUS_OK)
		status = fill_window(area, hot, &window, diag);
	if (status == STATUS_OK)
		status = settle(area, window.span, diag);
	placement_window_release(&window);
	return status;
}
