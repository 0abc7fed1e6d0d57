#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/load_config.h"

enum { CONFIG = 0x1000, TABLES = CONFIG + 0x140, FULL_SIZE = 0x140 };

static void set_va(struct image_builder *b, uint32_t offset, uint32_t rva)
{
	store_u64(image_builder_at(b, rva_of(CONFIG + offset)), BUILT_IMAGE_BASE + rva);
}

static void set_count(struct image_builder *b, uint32_t offset, uint64_t count)
{
	store_u64(image_builder_at(b, rva_of(CONFIG + offset)), count);
}

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".rdata", BUILT_CONST);
	image_builder_u32(b, FULL_SIZE);
	image_builder_fill(b, 0, FULL_SIZE - 4 + 60);
	set_va(b, 0x58, 0x1111);
	set_va(b, 0x70, 0x1122);
	set_va(b, 0x78, 0x1133);
	set_va(b, 0x80, TABLES);
	set_count(b, 0x88, 12); /* of 5 bytes: all that there is */
	store_u32(image_builder_at(b, rva_of(CONFIG + 0x90)), 0x10017500);
	set_va(b, 0xa0, TABLES + 1);
	set_count(b, 0xa8, 1);
	set_va(b, 0xb0, TABLES + 2);
	set_count(b, 0xb8, 2);
	set_va(b, 0xc8, 0x1044);
	store_u32(image_builder_at(b, rva_of(CONFIG + 0xe0)), 0x77);
	store_u16(image_builder_at(b, rva_of(CONFIG + 0xe4)), 3);
	set_va(b, 0x100, 0x1155);
	set_va(b, 0x108, TABLES + 3);
	set_count(b, 0x110, 3);
	image_builder_directory(b, DIRECTORY_LOAD_CONFIG, rva_of(CONFIG), 64);
}

static enum status read_made(struct image_builder *b, struct load_config *ret_config)
{
	struct built_image built;
	enum status status;

	built_image_open(&built, b);
	assert_int_equal(built.status, STATUS_OK);
	status = load_config_read(&built.image, ret_config, &built.diag);
	built_image_close(&built);
	image_builder_release(b);
	return status;
}

static void check_table(const struct guard_table *table, uint32_t rva, uint32_t count)
{
	assert_int_equal(table->rva.v, rva);
	assert_int_equal(table->count, count);
	assert_int_equal(table->extra, rva ? 1 : table->extra);
}

static void fields_are_read(void **state)
{
	struct image_builder b;
	struct load_config c;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, &c), STATUS_OK);
	assert_int_equal(c.size, FULL_SIZE);
	assert_int_equal(c.rva.v, CONFIG);
	assert_int_equal(c.guard_flags, 0x10017500);
	check_table(&c.functions, TABLES, 12);
	check_table(&c.address_taken_iat, TABLES + 1, 1);
	check_table(&c.long_jumps, TABLES + 2, 2);
	check_table(&c.eh_continuations, TABLES + 3, 3);
	assert_int_equal(c.security_cookie.v, 0x1111);
	assert_int_equal(c.guard_check_pointer.v, 0x1122);
	assert_int_equal(c.guard_dispatch_pointer.v, 0x1133);
	assert_int_equal(c.chpe_metadata.v, 0x1044);
	assert_int_equal(c.volatile_metadata.v, 0x1155);
	assert_int_equal(c.dynamic_relocation_offset, 0x77);
	assert_int_equal(c.dynamic_relocation_section, 3);
}

static void shorter_structures_have_fewer_fields(void **state)
{
	struct image_builder b;
	struct load_config c;

	(void)state;
	make(&b);
	store_u32(image_builder_at(&b, rva_of(CONFIG)), 0x94); /* up to the flags */
	assert_int_equal(read_made(&b, &c), STATUS_OK);
	assert_int_equal(c.size, 0x94);
	check_table(&c.functions, TABLES, 12);
	check_table(&c.long_jumps, 0, 0);
	check_table(&c.eh_continuations, 0, 0);
	assert_int_equal(c.chpe_metadata.v, 0);
	assert_int_equal(c.volatile_metadata.v, 0);
	make(&b);
	image_builder_directory(&b, DIRECTORY_LOAD_CONFIG, rva_of(0), 0);
	assert_int_equal(read_made(&b, &c), STATUS_OK);
	assert_int_equal(c.size, 0);
}

