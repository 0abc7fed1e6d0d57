/* Choosing the place of the hot blocks.
 *
 * The aim is that as few pages as possible are touched.  Hot blocks that may not
 * move spread over the section, and each page that holds one is touched whatever
 * we do; so its free room is the best room there is, wherever it lies.  The rest
 * must come from a window of consecutive pages, and the best window is the one
 * that adds the fewest pages not touched otherwise, which is the same as the one
 * with the fewest bytes of pinned cold code in the way.  Among equals the window
 * that holds more of the touched pages wins (fewer are scattered), then the one that
 * displaces fewer cold bytes (the image changes less), then the lowest.
 *
 * All of it is sums over pages and two indices that only go forward: linear.
 */
#include "layout/placement_window.h"

#include <stdlib.h>
#include <string.h>

/* Sums over the pages before page i of the area; each array has count + 1
 * elements. */
struct page_sums {
	uint32_t first, count; /* pages: their number in the image, how many */
	uint32_t *room;        /* bytes that could be had on pages that are not touched */
	uint32_t *cold;        /* bytes of cold blocks */
	uint32_t *touched;     /* pages with a hot pinned block */
	uint32_t touched_room; /* bytes that could be had on all touched pages */
};

static uint32_t page_of(uint32_t rva)
{
	return rva / PLACEMENT_PAGE;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The bytes of the area on page `i` of its pages. */
static struct span page_span(const struct placement_area *area, uint32_t first, uint32_t i)
{
	uint32_t begin = (first + i) * PLACEMENT_PAGE;

	return (struct span){larger(begin, area->span.begin),
			     smaller(begin + PLACEMENT_PAGE, area->span.end)};
}

/* Adds `span` to `bytes`, page by page; bytes[i + 1] belongs to page i. */
static void add_bytes(const struct page_sums *sums, struct span span, uint32_t *bytes)
{
	while (span.begin < span.end) {
		uint32_t page = page_of(span.begin);
		uint32_t end = smaller((page + 1) * PLACEMENT_PAGE, span.end);

		bytes[page - sums->first + 1] += end - span.begin;
		span.begin = end;
	}
}

static void add_block(const struct placement_area *area, struct page_sums *sums,
		      uint32_t id)
{
	const struct placement_plan *plan = area->plan;
	const struct block *block = &plan->graph->blocks.data[id];
	struct span span = {block->begin.v, block->begin.v + block->size};
	bool pinned = plan->states[id] == BLOCK_PINNED;

	if (pinned || (plan->states[id] == BLOCK_COLD && block->size >= PLACEMENT_LARGE))
		add_bytes(sums, span, sums->room); /* what is held; turned round below */
	else if (plan->states[id] == BLOCK_COLD)
		add_bytes(sums, span, sums->cold);
	for (uint32_t page = page_of(span.begin);
	     pinned && plan->hot[id] && page <= page_of(span.end - 1); page++)
		sums->touched[page - sums->first + 1] = 1;
}

static enum status page_sums_init(const struct placement_area *area,
				  struct page_sums *ret_sums, struct diag *diag)
{
	struct page_sums sums = {.first = page_of(area->span.begin)};
	uint32_t *memory;

	sums.count = page_of(area->span.end - 1) - sums.first + 1;
	memory = calloc(3 * ((size_t)sums.count + 1), sizeof(*memory));
	if (!memory)
		return diag_no_memory(diag);
	sums.room = memory;
	sums.cold = sums.room + sums.count + 1;
	sums.touched = sums.cold + sums.count + 1;
	for (uint32_t id = area->first_block; id < area->end_block; id++)
		add_block(area, &sums, id);
	for (uint32_t i = 0; i < area->obstacles.len; i++)
		add_bytes(&sums, area->obstacles.data[i], sums.room);
	for (uint32_t i = 0; i < sums.count; i++) {
		struct span span = page_span(area, sums.first, i);
		uint32_t room = span.end - span.begin - sums.room[i + 1];

		if (sums.touched[i + 1])
			sums.touched_room += room;
		sums.room[i + 1] = sums.room[i] + (sums.touched[i + 1] ? 0 : room);
		sums.cold[i + 1] += sums.cold[i];
		sums.touched[i + 1] += sums.touched[i];
	}
	*ret_sums = sums;
	return STATUS_OK;
}

static void page_sums_release(struct page_sums *sums)
{
	free(sums->room);
}

/* A candidate: the pages from `begin` to before `end`. */
struct candidate {
	uint32_t begin, end;
	uint32_t added;   /* pages not touched otherwise */
	uint32_t touched; /* pages touched in any case */
	uint32_t cold;    /* bytes of cold blocks */
};

static struct candidate candidate_of(const struct page_sums *sums, uint32_t begin,
				     uint32_t end)
{
	uint32_t touched = sums->touched[end] - sums->touched[begin];

	return (struct candidate){
		.begin = begin,
		.end = end,
		.added = end - begin - touched,
		.touched = touched,
		.cold = sums->cold[end] - sums->cold[begin],
	};
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->added != b->added)
		return a->added < b->added;
	if (a->touched != b->touched)
		return a->touched > b->touched;
	return a->cold < b->cold;
}

