#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/scope_table.h"

static enum status read_words(const uint32_t *words, size_t count,
			      struct built_image *built, struct scope_table *ret_table)
{
	struct image_builder b;
	struct rva rva;

	image_builder_init(&b);
	rva = image_builder_section(&b, ".xdata", BUILT_CONST);
	for (size_t i = 0; i < count; i++)
		image_builder_u32(&b, words[i]);
	built_image_open(built, &b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&b);
	return scope_table_read(&built->image, &built->image.arena, rva, ret_table,
				&built->diag);
}

static void records_are_read(void **state)
{
	static const uint32_t words[] = {2, 0x10, 0x20, 1, 0x30, 0x11, 0x21, 0x31, 0};
	struct built_image built;
	struct scope_table table;

	(void)state;
	assert_int_equal(read_words(words, 9, &built, &table), STATUS_OK);
	assert_int_equal(table.count, 2);
	assert_int_equal(table.data[0].begin.v, 0x10);
	assert_int_equal(table.data[0].end.v, 0x20);
	assert_int_equal(table.data[0].handler.v, SCOPE_HANDLER_EXECUTE);
	assert_int_equal(table.data[0].target.v, 0x30);
	assert_int_equal(table.data[0].site.v, 0x1004);
	assert_int_equal(table.data[1].handler.v, 0x31);
	assert_int_equal(table.data[1].target.v, 0);
	assert_int_equal(table.data[1].site.v, 0x1014);
	built_image_close(&built);
}

static void tables_that_do_not_fit_are_refused(void **state)
{
	static const uint32_t counts[] = {1, 0x10000000, 0x10000001, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t words[] = {counts[i], 1, 2, 3};
		struct built_image built;
		struct scope_table table = {.count = 9};

		assert_int_equal(read_words(words, 4, &built, &table), STATUS_MALFORMED);
		assert_int_equal(table.count, 9);
		assert_int_equal(scope_table_read(&built.image, &built.image.arena,
						  rva_of(0x5000), &table,
						  &built.diag),
				 STATUS_MALFORMED);
		built_image_close(&built);
	}
}

static void empty_tables_are_accepted(void **state)
{
	static const uint32_t words[] = {0};
	struct built_image built;
	struct scope_table table;

	(void)state;
	assert_int_equal(read_words(words, 1, &built, &table), STATUS_OK);
	assert_int_equal(table.count, 0);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_read),
		cmocka_unit_test(tables_that_do_not_fit_are_refused),
		cmocka_unit_test(empty_tables_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
