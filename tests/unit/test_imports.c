#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "image_builder.h"

/* Two DLLs: one with a lookup table, a name and an ordinal, one without a
 * lookup table and with two names. */
struct tables {
	struct image_builder b;
	struct rva directory, first_lookup, first_addresses, second_addresses;
	struct rva first_dll, second_dll, alpha;
};

static struct rva put_symbol(struct image_builder *b, uint16_t hint, const char *name)
{
	struct rva rva;

	image_builder_align(b, 2);
	rva = image_builder_u16(b, hint);
	image_builder_string(b, name);
	return rva;
}

static void put_descriptor(struct image_builder *b, struct rva lookup, struct rva dll,
			   struct rva addresses)
{
	image_builder_u32(b, lookup.v);
	image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, dll.v);
	image_builder_u32(b, addresses.v);
}

static void make(struct tables *t)
{
	struct image_builder *b = &t->b;
	struct rva beta, gamma;

	image_builder_init(b);
	image_builder_section(b, ".idata", BUILT_DATA);
	t->alpha = put_symbol(b, 7, "alpha");
	beta = put_symbol(b, 8, "beta");
	gamma = put_symbol(b, 65535, "?gamma@@YAXXZ");
	t->first_dll = image_builder_string(b, "first.dll");
	t->second_dll = image_builder_string(b, "SECOND.DLL");
	/* Tables on pages of their own: LIEF is shown windows, not sections. */
	image_builder_align(b, 0x4000);
	t->first_lookup = image_builder_u64(b, t->alpha.v);
	image_builder_u64(b, 0x8000000000000000u | 513);
	image_builder_u64(b, 0);
	image_builder_align(b, 0x1000);
	t->first_addresses = image_builder_u64(b, t->alpha.v);
	image_builder_u64(b, 0x8000000000000000u | 513);
	image_builder_u64(b, 0);
	t->second_addresses = image_builder_u64(b, beta.v);
	image_builder_u64(b, gamma.v);
	image_builder_u64(b, 0);
	image_builder_align(b, 0x8000);
	image_builder_fill(b, 0, 0x1000 - 30); /* descriptors that cross a page */
	t->directory = image_builder_here(b);
	put_descriptor(b, t->first_lookup, t->first_dll, t->first_addresses);
	put_descriptor(b, rva_of(0), t->second_dll, t->second_addresses);
	put_descriptor(b, rva_of(0), rva_of(0), rva_of(0));
	image_builder_directory(b, DIRECTORY_IMPORT, t->directory, 60);
}

static enum status open_tables(struct tables *t)
{
	struct built_image built;
	enum status status;

	built_image_open(&built, &t->b);
	status = built.status;
	assert_int_equal(built.diag.status, status);
	built_image_close(&built);
	image_builder_release(&t->b);
	return status;
}

static void check_import(const struct import *import, const char *dll, const char *name,
			 uint16_t ordinal, struct rva slot)
{
	assert_string_equal(import->dll, dll);
	if (name)
		assert_string_equal(import->name, name);
	else
		assert_null(import->name);
	assert_int_equal(import->ordinal, ordinal);
	assert_int_equal(import->slot.v, slot.v);
}

static void imports_are_read(void **state)
{
	struct tables t;
	struct built_image built;
	const struct import *imports;

	(void)state;
	make(&t);
	built_image_open(&built, &t.b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.import_count, 4);
	imports = built.image.imports;
	check_import(&imports[0], "first.dll", "alpha", 7, t.first_addresses);
	check_import(&imports[1], "first.dll", NULL, 513, rva_add(t.first_addresses, 8));
	check_import(&imports[2], "SECOND.DLL", "beta", 8, t.second_addresses);
	check_import(&imports[3], "SECOND.DLL", "?gamma@@YAXXZ", 65535,
		     rva_add(t.second_addresses, 8));
	built_image_close(&built);
	image_builder_release(&t.b);
}

static void no_imports_are_no_error(void **state)
{
	struct tables t;
	struct built_image built;

	(void)state;
	make(&t);
	image_builder_directory(&t.b, DIRECTORY_IMPORT, rva_of(0), 0);
	built_image_open(&built, &t.b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.import_count, 0);
	built_image_close(&built);
	/* An empty table. */
	image_builder_directory(&t.b, DIRECTORY_IMPORT, rva_add(t.directory, 40), 20);
	built_image_open(&built, &t.b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.import_count, 0);
	built_image_close(&built);
	image_builder_release(&t.b);
}

