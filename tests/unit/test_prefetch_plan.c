/* Prefetch plans, against one that looks at single pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "../../reorder/prefetch_plan.h"
#include "made_graph.h"

enum { PAGES = 200, TOUCHES = 40 };

static const struct fault_section sections[] = {{{0x1000}, 60 * FAULT_PAGE - 100},
						{{0x1000 + 60 * FAULT_PAGE}, 5},
						{{0x1000 + 70 * FAULT_PAGE}, 0x40000}};

static struct fault_input input_of(const struct fault_range *ranges)
{
	return (struct fault_input){.image_size = PAGES * FAULT_PAGE,
				    .sections = sections,
				    .section_count = 3,
				    .ranges = ranges,
				    .range_count = TOUCHES,
				    .touch_count = TOUCHES,
				    .cluster = 1};
}

static bool same_section(uint32_t a, uint32_t b)
{
	for (unsigned s = 0; s < 3; s++) {
		uint32_t first = sections[s].begin.v / FAULT_PAGE;
		uint32_t last = (sections[s].begin.v + sections[s].size - 1) / FAULT_PAGE;

		if (a >= first && b <= last)
			return true;
	}
	return false;
}

/* The last page of the range that begins with the touched page `page`. */
static uint32_t naive_last(const struct fault_result *result, uint32_t page, uint32_t gap)
{
	uint32_t last = page;

	for (uint32_t p = page + 1; p <= last + gap + 1 && p < PAGES; p++)
		if (result->touched_by[p] != NO_TOUCH && same_section(page, p))
			last = p;
	return last;
}

static void check_plan(const struct prefetch_plan *plan, const struct fault_result *result,
		       uint32_t gap)
{
	uint32_t earliest = 0, expected = 0, pages = 0, end = 0;

	/* As many ranges as a walk finds, each of which is there. */
	for (uint32_t page = 0; page < PAGES; page++) {
		if (page < end || result->touched_by[page] == NO_TOUCH)
			continue;
		end = naive_last(result, page, gap) + 1;
		expected++;
		for (uint32_t i = 0; i < plan->ranges.len; i++)
			if (plan->ranges.data[i].begin.v == page * FAULT_PAGE) {
				assert_int_equal(plan->ranges.data[i].size,
						 (end - page) * FAULT_PAGE);
				pages += end - page;
			}
	}
	assert_int_equal(plan->ranges.len, expected);
	assert_int_equal(plan->pages, pages);
	assert_int_equal(plan->needed_pages, result->pages);
	/* They ascend by the first touch of any page. */
	for (uint32_t i = 0; i < plan->ranges.len; i++) {
		uint32_t first = NO_TOUCH,
			 begin = plan->ranges.data[i].begin.v / FAULT_PAGE;

		for (uint32_t p = 0; p < plan->ranges.data[i].size / FAULT_PAGE; p++)
			if (result->touched_by[begin + p] < first)
				first = result->touched_by[begin + p];
		assert_true(first >= earliest);
		earliest = first;
	}
}

static void plans_are_what_a_walk_over_pages_gives(void **state)
{
	static const uint32_t gaps[] = {0, 1, 4, 1000};

	(void)state;
	for (uint32_t round = 0; round < 40; round++) {
		struct dice dice = {round + 1};
		struct fault_range ranges[TOUCHES];
		struct fault_input input = input_of(ranges);
		struct fault_result result;
		struct prefetch_plan plan;

		for (uint32_t i = 0; i < TOUCHES; i++)
			ranges[i] =
				(struct fault_range){{dice_roll(&dice, PAGES * FAULT_PAGE)},
						     dice_roll(&dice, 6000),
						     i};
		assert_int_equal(fault_model_run(&input, &result, NULL), STATUS_OK);
		assert_int_equal(
			prefetch_plan_make(&input, &result, gaps[round % 4], &plan, NULL),
			STATUS_OK);
		check_plan(&plan, &result, gaps[round % 4]);
		prefetch_plan_release(&plan);
		fault_result_release(&result);
	}
}

static struct plan_range some_ranges[] = {{{0x5000}, 0x2000}, {{0x1000}, 0x1000}};

static struct prefetch_plan some_plan(void)
{
	struct prefetch_plan plan = {.pages = 3, .needed_pages = 2};

	plan.ranges.data = some_ranges;
	plan.ranges.len = 2;
	return plan;
}

static void the_json_says_all(void **state)
{
	struct prefetch_plan plan = some_plan();
	struct plan_image image = {.name = "a \"b\\\xff.dll",
				   .size_of_image = 0x9000,
				   .time_date_stamp = 0xfedcba98,
				   .checksum = 7};
	const char *format, *name, *hash;
	int schema, page, gap, needed, begin, size, second;
	json_int_t of_image, stamp, checksum;
	size_t bytes = 0;
	char *text = prefetch_plan_json(&plan, &image, 4, &bytes);
	json_t *root;

	(void)state;
	assert_non_null(text);
	assert_int_equal(bytes, strlen(text));
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(
		json_unpack(root,
			    "{s:s, s:i, s:{s:s, s:s, s:I, s:I, s:I !}, s:i, s:i, s:i,"
			    " s:[[i, i !], [i, i !] !] !}",
			    "format", &format, "schema", &schema, "image", "name", &name,
			    "sha256", &hash, "size_of_image", &of_image, "time_date_stamp",
			    &stamp, "checksum", &checksum, "page_size", &page, "gap_pages",
			    &gap, "needed_pages", &needed, "ranges", &begin, &size, &second,
			    &size),
		0);
	assert_string_equal(format, "appulse-prefetch-plan");
	assert_int_equal(schema, PLAN_SCHEMA);
	assert_string_equal(name, "a \"b\\?.dll");
	assert_int_equal(strlen(hash), 64);
	assert_true(stamp == 0xfedcba98 && of_image == 0x9000 && checksum == 7);
	assert_int_equal(begin, 0x5000);
	assert_int_equal(second, 0x1000);
	json_decref(root);
	free(text);
}

static void the_header_cannot_be_broken_by_a_name(void **state)
{
	struct prefetch_plan plan = some_plan();
	struct plan_image image = {.name = "a\"b\\c?"
					   "?/1\n\xc3\xa9*/.dll"};
	size_t bytes = 0;
	char *text = prefetch_plan_header(&plan, &image, "my_plan", &bytes);

	(void)state;
	assert_non_null(text);
	assert_int_equal(bytes, strlen(text));
	assert_non_null(strstr(text,
			       "#define MY_PLAN_NAME "
			       "\"a\\042b\\134c\\077\\077/1\\012\\303\\251*/.dll\"\n"));
	assert_non_null(strstr(text, "} my_plan_ranges[] = {\n\t{0x5000u, 0x2000u},\n"
				     "\t{0x1000u, 0x1000u},\n};\n"));
	assert_non_null(strstr(text, "#define MY_PLAN_COUNT 2u\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_are_what_a_walk_over_pages_gives),
		cmocka_unit_test(the_json_says_all),
		cmocka_unit_test(the_header_cannot_be_broken_by_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
