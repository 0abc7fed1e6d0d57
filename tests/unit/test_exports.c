#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/exports.h"

/* Addresses: a function, none, data, a forwarder.  Names: "data" and a second
 * name "more" for it, "function"; the forwarder has an ordinal only. */
struct tables {
	struct image_builder b;
	struct rva code, data, directory, addresses, names, ordinals, forwarder, dll;
	struct rva strings[3];
};

static void make(struct tables *t)
{
	struct image_builder *b = &t->b;

	image_builder_init(b);
	t->code = image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 16);
	t->data = image_builder_section(b, ".data", BUILT_DATA);
	image_builder_fill(b, 0, 16);
	t->directory = image_builder_section(b, ".edata", BUILT_CONST);
	image_builder_fill(b, 0, 40);
	t->forwarder = image_builder_string(b, "other.Function");
	t->dll = image_builder_string(b, "made.dll");
	t->strings[0] = image_builder_string(b, "data");
	t->strings[1] = image_builder_string(b, "function");
	t->strings[2] = image_builder_string(b, "more");
	t->addresses = image_builder_u32(b, t->code.v);
	image_builder_u32(b, 0);
	image_builder_u32(b, t->data.v);
	image_builder_u32(b, t->forwarder.v);
	t->names = image_builder_here(b);
	for (int i = 0; i < 3; i++)
		image_builder_u32(b, t->strings[i].v);
	t->ordinals = image_builder_u16(b, 2);
	image_builder_u16(b, 0);
	image_builder_u16(b, 2);
	store_u32(image_builder_at(b, rva_add(t->directory, 12)), t->dll.v);
	store_u32(image_builder_at(b, rva_add(t->directory, 16)), 100); /* base */
	store_u32(image_builder_at(b, rva_add(t->directory, 20)), 4);
	store_u32(image_builder_at(b, rva_add(t->directory, 24)), 3);
	store_u32(image_builder_at(b, rva_add(t->directory, 28)), t->addresses.v);
	store_u32(image_builder_at(b, rva_add(t->directory, 32)), t->names.v);
	store_u32(image_builder_at(b, rva_add(t->directory, 36)), t->ordinals.v);
	image_builder_directory(b, DIRECTORY_EXPORT, t->directory, 40 + 15);
}

static enum status read_tables(struct tables *t, struct built_image *built,
			       struct exports *ret_exports)
{
	built_image_open(built, &t->b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&t->b);
	return exports_read(&built->image, ret_exports, &built->diag);
}

static void exports_are_read(void **state)
{
	struct tables t;
	struct built_image built;
	struct exports exports;

	(void)state;
	make(&t);
	assert_int_equal(read_tables(&t, &built, &exports), STATUS_OK);
	assert_string_equal(exports.dll_name, "made.dll");
	assert_int_equal(exports.count, 3); /* the empty slot is left out */
	assert_int_equal(exports.data[0].ordinal, 100);
	assert_string_equal(exports.data[0].name, "function");
	assert_int_equal(exports.data[0].target.v, t.code.v);
	assert_int_equal(exports.data[0].site.v, t.addresses.v);
	assert_null(exports.data[0].forwarder);
	assert_int_equal(exports.data[1].ordinal, 102);
	assert_string_equal(exports.data[1].name, "data"); /* the first of two */
	assert_int_equal(exports.data[1].target.v, t.data.v);
	assert_int_equal(exports.data[1].site.v, t.addresses.v + 8);
	assert_int_equal(exports.data[2].ordinal, 103);
	assert_null(exports.data[2].name);
	assert_string_equal(exports.data[2].forwarder, "other.Function");
	built_image_close(&built);
}

static void no_table_is_no_error(void **state)
{
	struct tables t;
	struct built_image built;
	struct exports exports;

	(void)state;
	make(&t);
	image_builder_directory(&t.b, DIRECTORY_EXPORT, rva_of(0), 0);
	assert_int_equal(read_tables(&t, &built, &exports), STATUS_OK);
	assert_int_equal(exports.count, 0);
	assert_null(exports.dll_name);
	built_image_close(&built);
}

/* `v` at `rva` must be refused. */
static void refused(struct rva rva, uint32_t v, unsigned size)
{
	struct tables t;
	struct built_image built;
	struct exports exports;

	make(&t);
	if (size == 2)
		store_u16(image_builder_at(&t.b, rva), (uint16_t)v);
	else
		store_u32(image_builder_at(&t.b, rva), v);
	if (read_tables(&t, &built, &exports) != STATUS_MALFORMED)
		fail_msg("0x%x at 0x%x is accepted", v, rva.v);
	built_image_close(&built);
}

static void bad_tables_are_refused(void **state)
{
	struct tables t;

	(void)state;
	make(&t);
	image_builder_release(&t.b);
	refused(rva_add(t.directory, 12), 0x9000, 4);
	for (uint32_t field = 28; field <= 36; field += 4) {
		refused(rva_add(t.directory, field), 0x9000, 4);
		refused(rva_add(t.directory, field), 0xfffffffe, 4);
	}
	for (uint32_t field = 20; field <= 24; field += 4) {
		refused(rva_add(t.directory, field), 0xffffffff, 4);
		refused(rva_add(t.directory, field), 0x40000001, 4); /* * 4 wraps */
		refused(rva_add(t.directory, field), 0x1000, 4);
	}
	refused(t.names, 0x9000, 4);
	refused(t.ordinals, 4, 2);
	refused(rva_add(t.directory, 20), 2, 4); /* fewer addresses than named */
}

/* A forwarder whose string runs to the end of the section. */
static void forwarders_must_end(void **state)
{
	struct tables t;
	struct built_image built;
	struct exports exports;

	(void)state;
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_CONST);
	image_builder_fill(&t.b, 'x', 8);
	t.b.directories[DIRECTORY_EXPORT].size = 0x2000;
	store_u32(image_builder_at(&t.b, rva_add(t.addresses, 12)),
		  t.b.sections[3].rva.v);
	assert_int_equal(read_tables(&t, &built, &exports), STATUS_MALFORMED);
	built_image_close(&built);
}

static void a_directory_cut_off_is_refused(void **state)
{
	struct tables t;
	struct built_image built;
	struct exports exports;

	(void)state;
	make(&t);
	t.b.directories[DIRECTORY_EXPORT].rva = rva_add(t.ordinals, 0);
	assert_int_equal(read_tables(&t, &built, &exports), STATUS_MALFORMED);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exports_are_read),
		cmocka_unit_test(no_table_is_no_error),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(forwarders_must_end),
		cmocka_unit_test(a_directory_cut_off_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
