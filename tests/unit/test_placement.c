#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "layout/placement.h"
#include "layout/placement_check.h"
#include "made_graph.h"

/* --- a naive checker: a mark for each byte --- */

enum { BYTE_FREE, BYTE_STAYS, BYTE_TAKEN };

/* The image's bytes from 0 to the end of what the layout adds. */
static uint8_t *naive_bytes(const struct made_graph *made, const struct layout *layout,
			    uint32_t *ret_size)
{
	uint32_t size = made->image.headers.size_of_image;
	uint8_t *marks;

	if (layout->added_size)
		size = layout->added.v + layout->added_size;
	marks = malloc(size);
	assert_non_null(marks);
	memset(marks, BYTE_STAYS, size);
	for (uint32_t i = 0; i < made->graph.range_count; i++) {
		const struct code_range *range = &made->ranges[i];

		for (uint32_t at = 0; at < range->size; at++) {
			if ((range->map[at] & CODE_STATE) == CODE_PADDING)
				marks[range->begin.v + at] = BYTE_FREE;
		}
	}
	if (layout->added_size)
		memset(marks + layout->added.v, BYTE_FREE, layout->added_size);
	for (uint32_t id = 0; id < made->graph.blocks.len; id++) {
		const struct block *block = &made->graph.blocks.data[id];

		memset(marks + block->begin.v, BYTE_FREE, block->size);
	}
	*ret_size = size;
	return marks;
}

static uint32_t naive_range(const struct made_graph *made, uint32_t rva)
{
	for (uint32_t i = 0; i < made->graph.range_count; i++) {
		if (rva_in(rva_of(rva), made->ranges[i].begin, made->ranges[i].size))
			return i;
	}
	return MADE_RANGES;
}

static void assert_sound(const struct made_graph *made, const struct layout *layout)
{
	uint32_t size, moved = 0, taken_twice = 0;
	uint8_t *marks = naive_bytes(made, layout, &size);

	assert_int_equal(layout->block_count, made->graph.blocks.len);
	for (uint32_t id = 0; id < layout->block_count; id++) {
		const struct block *block = &made->graph.blocks.data[id];
		uint32_t begin = layout->begins[id].v;
		bool added = layout->added_size && begin >= layout->added.v;

		assert_int_equal(begin % 16, block->begin.v % 16);
		if (block->pins)
			assert_int_equal(begin, block->begin.v);
		if (!added)
			assert_int_equal(naive_range(made, begin),
					 naive_range(made, block->begin.v));
		assert_true(begin < size && block->size <= size - begin);
		for (uint32_t at = begin; at < begin + block->size; at++) {
			taken_twice += marks[at] != BYTE_FREE;
			marks[at] = BYTE_TAKEN;
		}
		moved += begin != block->begin.v;
	}
	assert_int_equal(taken_twice, 0);
	assert_int_equal(layout->moved, moved);
	if (layout->added_size) {
		assert_int_equal(layout->added.v % made->image.headers.section_alignment,
				 0);
		assert_true(layout->added.v >= made->image.headers.size_of_image);
		assert_int_not_equal(marks[size - 1], BYTE_FREE);
	}
	free(marks);
}

/* Pages that hold a byte of a block of the order. */
static uint32_t count_pages(const struct made_graph *made, const struct order *order,
			    const struct layout *layout)
{
	uint32_t image_end = made->image.headers.size_of_image;
	uint32_t last = (layout->added.v + layout->added_size + image_end) / 4096, pages = 0;
	bool *touched = calloc(last + 1, sizeof(*touched));

	assert_non_null(touched);
	for (uint32_t i = 0; i < order->blocks.len; i++) {
		uint32_t id = order->blocks.data[i], begin = layout->begins[id].v;
		uint32_t end = begin + made->graph.blocks.data[id].size;

		for (uint32_t page = begin / 4096; page <= (end - 1) / 4096; page++) {
			pages += !touched[page];
			touched[page] = true;
		}
	}
	free(touched);
	return pages;
}

