#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/rich_header.h"

enum { LIST = 0x40, ROWS = 3 };

static const uint32_t rows[ROWS][2] = {
	{261u << 16 | 35207, 108}, /* C++ of Visual Studio 2015 and later */
	{1u << 16, 446},           /* imports */
	{258u << 16 | 35227, 1},   /* the linker */
};

/* One step of rotation at a time, as the rule is told. */
static uint32_t turned(uint32_t v, uint32_t steps)
{
	while (steps--)
		v = v * 2 + (v > INT32_MAX);
	return v;
}

static uint32_t key_of(const uint8_t *bytes)
{
	uint32_t key = LIST;

	for (uint32_t i = 0; i < LIST; i++)
		key += i >= 0x3c ? 0 : turned(bytes[i], i);
	for (unsigned i = 0; i < ROWS; i++)
		key += turned(rows[i][0], rows[i][1]);
	return key;
}

static uint8_t *make(size_t *ret_size, uint32_t *ret_key)
{
	struct image_builder b;
	uint8_t *bytes, *at;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 16);
	bytes = image_builder_finish(&b, ret_size);
	image_builder_release(&b);
	*ret_key = key_of(bytes);
	at = bytes + LIST;
	for (unsigned i = 0; i < 4; i++)
		store_u32(at + 4 * i, (i ? 0 : 0x536e6144) ^ *ret_key);
	for (unsigned i = 0; i < 2 * ROWS; i++)
		store_u32(at + 16 + 4 * i, rows[i / 2][i % 2] ^ *ret_key);
	store_u32(at + 16 + 8 * ROWS, 0x68636952);
	store_u32(at + 20 + 8 * ROWS, *ret_key);
	return bytes;
}

static void read_it(uint8_t *bytes, size_t size, struct image *image,
		    struct rich_header *ret_rich)
{
	assert_int_equal(image_open_bytes(image, bytes, size, "made", NULL), STATUS_OK);
	assert_int_equal(rich_header_read(image, ret_rich, NULL), STATUS_OK);
}

static void rows_are_read(void **state)
{
	size_t size;
	uint32_t key;
	uint8_t *bytes = make(&size, &key);
	struct image image;
	struct rich_header rich;

	(void)state;
	read_it(bytes, size, &image, &rich);
	assert_int_equal(rich.count, ROWS);
	assert_true(rich.intact);
	assert_int_equal(rich.entries[0].product, 261);
	assert_int_equal(rich.entries[0].build, 35207);
	assert_int_equal(rich.entries[0].count, 108);
	assert_int_equal(rich.entries[2].product, 258);
	image_release(&image);
	free(bytes);
}

static void a_changed_byte_shows(void **state)
{
	size_t size;
	uint32_t key;
	uint8_t *bytes = make(&size, &key);
	struct image image;
	struct rich_header rich;

	(void)state;
	bytes[LIST + 16 + 4] ^= 1;
	read_it(bytes, size, &image, &rich);
	assert_int_equal(rich.count, ROWS);
	assert_false(rich.intact);
	image_release(&image);
	free(bytes);
}

static void without_its_begin_it_is_none(void **state)
{
	size_t size;
	uint32_t key;
	uint8_t *bytes = make(&size, &key);
	struct image image;
	struct rich_header rich;

	(void)state;
	store_u32(bytes + LIST, 0);
	read_it(bytes, size, &image, &rich);
	assert_int_equal(rich.count, 0);
	image_release(&image);
	free(bytes);
}

/* The sequence of names in enum PRODID (msobj140-msvcrt.lib). */
static void products_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(rich_tool_of(0), RICH_UNMARKED);
	assert_int_equal(rich_tool_of(1), RICH_IMPORTS);
	assert_int_equal(rich_tool_of(0x6d), RICH_C);
	assert_int_equal(rich_tool_of(0x6e), RICH_CPP);
	assert_int_equal(rich_tool_of(0x78), RICH_LINKER);
	assert_int_equal(rich_tool_of(0x7d), RICH_ASSEMBLER);
	assert_int_equal(rich_tool_of(0x83), RICH_C);
	assert_int_equal(rich_tool_of(0xaa), RICH_C);
	assert_int_equal(rich_tool_of(0xab), RICH_CPP);
	assert_int_equal(rich_tool_of(0xce), RICH_C);
	assert_int_equal(rich_tool_of(0xe0), RICH_C);
	assert_int_equal(rich_tool_of(0xff), RICH_RESOURCES);
	assert_int_equal(rich_tool_of(0x100), RICH_OTHER);
	assert_int_equal(rich_tool_of(0x102), RICH_LINKER);
	assert_int_equal(rich_tool_of(0x103), RICH_ASSEMBLER);
	assert_int_equal(rich_tool_of(0x104), RICH_C);
	assert_int_equal(rich_tool_of(0x105), RICH_CPP);
	assert_int_equal(rich_tool_of(0x108), RICH_LTCG_C);
	assert_int_equal(rich_tool_of(0x109), RICH_LTCG_CPP);
	assert_int_equal(rich_tool_of(0x10a), RICH_OTHER);
	assert_int_equal(rich_tool_of(0x10e), RICH_POGO_CPP);
	assert_int_equal(rich_tool_of(0x10f), RICH_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(a_changed_byte_shows),
		cmocka_unit_test(without_its_begin_it_is_none),
		cmocka_unit_test(products_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
