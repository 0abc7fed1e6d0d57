#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/debug_directory.h"

enum { ROWS = 0x1000, CODEVIEW = 0x1100, CODEVIEW_OFFSET = 0x600 + 0x100 };

static void put_row(struct image_builder *b, uint32_t type, uint32_t size, uint32_t rva,
		    uint32_t offset)
{
	image_builder_u32(b, 0);
	image_builder_u32(b, 0x5eaf00d5);
	image_builder_u32(b, 0);
	image_builder_u32(b, type);
	image_builder_u32(b, size);
	image_builder_u32(b, rva);
	image_builder_u32(b, offset);
}

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".rdata", BUILT_CONST);
	put_row(b, DEBUG_TYPE_CODEVIEW, 0x20, CODEVIEW, CODEVIEW_OFFSET);
	put_row(b, DEBUG_TYPE_REPRO, 0, 0, 0);
	put_row(b, DEBUG_TYPE_CODEVIEW, 0x20, 0, CODEVIEW_OFFSET); /* not mapped */
	image_builder_align(b, 0x100);
	image_builder_string(b, "RSDS0123456789abcdef\1\2\3\4name.pdb");
	image_builder_align(b, 0x100);
	image_builder_directory(b, DIRECTORY_DEBUG, rva_of(ROWS), 3 * 28);
}

static enum status read_made(struct image_builder *b, struct built_image *built,
			     struct debug_directory *ret_debug)
{
	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(b);
	return debug_directory_read(&built->image, ret_debug, &built->diag);
}

static void entries_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct debug_directory debug;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, &built, &debug), STATUS_OK);
	assert_int_equal(debug.count, 3);
	assert_int_equal(debug.data[0].type, DEBUG_TYPE_CODEVIEW);
	assert_int_equal(debug.data[0].size, 0x20);
	assert_int_equal(debug.data[0].data.v, CODEVIEW);
	assert_int_equal(debug.data[0].data_off.v, CODEVIEW_OFFSET);
	assert_int_equal(debug.data[0].header.v, 0x600);
	assert_int_equal(debug.data[0].guid.v, CODEVIEW + 4);
	assert_memory_equal(image_bytes(&built.image, debug.data[0].guid, 16),
			    "0123456789abcdef", 16);
	assert_int_equal(debug.data[1].type, DEBUG_TYPE_REPRO);
	assert_int_equal(debug.data[1].guid.v, 0);
	assert_int_equal(debug.data[1].header.v, 0x600 + 28);
	assert_int_equal(debug.data[2].guid.v, 0);
	built_image_close(&built);
}

static void only_rsds_has_a_guid(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct debug_directory debug;

	(void)state;
	make(&b);
	memcpy(image_builder_at(&b, rva_of(CODEVIEW)), "NB10", 4);
	assert_int_equal(read_made(&b, &built, &debug), STATUS_OK);
	assert_int_equal(debug.data[0].guid.v, 0);
	built_image_close(&built);
	make(&b);
	store_u32(image_builder_at(&b, rva_of(ROWS + 16)), 19); /* cut off */
	assert_int_equal(read_made(&b, &built, &debug), STATUS_OK);
	assert_int_equal(debug.data[0].guid.v, 0);
	built_image_close(&built);
}

static enum status with_field(uint32_t offset, uint32_t v)
{
	struct image_builder b;
	struct built_image built;
	struct debug_directory debug;
	enum status status;

	make(&b);
	store_u32(image_builder_at(&b, rva_of(ROWS + offset)), v);
	status = read_made(&b, &built, &debug);
	built_image_close(&built);
	return status;
}

static void bad_directories_are_refused(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct debug_directory debug = {.count = 9};

	(void)state;
	assert_int_equal(with_field(16, 0xffffffff), STATUS_MALFORMED);
	assert_int_equal(with_field(16, 0x201), STATUS_MALFORMED);
	assert_int_equal(with_field(20, 0x1000000), STATUS_MALFORMED);
	assert_int_equal(with_field(24, 0x1000000), STATUS_MALFORMED);
	assert_int_equal(with_field(24, 0xfffffff0), STATUS_MALFORMED);
	make(&b);
	image_builder_directory(&b, DIRECTORY_DEBUG, rva_of(ROWS), 0xfffffff0);
	assert_int_equal(read_made(&b, &built, &debug), STATUS_MALFORMED);
	assert_int_equal(debug.count, 9);
	built_image_close(&built);
}

static void no_directory_is_no_error(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct debug_directory debug;

	(void)state;
	make(&b);
	image_builder_directory(&b, DIRECTORY_DEBUG, rva_of(0), 0);
	assert_int_equal(read_made(&b, &built, &debug), STATUS_OK);
	assert_int_equal(debug.count, 0);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read),
		cmocka_unit_test(only_rsds_has_a_guid),
		cmocka_unit_test(bad_directories_are_refused),
		cmocka_unit_test(no_directory_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
