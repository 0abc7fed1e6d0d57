#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "layout/rewrite.h"

/* Six functions of 16 bytes, 32 bytes apart, and a table of three ranges. */
enum {
	TEXT = 0x1000,
	COUNT = 6,
	BYTES = 16,
	STEP = 32,
	ROWS = 3,
	RANGES = 0x2000,
	SIZE = RANGES + 8 * ROWS,
};

struct place {
	struct built_image built;
	struct graph graph;
	struct image_file file;
	struct rva begins[COUNT];
	struct layout layout;
};

static struct rva nth(uint32_t i)
{
	return rva_of(TEXT + STEP * i);
}

/* `order` says which function goes where; `ranges` has begins and sizes. */
static void open_place(struct place *p, const uint32_t *order, const uint32_t *ranges)
{
	struct image_builder b;

	memset(p, 0, sizeof(*p));
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xcc, COUNT * STEP);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	for (uint32_t i = 0; i < 2 * ROWS; i++)
		image_builder_u32(&b, ranges[i]);
	image_builder_u32(&b, 8 * ROWS);
	built_image_open(&p->built, &b);
	assert_int_equal(p->built.status, STATUS_OK);
	image_builder_release(&b);
	p->graph.image = &p->built.image;
	p->graph.tables.volatiles = (struct volatile_metadata){
		.ranges = rva_of(RANGES), .range_count = ROWS, .ranges_size = rva_of(SIZE)};
	for (uint32_t i = 0; i < COUNT; i++) {
		struct block block = {nth(i), BYTES, i, 1, 0};
		struct function function = {.begin = nth(i), .size = BYTES, .block = i};

		assert_true(vec_push(&p->graph.blocks, block));
		assert_true(vec_push(&p->graph.functions, function));
	}
	for (uint32_t i = 0; i < COUNT; i++)
		p->begins[order[i]] = nth(i);
	p->layout = (struct layout){.begins = p->begins, .block_count = COUNT};
	for (uint32_t i = 0; i < COUNT; i++)
		p->layout.moved += p->begins[i].v != nth(i).v;
	assert_int_equal(image_file_init(&p->file, &p->built.image, NULL), STATUS_OK);
}

static void close_place(struct place *p)
{
	image_file_release(&p->file);
	vec_release(&p->graph.blocks);
	vec_release(&p->graph.functions);
	built_image_close(&p->built);
}

static void expect(const uint32_t *order, const uint32_t *ranges, uint32_t rows,
		   const uint32_t *expected)
{
	struct place p;
	struct rewrite rewrite;

	open_place(&p, order, ranges);
	rewrite = (struct rewrite){
		.graph = &p.graph, .layout = &p.layout, .file = &p.file};
	assert_int_equal(rewrite_volatile_ranges(&rewrite, NULL), STATUS_OK);
	assert_int_equal(load_u32(image_file_at(&p.file, rva_of(SIZE), 4)), 8 * rows);
	for (uint32_t i = 0; i < 2 * ROWS; i++)
		assert_int_equal(
			load_u32(image_file_at(&p.file, rva_of(RANGES + 4 * i), 4)),
			i < 2 * rows ? expected[i] : 0);
	close_place(&p);
}

static const uint32_t stays[COUNT] = {0, 1, 2, 3, 4, 5};

/* Bounds in padding stay when nothing moves. */
static void ranges_of_what_stays_stay(void **state)
{
	const uint32_t ranges[] = {TEXT, 60, TEXT + 90, 38, TEXT + 150, 40};

	(void)state;
	expect(stays, ranges, ROWS, ranges);
}

/* The first three are covered; two of them change places. */
static void moves_inside_of_a_range_change_nothing(void **state)
{
	const uint32_t order[COUNT] = {0, 2, 1, 3, 4, 5};
	const uint32_t ranges[] = {TEXT, 2 * STEP + BYTES, TEXT + 4 * STEP, 16, 0x5000, 0};

	(void)state;
	expect(order, ranges, 2, ranges);
}

/* 0 and 1 are covered, and the first half of 3. */
static void cover_goes_with_the_code(void **state)
{
	const uint32_t order[COUNT] = {3, 0, 2, 1, 4, 5};
	const uint32_t ranges[] = {TEXT, STEP + BYTES, TEXT + 3 * STEP, 8, 0x5000, 0};
	const uint32_t expected[] = {TEXT, 8, TEXT + STEP, BYTES, TEXT + 3 * STEP, BYTES};

	(void)state;
	expect(order, ranges, 3, expected);
}

/* 0 to 2 are covered and part; half of 4 is, and comes to stand beside 0. */
static void the_smallest_is_left_out(void **state)
{
	const uint32_t order[COUNT] = {0, 3, 1, 4, 2, 5};
	const uint32_t ranges[] = {TEXT, 2 * STEP + BYTES, TEXT + 4 * STEP + 4, 8,
				   0x5000, 0};
	const uint32_t expected[] = {TEXT, BYTES, TEXT + 2 * STEP, BYTES, TEXT + 4 * STEP,
				     BYTES};

	(void)state;
	expect(order, ranges, 3, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_of_what_stays_stay),
		cmocka_unit_test(moves_inside_of_a_range_change_nothing),
		cmocka_unit_test(cover_goes_with_the_code),
		cmocka_unit_test(the_smallest_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