/* The best window with `need` bytes on pages not touched otherwise; the whole area
 * when there is none. */
static struct candidate best_candidate(const struct page_sums *sums, uint32_t need)
{
	struct candidate best = candidate_of(sums, 0, sums->count);

	for (uint32_t begin = 0, end = 0; begin < sums->count; begin++) {
		struct candidate candidate;

		while (end < sums->count &&
		       (end <= begin || sums->room[end] - sums->room[begin] < need))
			end++;
		if (sums->room[end] - sums->room[begin] < need)
			break;
		candidate = candidate_of(sums, begin, end);
		if (is_better(&candidate, &best))
			best = candidate;
	}
	return best;
}

/* What the waiting blocks need, the bytes that alignment costs included when each
 * block is followed by one of the same begin modulo 16. */
static uint32_t bytes_needed(const struct placement_area *area)
{
	const struct placement_plan *plan = area->plan;
	uint32_t need = 0;

	for (uint32_t id = area->first_block; id < area->end_block; id++) {
		if (plan->states[id] == BLOCK_WAITING)
			need += (plan->graph->blocks.data[id].size + PLACEMENT_ALIGNMENT -
				 1) &
				~(uint32_t)(PLACEMENT_ALIGNMENT - 1);
	}
	return need;
}

static bool list_touched(const struct placement_area *area, const struct page_sums *sums,
			 const struct candidate *window, span_list *touched)
{
	for (uint32_t i = 0; i < sums->count; i++) {
		struct span span = page_span(area, sums->first, i);

		if (sums->touched[i + 1] == sums->touched[i] ||
		    (i >= window->begin && i < window->end))
			continue;
		if (touched->len && touched->data[touched->len - 1].end == span.begin)
			touched->data[touched->len - 1].end = span.end;
		else if (!vec_push(touched, span))
			return false;
	}
	return true;
}

enum status placement_window_choose(const struct placement_area *area,
				    struct placement_window *ret_window, struct diag *diag)
{
	struct placement_window window = {0};
	struct page_sums sums = {0};
	struct candidate best;
	uint32_t need = bytes_needed(area);
	enum status status = page_sums_init(area, &sums, diag);

	if (status != STATUS_OK)
		return status;
	best = best_candidate(&sums,
			      need > sums.touched_room ? need - sums.touched_room : 1);
	window.span = (struct span){page_span(area, sums.first, best.begin).begin,
				    page_span(area, sums.first, best.end - 1).end};
	if (!list_touched(area, &sums, &best, &window.touched)) {
		placement_window_release(&window);
		status = diag_no_memory(diag);
	} else {
		*ret_window = window;
	}
	page_sums_release(&sums);
	return status;
}

void placement_window_release(struct placement_window *window)
{
	vec_release(&window->touched);
}
