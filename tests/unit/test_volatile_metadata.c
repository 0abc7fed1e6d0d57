#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/volatile_metadata.h"

/* In .rdata, at 0x1000: the structure, three accesses, two ranges. */
enum { METADATA = 0x1000, ACCESSES = METADATA + 24, RANGES = ACCESSES + 12 };

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".rdata", BUILT_CONST);
	image_builder_u32(b, 24);
	image_builder_u32(b, 0x80038003);
	image_builder_u32(b, ACCESSES);
	image_builder_u32(b, 12);
	image_builder_u32(b, RANGES);
	image_builder_u32(b, 16);
	image_builder_u32(b, 0x1010);
	image_builder_u32(b, 0x1020);
	image_builder_u32(b, 0x1030);
	image_builder_u32(b, 0x1008);
	image_builder_u32(b, 0x20);
	image_builder_u32(b, 0x1028);
	image_builder_u32(b, 0x10);
}

static enum status read_made(struct image_builder *b, struct built_image *built,
			     struct volatile_metadata *ret_metadata)
{
	struct load_config config = {.volatile_metadata = rva_of(METADATA)};

	built_image_open(built, b);
	image_builder_release(b);
	assert_int_equal(built->status, STATUS_OK);
	return volatile_metadata_read(&built->image, &config, ret_metadata, &built->diag);
}

static void tables_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct volatile_metadata m;
	struct rva begin, end;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, &built, &m), STATUS_OK);
	assert_int_equal(m.rva.v, METADATA);
	assert_int_equal(m.ranges_size.v, METADATA + 20);
	assert_int_equal(m.accesses.v, ACCESSES);
	assert_int_equal(m.access_count, 3);
	assert_int_equal(volatile_access(&built.image, &m, 2).v, 0x1030);
	assert_int_equal(m.range_count, 2);
	volatile_range(&built.image, &m, 1, &begin, &end);
	assert_int_equal(begin.v, 0x1028);
	assert_int_equal(end.v, 0x1038);
	built_image_close(&built);
}

static void there_may_be_none(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct volatile_metadata m = {.access_count = 9};
	struct load_config config = {0};

	(void)state;
	make(&b);
	/* Without tables: of an image without code of MSVC. */
	memset(image_builder_at(&b, rva_of(METADATA + 8)), 0, 16);
	assert_int_equal(read_made(&b, &built, &m), STATUS_OK);
	assert_int_equal(m.rva.v, METADATA);
	assert_int_equal(m.access_count, 0);
	assert_int_equal(m.range_count, 0);
	assert_int_equal(volatile_metadata_read(&built.image, &config, &m, &built.diag),
			 STATUS_OK);
	assert_int_equal(m.rva.v, 0);
	built_image_close(&built);
}

static void refused(uint32_t offset, uint32_t v, enum status expected)
{
	struct image_builder b;
	struct built_image built;
	struct volatile_metadata m = {.access_count = 9};

	make(&b);
	store_u32(image_builder_at(&b, rva_of(METADATA + offset)), v);
	if (read_made(&b, &built, &m) != expected)
		fail_msg("0x%x at 0x%x", v, offset);
	assert_int_equal(m.access_count, 9);
	built_image_close(&built);
}

static void bad_tables_are_refused(void **state)
{
	(void)state;
	refused(0, 23, STATUS_UNSUPPORTED);
	refused(0, 28, STATUS_UNSUPPORTED);
	refused(8, 0x2000, STATUS_MALFORMED);
	refused(12, 13, STATUS_MALFORMED);
	refused(12, 0xfffffffc, STATUS_MALFORMED);
	refused(16, METADATA + 1, STATUS_MALFORMED); /* rows that do not ascend */
	refused(20, 12, STATUS_MALFORMED);
	refused(20, 0xfffffff8, STATUS_MALFORMED);
	refused(28, 0x100f, STATUS_MALFORMED);     /* an access before the first */
	refused(32, 0x2000, STATUS_MALFORMED);     /* in no section */
	refused(40, 0x21, STATUS_MALFORMED);       /* ranges that overlap */
	refused(44, 0x1000, STATUS_MALFORMED);     /* the second before the first */
	refused(48, 0xfffffff0, STATUS_MALFORMED); /* behind the image */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_read),
		cmocka_unit_test(there_may_be_none),
		cmocka_unit_test(bad_tables_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
