#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/dynamic_relocations.h"

/* The load configuration is no part of it but for its address. */
enum { CONFIG = 0x1800, TABLE_OFFSET = 0x10, RELOC = 0x2000 };

static void begin(struct image_builder *b, uint32_t version)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0x90, 0x1000);
	image_builder_section(b, ".reloc", BUILT_CONST);
	image_builder_fill(b, 0xee, TABLE_OFFSET);
	image_builder_u32(b, version);
	image_builder_u32(b, 0); /* end sets it */
}

static void group(struct image_builder *b, uint32_t version, uint64_t symbol, uint32_t size)
{
	if (version == 2) {
		image_builder_u32(b, 24);
		image_builder_u32(b, size);
		image_builder_u64(b, symbol);
		image_builder_u32(b, 7); /* its group */
		image_builder_u32(b, 9); /* flags */
	} else {
		image_builder_u64(b, symbol);
		image_builder_u32(b, size);
	}
}

static void block(struct image_builder *b, uint32_t page, uint32_t size)
{
	image_builder_u32(b, page);
	image_builder_u32(b, size);
}

static void end(struct image_builder *b)
{
	uint32_t size = image_builder_here(b).v - RELOC - TABLE_OFFSET - 8;

	store_u32(image_builder_at(b, rva_of(RELOC + TABLE_OFFSET + 4)), size);
	image_builder_fill(b, 0xdd, 8);
}

/* Each kind; offsets 0 are places, trailing zeros are not. */
static void make(struct image_builder *b, uint32_t version)
{
	begin(b, version);
	group(b, version, 3, 16 + 12);
	block(b, 0x1000, 16);
	image_builder_u32(b, 0x2000 << 12 | 0x010);
	image_builder_u32(b, 0x3001 << 12 | 0x020);
	block(b, 0x2000, 12);
	image_builder_u32(b, 1 << 12 | 0x004);
	group(b, version, 4, 12 + 16);
	block(b, 0x1000, 12);
	image_builder_u16(b, 0x1 << 12 | 0x100);
	image_builder_u16(b, 0x7 << 12 | 0xfff);
	block(b, 0x1000, 16);
	image_builder_u16(b, 0); /* a place at the page's begin */
	image_builder_u16(b, 0x012);
	image_builder_u16(b, 0x3 << 12 | 0x200);
	image_builder_u16(b, 0);
	group(b, version, 5, 12);
	block(b, 0x1000, 12);
	image_builder_u16(b, 0xf << 12 | 0x300);
	image_builder_u16(b, 0);
	group(b, version, 0xfffff78000000000, 12);
	block(b, 0x1000, 12);
	image_builder_u16(b, RELOC_DIR64 << 12 | 0x400);
	image_builder_u16(b, 0);
	end(b);
}

static enum status read_made(struct image_builder *b, struct built_image *built,
			     struct dynamic_relocations *ret_table)
{
	struct load_config config = {.rva = rva_of(CONFIG),
				     .dynamic_relocation_offset = TABLE_OFFSET,
				     .dynamic_relocation_section = 2};

	built_image_open(built, b);
	image_builder_release(b);
	assert_int_equal(built->status, STATUS_OK);
	return dynamic_relocations_read(&built->image, &config, ret_table, &built->diag);
}

static void check_group(const struct dynamic_relocations *table, uint32_t index,
			uint64_t symbol, uint32_t count, const uint32_t *sites,
			const uint32_t *rests)
{
	const struct dynamic_group *g = &table->groups[index];

	assert_true(g->symbol == symbol);
	assert_int_equal(g->symbol_group, table->version == 2 ? 7 : 0);
	assert_int_equal(g->flags, table->version == 2 ? 9 : 0);
	assert_int_equal(g->count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(table->fixups[g->first + i].site.v, sites[i]);
		assert_int_equal(table->fixups[g->first + i].rest, rests[i]);
	}
}

