#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"

/* An image with code, data that is partly zero memory, and a constant section. */
static void make(struct image_builder *b)
{
	image_builder_init(b);
	b->entry = image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 16);
	image_builder_section(b, ".data", BUILT_DATA);
	image_builder_fill(b, 0x55, 0x300);
	image_builder_virtual_size(b, 0x1800);
	image_builder_section(b, ".rdata12", BUILT_CONST);
	image_builder_string(b, "constant");
	image_builder_directory(b, DIRECTORY_RESOURCE, rva_of(0x4000), 0x10);
}

/* Opens the image after `size` bytes at `offset` were set to `value`. */
static enum status open_changed(uint32_t offset, uint64_t value, unsigned size)
{
	struct image_builder b;
	struct built_image built = {0};
	struct diag diag;
	enum status status;

	make(&b);
	built.bytes = image_builder_finish(&b, &built.size);
	for (unsigned i = 0; i < size; i++)
		built.bytes[offset + i] = (uint8_t)(value >> i * 8);
	status = image_open_bytes(&built.image, built.bytes, built.size, "changed", &diag);
	if (status == STATUS_OK) {
		image_release(&built.image);
	} else {
		assert_int_equal(diag.status, status);
		assert_string_equal(diag.file, "changed");
		assert_true(diag.message[0] != '\0');
	}
	free(built.bytes);
	image_builder_release(&b);
	return status;
}

static void headers_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	const struct pe_headers *h = &built.image.headers;

	(void)state;
	make(&b);
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(h->pe.v, BUILT_PE);
	assert_int_equal(h->optional.v, BUILT_OPTIONAL);
	assert_int_equal(h->directories.v, BUILT_DIRECTORIES);
	assert_int_equal(h->section_table.v, BUILT_SECTIONS);
	assert_int_equal(h->machine, 0x8664);
	assert_int_equal(h->characteristics, 0x2022);
	assert_int_equal(h->time_date_stamp, 0x5eaf00d5);
	assert_int_equal(h->symbol_table.v, 0);
	assert_true(h->image_base == BUILT_IMAGE_BASE);
	assert_int_equal(h->entry.v, 0x1000);
	assert_int_equal(h->section_alignment, 0x1000);
	assert_int_equal(h->file_alignment, 0x200);
	assert_int_equal(h->size_of_image, 0x5000);
	assert_int_equal(h->size_of_headers, 0x600);
	assert_int_equal(h->checksum, 0x12345678);
	assert_int_equal(h->subsystem, 3);
	assert_int_equal(h->dll_characteristics, 0x160);
	assert_int_equal(h->directory_count, 16);
	assert_int_equal(built.image.directories[DIRECTORY_RESOURCE].rva.v, 0x4000);
	assert_int_equal(built.image.directories[DIRECTORY_RESOURCE].size, 0x10);
	assert_int_equal(built.image.directories[DIRECTORY_EXPORT].rva.v, 0);
	assert_string_equal(built.image.path, "built");
	built_image_close(&built);
	image_builder_release(&b);
}

static void sections_are_read(void **state)
{
	struct image_builder b;
	struct built_image built;
	const struct section *s;

	(void)state;
	make(&b);
	built_image_open(&built, &b);
	assert_int_equal(built.image.section_count, 3);
	s = built.image.sections;
	assert_string_equal(s[0].name, ".text");
	assert_int_equal(s[0].rva.v, 0x1000);
	assert_int_equal(s[0].virtual_size, 16);
	assert_int_equal(s[0].raw.v, 0x600);
	assert_int_equal(s[0].raw_size, 0x200);
	assert_int_equal(s[0].characteristics, BUILT_CODE);
	assert_int_equal(s[0].header.v, BUILT_SECTIONS);
	assert_int_equal(s[1].rva.v, 0x2000);
	assert_int_equal(s[1].virtual_size, 0x1800);
	assert_int_equal(s[1].raw.v, 0x800);
	assert_int_equal(s[1].raw_size, 0x400);
	assert_true(s[1].characteristics == BUILT_DATA);
	assert_string_equal(s[2].name, ".rdata12"); /* all 8 bytes */
	assert_int_equal(s[2].rva.v, 0x4000);
	assert_int_equal(s[2].header.v, BUILT_SECTIONS + 80);
	built_image_close(&built);
	image_builder_release(&b);
}

struct change {
	uint32_t offset;
	uint64_t value;
	unsigned size;
	enum status status;
};

static void check_changes(const struct change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum status status = open_changed(changes[i].offset, changes[i].value,
						  changes[i].size);

		if (status != changes[i].status)
			fail_msg("0x%llx at 0x%x: %s, expected %s",
				 (unsigned long long)changes[i].value, changes[i].offset,
				 status_name(status), status_name(changes[i].status));
	}
}