static uint32_t order_bytes(const struct made_graph *made, const struct order *order)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < order->blocks.len; i++)
		bytes += made->graph.blocks.data[order->blocks.data[i]].size;
	return bytes;
}

static void order_add(struct order *order, uint32_t id)
{
	assert_true(vec_push(&order->blocks, id));
}

/* `share` of 1000 blocks, in a random sequence. */
static void draw_order(const struct made_graph *made, uint32_t share, struct dice *dice,
		       struct order *order)
{
	for (uint32_t id = 0; id < made->graph.blocks.len; id++) {
		uint32_t at = dice_roll(dice, order->blocks.len + 1);

		if (dice_roll(dice, 1000) >= share)
			continue;
		order_add(order, id);
		order->blocks.data[order->blocks.len - 1] = order->blocks.data[at];
		order->blocks.data[at] = id;
	}
}

static void place(const struct made_graph *made, const struct order *order,
		  enum placement placement, struct layout *ret_layout)
{
	struct diag diag;

	assert_int_equal(layout_place(&made->graph, order, placement, ret_layout, &diag),
			 STATUS_OK);
	assert_sound(made, ret_layout);
}

/* --- examples whose result can be told by hand --- */

/* Eight blocks of 0x800 bytes from 0x1000 on, two a page. */
static void make_halves(struct made_graph *made, uint32_t pinned)
{
	made_graph_init(made);
	made_graph_section(made, 0x1000, 0x4000);
	for (uint32_t i = 0; i < 8; i++)
		made_graph_block(made, 0x1000 + i * 0x800, 0x800, pinned >> i & 1, NULL);
}

static void original_order_moves_nothing(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;

	(void)state;
	make_halves(&made, 0);
	for (int placement = PLACEMENT_EXCHANGE; placement <= PLACEMENT_APPEND;
	     placement++) {
		place(&made, &order, (enum placement)placement, &layout);
		assert_int_equal(layout.moved, 0);
		assert_int_equal(layout.added_size, 0);
		assert_int_equal(layout.added.v, 0);
		layout_release(&layout);
	}
	made_graph_release(&made);
}

/* Blocks 3 and 6 need one page; page 0x2000 holds 3 already and lies lowest among
 * those, so 6 goes there and what lay there (2) takes the place of 6. */
