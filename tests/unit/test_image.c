#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image_builder.h"

static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_put(b, "\xaa\xbb\xcc", 3);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_fill(b, 0x55, 0x200);
	image_builder_virtual_size(b, 0x1800);
	image_builder_section(b, ".rdata", BUILT_CONST);
	image_builder_string(b, "constant");
	image_builder_fill(b, 'x', 3);
}

static int setup(void **state)
{
	struct built_image *built = calloc(1, sizeof(*built));
	struct image_builder b;

	make(&b);
	built_image_open(built, &b);
	image_builder_release(&b);
	*state = built;
	return built->status;
}

static int teardown(void **state)
{
	built_image_close(*state);
	free(*state);
	return 0;
}

static const char *name_at(const struct image *image, uint32_t rva)
{
	const struct section *section = image_section_at(image, rva_of(rva));

	return section ? section->name : "none";
}

static void sections_are_found(void **state)
{
	const struct image *image = &((struct built_image *)*state)->image;

	assert_string_equal(name_at(image, 0), "none");
	assert_string_equal(name_at(image, 0xfff), "none");
	assert_string_equal(name_at(image, 0x1000), ".text");
	assert_string_equal(name_at(image, 0x1002), ".text");
	assert_string_equal(name_at(image, 0x1003), "none");
	assert_string_equal(name_at(image, 0x2000), ".data");
	assert_string_equal(name_at(image, 0x37ff), ".data");
	assert_string_equal(name_at(image, 0x3800), "none");
	assert_string_equal(name_at(image, 0x400a), ".rdata");
	assert_string_equal(name_at(image, 0xffffffff), "none");
	assert_true(image_is_code(image, rva_of(0x1002)));
	assert_false(image_is_code(image, rva_of(0x1003)));
	assert_false(image_is_code(image, rva_of(0x2000)));
	assert_true(image_is_read_only(image, rva_of(0x4000)));
	assert_true(image_is_read_only(image, rva_of(0x1000)));
	assert_false(image_is_read_only(image, rva_of(0x2000)));
	assert_false(image_is_read_only(image, rva_of(0x3800)));
}

static void bytes_end_with_the_data(void **state)
{
	struct built_image *built = *state;
	const struct image *image = &built->image;

	assert_ptr_equal(image_bytes(image, rva_of(0), 0x600), built->bytes);
	assert_null(image_bytes(image, rva_of(0), 0x601));
	assert_null(image_bytes(image, rva_of(0x600), 1));
	assert_memory_equal(image_bytes(image, rva_of(0x1000), 3), "\xaa\xbb\xcc", 3);
	assert_null(image_bytes(image, rva_of(0x1000), 4)); /* padding of the file */
	assert_non_null(image_bytes(image, rva_of(0x21ff), 1));
	assert_null(image_bytes(image, rva_of(0x21ff), 2)); /* zero memory */
	assert_null(image_bytes(image, rva_of(0x2200), 0));
	assert_null(image_bytes(image, rva_of(0x2000), 0xffffffff));
	assert_null(image_bytes(image, rva_of(0xffffffff), 2));
}

static void readers_end_with_the_data(void **state)
{
	const struct image *image = &((struct built_image *)*state)->image;
	struct reader r = image_reader(image, rva_of(0x1001));

	assert_int_equal(reader_left(&r), 2);
	assert_int_equal(read_u16(&r), 0xccbb);
	assert_false(r.failed);
	assert_int_equal(read_u8(&r), 0);
	assert_true(r.failed);
	r = image_reader(image, rva_of(0x2200));
	assert_true(r.failed);
	assert_int_equal(reader_left(&r), 0);
}

static void strings_end_inside_the_data(void **state)
{
	const struct image *image = &((struct built_image *)*state)->image;

	assert_string_equal(image_string(image, rva_of(0x4000)), "constant");
	assert_string_equal(image_string(image, rva_of(0x4008)), "");
	assert_null(image_string(image, rva_of(0x4009))); /* "xxx" without an end */
	assert_null(image_string(image, rva_of(0x2000)));
	assert_null(image_string(image, rva_of(0x9000)));
}

static void long_strings_are_none(void **state)
{
	struct image_builder b;
	struct built_image built;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	image_builder_fill(&b, 'y', IMAGE_STRING_MAX);
	image_builder_u16(&b, 0);
	built_image_open(&built, &b);
	assert_null(image_string(&built.image, rva_of(0x1000)));
	assert_int_equal(strlen(image_string(&built.image, rva_of(0x1001))),
			 IMAGE_STRING_MAX - 1);
	built_image_close(&built);
	image_builder_release(&b);
}

static void opens_files(void **state)
{
	const struct built_image *built = *state;
	char path[] = "/tmp/appulse-image-XXXXXX";
	int fd = mkstemp(path);
	struct image image;
	struct diag diag;

	assert_int_equal(write(fd, built->bytes, built->size), built->size);
	close(fd);
	assert_int_equal(image_open(&image, path, &diag), STATUS_OK);
	assert_int_equal(image.section_count, 3);
	assert_string_equal(image.path, path);
	assert_int_equal(image.size, built->size);
	image_release(&image);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(image_open(&image, path, &diag), STATUS_NOT_PE);
	assert_string_equal(diag.file, path);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(image_open(&image, path, &diag), STATUS_NOT_PE);
	unlink(path);
	assert_int_equal(image_open(&image, path, &diag), STATUS_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_are_found),
		cmocka_unit_test(bytes_end_with_the_data),
		cmocka_unit_test(readers_end_with_the_data),
		cmocka_unit_test(strings_end_inside_the_data),
		cmocka_unit_test(long_strings_are_none),
		cmocka_unit_test(opens_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
