#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

static const struct table_column columns[] = {
	{"name", TABLE_LEFT}, {"size", TABLE_RIGHT}, {"why", TABLE_LEFT}};

/* Prints the table and compares. */
static void check(struct table *table, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	struct diag diag;

	assert_non_null(to);
	assert_int_equal(table_print(table, to, &diag), STATUS_OK);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, expected);
	free(text);
	table_release(table);
}

static void aligns_columns_under_their_titles(void **state)
{
	struct table table;

	(void)state;
	table_init(&table, columns, 3);
	table_cell(&table, "main");
	table_cell(&table, "%d", 7);
	table_cell(&table, "hot");
	table_cell(&table, "a longer one");
	table_cell(&table, "%s", "12,345");
	table_cell(&table, "x");
	check(&table, "name            size  why\n"
		      "------------  ------  ---\n"
		      "main               7  hot\n"
		      "a longer one  12,345  x\n");
}

static void titles_widen_columns_too(void **state)
{
	struct table table;

	(void)state;
	table_init(&table, columns, 3);
	table_cell(&table, "f");
	table_cell(&table, "1");
	table_cell(&table, "p");
	check(&table, "name  size  why\n"
		      "----  ----  ---\n"
		      "f        1  p\n");
}

static void lines_have_no_spaces_at_their_end(void **state)
{
	struct table table;

	(void)state;
	table_init(&table, columns, 3);
	table_cell(&table, "f");
	table_cell(&table, "%s", "");
	table_cell(&table, "%s", "");
	table_cell(&table, "%s", "");
	table_cell(&table, "%s", "");
	table_cell(&table, "p");
	table_cell(&table, "g");
	check(&table, "name  size  why\n"
		      "----  ----  ---\n"
		      "f\n"
		      "            p\n"
		      "g\n");
}

static void without_titles_there_is_no_header(void **state)
{
	static const struct table_column plain[] = {{NULL, TABLE_LEFT},
						    {NULL, TABLE_RIGHT}};
	struct table table;

	(void)state;
	table_init(&table, plain, 2);
	table_cell(&table, "pages");
	table_cell(&table, "175");
	table_cell(&table, "floor");
	table_cell(&table, "87");
	check(&table, "pages  175\n"
		      "floor   87\n");
	table_init(&table, plain, 2);
	check(&table, "");
}

static void counts_letters_not_bytes(void **state)
{
	static const struct table_column plain[] = {{NULL, TABLE_LEFT}, {NULL, TABLE_LEFT}};
	struct table table;

	(void)state;
	table_init(&table, plain, 2);
	table_cell(&table, "%s", "\xc3\xa9t\xc3\xa9");
	table_cell(&table, "x");
	table_cell(&table, "abcd");
	table_cell(&table, "y");
	check(&table, "\xc3\xa9t\xc3\xa9   x\n"
		      "abcd  y\n");
}

/* A symbol name must not drive the terminal or break the line. */
static void controls_are_not_obeyed(void **state)
{
	static const struct table_column plain[] = {{NULL, TABLE_LEFT}};
	struct table table;

	(void)state;
	table_init(&table, plain, 1);
	table_cell(&table, "%s", "a\033[31m\nb\xff");
	check(&table, "a?[31m?b?\n");
}

static void running_out_of_memory_is_told(void **state)
{
	struct table table;
	struct diag diag;

	(void)state;
	table_init(&table, columns, 3);
	table.failed = true;
	assert_int_equal(table_print(&table, stdout, &diag), STATUS_NO_MEMORY);
	table_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aligns_columns_under_their_titles),
		cmocka_unit_test(titles_widen_columns_too),
		cmocka_unit_test(lines_have_no_spaces_at_their_end),
		cmocka_unit_test(without_titles_there_is_no_header),
		cmocka_unit_test(counts_letters_not_bytes),
		cmocka_unit_test(controls_are_not_obeyed),
		cmocka_unit_test(running_out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
