/* The replay of runs on layouts, against what the layouts say byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../reorder/simulation.h"
#include "made_graph.h"

enum { FUNCTIONS = 12, STRIDE = 4096, SIZE = 600, TEXT = 0x1000, RUNS_MAX = 3 };

/* Twelve functions, each at the begin of a page, and runs over them. */
struct stage {
	struct made_graph made;
	struct section section;
	struct db_profile_run runs[RUNS_MAX];
	struct db_profile profile;
	struct rva rvas[RUNS_MAX][FUNCTIONS + 1];
	int64_t times[RUNS_MAX][FUNCTIONS + 1];
	struct simulation simulation;
};

static void open_stage(struct stage *s)
{
	memset(s, 0, sizeof(*s));
	made_graph_init(&s->made);
	made_graph_section(&s->made, TEXT, FUNCTIONS * STRIDE);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		made_graph_block(&s->made, TEXT + STRIDE * i, SIZE, i == 5, NULL);
	s->section = (struct section){.rva = {TEXT},
				      .virtual_size = FUNCTIONS * STRIDE,
				      .characteristics = SECTION_EXECUTE};
	s->made.image.sections = &s->section;
	s->made.image.section_count = 1;
	s->profile.runs = s->runs;
}

static void close_stage(struct stage *s)
{
	simulation_release(&s->simulation);
	made_graph_release(&s->made);
}

/* A run that touches functions by their letters, a microsecond after each other; z is a
 * place where none begins. */
static void add_run(struct stage *s, char *scenario, double weight, const char *touches)
{
	uint32_t number = s->profile.count++;
	struct db_profile_run *run = &s->runs[number];

	*run = (struct db_profile_run){.run = number + 7,
				       .scenario = scenario,
				       .weight = weight,
				       .rvas = s->rvas[number],
				       .times_ns = s->times[number],
				       .count = (uint32_t)strlen(touches)};
	for (uint32_t i = 0; i < run->count; i++) {
		run->rvas[i] = rva_of(TEXT + STRIDE * (uint32_t)(touches[i] - 'a'));
		run->times_ns[i] = 1000 * (int64_t)i;
	}
}

static void start(struct stage *s)
{
	assert_int_equal(simulation_init(&s->simulation, &s->made.graph, &s->profile, NULL),
			 STATUS_OK);
	s->simulation.cluster_count = 2;
	s->simulation.clusters[0] = 1;
	s->simulation.clusters[1] = 8;
}

static void add_order(struct stage *s, const char *blocks, enum placement placement)
{
	struct order order = {0};

	for (; *blocks; blocks++)
		assert_true(vec_push(&order.blocks, (uint32_t)(*blocks - 'a')));
	assert_int_equal(
		simulation_add_order(&s->simulation, "made", &order, placement, NULL),
		STATUS_OK);
	order_release(&order);
}

static void replay(struct stage *s)
{
	assert_int_equal(simulation_run(&s->simulation, NULL), STATUS_OK);
}

static void the_original_costs_a_page_a_function(void **state)
{
	static char scenario[] = "start";
	struct stage s;
	const struct figures *f;

	(void)state;
	open_stage(&s);
	add_run(&s, scenario, 1, "hbcl");
	start(&s);
	add_order(&s, "", PLACEMENT_EXCHANGE);
	replay(&s);
	f = &s.simulation.layouts.data[0].mean;
	assert_true(f->pages == 4);
	assert_true(f->wasted_bytes == 4 * (STRIDE - SIZE));
	assert_true(f->clusters[0].faults == 4);
	/* h brings the rest of the section, l too; b brings c. */
	assert_true(f->clusters[1].faults == 2);
	assert_true(f->clusters[0].area == (1 + 2 + 3 + 4) / 4.0);
	assert_true(f->has_time && f->clusters[0].time_area == (1 + 2 + 3) / 3.0);
	assert_int_equal(s.simulation.runs[0].touched_bytes, 4 * SIZE);
	assert_int_equal(s.simulation.runs[0].floor_pages, 1);
	assert_int_equal(s.simulation.layouts.data[0].code_pages, FUNCTIONS);
	close_stage(&s);
}

