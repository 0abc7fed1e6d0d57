/* The fault model, against one that looks at single bytes and knows no shortcut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "layout/fault_model.h"
#include "made_graph.h"

enum { IMAGE_PAGES = 48, IMAGE_BYTES = IMAGE_PAGES * FAULT_PAGE, TOUCHES = 60 };

static bool same_real(double a, double b)
{
	double difference = a > b ? a - b : b - a;

	return difference <= 1e-9 * (a + b + 1);
}

static struct fault_result run(const struct fault_input *input)
{
	struct fault_result result;
	struct diag diag;

	diag_init(&diag);
	assert_int_equal(fault_model_run(input, &result, &diag), STATUS_OK);
	return result;
}

/* ---- by hand ---- */

static const struct fault_section one_section[] = {{{0x1000}, 0x20000}};

static struct fault_input input_of(const struct fault_range *ranges, uint32_t count,
				   uint32_t touches, uint32_t cluster)
{
	return (struct fault_input){.image_size = IMAGE_BYTES,
				    .sections = one_section,
				    .section_count = 1,
				    .ranges = ranges,
				    .range_count = count,
				    .touch_count = touches,
				    .cluster = cluster};
}

static void nothing_touched_costs_nothing(void **state)
{
	struct fault_input input = input_of(NULL, 0, 0, 8);
	struct fault_result result = run(&input);

	(void)state;
	assert_int_equal(result.pages, 0);
	assert_int_equal(result.faults, 0);
	assert_int_equal(result.wasted_bytes, 0);
	assert_true(same_real(result.area, 0));
	assert_false(result.has_time);
	fault_result_release(&result);
}

static void a_fault_reads_forward_only(void **state)
{
	/* Pages 10, 14 (with it), 9 (before it), 18 (just behind what was read). */
	static const struct fault_range ranges[] = {{{0xa010}, 16, 0},
						    {{0xe000}, 16, 1},
						    {{0x9ff0}, 16, 2},
						    {{0x12000}, 16, 3}};
	static const uint32_t curve[] = {1, 1, 2, 3};
	struct fault_input input = input_of(ranges, 4, 4, 8);
	struct fault_result result = run(&input);

	(void)state;
	assert_int_equal(result.faults, 3);
	assert_int_equal(result.pages, 4);
	assert_int_equal(result.read_pages, 8 + 1 + 8);
	assert_memory_equal(result.curve, curve, sizeof(curve));
	assert_true(same_real(result.area, 7.0 / 4));
	assert_int_equal(result.wasted_bytes, 4 * FAULT_PAGE - 4 * 16);
	assert_int_equal(result.touched_by[10], 0);
	assert_int_equal(result.touched_by[11], NO_TOUCH);
	assert_int_equal(result.read_by[14], 0);
	assert_int_equal(result.touched_by[14], 1);
	assert_int_equal(result.read_by[8], NO_TOUCH);
	fault_result_release(&result);
}

static void a_read_ends_with_its_section(void **state)
{
	static const struct fault_section two[] = {{{0x1000}, 0x2345}, {{0x4000}, 0x3000}};
	/* The first section ends in page 3; page 4 is the second section's. */
	static const struct fault_range ranges[] = {{{0x2000}, 1, 0}, {{0x4000}, 1, 1}};
	struct fault_input input = input_of(ranges, 2, 2, 16);
	struct fault_result result;

	(void)state;
	input.sections = two;
	input.section_count = 2;
	result = run(&input);
	assert_int_equal(result.faults, 2);
	assert_int_equal(result.read_pages, 2 + 3);
	fault_result_release(&result);
}

static void the_sections_end_is_no_waste(void **state)
{
	static const struct fault_section part[] = {{{0x1000}, 0x1100}};
	static const struct fault_range ranges[] = {{{0x2000}, 0x80, 0}};
	struct fault_input input = input_of(ranges, 1, 1, 8);
	struct fault_result result;

	(void)state;
	input.sections = part;
	result = run(&input);
	assert_int_equal(result.wasted_bytes, 0x100 - 0x80);
	fault_result_release(&result);
}

