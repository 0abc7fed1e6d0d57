#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/unwind_info.h"

/* 0x100 bytes of code at 0x1000, unwind information at 0x2000, a function table
 * at 0x3000. */
enum { CODE = 0x1000, XDATA = 0x2000, PDATA = 0x3000 };

static void begin(struct image_builder *b, const void *xdata, size_t size)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 0x100);
	image_builder_section(b, ".xdata", BUILT_CONST);
	image_builder_put(b, xdata, size);
	image_builder_section(b, ".pdata", BUILT_CONST);
}

static void row(struct image_builder *b, uint32_t from, uint32_t to, uint32_t unwind)
{
	image_builder_u32(b, from);
	image_builder_u32(b, to);
	image_builder_u32(b, unwind);
}

static enum status read_table(struct image_builder *b, struct built_image *built,
			      struct function_table *ret_table)
{
	uint32_t size = image_builder_here(b).v - PDATA;

	image_builder_directory(b, DIRECTORY_EXCEPTION, rva_of(PDATA), size);
	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(b);
	return function_table_read(&built->image, ret_table, &built->diag);
}

static const uint8_t plain[] = {0x01, 0, 0, 0}; /* version 1, nothing */

static void rows_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct function_table table;

	(void)state;
	begin(&b, plain, sizeof(plain));
	row(&b, CODE, CODE + 0x10, XDATA);
	row(&b, CODE + 0x10, CODE + 0x10, XDATA); /* of no length */
	row(&b, CODE + 0x20, CODE + 0x100, XDATA);
	row(&b, 0, 0, 0); /* padding */
	row(&b, 0, 0, 0);
	assert_int_equal(read_table(&b, &built, &table), STATUS_OK);
	assert_int_equal(table.count, 3);
	assert_int_equal(table.data[1].begin.v, CODE + 0x10);
	assert_int_equal(table.data[1].end.v, CODE + 0x10);
	assert_int_equal(table.data[2].begin.v, CODE + 0x20);
	assert_int_equal(table.data[2].end.v, CODE + 0x100);
	assert_int_equal(table.data[2].unwind.v, XDATA);
	assert_int_equal(table.data[2].site.v, PDATA + 24);
	built_image_close(&built);
}

static void no_table_is_no_error(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct function_table table = {.count = 9};

	(void)state;
	begin(&b, plain, sizeof(plain));
	assert_int_equal(read_table(&b, &built, &table), STATUS_OK);
	assert_int_equal(table.count, 0);
	built_image_close(&built);
}

