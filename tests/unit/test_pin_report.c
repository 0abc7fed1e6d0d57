#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/pin_report.h"
#include "made_graph.h"

/* Blocks of one function: free, pinned for one reason, for two, a place that is not
 * understood; then one of two functions, the second of them pinned. */
static void make_graph(struct made_graph *made)
{
	struct function *functions;
	uint32_t id;

	made_graph_init(made);
	made_graph_section(made, 0x1000, 0x1000);
	made_graph_block(made, 0x1000, 100, false, "free");
	made_graph_block(made, 0x1100, 20, true, "one");
	made_graph_block(made, 0x1200, 30, true, "two");
	made_graph_block(made, 0x1300, 7, true, "bytes");
	id = made_graph_block(made, 0x1400, 50, true, "joined");
	made_graph_split(made, 40, "holder");
	functions = made->graph.functions.data;
	functions[1].pins = 1u << PIN_OVERLAP;
	functions[2].pins = 1u << PIN_OVERLAP | 1u << PIN_UNSOLVED_JUMP;
	functions[3].kind = FUNCTION_BYTES;
	functions[3].pins = 1u << PIN_UNKNOWN_BYTES;
	functions[4].pins = 0;
	functions[5].pins = 1u << PIN_USER;
	assert_int_equal(made->graph.blocks.data[id].function_count, 2);
}

static void assert_count(const struct pin_count *count, uint32_t functions, uint64_t bytes)
{
	assert_int_equal(count->functions, functions);
	assert_int_equal(count->bytes, bytes);
}

static void functions_are_counted_by_reason(void **state)
{
	struct made_graph made;
	struct pin_report report;

	(void)state;
	make_graph(&made);
	pin_report_make(&made.graph, &report);
	assert_int_equal(report.functions, 5);
	assert_int_equal(report.movable_functions, 1);
	assert_int_equal(report.bytes, 207);
	assert_int_equal(report.movable_bytes, 100);
	assert_count(&report.reasons[PIN_OVERLAP], 2, 50);
	assert_count(&report.reasons[PIN_UNSOLVED_JUMP], 1, 30);
	assert_count(&report.reasons[PIN_USER], 1, 10);
	assert_count(&report.reasons[PIN_UNKNOWN_BYTES], 0, 0);
	assert_count(&report.joined, 1, 40);
	assert_count(&report.unknown, 1, 7);
	made_graph_release(&made);
}

static void json_lists_what_there_is(void **state)
{
	static const char expected[] =
		"{\"functions\":5,\"movable_functions\":1,\"bytes\":207,\"movable_bytes\":100,"
		"\"unknown_places\":1,\"unknown_bytes\":7,\"pins\":["
		"{\"reason\":\"overlapping-code\",\"functions\":2,\"bytes\":50},"
		"{\"reason\":\"unsolved-jump\",\"functions\":1,\"bytes\":30},"
		"{\"reason\":\"user\",\"functions\":1,\"bytes\":10},"
		"{\"reason\":\"joined\",\"functions\":1,\"bytes\":40}]}";
	struct made_graph made;
	struct pin_report report;
	struct result result;
	char *text;

	(void)state;
	make_graph(&made);
	pin_report_make(&made.graph, &report);
	result_init(&result);
	pin_report_put(&report, &result, result.root);
	text = json_dumps(result.root, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	result_release(&result);
	made_graph_release(&made);
}

static void the_largest_are_named(void **state)
{
	static const char expected[] =
		"{\"largest_pinned\":["
		"{\"reason\":\"overlapping-code\",\"rva\":4608,\"size\":30,\"function\":\"two\"},"
		"{\"reason\":\"overlapping-code\",\"rva\":4352,\"size\":20,\"function\":\"one\"},"
		"{\"reason\":\"unsolved-jump\",\"rva\":4608,\"size\":30,\"function\":\"two\"},"
		"{\"reason\":\"user\",\"rva\":5160,\"size\":10,\"function\":\"holder\"},"
		"{\"reason\":\"joined\",\"rva\":5120,\"size\":40,\"function\":\"joined\"}]}";
	struct made_graph made;
	struct pin_report report;
	struct result result;
	char *text;

	(void)state;
	make_graph(&made);
	pin_report_make(&made.graph, &report);
	result_init(&result);
	pin_report_put_largest(&report, &made.graph, &result, result.root);
	text = json_dumps(result.root, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	result_release(&result);
	made_graph_release(&made);
}

/* More functions than are kept: the largest three, the first of equals first. */
static void only_the_largest_are_kept(void **state)
{
	static const uint32_t sizes[] = {10, 30, 20, 30, 40, 5, 30};
	struct made_graph made;
	struct pin_report report;
	const struct pin_count *row;

	(void)state;
	made_graph_init(&made);
	made_graph_section(&made, 0x1000, 0x1000);
	for (uint32_t i = 0; i < 7; i++) {
		made_graph_block(&made, 0x1000 + i * 0x100, sizes[i], true, NULL);
		made.graph.functions.data[i].pins = 1u << PIN_USER;
	}
	pin_report_make(&made.graph, &report);
	row = &report.reasons[PIN_USER];
	assert_int_equal(row->functions, 7);
	assert_int_equal(row->largest[0], 4);
	assert_int_equal(row->largest[1], 1);
	assert_int_equal(row->largest[2], 3);
	made_graph_release(&made);
}

static void people_read_shares(void **state)
{
	struct made_graph made;
	struct pin_report report;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	assert_non_null(to);
	make_graph(&made);
	pin_report_make(&made.graph, &report);
	pin_report_print(&report, to);
	fclose(to);
	assert_string_equal(
		text, "movable: 1 of 5 functions (20.0 %), 100 of 207 code bytes (48.3 %)\n"
		      "  pinned, overlapping-code: 2 functions, 50 bytes\n"
		      "  pinned, unsolved-jump: 1 function, 30 bytes\n"
		      "  pinned, user: 1 function, 10 bytes\n"
		      "  pinned, joined: 1 function, 40 bytes\n"
		      "  not understood: 1 place, 7 bytes\n");
	free(text);
	made_graph_release(&made);
}

static void assert_names(const struct made_graph *made, uint32_t function,
			 const char *expected)
{
	char text[64];

	pin_names(&made->graph, function, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void names_of_a_functions_reasons(void **state)
{
	struct made_graph made;
	char text[20];

	(void)state;
	make_graph(&made);
	assert_names(&made, 0, "");
	assert_names(&made, 1, "overlapping-code");
	assert_names(&made, 2, "overlapping-code,unsolved-jump");
	assert_names(&made, 3, "unknown-bytes");
	assert_names(&made, 4, "joined");
	assert_names(&made, 5, "user");
	/* Cut, with its end in the buffer. */
	pin_names(&made.graph, 2, text, sizeof(text));
	assert_string_equal(text, "overlapping-code,un");
	made_graph_release(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_counted_by_reason),
		cmocka_unit_test(json_lists_what_there_is),
		cmocka_unit_test(the_largest_are_named),
		cmocka_unit_test(only_the_largest_are_kept),
		cmocka_unit_test(people_read_shares),
		cmocka_unit_test(names_of_a_functions_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