static void read_version(uint32_t version)
{
	struct image_builder b;
	struct built_image built;
	struct dynamic_relocations t;

	make(&b, version);
	assert_int_equal(read_made(&b, &built, &t), STATUS_OK);
	assert_int_equal(t.rva.v, RELOC + TABLE_OFFSET);
	assert_int_equal(t.size, 8 + 4 * (version == 2 ? 24 : 12) + 28 + 28 + 12 + 12);
	assert_int_equal(t.version, version);
	assert_int_equal(t.offset_field.v, CONFIG + 0xe0);
	assert_int_equal(t.section_field.v, CONFIG + 0xe4);
	assert_int_equal(t.group_count, 4);
	check_group(&t, 0, 3, 3, (uint32_t[]){0x1010, 0x1020, 0x2004},
		    (uint32_t[]){0x2000, 0x3001, 1});
	check_group(&t, 1, 4, 5, (uint32_t[]){0x1000, 0x1012, 0x1100, 0x1200, 0x1fff},
		    (uint32_t[]){0, 0, 1, 3, 7});
	check_group(&t, 2, 5, 1, (uint32_t[]){0x1300}, (uint32_t[]){0xf});
	check_group(&t, 3, 0xfffff78000000000, 1, (uint32_t[]){0x1400}, (uint32_t[]){10});
	built_image_close(&built);
}

static void both_versions_are_read(void **state)
{
	(void)state;
	read_version(1);
	read_version(2);
}

static void there_may_be_none(void **state)
{
	struct load_config config = {.rva = rva_of(CONFIG)};
	struct dynamic_relocations t = {.size = 9};
	struct image_builder b;
	struct built_image built;

	(void)state;
	make(&b, 1);
	assert_int_equal(read_made(&b, &built, &t), STATUS_OK);
	assert_int_equal(dynamic_relocations_read(&built.image, &config, &t, &built.diag),
			 STATUS_OK);
	assert_int_equal(t.size, 0);
	built_image_close(&built);
}

/* What is written reads as it was, one block a page, whatever the sequence. */
static void write_version(uint32_t version)
{
	struct dynamic_fixup fixups[10];
	struct image_builder b;
	struct built_image built, again;
	struct dynamic_relocations t, u;
	uint8_t *bytes = NULL;
	uint32_t size = 0;

	make(&b, version);
	assert_int_equal(read_made(&b, &built, &t), STATUS_OK);
	assert_int_equal(t.fixup_count, 10);
	for (uint32_t i = 0; i < t.fixup_count; i++)
		fixups[i] = t.fixups[i];
	/* The first goes to another page, and is the last then. */
	fixups[0].site = rva_of(0x2040);
	assert_int_equal(dynamic_relocations_encode(&t, fixups, &bytes, &size, NULL),
			 STATUS_OK);
	begin(&b, version);
	image_builder_put(&b, bytes + 8, size - 8);
	end(&b);
	assert_int_equal(load_u32(bytes), version);
	assert_int_equal(load_u32(bytes + 4), size - 8);
	free(bytes);
	assert_int_equal(read_made(&b, &again, &u), STATUS_OK);
	assert_int_equal(u.size, size);
	check_group(&u, 0, 3, 3, (uint32_t[]){0x1020, 0x2004, 0x2040},
		    (uint32_t[]){0x3001, 1, 0x2000});
	check_group(&u, 1, 4, 5, (uint32_t[]){0x1000, 0x1012, 0x1100, 0x1200, 0x1fff},
		    (uint32_t[]){0, 0, 1, 3, 7});
	check_group(&u, 2, 5, 1, (uint32_t[]){0x1300}, (uint32_t[]){0xf});
	built_image_close(&again);
	built_image_close(&built);
}

static void both_versions_are_written(void **state)
{
	(void)state;
	write_version(1);
	write_version(2);
}