static void what_lies_outside_is_left_out(void **state)
{
	/* Before the section and into it; behind it; from inside to behind it. */
	static const struct fault_range ranges[] = {
		{{0xfe0}, 0x40, 0}, {{0x28000}, 0x10, 1}, {{0x20ff0}, 0x30, 2}};
	struct fault_input input = input_of(ranges, 3, 3, 1);
	struct fault_result result = run(&input);

	(void)state;
	assert_int_equal(result.outside_bytes, 0x20 + 0x10 + 0x20);
	assert_int_equal(result.touched_bytes, 0x20 + 0x10);
	assert_int_equal(result.pages, 2);
	fault_result_release(&result);
}

static void a_touch_may_have_several_ranges_or_none(void **state)
{
	static const struct fault_range ranges[] = {
		{{0x1000}, 4, 0}, {{0x9000}, 4, 0}, {{0x5000}, 4, 2}};
	static const uint32_t curve[] = {2, 2, 3};
	struct fault_input input = input_of(ranges, 3, 3, 1);
	struct fault_result result = run(&input);

	(void)state;
	assert_memory_equal(result.curve, curve, sizeof(curve));
	assert_int_equal(result.touched_by[9], 0);
	fault_result_release(&result);
}

static void bytes_count_once(void **state)
{
	static const struct fault_range ranges[] = {{{0x1000}, 200, 0},
						    {{0x1000}, 200, 1},
						    {{0x1064}, 200, 2},
						    {{0x1fff}, 2, 3}};
	struct fault_input input = input_of(ranges, 4, 4, 1);
	struct fault_result result = run(&input);

	(void)state;
	assert_int_equal(result.touched_bytes, 300 + 2);
	assert_int_equal(result.wasted_bytes, 2 * FAULT_PAGE - 302);
	fault_result_release(&result);
}

static void time_weighs_the_curve(void **state)
{
	static const struct fault_range ranges[] = {
		{{0x1000}, 4, 0}, {{0x9000}, 4, 1}, {{0x1008}, 4, 2}, {{0x5000}, 4, 3}};
	/* One fault for 10 ns, two for 30 ns; time that falls does not count. */
	static const int64_t times[] = {1000, 1010, 990, 1040};
	static const int64_t same[] = {7, 7, 7, 7};
	/* The same since 1970. */
	static const int64_t late[] = {1796088000000001000, 1796088000000001010,
				       1796088000000000990, 1796088000000001040};
	struct fault_input input = input_of(ranges, 4, 4, 1);
	struct fault_result result;

	(void)state;
	input.times_ns = times;
	result = run(&input);
	assert_true(result.has_time);
	assert_true(same_real(result.time_area, (10 * 1 + 30 * 2) / 40.0));
	assert_true(same_real(result.area, (1 + 2 + 2 + 3) / 4.0));
	fault_result_release(&result);

	input.times_ns = late;
	result = run(&input);
	assert_true(same_real(result.time_area, (10 * 1 + 30 * 2) / 40.0));
	fault_result_release(&result);

	input.times_ns = same;
	result = run(&input);
	assert_false(result.has_time);
	fault_result_release(&result);
}

/* ---- against a naive model ---- */

static bool in_section(const struct fault_input *input, uint64_t rva)
{
	for (uint32_t s = 0; s < input->section_count; s++)
		if (rva >= input->sections[s].begin.v &&
		    rva - input->sections[s].begin.v < input->sections[s].size)
			return true;
	return false;
}

static bool same_section(const struct fault_input *input, uint64_t rva, uint64_t page)
{
	/* The section of the byte reaches into that page. */
	for (uint32_t s = 0; s < input->section_count; s++) {
		uint64_t begin = input->sections[s].begin.v;
		uint64_t end = begin + input->sections[s].size;

		if (rva >= begin && rva < end)
			return page * FAULT_PAGE < end && (page + 1) * FAULT_PAGE > begin;
	}
	return false;
}

/* What is known of each page and byte; larger than the test's stack should hold. */
static struct {
	bool touched[IMAGE_BYTES];
	bool resident[IMAGE_PAGES + 64], needed[IMAGE_PAGES + 64];
	uint32_t curve[TOUCHES], faults;
	uint64_t outside;
} naive;