/* A table of continuation targets without a stride in the flags, as lld writes it. */
static void continuations(const void *rows, size_t size, uint64_t count,
			  enum status expected, uint32_t extra)
{
	struct image_builder b;
	struct load_config c;
	struct rva table;

	make(&b);
	memset(image_builder_at(&b, rva_of(CONFIG + 0x80)), 0, 0x38 + 8);
	store_u32(image_builder_at(&b, rva_of(CONFIG + 0x90)), 0x00410500);
	image_builder_section(&b, ".text", BUILT_CODE); /* at 0x2000, of 2 MiB */
	image_builder_virtual_size(&b, 0x200000);
	image_builder_section(&b, ".more", BUILT_CONST);
	table = image_builder_put(&b, rows, size);
	set_va(&b, 0x108, table.v);
	set_count(&b, 0x110, count);
	assert_int_equal(read_made(&b, &c), expected);
	if (expected != STATUS_OK)
		return;
	assert_int_equal(c.eh_continuations.count, count);
	assert_int_equal(c.eh_continuations.extra, extra);
}

static void the_stride_of_continuations_is_found(void **state)
{
	(void)state;
	continuations("\x10\x20\0\0\x34\x20\0\0\x50\x20\0\0", 12, 3, STATUS_OK, 0);
	continuations("\x10\x20\0\0\0\x34\x20\0\0\0\x50\x20\0\0\0", 15, 3, STATUS_OK, 1);
	continuations("\x10\x20\0\0", 4, 1, STATUS_OK, 0);
	/* Descends, or leads to data, in both ways. */
	continuations("\x34\x20\0\0\x10\x20\0\0\0", 9, 2, STATUS_MALFORMED, 0);
	continuations("\x10\x20\0\0\x01\x34\x20\0\0\0", 10, 2, STATUS_OK, 0);
	/* 0x2010 and 0x2100, since 0x210000 is no code. */
	continuations("\x10\x20\0\0\0\0\x21\0\0\0", 10, 2, STATUS_OK, 1);
	/* 0x2010, and 0x2018 or 0x201800. */
	continuations("\x10\x20\0\0\0\x18\x20\0\0\0", 10, 2, STATUS_UNSUPPORTED, 1);
}

static void refused(uint32_t offset, uint64_t v)
{
	struct image_builder b;
	struct load_config c = {.size = 9};

	make(&b);
	set_count(&b, offset, v);
	if (read_made(&b, &c) != STATUS_MALFORMED)
		fail_msg("0x%llx at 0x%x is accepted", (unsigned long long)v, offset);
	assert_int_equal(c.size, 9);
}

static void bad_structures_are_refused(void **state)
{
	static const uint32_t pointers[] = {0x58, 0x70, 0x78, 0x80, 0xa0, 0xb0, 0xc8, 0x100,
					    0x108};
	static const uint32_t counts[] = {0x88, 0xa8, 0xb8, 0x110};

	(void)state;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		refused(pointers[i], 1);
		refused(pointers[i], BUILT_IMAGE_BASE - 1);
		refused(pointers[i], BUILT_IMAGE_BASE + 0x2000);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		refused(counts[i], 13);
		refused(counts[i], 0x33333334); /* * 5 wraps 32 bits */
		refused(counts[i], 0x3333333333333334); /* and 64 */
		refused(counts[i], UINT64_MAX);
	}
	refused(0, 0);
	refused(0, 3);
	refused(0, FULL_SIZE + 61);
	refused(0, 0xffffffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read),
		cmocka_unit_test(shorter_structures_have_fewer_fields),
		cmocka_unit_test(the_stride_of_continuations_is_found),
		cmocka_unit_test(bad_structures_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
