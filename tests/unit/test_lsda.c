#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/lsda.h"

/* A function of FUNCTION_SIZE bytes at CODE, another section behind it, and the
 * table at DATA. */
enum { CODE = 0x1000, FUNCTION_SIZE = 0x300, COLD = 0x2000, DATA = 0x3000 };

static enum status read_table(const void *bytes, size_t size, struct built_image *built,
			      struct lsda *ret_lsda)
{
	struct image_builder b;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x400);
	image_builder_section(&b, ".cold", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x100);
	image_builder_section(&b, ".xdata", BUILT_CONST);
	image_builder_put(&b, bytes, size);
	built_image_open(built, &b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&b);
	return lsda_read(&built->image, &built->image.arena, rva_of(DATA), rva_of(CODE),
			 FUNCTION_SIZE, ret_lsda, NULL, &built->diag);
}

/* As GCC and clang write them for mingw: uleb128 fields, a type table. */
static const uint8_t good[] = {
	0xff, 0x9b, 0x1d, 0x01, 15,
	0x05, 0x05, 0x00, 0x00,             /* 5..10: none */
	0x0a, 0x10, 0xd2, 0x01, 0x01,       /* 10..26: at 0xd2 */
	0xc0, 0x02, 0x03, 0xf0, 0x04, 0x00, /* 0x140..0x143: at 0x270 */
	0x7f, 0x00, 0x7d, 0x00,             /* actions */
};

static void usual_tables_are_read(void **state)
{
	struct built_image built;
	struct lsda lsda;

	(void)state;
	assert_int_equal(read_table(good, sizeof(good), &built, &lsda), STATUS_OK);
	assert_false(lsda.has_lp_start);
	assert_int_equal(lsda.lp_start_encoding, 0xff);
	assert_int_equal(lsda.lp_start.v, CODE);
	assert_int_equal(lsda.call_site_encoding, 1);
	assert_int_equal(lsda.size, 20);
	assert_int_equal(lsda.site_count, 2);
	assert_int_equal(lsda.sites[0].begin, 10);
	assert_int_equal(lsda.sites[0].size, 16);
	assert_true(lsda.sites[0].landing_pad == 0xd2);
	assert_int_equal(lsda.sites[0].field.v, DATA + 11);
	assert_int_equal(lsda.sites[0].field_size, 2);
	assert_int_equal(lsda.sites[1].begin, 0x140);
	assert_int_equal(lsda.sites[1].size, 3);
	assert_true(lsda.sites[1].landing_pad == 0x270);
	assert_int_equal(lsda.sites[1].field.v, DATA + 17);
	built_image_close(&built);
}

static void fixed_fields_are_read(void **state)
{
	static const uint8_t udata4[] = {
		0xff, 0xff, 0x03, 26,
		0x10, 0, 0, 0, 0x08, 0, 0, 0, 0x40, 0, 0, 0, 0x00,
		0x20, 0, 0, 0, 0xe0, 2, 0, 0, 0xff, 2, 0, 0, 0x05,
	};
	struct built_image built;
	struct lsda lsda;

	(void)state;
	assert_int_equal(read_table(udata4, sizeof(udata4), &built, &lsda), STATUS_OK);
	assert_int_equal(lsda.call_site_encoding, 3);
	assert_int_equal(lsda.site_count, 2);
	assert_int_equal(lsda.sites[1].begin, 0x20);
	assert_int_equal(lsda.sites[1].size, 0x2e0); /* up to the function's end */
	assert_true(lsda.sites[1].landing_pad == 0x2ff);
	assert_int_equal(lsda.sites[1].field.v, DATA + 4 + 13 + 8);
	assert_int_equal(lsda.sites[1].field_size, 4);
	assert_int_equal(lsda.size, sizeof(udata4));
	built_image_close(&built);
}

/* @LPStart relative to itself, and as a VA. */
static void landing_pads_may_lie_elsewhere(void **state)
{
	static const uint8_t relative[] = {0x1b, 0xff, 0xef, 0xff, 0xff, 0xff, 0x01, 4,
					   0x01, 0x02, 0x30, 0x00};
	static const uint8_t absolute[] = {0x00, 0x00, 0x20, 0x00, 0x80, 0x01, 0, 0,
					   0,    0xff, 0x01, 4,    0x01, 0x02, 0x30, 0x00};
	static const uint8_t outside[] = {0x1b, 0xff, 0xff, 0xff, 0x7f, 0xff, 0x01, 0};
	static const uint8_t pad_outside[] = {0x1b, 0xff, 0xef, 0xff, 0xff, 0xff, 0x01, 5,
					      0x01, 0x02, 0x80, 0x02, 0x00};
	struct built_image built;
	struct lsda lsda;

	(void)state;
	assert_int_equal(read_table(relative, sizeof(relative), &built, &lsda), STATUS_OK);
	assert_true(lsda.has_lp_start);
	assert_int_equal(lsda.lp_start_site.v, DATA + 1);
	assert_int_equal(lsda.lp_start.v, COLD);
	assert_int_equal(lsda.site_count, 1);
	assert_true(lsda.sites[0].landing_pad == 0x30);
	built_image_close(&built);
	assert_int_equal(read_table(absolute, sizeof(absolute), &built, &lsda), STATUS_OK);
	assert_int_equal(lsda.lp_start.v, COLD);
	built_image_close(&built);
	assert_int_equal(read_table(outside, sizeof(outside), &built, &lsda),
			 STATUS_MALFORMED);
	built_image_close(&built);
	assert_int_equal(read_table(pad_outside, sizeof(pad_outside), &built, &lsda),
			 STATUS_MALFORMED);
	built_image_close(&built);
}