static void naive_touch(const struct fault_input *input, uint64_t rva)
{
	uint64_t page = rva / FAULT_PAGE;

	if (!in_section(input, rva)) {
		naive.outside++;
		return;
	}
	naive.touched[rva] = naive.needed[page] = true;
	if (naive.resident[page])
		return;
	naive.faults++;
	for (uint32_t i = 0; i < input->cluster && page + i < IMAGE_PAGES; i++)
		if (same_section(input, rva, page + i))
			naive.resident[page + i] = true;
}

static void naive_run(const struct fault_input *input)
{
	memset(&naive, 0, sizeof(naive));
	for (uint32_t t = 0; t < input->touch_count; t++) {
		for (uint32_t r = 0; r < input->range_count; r++)
			for (uint32_t i = 0;
			     input->ranges[r].touch == t && i < input->ranges[r].size; i++)
				naive_touch(input, (uint64_t)input->ranges[r].begin.v + i);
		naive.curve[t] = naive.faults;
	}
}

static void compare(const struct fault_input *input)
{
	struct fault_result result = run(input);
	uint64_t touched = 0, wasted = 0;
	uint32_t pages = 0, read = 0;

	naive_run(input);
	for (uint32_t rva = 0; rva < IMAGE_BYTES; rva++) {
		touched += naive.touched[rva];
		wasted += naive.needed[rva / FAULT_PAGE] && !naive.touched[rva] &&
			  in_section(input, rva);
	}
	assert_int_equal(result.page_count, IMAGE_PAGES);
	for (uint32_t page = 0; page < IMAGE_PAGES; page++) {
		pages += naive.needed[page];
		read += naive.resident[page];
		assert_int_equal(result.touched_by[page] != NO_TOUCH, naive.needed[page]);
		assert_int_equal(result.read_by[page] != NO_TOUCH, naive.resident[page]);
	}
	assert_int_equal(result.pages, pages);
	assert_int_equal(result.read_pages, read);
	assert_int_equal(result.faults, naive.faults);
	assert_int_equal(result.touched_bytes, touched);
	assert_int_equal(result.wasted_bytes, wasted);
	assert_int_equal(result.outside_bytes, naive.outside);
	assert_memory_equal(result.curve, naive.curve, sizeof(naive.curve));
	fault_result_release(&result);
}

static void equals_a_naive_model(void **state)
{
	static const uint32_t clusters[] = {1, 2, 4, 8, 16, IMAGE_PAGES, UINT32_MAX};
	/* The second begins in the page in which the first ends. */
	static const struct fault_section sections[] = {
		{{0x1000}, 0x9123}, {{0xa200}, 0x5e00}, {{0x14000}, 0x1b000}};

	(void)state;
	for (uint32_t round = 0; round < 70; round++) {
		struct dice dice = {round + 1};
		struct fault_range ranges[TOUCHES];
		struct fault_input input = {
			IMAGE_BYTES, sections, 3,    ranges,
			TOUCHES,     TOUCHES,  NULL, clusters[round % 7]};

		for (uint32_t i = 0; i < TOUCHES; i++) {
			bool large = dice_roll(&dice, 8) == 0;

			/* Some touches have several ranges, others none. */
			ranges[i].touch = i - i % (1 + dice_roll(&dice, 3));
			if (i && ranges[i].touch < ranges[i - 1].touch)
				ranges[i].touch = ranges[i - 1].touch;
			ranges[i].begin = rva_of(dice_roll(&dice, IMAGE_BYTES + 4096));
			ranges[i].size = dice_roll(&dice, large ? 40000 : 300);
		}
		compare(&input);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_touched_costs_nothing),
		cmocka_unit_test(a_fault_reads_forward_only),
		cmocka_unit_test(a_read_ends_with_its_section),
		cmocka_unit_test(the_sections_end_is_no_waste),
		cmocka_unit_test(what_lies_outside_is_left_out),
		cmocka_unit_test(a_touch_may_have_several_ranges_or_none),
		cmocka_unit_test(bytes_count_once),
		cmocka_unit_test(time_weighs_the_curve),
		cmocka_unit_test(equals_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
