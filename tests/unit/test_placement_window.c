#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layout/placement_window.h"
#include "made_graph.h"

enum { PAGES = 40 };

/* What the choice is about, page by page, counted byte by byte. */
struct naive_page {
	uint32_t room;
	bool touched;
};

static void naive_pages(const struct made_graph *made, const struct placement_plan *plan,
			struct naive_page *pages)
{
	const struct graph *graph = &made->graph;

	for (uint32_t i = 0; i < made->ranges[0].size; i++) {
		struct rva rva = {made->ranges[0].begin.v + i};
		uint32_t id = graph_block_at(graph, rva);
		struct naive_page *page = &pages[i / PLACEMENT_PAGE];

		if (id == NO_BLOCK)
			page->room += (made->ranges[0].map[i] & CODE_STATE) == CODE_PADDING;
		else if (plan->states[id] == BLOCK_WAITING)
			page->room++;
		else if (plan->states[id] == BLOCK_COLD)
			page->room += graph->blocks.data[id].size < PLACEMENT_LARGE;
		else
			page->touched |= plan->hot[id];
	}
}

/* The fewest pages that a window adds, of all windows; UINT32_MAX when none has room. */
static uint32_t naive_added(const struct naive_page *pages, uint32_t count, uint32_t need)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t begin = 0; begin < count; begin++) {
		uint32_t room = 0, added = 0;

		for (uint32_t end = begin; end < count; end++) {
			room += pages[end].touched ? 0 : pages[end].room;
			added += !pages[end].touched;
			if (room >= need && added < best)
				best = added;
		}
	}
	return best;
}

static uint32_t naive_need(const struct placement_plan *plan,
			   const struct naive_page *pages, uint32_t count)
{
	uint32_t need = 0, touched_room = 0;

	for (uint32_t id = 0; id < plan->graph->blocks.len; id++) {
		if (plan->states[id] == BLOCK_WAITING)
			need += (plan->graph->blocks.data[id].size + 15) / 16 * 16;
	}
	for (uint32_t i = 0; i < count; i++)
		touched_room += pages[i].touched ? pages[i].room : 0;
	return need > touched_room ? need - touched_room : 1;
}

static bool in_list(const span_list *list, struct span span)
{
	for (uint32_t i = 0; i < list->len; i++) {
		if (list->data[i].begin <= span.begin && span.end <= list->data[i].end)
			return true;
	}
	return false;
}

static void assert_best_window(const struct made_graph *made,
			       const struct placement_area *area)
{
	uint32_t begin = made->ranges[0].begin.v, size = made->ranges[0].size;
	uint32_t count = (size + PLACEMENT_PAGE - 1) / PLACEMENT_PAGE, added = 0, best;
	struct naive_page pages[PAGES * 4] = {{0}};
	struct placement_window window;

	assert_true(count <= PAGES * 4);
	naive_pages(made, area->plan, pages);
	assert_int_equal(placement_window_choose(area, &window, NULL), STATUS_OK);
	for (uint32_t i = 0; i < count; i++) {
		struct span page = {begin + i * PLACEMENT_PAGE,
				    begin + (i + 1) * PLACEMENT_PAGE};
		bool inside;

		if (page.end > begin + size)
			page.end = begin + size;
		inside = window.span.begin <= page.begin && page.end <= window.span.end;
		added += inside && !pages[i].touched;
		assert_int_equal(in_list(&window.touched, page),
				 pages[i].touched && !inside);
	}
	best = naive_added(pages, count, naive_need(area->plan, pages, count));
	if (best == UINT32_MAX) {
		assert_int_equal(window.span.begin, area->span.begin);
		assert_int_equal(window.span.end, area->span.end);
	} else {
		assert_int_equal(added, best);
	}
	placement_window_release(&window);
}

/* Draws which blocks are hot; the plan's arrays have room for them. */
static void draw_plan(const struct made_graph *made, struct dice *dice, uint32_t share,
		      struct placement_plan *plan)
{
	for (uint32_t id = 0; id < made->graph.blocks.len; id++) {
		plan->hot[id] = dice_roll(dice, 1000) < share;
		plan->states[id] = made->graph.blocks.data[id].pins ? BLOCK_PINNED
				   : plan->hot[id]                  ? BLOCK_WAITING
								    : BLOCK_COLD;
		plan->begins[id] = made->graph.blocks.data[id].begin;
	}
}

static void window_adds_fewest_pages(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 100; seed++) {
		static const uint32_t shares[] = {10, 50, 200, 600, 950};
		struct dice dice = {seed};
		struct made_mix mix = {300, 10 + dice_roll(&dice, 60), 200, 130};
		struct made_graph made;
		struct placement_area area;
		struct rva begins[300];
		uint8_t states[300];
		bool hot[300];
		struct placement_plan plan = {&made.graph, begins, states, hot};

		made_graph_init(&made);
		made_graph_fill(&made, 0x1000, &mix, &dice);
		draw_plan(&made, &dice, shares[seed % 5], &plan);
		assert_int_equal(
			placement_area_init(&area, &plan, &made.ranges[0], 0, NULL),
			STATUS_OK);
		assert_best_window(&made, &area);
		placement_area_release(&area);
		made_graph_release(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_adds_fewest_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