static void cut_off_tables_are_refused(void **state)
{
	(void)state;
	for (size_t size = 0; size < 20; size++) {
		struct built_image built;
		struct lsda lsda = {.size = 9};

		assert_int_equal(read_table(good, size, &built, &lsda), STATUS_MALFORMED);
		assert_int_equal(lsda.size, 9);
		built_image_close(&built);
	}
}

/* What it costs to find out that it is none, is known. */
static void bytes_looked_at_are_counted(void **state)
{
	static const uint8_t late[] = {0xff, 0xff, 0x01, 12, 5, 5, 3, 0,
				       9,    1,    4,    0,  1, 1, 4, 0};
	struct built_image built;
	struct lsda lsda;
	uint32_t read = 0;

	(void)state;
	assert_int_equal(read_table(late, sizeof(late), &built, &lsda), STATUS_MALFORMED);
	assert_int_equal(lsda_read(&built.image, &built.image.arena, rva_of(DATA),
				   rva_of(CODE), FUNCTION_SIZE, &lsda, &read, NULL),
			 STATUS_MALFORMED);
	assert_int_equal(read, 12);
	assert_int_equal(lsda_read(&built.image, &built.image.arena, rva_of(CODE),
				   rva_of(CODE), FUNCTION_SIZE, &lsda, &read, NULL),
			 STATUS_MALFORMED);
	assert_in_range(read, 1, 11);
	built_image_close(&built);
}

static void what_is_no_table_is_refused(void **state)
{
	static const uint8_t bad[][14] = {
		{0xff, 0xff, 0x05, 4, 1, 2, 3, 0},       /* unknown format */
		{0xff, 0xff, 0x11, 4, 1, 2, 3, 0},       /* call sites are not relative */
		{0xff, 0xff, 0x81, 4, 1, 2, 3, 0},
		{0x05, 0xff, 0x01, 4, 1, 2, 3, 0},       /* unknown @LPStart */
		{0x9b, 0, 0, 0, 0, 0xff, 0x01, 0},       /* indirect */
		{0x3b, 0, 0, 0, 0, 0xff, 0x01, 0},       /* relative to data */
		{0xff, 0xff, 0x01, 8, 5, 5, 3, 0, 9, 1, 4, 0}, /* overlapping */
		{0xff, 0xff, 0x01, 8, 5, 5, 3, 0, 1, 1, 4, 0}, /* out of order */
		{0xff, 0xff, 0x01, 5, 0x81, 6, 1, 3, 0},       /* begins outside */
		{0xff, 0xff, 0x01, 5, 0x02, 0xff, 5, 3, 0},    /* ends outside */
		{0xff, 0xff, 0x01, 5, 0x02, 1, 0x80, 6, 0},    /* landing pad outside */
		{0xff, 0xff, 0x01, 3, 5, 5, 3, 0},             /* a record cut off */
		{0xff, 0xff, 0x09, 4, 5, 5, 0x7f, 0},          /* a landing pad of -1 */
		{0xff, 0xff, 0x09, 4, 5, 0x7f, 3, 0},          /* a size of -1 */
		{0xff, 0xff, 0x01, 12, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct built_image built;
		struct lsda lsda;

		if (read_table(bad[i], sizeof(bad[i]), &built, &lsda) != STATUS_MALFORMED)
			fail_msg("table %zu is accepted", i);
		built_image_close(&built);
	}
}

static void tables_without_sites_are_accepted(void **state)
{
	static const uint8_t empty[] = {0xff, 0xff, 0x01, 0};
	struct built_image built;
	struct lsda lsda;

	(void)state;
	assert_int_equal(read_table(empty, sizeof(empty), &built, &lsda), STATUS_OK);
	assert_int_equal(lsda.site_count, 0);
	assert_int_equal(lsda.size, 4);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_tables_are_read),
		cmocka_unit_test(fixed_fields_are_read),
		cmocka_unit_test(landing_pads_may_lie_elsewhere),
		cmocka_unit_test(cut_off_tables_are_refused),
		cmocka_unit_test(bytes_looked_at_are_counted),
		cmocka_unit_test(what_is_no_table_is_refused),
		cmocka_unit_test(tables_without_sites_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