static void bad_rows_are_refused(void **state)
{
	static const struct {
		uint32_t begin, end, unwind;
		enum status status;
	} bad[] = {
		{CODE + 0x0f, CODE + 0x20, XDATA, STATUS_MALFORMED}, /* overlaps */
		{CODE, CODE + 0x10, XDATA, STATUS_MALFORMED},        /* again */
		{CODE + 0x30, CODE + 0x20, XDATA, STATUS_MALFORMED}, /* backwards */
		{CODE + 0x30, CODE + 0x101, XDATA, STATUS_MALFORMED},
		{CODE + 0x100, CODE + 0x101, XDATA, STATUS_MALFORMED},
		{CODE + 0x30, PDATA + 4, XDATA, STATUS_MALFORMED},
		{0xffffff00, 0xffffffff, XDATA, STATUS_MALFORMED},
		{CODE + 0x30, CODE + 0x40, XDATA + 1, STATUS_UNSUPPORTED},
		{CODE + 0x30, CODE + 0x40, XDATA + 2, STATUS_MALFORMED}, /* cut off */
		{CODE + 0x30, CODE + 0x40, 0, STATUS_MALFORMED},
		{CODE + 0x30, CODE + 0x40, 0xfffffff0, STATUS_MALFORMED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct image_builder b;
		struct built_image built;
		struct function_table table = {.count = 9};
		enum status status;

		begin(&b, plain, sizeof(plain));
		row(&b, CODE, CODE + 0x10, XDATA);
		row(&b, bad[i].begin, bad[i].end, bad[i].unwind);
		status = read_table(&b, &built, &table);
		if (status != bad[i].status)
			fail_msg("row %zu: %s", i, status_name(status));
		assert_int_equal(table.count, 9);
		built_image_close(&built);
	}
}

static void a_table_out_of_the_file_is_refused(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct function_table table;

	(void)state;
	begin(&b, plain, sizeof(plain));
	row(&b, CODE, CODE + 0x10, XDATA);
	image_builder_directory(&b, DIRECTORY_EXCEPTION, rva_of(PDATA), 24);
	built_image_open(&built, &b);
	assert_int_equal(function_table_read(&built.image, &table, &built.diag),
			 STATUS_MALFORMED);
	built.image.directories[DIRECTORY_EXCEPTION].size = 0xfffffffc;
	assert_int_equal(function_table_read(&built.image, &table, &built.diag),
			 STATUS_MALFORMED);
	built_image_close(&built);
	image_builder_release(&b);
}

static enum status read_info(const void *xdata, size_t size, struct unwind_info *ret_info)
{
	struct image_builder b;
	struct built_image built;
	enum status status;

	begin(&b, xdata, size);
	built_image_open(&built, &b);
	status = unwind_info_read(&built.image, rva_of(XDATA), ret_info, &built.diag);
	built_image_close(&built);
	image_builder_release(&b);
	return status;
}

static void handlers_are_read(void **state)
{
	/* Three codes, which take four slots, a handler, its data. */
	static const uint8_t xdata[] = {0x19, 7, 3, 0, 1, 2, 3, 4, 5,    6,   0xff,
					0xff, 0, 0x34, 0x12, 0, 0, 0xdd, 0xdd};
	struct unwind_info info;

	(void)state;
	assert_int_equal(read_info(xdata, sizeof(xdata), &info), STATUS_OK);
	assert_int_equal(info.rva.v, XDATA);
	assert_int_equal(info.version, 1);
	assert_int_equal(info.flags, UNWIND_EHANDLER | UNWIND_UHANDLER);
	assert_int_equal(info.prolog_size, 7);
	assert_int_equal(info.code_count, 3);
	assert_int_equal(info.handler_site.v, XDATA + 12);
	assert_int_equal(info.handler.v, 0x123400);
	assert_int_equal(info.handler_data.v, XDATA + 16);
	assert_int_equal(info.size, 16);
	for (size_t size = 0; size < 16; size++)
		assert_int_equal(read_info(xdata, size ? size : 1, &info),
				 STATUS_MALFORMED);
}

static void plain_and_chained_are_read(void **state)
{
	static const uint8_t none[] = {0x02, 0, 2, 0, 1, 2, 3, 4};
	static const uint8_t chained[] = {0x21, 0, 0, 0, 0x00, 0x10, 0, 0, 0x10, 0x10,
					  0,    0, 8, 0x20, 0, 0};
	struct unwind_info info;

	(void)state;
	assert_int_equal(read_info(none, sizeof(none), &info), STATUS_OK);
	assert_int_equal(info.version, 2);
	assert_int_equal(info.flags, 0);
	assert_int_equal(info.size, 8);
	assert_int_equal(read_info(chained, sizeof(chained), &info), STATUS_OK);
	assert_int_equal(info.flags, UNWIND_CHAININFO);
	assert_int_equal(info.chained.begin.v, 0x1000);
	assert_int_equal(info.chained.end.v, 0x1010);
	assert_int_equal(info.chained.unwind.v, 0x2008);
	assert_int_equal(info.chained.site.v, XDATA + 4);
	assert_int_equal(info.size, 16);
	assert_int_equal(read_info(chained, 15, &info), STATUS_MALFORMED);
}

static void unknown_forms_are_refused(void **state)
{
	/* Versions 0 and 3, chained with a handler, an unknown flag. */
	static const uint8_t firsts[] = {0x00, 0x03, 0x29, 0x31, 0x41, 0x81};
	uint8_t xdata[32] = {0};
	struct unwind_info info;

	(void)state;
	for (size_t i = 0; i < sizeof(firsts); i++) {
		xdata[0] = firsts[i];
		assert_int_equal(read_info(xdata, sizeof(xdata), &info), STATUS_MALFORMED);
	}
}

/* `length` chained pieces of 16 bytes; the last leads to `last`. */
static enum status read_chain(uint32_t length, uint32_t last)
{
	struct image_builder b;
	struct built_image built;
	struct function_table table;
	enum status status;

	begin(&b, "", 0);
	b.section_count--; /* .pdata comes later */
	for (uint32_t i = 0; i < length; i++) {
		image_builder_u32(&b, 0x21);
		row(&b, CODE, CODE + 0x10,
		    i + 1 < length ? XDATA + (i + 1) * 16 : XDATA + last * 16);
	}
	image_builder_u32(&b, 0x01);
	image_builder_section(&b, ".pdata", BUILT_CONST);
	row(&b, CODE, CODE + 0x10, XDATA);
	status = read_table(&b, &built, &table);
	built_image_close(&built);
	return status;
}

static void chains_are_followed_to_their_end(void **state)
{
	(void)state;
	assert_int_equal(read_chain(1, 1), STATUS_OK);
	assert_int_equal(read_chain(UNWIND_CHAIN_MAX, UNWIND_CHAIN_MAX), STATUS_OK);
	assert_int_equal(read_chain(UNWIND_CHAIN_MAX + 1, UNWIND_CHAIN_MAX + 1),
			 STATUS_MALFORMED);
	assert_int_equal(read_chain(1, 0), STATUS_MALFORMED); /* to itself */
	assert_int_equal(read_chain(3, 1), STATUS_MALFORMED); /* a circle */
	assert_int_equal(read_chain(1, 0x1000), STATUS_MALFORMED);
}

/* Codes, as 16-bit words behind the header, and the stack that they take. */
static enum status frame_size(uint8_t version, const char *codes, size_t size,
			      uint64_t *ret_size)
{
	uint8_t bytes[64] = {version, 0, (uint8_t)(size / 2), 0};
	struct image_builder b;
	struct built_image built;
	struct unwind_info info;
	enum status status;

	memcpy(bytes + 4, codes, size);
	begin(&b, bytes, sizeof(bytes));
	row(&b, CODE, CODE + 0x10, XDATA);
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	image_builder_release(&b);
	assert_int_equal(unwind_info_read(&built.image, rva_of(XDATA), &info, &built.diag),
			 STATUS_OK);
	status = unwind_info_frame_size(&built.image, &info, ret_size, &built.diag);
	built_image_close(&built);
	return status;
}

#define FRAME(version, codes, ret) frame_size(version, codes, sizeof(codes) - 1, ret)

static void frames_are_measured(void **state)
{
	uint64_t size;

	(void)state;
	assert_int_equal(FRAME(1, "\x08\x42\x04\x30\x02\x60", &size), STATUS_OK);
	assert_int_equal(size, 5 * 8 + 8 + 8); /* an allocation, two pushes */
	assert_int_equal(FRAME(1, "\x08\x01\x20\x00", &size), STATUS_OK);
	assert_int_equal(size, 0x20 * 8);
	assert_int_equal(FRAME(1, "\x08\x11\x10\x00\x02\x00", &size), STATUS_OK);
	assert_int_equal(size, 0x20010);
	assert_int_equal(FRAME(1, "\x08\x03\x08\x34\x06\x00\x08\x65\0\0\0\0", &size),
			 STATUS_OK);
	assert_int_equal(size, 0); /* a frame register, two saved registers */
	assert_int_equal(FRAME(1, "\x08\x68\x06\x00\x08\x79\0\0\0\0", &size), STATUS_OK);
	assert_int_equal(FRAME(1, "\x00\x1a", &size), STATUS_OK);
	assert_int_equal(size, 48); /* a machine frame with an error code */
	assert_int_equal(FRAME(2, "\x05\x16\x00\x06\x04\x42", &size), STATUS_OK);
	assert_int_equal(size, 40); /* two epilogs */
}

static void unknown_codes_are_told(void **state)
{
	uint64_t size;

	(void)state;
	assert_int_equal(FRAME(1, "\x05\x06", &size), STATUS_UNSUPPORTED);
	assert_int_equal(FRAME(2, "\x05\x07\0\0\0\0", &size), STATUS_UNSUPPORTED);
	assert_int_equal(FRAME(1, "\x05\x0b", &size), STATUS_UNSUPPORTED);
	assert_int_equal(FRAME(1, "\x08\x01", &size), STATUS_UNSUPPORTED); /* cut off */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(no_table_is_no_error),
		cmocka_unit_test(bad_rows_are_refused),
		cmocka_unit_test(a_table_out_of_the_file_is_refused),
		cmocka_unit_test(handlers_are_read),
		cmocka_unit_test(plain_and_chained_are_read),
		cmocka_unit_test(unknown_forms_are_refused),
		cmocka_unit_test(chains_are_followed_to_their_end),
		cmocka_unit_test(frames_are_measured),
		cmocka_unit_test(unknown_codes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
