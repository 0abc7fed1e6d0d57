#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/delay_imports.h"

struct tables {
	struct image_builder b;
	struct rva addresses, names, dll, array;
};

static void put_descriptor(struct image_builder *b, uint32_t attributes, struct rva dll,
			   struct rva addresses, struct rva names)
{
	image_builder_u32(b, attributes);
	image_builder_u32(b, dll.v);
	image_builder_u32(b, 0x1000); /* module handle */
	image_builder_u32(b, addresses.v);
	image_builder_u32(b, names.v);
	image_builder_u32(b, 0x1111); /* bound */
	image_builder_u32(b, 0x2222); /* unload */
	image_builder_u32(b, 0);
}

static void make(struct tables *t)
{
	struct image_builder *b = &t->b;

	image_builder_init(b);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_u64(b, 0);
	t->addresses = image_builder_va(b, rva_of(0x1000));
	image_builder_va(b, rva_of(0x1000));
	image_builder_u64(b, 0);
	image_builder_section(b, ".rdata", BUILT_CONST);
	t->names = image_builder_u64(b, 0x8000000000000007u);
	image_builder_u64(b, 0x8000000000000008u);
	image_builder_u64(b, 0);
	t->dll = image_builder_string(b, "late.dll");
	image_builder_align(b, 8);
	t->array = image_builder_here(b);
	put_descriptor(b, 1, t->dll, t->addresses, t->names);
	put_descriptor(b, 1, t->dll, rva_add(t->addresses, 8), rva_add(t->names, 8));
	image_builder_fill(b, 0, 32);
	image_builder_directory(b, DIRECTORY_DELAY_IMPORT, t->array, 64);
}

static enum status read_made(struct tables *t, struct built_image *built,
			     struct delay_imports *ret_imports)
{
	built_image_open(built, &t->b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&t->b);
	return delay_imports_read(&built->image, ret_imports, &built->diag);
}

static void descriptors_are_read(void **state)
{
	struct tables t;
	struct built_image built;
	struct delay_imports imports;

	(void)state;
	make(&t);
	assert_int_equal(read_made(&t, &built, &imports), STATUS_OK);
	assert_int_equal(imports.count, 2);
	assert_string_equal(imports.data[0].dll, "late.dll");
	assert_int_equal(imports.data[0].site.v, t.array.v);
	assert_int_equal(imports.data[0].address_table.v, t.addresses.v);
	assert_int_equal(imports.data[0].name_table.v, t.names.v);
	assert_int_equal(imports.data[0].bound_table.v, 0x1111);
	assert_int_equal(imports.data[0].unload_table.v, 0x2222);
	assert_int_equal(imports.data[0].count, 2);
	assert_int_equal(imports.data[1].site.v, t.array.v + 32);
	assert_int_equal(imports.data[1].count, 1);
	built_image_close(&built);
}

static void no_table_is_no_error(void **state)
{
	struct tables t;
	struct built_image built;
	struct delay_imports imports;

	(void)state;
	make(&t);
	image_builder_directory(&t.b, DIRECTORY_DELAY_IMPORT, rva_of(0), 0);
	assert_int_equal(read_made(&t, &built, &imports), STATUS_OK);
	assert_int_equal(imports.count, 0);
	built_image_close(&built);
}

static enum status with_field(uint32_t offset, uint32_t v)
{
	struct tables t;
	struct built_image built;
	struct delay_imports imports;
	enum status status;

	make(&t);
	store_u32(image_builder_at(&t.b, rva_add(t.array, offset)), v);
	status = read_made(&t, &built, &imports);
	built_image_close(&built);
	return status;
}

static void bad_descriptors_are_refused(void **state)
{
	struct tables t;
	struct built_image built;
	struct delay_imports imports = {.count = 9};

	(void)state;
	assert_int_equal(with_field(0, 0), STATUS_UNSUPPORTED); /* addresses, not RVAs */
	assert_int_equal(with_field(4, 0x9000), STATUS_MALFORMED);
	assert_int_equal(with_field(12, 0x9000), STATUS_MALFORMED);
	assert_int_equal(with_field(12, 0x1000 + 24), STATUS_MALFORMED); /* too few words */
	assert_int_equal(with_field(16, 0x9000), STATUS_MALFORMED);
	assert_int_equal(with_field(12, 0), STATUS_MALFORMED);
	assert_int_equal(with_field(16, 0), STATUS_MALFORMED);
	make(&t);
	t.b.sections[1].bytes.len -= 32; /* the end is missing */
	assert_int_equal(read_made(&t, &built, &imports), STATUS_MALFORMED);
	built_image_close(&built);
	make(&t);
	image_builder_directory(&t.b, DIRECTORY_DELAY_IMPORT, rva_of(0x9000), 64);
	assert_int_equal(read_made(&t, &built, &imports), STATUS_MALFORMED);
	assert_int_equal(imports.count, 9);
	built_image_close(&built);
}

/* 3,000 descriptors that share 30,000 names. */
static void shared_tables_are_bounded(void **state)
{
	struct tables t;
	struct built_image built;
	struct delay_imports imports;
	struct rva names;

	(void)state;
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_CONST);
	names = image_builder_here(&t.b);
	image_builder_fill(&t.b, 1, 30000 * 8);
	image_builder_u64(&t.b, 0);
	t.array = image_builder_here(&t.b);
	for (int i = 0; i < 3000; i++)
		put_descriptor(&t.b, 1, t.dll, names, names);
	image_builder_fill(&t.b, 0, 32);
	image_builder_directory(&t.b, DIRECTORY_DELAY_IMPORT, t.array, 64);
	assert_int_equal(read_made(&t, &built, &imports), STATUS_MALFORMED);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_are_read),
		cmocka_unit_test(no_table_is_no_error),
		cmocka_unit_test(bad_descriptors_are_refused),
		cmocka_unit_test(shared_tables_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