static void exchange_swaps_hot_and_cold(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;

	(void)state;
	make_halves(&made, 0);
	order_add(&order, 6);
	order_add(&order, 3);
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_int_equal(layout.begins[6].v, 0x2000);
	assert_int_equal(layout.begins[3].v, 0x2800);
	assert_int_equal(layout.begins[2].v, 0x4000);
	assert_int_equal(layout.moved, 2);
	assert_int_equal(layout.added_size, 0);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

/* The page of a hot pinned block is touched anyway: hot blocks join it there. */
static void exchange_fills_touched_pages(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;

	(void)state;
	make_halves(&made, 1 << 5);
	order_add(&order, 0);
	order_add(&order, 5);
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_int_equal(layout.begins[0].v, 0x3000);
	assert_int_equal(layout.begins[5].v, 0x3800);
	assert_int_equal(layout.begins[4].v, 0x1000);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

/* Pages with cold pinned code are avoided though they lie lower. */
static void exchange_avoids_pinned_cold_code(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;

	(void)state;
	make_halves(&made, 1 << 1 | 1 << 2);
	order_add(&order, 7);
	order_add(&order, 0);
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_true(layout.begins[7].v / 0x1000 == layout.begins[0].v / 0x1000);
	assert_true(layout.begins[0].v >= 0x3000);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

static void exchange_leaves_large_cold_blocks(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;
	uint32_t large;

	(void)state;
	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x20000);
	order_add(&order, made_graph_block(&made, 0x1000, 0x1000, false, NULL));
	large = made_graph_block(&made, 0x2000, 0x10000, false, NULL);
	order_add(&order, made_graph_block(&made, 0x12000, 0x1000, false, NULL));
	made_graph_mark(&made, 0x13000, 0xe000, CODE_UNKNOWN);
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_int_equal(layout.begins[large].v, 0x2000);
	assert_int_equal(layout.added_size, 0);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

/* A hot block from between pinned code takes the only page that is free of it; the
 * cold block that lay there fits nowhere, so it goes to the end of the image. */
static void exchange_adds_a_section_for_what_is_left(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;
	uint32_t cold, hot[2];

	(void)state;
	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x3000);
	cold = made_graph_block(&made, 0x1000, 0x1000, false, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		hot[i] = made_graph_block(&made, 0x2000 + i * 0x1000, 0x800, false, NULL);
		made_graph_block(&made, 0x2800 + i * 0x1000, 0x800, true, NULL);
		order_add(&order, hot[i]);
	}
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_int_equal(layout.begins[hot[0]].v, 0x1000);
	assert_int_equal(layout.begins[hot[1]].v, 0x1800);
	assert_int_equal(layout.begins[cold].v, 0x4000);
	assert_int_equal(layout.added.v, 0x4000);
	assert_int_equal(layout.added_size, 0x1000);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

/* The same blocks in a driver's pageable section, and the same again in one that stays in
 * memory: what finds no room there may go behind the image, here the section stays. */
static void pageable_code_of_a_driver_stays_in_its_section(void **state)
{
	struct section sections[] = {
		{.name = "PAGEdata", .rva = {0x1000}, .virtual_size = 0x3000},
		{.name = ".text", .rva = {0x4000}, .virtual_size = 0x3000},
	};
	struct made_graph made;
	struct order order = {0};
	struct layout layout;

	(void)state;
	made_graph_init(&made);
	made.image.headers.subsystem = 1; /* native, without imports */
	made.image.sections = sections;
	made.image.section_count = 2;
	for (uint32_t s = 0x1000; s <= 0x4000; s += 0x3000) {
		made_graph_section(&made, s, 0x3000);
		made_graph_block(&made, s, 0x1000, false, NULL);
		for (uint32_t i = 0x1000; i <= 0x2000; i += 0x1000) {
			order_add(&order,
				  made_graph_block(&made, s + i, 0x800, false, NULL));
			made_graph_block(&made, s + i + 0x800, 0x800, true, NULL);
		}
	}
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	for (uint32_t id = 0; id < 5; id++)
		assert_int_equal(layout.begins[id].v, made.graph.blocks.data[id].begin.v);
	assert_int_equal(layout.begins[5].v, 0x7000);
	assert_int_equal(layout.moved, 3);
	layout_release(&layout);
	place(&made, &order, PLACEMENT_APPEND, &layout);
	assert_int_equal(layout.begins[1].v, 0x2000);
	assert_int_equal(layout.begins[3].v, 0x3000);
	assert_int_equal(layout.begins[6].v, 0x7000);
	assert_int_equal(layout.moved, 2);
	layout_release(&layout);

	/* A program may have sections of that name. */
	made.image.headers.subsystem = 3;
	place(&made, &order, PLACEMENT_APPEND, &layout);
	assert_int_equal(layout.moved, 4);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

static void append_keeps_sequence_and_alignment(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout;
	uint32_t a, b, c, pinned;

	(void)state;
	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x1234);
	a = made_graph_block(&made, 0x1003, 10, false, NULL);
	b = made_graph_block(&made, 0x1010, 20, false, NULL);
	pinned = made_graph_block(&made, 0x1030, 20, true, NULL);
	c = made_graph_block(&made, 0x1048, 8, false, NULL);
	order_add(&order, b);
	order_add(&order, pinned);
	order_add(&order, c);
	order_add(&order, a);
	place(&made, &order, PLACEMENT_APPEND, &layout);
	/* The image ends at 0x2234. */
	assert_int_equal(layout.added.v, 0x3000);
	assert_int_equal(layout.begins[b].v, 0x3000);
	assert_int_equal(layout.begins[c].v, 0x3018);
	assert_int_equal(layout.begins[a].v, 0x3023);
	assert_int_equal(layout.begins[pinned].v, 0x1030);
	assert_int_equal(layout.added_size, 0x2d);
	assert_int_equal(layout.moved, 3);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

static void append_refuses_an_image_that_ends_too_high(void **state)
{
	struct made_graph made;
	struct order order = {0};
	struct layout layout = {.moved = 77};
	struct diag diag;

	(void)state;
	make_halves(&made, 0);
	made.image.headers.size_of_image = 0x7ffff000;
	order_add(&order, 0);
	order_add(&order, 1);
	assert_int_equal(
		layout_place(&made.graph, &order, PLACEMENT_APPEND, &layout, &diag),
		STATUS_NO_ROOM);
	assert_int_equal(layout.moved, 77);
	assert_null(layout.begins);
	order_release(&order);
	made_graph_release(&made);
}

static void end_of_image_is_aligned(void **state)
{
	struct image image = {
		.headers = {.section_alignment = 0x1000, .size_of_image = 0x5000}};

	(void)state;
	assert_int_equal(layout_end_of_image(&image).v, 0x5000);
	image.headers.size_of_image = 0x5001;
	assert_int_equal(layout_end_of_image(&image).v, 0x6000);
	image.headers.section_alignment = 0x20;
	assert_int_equal(layout_end_of_image(&image).v, 0x5020);
}

static void map_follows_blocks(void **state)
{
	struct made_graph made;
	struct rva begins[] = {{0x1840}, {0x1000}, {0x1400}};
	struct layout layout = {.begins = begins, .block_count = 3};

	(void)state;
	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x1000);
	made_graph_block(&made, 0x1000, 0x40, false, NULL);
	made_graph_block(&made, 0x1040, 0x20, false, NULL);
	made_graph_block(&made, 0x1100, 0x10, false, NULL);
	assert_int_equal(layout_map(&made.graph, &layout, rva_of(0x1000)).v, 0x1840);
	assert_int_equal(layout_map(&made.graph, &layout, rva_of(0x103f)).v, 0x187f);
	assert_int_equal(layout_map(&made.graph, &layout, rva_of(0x1040)).v, 0x1000);
	assert_int_equal(layout_map(&made.graph, &layout, rva_of(0x1060)).v, 0x1060);
	assert_int_equal(layout_map(&made.graph, &layout, rva_of(0)).v, 0);
	/* The end of the first block is the begin of the second; as an end it follows
	 * the first. */
	assert_int_equal(layout_map_end(&made.graph, &layout, rva_of(0x1040)).v, 0x1880);
	assert_int_equal(layout_map_end(&made.graph, &layout, rva_of(0x1060)).v, 0x1020);
	assert_int_equal(layout_map_end(&made.graph, &layout, rva_of(0x1110)).v, 0x1410);
	assert_int_equal(layout_map_end(&made.graph, &layout, rva_of(0x1111)).v, 0x1111);
	assert_int_equal(layout_map_end(&made.graph, &layout, rva_of(0)).v, 0);
	made_graph_release(&made);
}

/* --- the proof finds what is wrong --- */

static void assert_fault(uint32_t id, uint32_t begin, uint32_t moved, const char *expected)
{
	struct made_graph made;
	struct rva begins[] = {{0x1000}, {0x1020}, {0x1040}, {0x2000}};
	struct layout layout = {.begins = begins,
				.block_count = 4,
				.moved = moved,
				.added = {0x4000},
				.added_size = 0x40};
	const char *fault = "none was looked for";

	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x200);
	made_graph_block(&made, 0x1000, 0x20, false, NULL);
	made_graph_block(&made, 0x1020, 0x20, false, NULL);
	made_graph_block(&made, 0x1040, 0x20, true, NULL);
	made_graph_mark(&made, 0x1100, 0x100, CODE_UNKNOWN);
	made_graph_section(&made, 0x2000, 0x100);
	made_graph_block(&made, 0x2000, 0x20, false, NULL);
	begins[id] = rva_of(begin);
	assert_int_equal(layout_find_fault(&made.graph, &layout, &fault, NULL), STATUS_OK);
	if (expected)
		assert_string_equal(fault, expected);
	else
		assert_null(fault);
	made_graph_release(&made);
}

static void proof_finds_each_fault(void **state)
{
	(void)state;
	assert_fault(0, 0x1000, 0, NULL);
	assert_fault(0, 0x1060, 1, NULL);
	assert_fault(0, 0x10e0, 1, NULL);
	assert_fault(0, 0x4020, 1, NULL);
	assert_fault(0, 0x1060, 0, "the number of moved blocks is wrong");
	assert_fault(2, 0x1060, 1, "a pinned block moved");
	assert_fault(0, 0x1068, 1, "a block lost its alignment");
	assert_fault(0, 0x1010, 1, "two blocks overlap");
	assert_fault(0, 0x1030, 1, "two blocks overlap");
	assert_fault(1, 0x1000, 1, "two blocks overlap");
	assert_fault(0, 0x10f0, 1, "a block covers bytes that must stay");
	assert_fault(0, 0x1180, 1, "a block covers bytes that must stay");
	assert_fault(0, 0x11f0, 1, "a block left its section");
	assert_fault(0, 0x2040, 1, "a block left its section");
	assert_fault(0, 0x4030, 1, "a block left its section");
	assert_fault(0, 0x3ff0, 1, "a block left its section");
	assert_fault(3, 0x1060, 1, "a block left its section");
}

/* --- properties of many small graphs --- */

/* Two sections with unknown bytes here and there. */
static void make_mixed(struct made_graph *made, struct dice *dice)
{
	made_graph_init(made);
	for (uint32_t i = 0; i < 2; i++) {
		struct made_mix mix = {
			.blocks = 1 + dice_roll(dice, 120),
			.pinned = dice_roll(dice, 3) * 100,
			.unaligned = dice_roll(dice, 4) * 300,
			.median = 8 + dice_roll(dice, 300),
		};
		uint32_t begin = (made->image.headers.size_of_image + 0xfff) & ~0xfffu;

		made_graph_fill(made, begin, &mix, dice);
		for (uint32_t at = 0; at < made->ranges[i].size; at++) {
			uint8_t *byte = &made->ranges[i].map[at];

			if ((*byte & CODE_STATE) == CODE_PADDING &&
			    dice_roll(dice, 100) == 0)
				*byte = CODE_UNKNOWN;
		}
	}
}

static void every_layout_is_sound(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 400; seed++) {
		static const uint32_t shares[] = {20, 200, 500, 900, 1000};
		struct dice dice = {seed};
		struct made_graph made;
		struct order order = {0};
		struct layout layout, again;

		make_mixed(&made, &dice);
		draw_order(&made, shares[seed % 5], &dice, &order);
		place(&made, &order, PLACEMENT_EXCHANGE, &layout);
		place(&made, &order, PLACEMENT_EXCHANGE, &again);
		assert_memory_equal(layout.begins, again.begins,
				    layout.block_count * sizeof(*layout.begins));
		assert_int_equal(layout.added_size, again.added_size);
		layout_release(&layout);
		layout_release(&again);
		place(&made, &order, PLACEMENT_APPEND, &layout);
		layout_release(&layout);
		order_release(&order);
		made_graph_release(&made);
	}
}

/* --- at the size of real images --- */

static double seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* An exchange must come within 5 % of the floor when the floor is 20 pages or more,
 * grow the image by less than 1 %, and not take quadratic time. */
static void check_at_scale(const struct made_mix *mix, uint32_t share, uint32_t seed)
{
	struct dice dice = {seed};
	struct made_graph made;
	struct order order = {0};
	struct layout layout;
	double begin, floor;

	made_graph_init(&made);
	made_graph_fill(&made, 0x1000, mix, &dice);
	draw_order(&made, share, &dice, &order);
	begin = seconds();
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_true(seconds() - begin < 5); /* 0.3 s without sanitizers */
	floor = order_bytes(&made, &order) / 4096.0;
	assert_true(floor >= 20);
	assert_true(count_pages(&made, &order, &layout) <= 1.05 * floor);
	assert_true(layout.added_size <= made.ranges[0].size / 100);
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

static void hot_code_is_contiguous_at_scale(void **state)
{
	static const struct made_mix aligned = {50000, 5, 0, 130};
	static const struct made_mix mixed = {50000, 5, 200, 130};
	static const struct made_mix packed = {50000, 5, 1000, 130};

	(void)state;
	check_at_scale(&aligned, 50, 11);
	check_at_scale(&aligned, 300, 12);
	check_at_scale(&mixed, 50, 21);
	check_at_scale(&mixed, 500, 22);
	check_at_scale(&packed, 300, 31);
}

static void random_order_grows_little_at_scale(void **state)
{
	static const struct made_mix mixes[] = {{50000, 5, 0, 130},
						{50000, 50, 200, 130},
						{50000, 5, 1000, 130},
						{600, 5, 200, 130}};

	(void)state;
	for (uint32_t i = 0; i < sizeof(mixes) / sizeof(*mixes); i++) {
		struct dice dice = {i + 1};
		struct made_graph made;
		struct order order;
		struct layout layout;
		uint32_t in_sequence = 0;

		made_graph_init(&made);
		made_graph_fill(&made, 0x1000, &mixes[i], &dice);
		assert_int_equal(order_random(&made.graph, i, &order, NULL), STATUS_OK);
		place(&made, &order, PLACEMENT_EXCHANGE, &layout);
		assert_true(layout.added_size <= made.ranges[0].size / 100);
		/* Nearly every block moved, and neighbours were parted. */
		assert_true(layout.moved > order.blocks.len / 100 * 95);
		for (uint32_t id = 1; id < layout.block_count; id++)
			in_sequence += layout.begins[id - 1].v < layout.begins[id].v;
		assert_in_range(in_sequence, layout.block_count / 10 * 4,
				layout.block_count / 10 * 6);
		layout_release(&layout);
		order_release(&order);
		made_graph_release(&made);
	}
}

/* Every other block pinned: nothing to win, but it must not take quadratic time. */
static void many_obstacles_are_no_trouble(void **state)
{
	static const struct made_mix mix = {50000, 500, 200, 60};
	struct dice dice = {5};
	struct made_graph made;
	struct order order = {0};
	struct layout layout;
	double begin;

	(void)state;
	made_graph_init(&made);
	made_graph_fill(&made, 0x1000, &mix, &dice);
	draw_order(&made, 300, &dice, &order);
	begin = seconds();
	place(&made, &order, PLACEMENT_EXCHANGE, &layout);
	assert_true(seconds() - begin < 10); /* 0.2 s without sanitizers */
	layout_release(&layout);
	order_release(&order);
	made_graph_release(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(original_order_moves_nothing),
		cmocka_unit_test(exchange_swaps_hot_and_cold),
		cmocka_unit_test(exchange_fills_touched_pages),
		cmocka_unit_test(exchange_avoids_pinned_cold_code),
		cmocka_unit_test(exchange_leaves_large_cold_blocks),
		cmocka_unit_test(exchange_adds_a_section_for_what_is_left),
		cmocka_unit_test(pageable_code_of_a_driver_stays_in_its_section),
		cmocka_unit_test(append_keeps_sequence_and_alignment),
		cmocka_unit_test(append_refuses_an_image_that_ends_too_high),
		cmocka_unit_test(end_of_image_is_aligned),
		cmocka_unit_test(map_follows_blocks),
		cmocka_unit_test(proof_finds_each_fault),
		cmocka_unit_test(every_layout_is_sound),
		cmocka_unit_test(hot_code_is_contiguous_at_scale),
		cmocka_unit_test(random_order_grows_little_at_scale),
		cmocka_unit_test(many_obstacles_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
