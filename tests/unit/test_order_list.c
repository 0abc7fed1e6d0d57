#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../../reorder/order_list.h"
#include "made_graph.h"

enum { STRIDE = 64, SIZE = 32 };

/* The list of a graph whose functions bear `names`, in the sequence of `ids`. */
static void check_list(const char *const *names, uint32_t count, const uint32_t *ids,
		       uint32_t id_count, enum order_format format, const char *expected,
		       struct order_list_counts wanted)
{
	struct function_order order = {0};
	struct order_list_counts counts = {0};
	struct made_graph made;
	size_t size = 0;
	char *text;

	made_graph_init(&made);
	made_graph_section(&made, 0x1000, count * STRIDE);
	for (uint32_t i = 0; i < count; i++)
		made_graph_block(&made, 0x1000 + STRIDE * i, SIZE, false, names[i]);
	for (uint32_t i = 0; i < id_count; i++)
		assert_true(vec_push(&order.functions, ids[i]));
	text = order_list_text(&made.graph, &order, format, &counts, &size);
	assert_non_null(text);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
	assert_int_equal(counts.named, wanted.named);
	assert_int_equal(counts.ambiguous, wanted.ambiguous);
	assert_int_equal(counts.unnamed, wanted.unnamed);
	free(text);
	function_order_release(&order);
	made_graph_release(&made);
}

static void test_one_name_a_line(void **state)
{
	static const char *const names[] = {"main", "?f@@YAXXZ", NULL, "_ZN1a1bEv"};
	static const uint32_t ids[] = {3, 2, 0, 1};

	(void)state;
	for (enum order_format format = ORDER_FORMAT_MSVC; format <= ORDER_FORMAT_LLD;
	     format++)
		check_list(names, 4, ids, 4, format, "_ZN1a1bEv\nmain\n?f@@YAXXZ\n",
			   (struct order_list_counts){.named = 3, .unnamed = 1});
}

static void test_sections_of_a_script(void **state)
{
	static const char *const names[] = {"main", "f.cold", "a b", "x*", "\"q\""};
	static const uint32_t ids[] = {1, 0, 2, 3, 4};

	(void)state;
	check_list(names, 5, ids, 5, ORDER_FORMAT_GNU_LD,
		   "*(.text$f.cold .text.*$f.cold)\n*(.text$main .text.*$main)\n",
		   (struct order_list_counts){.named = 2, .unnamed = 3});
}

static void test_static_functions_of_one_name(void **state)
{
	static const char *const names[] = {"init", "main", "init", "init"};
	static const uint32_t ids[] = {2, 1, 0};

	(void)state;
	check_list(names, 4, ids, 3, ORDER_FORMAT_MSVC, "init\nmain\n",
		   (struct order_list_counts){.named = 1, .ambiguous = 2});
}

static void test_names_that_are_no_line(void **state)
{
	static const char *const names[] = {"",    "a\nb",  "#a",   ";a",
					    "a b", "tab\t", "\x7f", "a;"};
	static const char *const numbers[] = {"0x1000", "0X", "0", "x0x1"};
	static const uint32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7};

	(void)state;
	check_list(names, 8, ids, 8, ORDER_FORMAT_LLD, "a;\n",
		   (struct order_list_counts){.named = 1, .unnamed = 7});
	/* They would be addresses in an order file; a script has no such words. */
	check_list(numbers, 4, ids, 4, ORDER_FORMAT_MSVC, "0\nx0x1\n",
		   (struct order_list_counts){.named = 2, .unnamed = 2});
	check_list(numbers, 1, ids, 1, ORDER_FORMAT_GNU_LD,
		   "*(.text$0x1000 .text.*$0x1000)\n",
		   (struct order_list_counts){.named = 1});
}

static void test_nothing_touched(void **state)
{
	static const char *const names[] = {"main"};

	(void)state;
	for (unsigned format = 0; format < ORDER_FORMAT_COUNT; format++)
		check_list(names, 1, NULL, 0, (enum order_format)format, "",
			   (struct order_list_counts){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_name_a_line),
		cmocka_unit_test(test_sections_of_a_script),
		cmocka_unit_test(test_static_functions_of_one_name),
		cmocka_unit_test(test_names_that_are_no_line),
		cmocka_unit_test(test_nothing_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