/* The size in the directory says nothing, as for the loader. */
static void the_end_is_an_empty_descriptor(void **state)
{
	struct tables t;
	struct built_image built;

	(void)state;
	make(&t);
	t.b.directories[DIRECTORY_IMPORT].size = 1;
	built_image_open(&built, &t.b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.import_count, 4);
	built_image_close(&built);
	image_builder_release(&t.b);
}

static enum status with_u32(uint32_t offset_in_directory, uint32_t v)
{
	struct tables t;

	make(&t);
	store_u32(image_builder_at(&t.b, rva_add(t.directory, offset_in_directory)), v);
	return open_tables(&t);
}

static enum status with_lookup(uint64_t v)
{
	struct tables t;

	make(&t);
	store_u64(image_builder_at(&t.b, t.first_lookup), v);
	return open_tables(&t);
}

static void tables_that_lead_astray_are_refused(void **state)
{
	static const uint32_t astray[] = {0xfff00000, 0xffffffff, 0x00800000, 0x0f00};
	struct tables t;

	(void)state;
	for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
		assert_int_equal(with_u32(0, astray[i]), STATUS_MALFORMED);  /* lookup */
		assert_int_equal(with_u32(12, astray[i]), STATUS_MALFORMED); /* name */
		assert_int_equal(with_u32(16, astray[i]), STATUS_MALFORMED); /* addresses */
		assert_int_equal(with_u32(36, astray[i]), STATUS_MALFORMED);
		assert_int_equal(with_lookup(astray[i]), STATUS_MALFORMED);
		make(&t);
		t.b.directories[DIRECTORY_IMPORT].rva = rva_of(astray[i]);
		assert_int_equal(open_tables(&t), STATUS_MALFORMED);
	}
	assert_int_equal(with_u32(36, 0), STATUS_MALFORMED); /* neither table */
	make(&t);
	assert_int_equal(with_lookup(0x100000000u + t.alpha.v), STATUS_MALFORMED);
	image_builder_release(&t.b);
}

/* The directory ends with the section's data, without an empty descriptor. */
static void tables_without_end_are_refused(void **state)
{
	struct tables t;

	(void)state;
	make(&t);
	t.b.sections[0].bytes.len -= 20;
	assert_int_equal(open_tables(&t), STATUS_MALFORMED);
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_DATA);
	image_builder_fill(&t.b, 0x80, 64); /* 8 ordinals and no end */
	store_u32(image_builder_at(&t.b, t.directory), t.b.sections[1].rva.v);
	assert_int_equal(open_tables(&t), STATUS_MALFORMED);
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_DATA);
	image_builder_fill(&t.b, 'x', 64); /* a name without end */
	store_u32(image_builder_at(&t.b, rva_add(t.directory, 12)), t.b.sections[1].rva.v);
	assert_int_equal(open_tables(&t), STATUS_MALFORMED);
}

/* LIEF would leave such a DLL out without a word. */
static void names_that_lief_skips_are_refused(void **state)
{
	struct tables t;

	(void)state;
	make(&t);
	memcpy(image_builder_at(&t.b, t.first_dll), "abc", 4);
	assert_int_equal(open_tables(&t), STATUS_UNSUPPORTED);
	make(&t);
	image_builder_at(&t.b, t.first_dll)[2] = 0xfc;
	assert_int_equal(open_tables(&t), STATUS_UNSUPPORTED);
	make(&t);
	image_builder_at(&t.b, t.first_dll)[0] = '\t';
	assert_int_equal(open_tables(&t), STATUS_UNSUPPORTED);
	make(&t);
	memcpy(image_builder_at(&t.b, t.first_dll), "abcd", 5);
	assert_int_equal(open_tables(&t), STATUS_OK);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* `count` descriptors that share one table of `words` imports. */
static enum status open_shared(uint32_t count, uint32_t words)
{
	struct tables t;
	struct rva lookup;

	make(&t);
	image_builder_section(&t.b, ".more", BUILT_DATA);
	lookup = image_builder_here(&t.b);
	for (uint32_t i = 0; i < words; i++)
		image_builder_u64(&t.b, t.alpha.v);
	image_builder_u64(&t.b, 0);
	t.directory = image_builder_here(&t.b);
	for (uint32_t i = 0; i < count; i++)
		put_descriptor(&t.b, lookup, t.first_dll, lookup);
	put_descriptor(&t.b, rva_of(0), rva_of(0), rva_of(0));
	image_builder_directory(&t.b, DIRECTORY_IMPORT, t.directory, 20);
	return open_tables(&t);
}

/* A square number of imports in a small file must not cost its square. */
static void shared_tables_are_bounded(void **state)
{
	double start = seconds();

	(void)state;
	assert_int_equal(open_shared(3, 100), STATUS_OK);
	assert_int_equal(open_shared(2000, 20000), STATUS_MALFORMED);
	assert_int_equal(open_shared(70000, 0), STATUS_MALFORMED);
	assert_true(seconds() - start < 20);
}

/* 100,000 imports that are honest, of one long list. */
static void many_imports_are_read_in_time(void **state)
{
	struct tables t;
	struct built_image built;
	struct rva names, lookup;
	double start;

	(void)state;
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_DATA);
	names = image_builder_here(&t.b);
	for (uint32_t i = 0; i < 100000; i++)
		image_builder_put(&t.b, "\1\0thirteen_byte", 16);
	lookup = image_builder_here(&t.b);
	for (uint32_t i = 0; i < 100000; i++)
		image_builder_u64(&t.b, names.v + i * 16);
	image_builder_u64(&t.b, 0);
	store_u32(image_builder_at(&t.b, t.directory), lookup.v);
	store_u32(image_builder_at(&t.b, rva_add(t.directory, 16)), lookup.v);
	start = seconds();
	built_image_open(&built, &t.b);
	assert_true(seconds() - start < 20);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.import_count, 100002);
	assert_string_equal(built.image.imports[99999].name, "thirteen_byte");
	assert_int_equal(built.image.imports[99999].slot.v, lookup.v + 99999 * 8);
	built_image_close(&built);
	image_builder_release(&t.b);
}

