#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/coff_symbols.h"

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 32);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_fill(b, 0, 32);
}

static void strings(struct image_builder *b, const void *text, uint32_t size)
{
	uint8_t head[4];

	store_u32(head, size + 4);
	for (int i = 0; i < 4; i++)
		assert_true(vec_push(&b->symbols, head[i]));
	for (uint32_t i = 0; i < size; i++)
		assert_true(vec_push(&b->symbols, ((const uint8_t *)text)[i]));
}

/* Makes the name of row `index` one of the string table. */
static void long_name(struct image_builder *b, uint32_t index, uint32_t offset)
{
	store_u32(b->symbols.data + (size_t)index * 18, 0);
	store_u32(b->symbols.data + (size_t)index * 18 + 4, offset);
}

static enum status read_made(struct image_builder *b, struct built_image *built,
			     struct coff_symbols *ret_symbols)
{
	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(b);
	return coff_symbols_read(&built->image, ret_symbols, &built->diag);
}

static void symbols_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct coff_symbols symbols;
	uint32_t table;

	(void)state;
	make(&b);
	image_builder_symbol(&b, "later", 8, 1, 0x20, 2, 0);
	image_builder_symbol(&b, "eight_ch", 4, 1, 0x20, 3, 1);
	image_builder_symbol(&b, "no_row", 4, 1, 0, 3, 0); /* auxiliary */
	image_builder_symbol(&b, "file", 0, 0xfffe, 0, 103, 0);
	image_builder_symbol(&b, "absolute", 7, 0xffff, 0, 2, 0);
	image_builder_symbol(&b, "nowhere", 0, 0, 0, 2, 0);
	image_builder_symbol(&b, "nosuch", 0, 3, 0, 2, 0);
	image_builder_symbol(&b, "", 4, 1, 0, 6, 0);
	long_name(&b, 7, 4);
	image_builder_symbol(&b, "end", 32, 2, 0, 3, 0);
	image_builder_symbol(&b, "beyond", 33, 2, 0, 3, 0);
	strings(&b, "a long name of a label", 23);
	assert_int_equal(read_made(&b, &built, &symbols), STATUS_OK);
	assert_int_equal(symbols.count, 4);
	table = built.image.headers.symbol_table.v;
	assert_string_equal(symbols.data[0].name, "eight_ch");
	assert_int_equal(symbols.data[0].rva.v, 0x1004);
	assert_int_equal(symbols.data[0].value.v, table + 18 + 8);
	assert_int_equal(symbols.data[0].section, 1);
	assert_int_equal(symbols.data[0].storage_class, 3);
	assert_true(symbols.data[0].is_function);
	assert_string_equal(symbols.data[1].name, "a long name of a label");
	assert_int_equal(symbols.data[1].rva.v, 0x1004);
	assert_false(symbols.data[1].is_function);
	assert_string_equal(symbols.data[2].name, "later");
	assert_int_equal(symbols.data[2].storage_class, 2);
	assert_string_equal(symbols.data[3].name, "end");
	assert_int_equal(symbols.data[3].rva.v, 0x2020);
	built_image_close(&built);
}

static void no_table_is_no_error(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct coff_symbols symbols;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, &built, &symbols), STATUS_OK);
	assert_int_equal(symbols.count, 0);
	built_image_close(&built);
}

static const char *name_with_offset(struct built_image *built, uint32_t offset)
{
	struct image_builder b;
	struct coff_symbols symbols;

	make(&b);
	image_builder_symbol(&b, "", 0, 1, 0, 2, 0);
	long_name(&b, 0, offset);
	strings(&b, "one\0endless", 11);
	assert_int_equal(read_made(&b, built, &symbols), STATUS_OK);
	assert_int_equal(symbols.count, 1);
	return symbols.data[0].name;
}

static void bad_names_are_question_marks(void **state)
{
	static const struct {
		uint32_t offset;
		const char *name;
	} names[] = {{4, "one"}, {7, ""},        {8, "?"}, {0, "?"},
		     {3, "?"},   {15, "?"}, {0xffffffff, "?"}};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct built_image built;

		assert_string_equal(name_with_offset(&built, names[i].offset),
				    names[i].name);
		built_image_close(&built);
	}
}

static void a_table_out_of_the_file_is_refused(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct coff_symbols symbols = {.count = 9};

	(void)state;
	make(&b);
	image_builder_symbol(&b, "one", 0, 1, 0, 2, 0);
	b.symbol_count = 2;
	assert_int_equal(read_made(&b, &built, &symbols), STATUS_MALFORMED);
	built.image.headers.symbol_count = 0xffffffff;
	assert_int_equal(coff_symbols_read(&built.image, &symbols, &built.diag),
			 STATUS_MALFORMED);
	built.image.headers.symbol_count = 1;
	built.image.headers.symbol_table = file_off_of(0xfffffff0);
	assert_int_equal(coff_symbols_read(&built.image, &symbols, &built.diag),
			 STATUS_MALFORMED);
	assert_int_equal(symbols.count, 9);
	built_image_close(&built);
}

/* Auxiliary rows that the table does not have end it; no strings at all. */
static void odd_ends_are_accepted(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct coff_symbols symbols;

	(void)state;
	make(&b);
	image_builder_symbol(&b, "", 0, 1, 0, 2, 255);
	long_name(&b, 0, 4);
	assert_int_equal(read_made(&b, &built, &symbols), STATUS_OK);
	assert_int_equal(symbols.count, 1);
	assert_string_equal(symbols.data[0].name, "?");
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_are_read),
		cmocka_unit_test(no_table_is_no_error),
		cmocka_unit_test(bad_names_are_question_marks),
		cmocka_unit_test(a_table_out_of_the_file_is_refused),
		cmocka_unit_test(odd_ends_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
