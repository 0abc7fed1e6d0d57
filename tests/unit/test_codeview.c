#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pe/codeview.h"

/* A file of one entry's data: GUID 00112233-4455-6677-8899-aabbccddeeff, age 3. */
static const uint8_t data[] =
	"RSDS\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff\3\0\0\0a.pdb";

static struct codeview read_entry(const uint8_t *bytes, uint32_t size, uint32_t type)
{
	struct debug_entry entry = {.type = type, .size = size};
	struct debug_directory debug = {&entry, 1};
	struct image image = {.bytes = bytes, .size = size};
	struct codeview codeview;

	codeview_read(&image, &debug, &codeview);
	return codeview;
}

static void guid_age_and_path_are_read(void **state)
{
	struct codeview codeview = read_entry(data, sizeof(data), DEBUG_TYPE_CODEVIEW);

	(void)state;
	assert_string_equal(codeview.pdb, "a.pdb");
	assert_string_equal(codeview.guid, "{00112233-4455-6677-8899-AABBCCDDEEFF}");
	assert_int_equal(codeview.age, 3);
}

static void other_entries_are_none(void **state)
{
	uint8_t other[sizeof(data)];

	(void)state;
	assert_null(read_entry(data, sizeof(data), 13).pdb);
	/* The path does not end. */
	assert_null(read_entry(data, sizeof(data) - 1, DEBUG_TYPE_CODEVIEW).pdb);
	assert_null(read_entry(data, 24, DEBUG_TYPE_CODEVIEW).pdb);
	assert_null(read_entry(data, 3, DEBUG_TYPE_CODEVIEW).pdb);
	memcpy(other, data, sizeof(other));
	memcpy(other, "NB10", 4);
	assert_null(read_entry(other, sizeof(other), DEBUG_TYPE_CODEVIEW).pdb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guid_age_and_path_are_read),
		cmocka_unit_test(other_entries_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
