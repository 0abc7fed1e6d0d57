#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/relocations.h"

/* An image with 0x3000 bytes of data at 0x1000, whose .reloc has `table`. */
static void open_table(struct built_image *built, const uint16_t *table, size_t count,
		       uint32_t directory_size)
{
	struct image_builder b;
	struct rva rva;

	image_builder_init(&b);
	image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_fill(&b, 0, 0x3000);
	image_builder_virtual_size(&b, 0x4000);
	image_builder_section(&b, ".reloc", BUILT_CONST);
	rva = image_builder_here(&b);
	for (size_t i = 0; i < count; i++)
		image_builder_u16(&b, table[i]);
	image_builder_directory(&b, DIRECTORY_RELOCATION, rva, directory_size);
	built_image_open(built, &b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&b);
}

static void relocations_are_read(void **state)
{
	/* The later page comes first: the result is sorted. */
	static const uint16_t table[] = {
		0x3000, 0, 16, 0, 0xa008, 0xaff8, 0x0000, 0x0000,
		0x1000, 0, 12, 0, 0xa000, 0x3ffc,
	};
	static const struct reloc expected[] = {
		{{0x1000}, 10}, {{0x1ffc}, 3}, {{0x3008}, 10}, {{0x3ff8}, 10}};
	struct built_image built;
	struct relocations relocs;

	(void)state;
	open_table(&built, table, 14, 28);
	assert_int_equal(relocations_read(&built.image, &relocs, &built.diag), STATUS_OK);
	assert_int_equal(relocs.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(relocs.data[i].site.v, expected[i].site.v);
		assert_int_equal(relocs.data[i].type, expected[i].type);
	}
	built_image_close(&built);
}

static void no_table_is_no_error(void **state)
{
	struct built_image built;
	struct relocations relocs = {.count = 9};

	(void)state;
	open_table(&built, NULL, 0, 0);
	assert_int_equal(relocations_read(&built.image, &relocs, &built.diag), STATUS_OK);
	assert_int_equal(relocs.count, 0);
	built_image_close(&built);
}

static void bad_tables_are_refused(void **state)
{
	static const struct {
		uint16_t table[8];
		uint32_t size; /* of the directory */
	} bad[] = {
		{{0x1000, 0, 12, 0, 0xa000, 0xa008}, 11},         /* cut off */
		{{0x1000, 0, 12, 0, 0xa000, 0xa008}, 4},          /* in the header */
		{{0x1000, 0, 12, 0, 0xa000, 0xa008}, 0x7fffffff}, /* out of the file */
		{{0x1000, 0, 14, 0, 0xa000, 0xa008}, 12},         /* block too long */
		{{0x1000, 0, 0, 0, 0xa000, 0xa008}, 12},          /* of no size */
		{{0x1000, 0, 7, 0, 0xa000, 0xa008}, 12},          /* less than itself */
		{{0x1000, 0, 11, 0, 0xa000, 0xa008}, 12},         /* odd */
		{{0x1000, 0, 0xfff8, 0xffff, 0xa000}, 12},        /* wraps */
		{{0x1000, 0, 12, 0, 0x4000, 0x0000}, 12},         /* HIGHADJ */
		{{0x1000, 0, 12, 0, 0xb000, 0x0000}, 12},         /* no type at all */
		{{0x3000, 0, 12, 0, 0xaff9, 0x0000}, 12},         /* ends in zero memory */
		{{0x4000, 0, 12, 0, 0xa000, 0x0000}, 12},         /* is zero memory */
		{{0x0000, 0, 12, 0, 0xa100, 0x0000}, 12},         /* in the headers */
		{{0xf000, 0xffff, 12, 0, 0xafff, 0x0000}, 12},    /* outside */
		{{0x1000, 0, 12, 0, 0xa000, 0xa000}, 12},         /* twice */
		{{0x1000, 0, 12, 0, 0xa000, 0xa007}, 12},         /* overlapping */
		{{0x1000, 0, 12, 0, 0xa004, 0x3001}, 12},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct built_image built;
		struct relocations relocs = {.count = 9};

		open_table(&built, bad[i].table, 8, bad[i].size);
		if (relocations_read(&built.image, &relocs, &built.diag) !=
		    STATUS_MALFORMED)
			fail_msg("table %zu is accepted", i);
		assert_int_equal(relocs.count, 9); /* untouched */
		built_image_close(&built);
	}
}

/* Words that touch do not overlap. */
static void neighbours_are_accepted(void **state)
{
	static const uint16_t table[] = {0x1000, 0, 16, 0, 0xa000, 0x3008, 0xa00c, 0x0000};
	struct built_image built;
	struct relocations relocs;

	(void)state;
	open_table(&built, table, 8, 16);
	assert_int_equal(relocations_read(&built.image, &relocs, &built.diag), STATUS_OK);
	assert_int_equal(relocs.count, 3);
	built_image_close(&built);
}

static void encodes_blocks(void **state)
{
	static const struct reloc relocs[] = {
		{{0x1ffc}, 10}, {{0x2000}, 3}, {{0x2ff8}, 10}};
	static const uint8_t expected[] = {
		0x00, 0x10, 0, 0, 12, 0, 0, 0, 0xfc, 0xaf, 0x00, 0x00, /* padded */
		0x00, 0x20, 0, 0, 12, 0, 0, 0, 0x00, 0x30, 0xf8, 0xaf,
	};
	struct diag diag;
	uint8_t *bytes;
	uint32_t size;

	(void)state;
	assert_int_equal(relocations_encode(relocs, 3, &bytes, &size, &diag), STATUS_OK);
	assert_int_equal(size, sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	free(bytes);
	assert_int_equal(relocations_encode(NULL, 0, &bytes, &size, &diag), STATUS_OK);
	assert_int_equal(size, 0);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relocations_are_read),
		cmocka_unit_test(no_table_is_no_error),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(neighbours_are_accepted),
		cmocka_unit_test(encodes_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
