#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/tls.h"

enum { CODE = 0x1000, DATA = 0x2000, ARRAY = DATA + 40 };

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 16);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_va(b, rva_of(0x3000)); /* template */
	image_builder_va(b, rva_of(0x3010));
	image_builder_va(b, rva_of(DATA)); /* index */
	image_builder_va(b, rva_of(ARRAY));
	image_builder_u64(b, 0);
	image_builder_va(b, rva_of(CODE + 1)); /* callbacks */
	image_builder_va(b, rva_of(CODE + 8));
	image_builder_u64(b, 0);
	image_builder_section(b, ".tls", BUILT_DATA);
	image_builder_fill(b, 0, 16);
	image_builder_directory(b, DIRECTORY_TLS, rva_of(DATA), 40);
}

static enum status read_made(struct image_builder *b, struct built_image *built,
			     struct tls *ret_tls)
{
	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(b);
	return tls_read(&built->image, ret_tls, &built->diag);
}

static void callbacks_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct tls tls;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, &built, &tls), STATUS_OK);
	assert_int_equal(tls.count, 2);
	assert_int_equal(tls.callbacks[0].target.v, CODE + 1);
	assert_int_equal(tls.callbacks[0].site.v, ARRAY);
	assert_int_equal(tls.callbacks[1].target.v, CODE + 8);
	assert_int_equal(tls.callbacks[1].site.v, ARRAY + 8);
	assert_int_equal(tls.data_begin.v, 0x3000);
	assert_int_equal(tls.data_end.v, 0x3010);
	built_image_close(&built);
}

static void parts_may_be_absent(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct tls tls;

	(void)state;
	make(&b);
	image_builder_directory(&b, DIRECTORY_TLS, rva_of(0), 0);
	assert_int_equal(read_made(&b, &built, &tls), STATUS_OK);
	assert_int_equal(tls.count, 0);
	assert_int_equal(tls.data_end.v, 0);
	built_image_close(&built);
	make(&b);
	memset(image_builder_at(&b, rva_of(DATA)), 0, 40);
	assert_int_equal(read_made(&b, &built, &tls), STATUS_OK);
	assert_int_equal(tls.count, 0);
	built_image_close(&built);
	make(&b);
	store_u64(image_builder_at(&b, rva_of(ARRAY)), 0);
	store_u64(image_builder_at(&b, rva_of(DATA + 8)), BUILT_IMAGE_BASE + 0x3000);
	assert_int_equal(read_made(&b, &built, &tls), STATUS_OK);
	assert_int_equal(tls.count, 0);
	assert_int_equal(tls.data_begin.v, 0); /* an empty template is none */
	built_image_close(&built);
}

static void refused(uint32_t rva, uint64_t v)
{
	struct image_builder b;
	struct built_image built;
	struct tls tls = {.count = 9};

	make(&b);
	store_u64(image_builder_at(&b, rva_of(rva)), v);
	if (read_made(&b, &built, &tls) != STATUS_MALFORMED)
		fail_msg("0x%llx at 0x%x is accepted", (unsigned long long)v, rva);
	assert_int_equal(tls.count, 9);
	built_image_close(&built);
}

static void bad_directories_are_refused(void **state)
{
	static const uint64_t astray[] = {1, BUILT_IMAGE_BASE - 1,
					  BUILT_IMAGE_BASE + 0x4001, UINT64_MAX};
	struct image_builder b;
	struct built_image built;
	struct tls tls;

	(void)state;
	for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
		refused(DATA, astray[i]);
		refused(DATA + 8, astray[i]);
		refused(DATA + 24, astray[i]);
		refused(ARRAY, astray[i]);
	}
	refused(DATA + 8, BUILT_IMAGE_BASE + 0x2fff); /* ends before it begins */
	refused(ARRAY + 16, BUILT_IMAGE_BASE + CODE); /* an array without end */
	make(&b);
	image_builder_directory(&b, DIRECTORY_TLS, rva_of(ARRAY - 8), 40);
	assert_int_equal(read_made(&b, &built, &tls), STATUS_MALFORMED);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callbacks_are_read),
		cmocka_unit_test(parts_may_be_absent),
		cmocka_unit_test(bad_directories_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