static void an_order_costs_what_its_placement_says(void **state)
{
	static char scenario[] = "start";
	static const enum placement placements[] = {PLACEMENT_EXCHANGE, PLACEMENT_APPEND};
	static const char touched[] = "hbfcl"; /* f is pinned */

	(void)state;
	for (unsigned p = 0; p < 2; p++) {
		bool pages[4 * FUNCTIONS] = {0};
		struct order order = {0};
		struct layout placed;
		uint32_t count = 0;
		struct stage s;

		open_stage(&s);
		add_run(&s, scenario, 1, touched);
		start(&s);
		add_order(&s, touched, placements[p]);
		replay(&s);

		for (const char *c = touched; *c; c++)
			assert_true(vec_push(&order.blocks, (uint32_t)(*c - 'a')));
		assert_int_equal(
			layout_place(&s.made.graph, &order, placements[p], &placed, NULL),
			STATUS_OK);
		for (const char *c = touched; *c; c++)
			for (uint32_t i = 0; i < SIZE; i++)
				pages[(placed.begins[*c - 'a'].v + i) / STRIDE] = true;
		for (uint32_t i = 0; i < 4 * FUNCTIONS; i++)
			count += pages[i];
		assert_true(count < 5);
		assert_true(s.simulation.layouts.data[0].mean.pages == count);
		assert_true(s.simulation.layouts.data[0].mean.outside_bytes == 0);
		layout_release(&placed);
		order_release(&order);
		close_stage(&s);
	}
}

static void means_are_weighted_as_orders_are(void **state)
{
	static char often[] = "often", once[] = "once";
	struct stage s;
	const struct figures *f;

	(void)state;
	open_stage(&s);
	/* Two runs of weight 1 together, one of weight 3. */
	add_run(&s, often, 1, "ab");
	add_run(&s, once, 3, "acegi");
	add_run(&s, often, 1, "abcd");
	start(&s);
	add_order(&s, "", PLACEMENT_EXCHANGE);
	replay(&s);
	f = &s.simulation.layouts.data[0].mean;
	assert_true(f->pages == (0.5 * 2 + 3 * 5 + 0.5 * 4) / 4);
	assert_true(f->clusters[0].faults == f->pages);
	assert_true(s.simulation.layouts.data[0].replays[1].figures.pages == 5);
	close_stage(&s);
}

static void what_no_function_begins_with_is_counted_apart(void **state)
{
	static char scenario[] = "start";
	struct stage s;

	(void)state;
	open_stage(&s);
	add_run(&s, scenario, 1, "zazb");
	start(&s);
	add_order(&s, "", PLACEMENT_EXCHANGE);
	replay(&s);
	assert_int_equal(s.simulation.runs[0].touches, 2);
	assert_int_equal(s.simulation.runs[0].unmatched, 2);
	assert_true(s.simulation.layouts.data[0].mean.pages == 2);
	/* Times are those of the touches that count. */
	assert_int_equal(s.simulation.runs[0].times_ns[1], 3000);
	close_stage(&s);

	open_stage(&s);
	add_run(&s, scenario, 1, "zz");
	assert_int_equal(simulation_init(&s.simulation, &s.made.graph, &s.profile, NULL),
			 STATUS_NOT_FOUND);
	close_stage(&s);
}

/* A map may cut a function; what has left its section counts where it is. */
static void a_relink_is_what_its_map_says(void **state)
{
	static char scenario[] = "start";
	static struct move moves[] = {{{TEXT + 100}, {0x40000}, 200},
				      {{TEXT + STRIDE}, {0x40000 + 200}, SIZE}};
	static struct section sections[] = {
		{.rva = {TEXT},
		 .virtual_size = FUNCTIONS * STRIDE,
		 .characteristics = SECTION_EXECUTE},
		{.rva = {0x20000}, .virtual_size = 0x1000},
		{.rva = {0x40000},
		 .virtual_size = 0x1000,
		 .characteristics = SECTION_EXECUTE},
	};
	struct mapped_image relinked = {0};
	const struct replay *replayed;
	struct stage s;

	(void)state;
	open_stage(&s);
	add_run(&s, scenario, 1, "ab");
	start(&s);
	s.simulation.details = true;
	relinked.image.sections = sections;
	relinked.image.section_count = 3;
	relinked.image.headers.size_of_image = 0x41000;
	for (unsigned i = 0; i < 2; i++)
		assert_true(vec_push(&relinked.map.moves, moves[i]));
	assert_int_equal(move_map_finish(&relinked.map, NULL), STATUS_OK);
	assert_int_equal(simulation_add_relinked(&s.simulation, &relinked, NULL),
			 STATUS_OK);
	replay(&s);
	replayed = s.simulation.layouts.data[0].replays;
	assert_true(replayed->figures.pages == 2);
	assert_int_equal(replayed->results[0].touched_bytes, 2 * SIZE);
	assert_int_equal(replayed->results[0].curve[0], 2);
	assert_int_equal(replayed->results[0].curve[1], 2);
	assert_int_equal(replayed->results[0].touched_by[0x40], 0);
	assert_int_equal(s.simulation.layouts.data[0].code_pages, FUNCTIONS + 1);
	move_map_release(&relinked.map);
	close_stage(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_original_costs_a_page_a_function),
		cmocka_unit_test(an_order_costs_what_its_placement_says),
		cmocka_unit_test(means_are_weighted_as_orders_are),
		cmocka_unit_test(what_no_function_begins_with_is_counted_apart),
		cmocka_unit_test(a_relink_is_what_its_map_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
