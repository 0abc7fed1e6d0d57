#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/pseudo_relocs.h"

enum { DATA = 0x1000, BIG_ENOUGH = 0x100 };

/* Two imported symbols; `slots` gets the RVA of the first slot. */
static void make(struct image_builder *b, struct rva *ret_slots)
{
	struct rva hint, dll, directory;

	image_builder_init(b);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_fill(b, 0, BIG_ENOUGH);
	image_builder_section(b, ".idata", BUILT_DATA);
	hint = image_builder_u16(b, 1);
	image_builder_string(b, "datum");
	dll = image_builder_string(b, "some.dll");
	image_builder_align(b, 8);
	*ret_slots = image_builder_u64(b, hint.v);
	image_builder_u64(b, hint.v);
	image_builder_u64(b, 0);
	directory = image_builder_u32(b, ret_slots->v);
	image_builder_u64(b, 0);
	image_builder_u32(b, dll.v);
	image_builder_u32(b, ret_slots->v);
	image_builder_fill(b, 0, 20);
	image_builder_directory(b, DIRECTORY_IMPORT, directory, 40);
	image_builder_section(b, ".rdata", BUILT_CONST);
	image_builder_fill(b, 0x77, 20);
}

static void put_header(struct image_builder *b)
{
	image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, 1);
}

static struct rva put_entry(struct image_builder *b, uint32_t symbol, uint32_t target,
			    uint32_t bits)
{
	struct rva rva = image_builder_u32(b, symbol);

	image_builder_u32(b, target);
	image_builder_u32(b, bits);
	return rva;
}

static uint32_t read_made(struct image_builder *b, struct built_image *built,
			  struct pseudo_relocs *ret_relocs)
{
	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	assert_int_equal(built->image.import_count, 2);
	image_builder_release(b);
	assert_int_equal(pseudo_relocs_read(&built->image, ret_relocs, &built->diag),
			 STATUS_OK);
	return ret_relocs->count;
}

static void lists_are_found(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct pseudo_relocs relocs;
	struct rva slots, second;

	(void)state;
	make(&b, &slots);
	put_header(&b);
	put_entry(&b, slots.v, DATA + 8, 64);
	second = put_entry(&b, slots.v + 8, DATA + 0xff, 8);
	/* A list may be followed by another one at once. */
	put_header(&b);
	put_entry(&b, slots.v, DATA + 0x10, 32);
	assert_int_equal(read_made(&b, &built, &relocs), 3);
	assert_int_equal(relocs.data[0].symbol.v, slots.v);
	assert_int_equal(relocs.data[0].target.v, DATA + 8);
	assert_int_equal(relocs.data[0].bits, 64);
	assert_int_equal(relocs.data[1].symbol.v, slots.v + 8);
	assert_int_equal(relocs.data[1].target.v, DATA + 0xff);
	assert_int_equal(relocs.data[1].bits, 8);
	assert_int_equal(relocs.data[1].site.v, second.v);
	assert_int_equal(relocs.data[2].target.v, DATA + 0x10);
	built_image_close(&built);
}

static void what_is_no_list_is_passed_over(void **state)
{
	static const struct {
		uint32_t symbol_offset, target, bits;
	} entries[] = {
		{4, DATA, 64},           /* inside a slot */
		{16, DATA, 64},          /* behind the slots */
		{0, DATA, 63},           {0, DATA, 0},
		{0, DATA, 0x140},        /* 64 with something above */
		{0, DATA + 0xfd, 32},    /* leaves the section */
		{0, 0x10, 32},           /* in the headers */
		{0, 0xfffffff0, 32},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct image_builder b;
		struct built_image built;
		struct pseudo_relocs relocs;
		struct rva slots;

		make(&b, &slots);
		put_header(&b);
		put_entry(&b, slots.v + entries[i].symbol_offset, entries[i].target,
			  entries[i].bits);
		if (read_made(&b, &built, &relocs) != 0)
			fail_msg("entry %zu is accepted", i);
		built_image_close(&built);
	}
}

/* The same list, where no linker puts it. */
static void only_read_only_data_is_searched(void **state)
{
	static const uint32_t characteristics[] = {BUILT_DATA, BUILT_CODE,
						   BUILT_CONST | SECTION_DISCARDABLE};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct image_builder b;
		struct built_image built;
		struct pseudo_relocs relocs;
		struct rva slots;

		make(&b, &slots);
		image_builder_section(&b, ".other", characteristics[i]);
		put_header(&b);
		put_entry(&b, slots.v, DATA, 64);
		assert_int_equal(read_made(&b, &built, &relocs), 0);
		built_image_close(&built);
	}
}

/* The last entry is cut off by the end of the section. */
static void lists_end_with_the_section(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct pseudo_relocs relocs;
	struct rva slots;

	(void)state;
	make(&b, &slots);
	put_header(&b);
	put_entry(&b, slots.v, DATA, 64);
	image_builder_u32(&b, slots.v);
	image_builder_u32(&b, DATA);
	assert_int_equal(read_made(&b, &built, &relocs), 1);
	built_image_close(&built);
}

static void images_without_imports_have_none(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct pseudo_relocs relocs = {.count = 9};

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	image_builder_fill(&b, 0, 64);
	built_image_open(&built, &b);
	assert_int_equal(pseudo_relocs_read(&built.image, &relocs, &built.diag), STATUS_OK);
	assert_int_equal(relocs.count, 0);
	built_image_close(&built);
	image_builder_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_found),
		cmocka_unit_test(what_is_no_list_is_passed_over),
		cmocka_unit_test(only_read_only_data_is_searched),
		cmocka_unit_test(lists_end_with_the_section),
		cmocka_unit_test(images_without_imports_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