static void bad_headers_are_refused(void **state)
{
	static const struct change changes[] = {
		{0, 'Z', 1, STATUS_NOT_PE},
		{0x3c, 0xfffffff0, 4, STATUS_NOT_PE},
		{0x3c, 0x81, 4, STATUS_NOT_PE},
		{BUILT_PE, 'X', 1, STATUS_NOT_PE},
		{BUILT_FILE_HEADER, 0x14c, 2, STATUS_MACHINE},
		{BUILT_FILE_HEADER, 0xaa64, 2, STATUS_MACHINE},
		{BUILT_FILE_HEADER + 2, 0, 2, STATUS_MALFORMED},      /* no sections */
		{BUILT_FILE_HEADER + 2, 97, 2, STATUS_MALFORMED},     /* too many */
		{BUILT_FILE_HEADER + 2, 0xffff, 2, STATUS_MALFORMED},
		{BUILT_FILE_HEADER + 16, 0, 2, STATUS_MALFORMED},     /* optional size */
		{BUILT_FILE_HEADER + 16, 111, 2, STATUS_MALFORMED},
		{BUILT_FILE_HEADER + 16, 0xffff, 2, STATUS_MALFORMED},
		{BUILT_FILE_HEADER + 18, 0x2020, 2, STATUS_MALFORMED}, /* no image */
		{BUILT_OPTIONAL, 0x10b, 2, STATUS_MALFORMED},          /* PE32 */
		{BUILT_OPTIONAL + 16, 0x5000, 4, STATUS_MALFORMED},    /* entry */
		{BUILT_OPTIONAL + 24, 0x180000001, 8, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 32, 0, 4, STATUS_MALFORMED}, /* section alignment */
		{BUILT_OPTIONAL + 32, 0x1001, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 32, 0x100, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 32, 0x4000, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 36, 0, 4, STATUS_MALFORMED}, /* file alignment */
		{BUILT_OPTIONAL + 36, 0x300, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 36, 0x20000, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 36, 0x1000, 4, STATUS_MALFORMED}, /* raw at 0x600 */
		{BUILT_OPTIONAL + 56, 0x4000, 4, STATUS_MALFORMED}, /* image size */
		{BUILT_OPTIONAL + 56, 0x80000001, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 60, 0x100, 4, STATUS_MALFORMED}, /* header size */
		{BUILT_OPTIONAL + 60, 0xffffff00, 4, STATUS_MALFORMED},
		{BUILT_OPTIONAL + 60, 0x800, 4, STATUS_OVERLAP}, /* over .text's data */
		{BUILT_OPTIONAL + 108, 17, 4, STATUS_MALFORMED}, /* directories */
		{BUILT_OPTIONAL + 108, 0xffffffff, 4, STATUS_MALFORMED},
	};

	(void)state;
	check_changes(changes, sizeof(changes) / sizeof(changes[0]));
}

static void bad_sections_are_refused(void **state)
{
	enum { TEXT = BUILT_SECTIONS, DATA = TEXT + 40, LAST = DATA + 40 };
	static const struct change changes[] = {
		{TEXT + 12, 0, 4, STATUS_OVERLAP},       /* over the headers */
		{DATA + 12, 0x1000, 4, STATUS_OVERLAP},  /* over .text */
		{DATA + 12, 0x5000, 4, STATUS_MALFORMED}, /* beyond the image */
		{DATA + 12, 0x2010, 4, STATUS_MALFORMED}, /* not aligned */
		{DATA + 8, 0x2001, 4, STATUS_OVERLAP},    /* into .rdata */
		{DATA + 8, 0xffffffff, 4, STATUS_MALFORMED},
		{LAST + 8, 0x1001, 4, STATUS_MALFORMED},
		{LAST + 12, 0x1000, 4, STATUS_OVERLAP}, /* out of order */
		{DATA + 20, 0x601, 4, STATUS_MALFORMED},
		{DATA + 20, 0x600, 4, STATUS_OVERLAP},  /* over .text's data */
		{DATA + 20, 0x400, 4, STATUS_OVERLAP},  /* over the headers */
		{DATA + 16, 0x600, 4, STATUS_OVERLAP},  /* into .rdata's data */
		{LAST + 16, 0x201, 4, STATUS_MALFORMED}, /* beyond the file */
		{LAST + 16, 0xffffffff, 4, STATUS_MALFORMED},
		{LAST + 20, 0xfffffe00, 4, STATUS_MALFORMED},
	};

	(void)state;
	check_changes(changes, sizeof(changes) / sizeof(changes[0]));
}

static void an_image_may_not_wrap_around(void **state)
{
	struct image_builder b;
	struct built_image built;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_virtual_size(&b, 0xf000);
	b.image_base = 0xffffffffffff0000;
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_MALFORMED);
	built_image_close(&built);
	b.image_base = 0xfffffffffffe0000;
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	built_image_close(&built);
	image_builder_release(&b);
}

/* What is unusual but sound. */
static void odd_sections_are_accepted(void **state)
{
	enum { TEXT = BUILT_SECTIONS, DATA = TEXT + 40 };

	(void)state;
	assert_int_equal(open_changed(DATA + 16, 0x3ff, 4), STATUS_OK);
	assert_int_equal(open_changed(DATA + 8, 0x2000, 4), STATUS_OK);
	assert_int_equal(open_changed(BUILT_OPTIONAL + 108, 2, 4), STATUS_OK);
	assert_int_equal(open_changed(TEXT + 8, 0, 4), STATUS_OK);
	/* Old GNU linkers: .bss with a raw size but no place in the file. */
	assert_int_equal(open_changed(DATA + 20, 0, 4), STATUS_OK);
}

static void every_shorter_file_is_refused(void **state)
{
	struct image_builder b;
	struct built_image built = {0};
	struct diag diag;

	(void)state;
	make(&b);
	built.bytes = image_builder_finish(&b, &built.size);
	for (size_t size = 0; size < built.size; size++) {
		/* An own allocation, so that a sanitizer sees reads behind it. */
		uint8_t *cut = malloc(size ? size : 1);

		memcpy(cut, built.bytes, size);
		assert_int_not_equal(
			image_open_bytes(&built.image, cut, size, "cut", &diag), STATUS_OK);
		free(cut);
	}
	free(built.bytes);
	image_builder_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read),
		cmocka_unit_test(sections_are_read),
		cmocka_unit_test(bad_headers_are_refused),
		cmocka_unit_test(bad_sections_are_refused),
		cmocka_unit_test(an_image_may_not_wrap_around),
		cmocka_unit_test(odd_sections_are_accepted),
		cmocka_unit_test(every_shorter_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