static void refused(struct image_builder *b, enum status expected, const char *message)
{
	struct dynamic_relocations t = {.size = 9};
	struct built_image built;

	assert_int_equal(read_made(b, &built, &t), expected);
	if (!strstr(built.diag.message, message))
		fail_msg("%s", built.diag.message);
	assert_int_equal(t.size, 9);
	built_image_close(&built);
}

static void symbols_that_are_not_understood_are_refused(void **state)
{
	static const struct {
		uint64_t symbol;
		const char *message;
	} cases[] = {
		{0, "unknown"},       {1, "return flow guard"}, {2, "return flow guard"},
		{6, "ARM64X"},        {7, "may replace"},       {8, "ARM64 kernel"},
		{0xffff, "unknown"},
	};
	struct image_builder b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&b, 1);
		group(&b, 1, cases[i].symbol, 12);
		block(&b, 0x1000, 12);
		image_builder_u32(&b, 0x10);
		end(&b);
		refused(&b, STATUS_UNSUPPORTED, cases[i].message);
	}
	make(&b, 3);
	refused(&b, STATUS_UNSUPPORTED, "version 3");
	make(&b, 2);
	*image_builder_at(&b, rva_of(RELOC + TABLE_OFFSET + 8)) = 28;
	refused(&b, STATUS_UNSUPPORTED, "header of 28");
}

/* The 32-bit field at `offset` in the table of version 1. */
static void bad(uint32_t offset, uint32_t v)
{
	struct image_builder b;

	make(&b, 1);
	store_u32(image_builder_at(&b, rva_of(RELOC + TABLE_OFFSET + offset)), v);
	refused(&b, STATUS_MALFORMED, "dynamic value relocations");
}

static void bad_tables_are_refused(void **state)
{
	struct image_builder b;

	(void)state;
	bad(4, 0x10000);
	bad(4, 0xffffffff);
	bad(4, 3);
	bad(16, 0xffffffff);
	bad(16, 27);
	bad(20, 0x5000);     /* outside the image */
	bad(24, 7);          /* less than the header */
	bad(24, 0xfffffff0); /* beyond the group */
	bad(24, 18);         /* within an entry */
	bad(28, 0x020);      /* the same place twice */
	begin(&b, 1);
	group(&b, 1, 0x100000000, 12);
	block(&b, 0x1000, 12);
	image_builder_u16(&b, 2 << 12); /* no relocation of x86-64 */
	image_builder_u16(&b, 0);
	end(&b);
	refused(&b, STATUS_MALFORMED, "no");
	begin(&b, 1);
	group(&b, 1, 0x100000000, 12);
	block(&b, 0x1000, 12);
	image_builder_u16(&b, 0x010); /* padding that says something */
	image_builder_u16(&b, 0);
	end(&b);
	refused(&b, STATUS_MALFORMED, "none");
}

static void bad_places_are_refused(void **state)
{
	struct dynamic_relocations t;
	struct load_config config = {.rva = rva_of(CONFIG)};
	struct image_builder b;
	struct built_image built;

	(void)state;
	make(&b, 1);
	assert_int_equal(read_made(&b, &built, &t), STATUS_OK);
	config.dynamic_relocation_section = 3;
	assert_int_equal(dynamic_relocations_read(&built.image, &config, &t, &built.diag),
			 STATUS_MALFORMED);
	config.dynamic_relocation_section = 2;
	config.dynamic_relocation_offset = 0x1000;
	assert_int_equal(dynamic_relocations_read(&built.image, &config, &t, &built.diag),
			 STATUS_MALFORMED);
	config.dynamic_relocation_table = rva_of(0x1100);
	assert_int_equal(dynamic_relocations_read(&built.image, &config, &t, &built.diag),
			 STATUS_UNSUPPORTED);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_versions_are_read),
		cmocka_unit_test(there_may_be_none),
		cmocka_unit_test(both_versions_are_written),
		cmocka_unit_test(symbols_that_are_not_understood_are_refused),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(bad_places_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
