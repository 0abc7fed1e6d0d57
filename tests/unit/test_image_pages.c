#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../profile/image_pages.h"
#include "image_builder.h"

enum { PAGE = IMAGE_PAGE_SIZE };

struct built {
	uint8_t *bytes;
	struct image image;
};

/* Code of two and a half pages, then constants. */
static void build(struct built *b, uint32_t file_alignment)
{
	static const uint8_t code[2 * PAGE + PAGE / 2];
	struct image_builder builder;
	size_t size;

	image_builder_init(&builder);
	builder.file_alignment = file_alignment;
	image_builder_section(&builder, ".text", BUILT_CODE);
	image_builder_put(&builder, code, sizeof(code));
	image_builder_section(&builder, ".rdata", BUILT_CONST);
	image_builder_put(&builder, "text", 5);
	b->bytes = image_builder_finish(&builder, &size);
	image_builder_release(&builder);
	assert_int_equal(image_open_bytes(&b->image, b->bytes, size, "app.dll", NULL),
			 STATUS_OK);
}

static void release(struct built *b)
{
	image_release(&b->image);
	free(b->bytes);
}

static void pages_of_the_file_are_pages_of_the_image(void **state)
{
	struct image_pages pages;
	struct built b;

	(void)state;
	build(&b, PAGE);
	assert_int_equal(image_pages_init(&pages, &b.image, NULL), STATUS_OK);
	assert_int_equal(pages.code, 3);
	assert_int_equal(pages.mapped, 5);
	for (uint32_t i = 0; i < pages.count; i++)
		if (pages.pages[i].mapped)
			assert_int_equal(image_pages_find(&pages, pages.pages[i].rva), i);
	assert_int_equal(image_pages_find(&pages, rva_of(0)), 0);
	for (uint32_t i = 0; i < b.image.section_count; i++) {
		const struct section *s = &b.image.sections[i];
		uint32_t page = image_pages_find(&pages, s->rva);

		assert_int_equal(page, s->raw.v / PAGE);
		assert_int_equal(pages.pages[page].code, i == 0);
	}
	assert_int_equal(image_pages_find(&pages, rva_of(0x7ffff000)), IMAGE_NO_PAGE);
	image_pages_release(&pages);
	release(&b);
}

static void a_file_that_wine_reads_is_refused(void **state)
{
	struct image_pages pages;
	struct diag diag;
	struct built b;

	(void)state;
	diag_init(&diag);
	build(&b, 512);
	assert_int_equal(image_pages_init(&pages, &b.image, &diag), STATUS_UNSUPPORTED);
	assert_non_null(strstr(diag.message, "--order original --file-alignment 4096"));
	release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_the_file_are_pages_of_the_image),
		cmocka_unit_test(a_file_that_wine_reads_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