/* Import data in more places than there are windows. */
static void scattered_tables_are_refused(void **state)
{
	struct tables t;
	struct rva lookup;

	(void)state;
	make(&t);
	image_builder_section(&t.b, ".more", BUILT_DATA);
	for (uint32_t i = 0; i < 300; i++) {
		image_builder_put(&t.b, "\1\0n", 4);
		image_builder_fill(&t.b, 0, 0x2000 - 4);
	}
	lookup = image_builder_here(&t.b);
	for (uint32_t i = 0; i < 300; i++)
		image_builder_u64(&t.b, t.b.sections[1].rva.v + i * 0x2000);
	image_builder_u64(&t.b, 0);
	store_u32(image_builder_at(&t.b, t.directory), lookup.v);
	store_u32(image_builder_at(&t.b, rva_add(t.directory, 16)), lookup.v);
	assert_int_equal(open_tables(&t), STATUS_MALFORMED);
}

/* Alignments other than the usual ones, where LIEF rounds on its own. */
static void alignments_do_not_matter(void **state)
{
	static const uint32_t alignments[][2] = {
		{0x200, 0x200}, {0x10, 0x10}, {0x1000, 0x1000}, {0x10000, 0x200},
		{0x10000, 0x10000}, {0x200000, 0x1000}};

	(void)state;
	for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
		struct image_builder b;
		struct built_image built;
		struct rva symbol, dll, lookup;

		image_builder_init(&b);
		b.section_alignment = alignments[i][0];
		b.file_alignment = alignments[i][1];
		image_builder_section(&b, ".data", BUILT_DATA);
		image_builder_fill(&b, 1, 0x123);
		image_builder_section(&b, ".idata", BUILT_DATA);
		symbol = put_symbol(&b, 3, "function");
		dll = image_builder_string(&b, "some.dll");
		lookup = image_builder_u64(&b, symbol.v);
		image_builder_u64(&b, 0);
		image_builder_directory(&b, DIRECTORY_IMPORT, image_builder_here(&b), 40);
		put_descriptor(&b, lookup, dll, lookup);
		put_descriptor(&b, rva_of(0), rva_of(0), rva_of(0));
		built_image_open(&built, &b);
		assert_int_equal(built.status, STATUS_OK);
		assert_int_equal(built.image.headers.section_alignment, alignments[i][0]);
		assert_int_equal(built.image.headers.file_alignment, alignments[i][1]);
		assert_int_equal(built.image.import_count, 1);
		check_import(&built.image.imports[0], "some.dll", "function", 3, lookup);
		built_image_close(&built);
		image_builder_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(imports_are_read),
		cmocka_unit_test(no_imports_are_no_error),
		cmocka_unit_test(the_end_is_an_empty_descriptor),
		cmocka_unit_test(tables_that_lead_astray_are_refused),
		cmocka_unit_test(tables_without_end_are_refused),
		cmocka_unit_test(names_that_lief_skips_are_refused),
		cmocka_unit_test(shared_tables_are_bounded),
		cmocka_unit_test(many_imports_are_read_in_time),
		cmocka_unit_test(scattered_tables_are_refused),
		cmocka_unit_test(alignments_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
