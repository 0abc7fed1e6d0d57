#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../../reorder/address_filter.h"

static const char map_text[] =
	"{\"format\":\"appulse-map\",\"schema\":1,"
	"\"original\":\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"relinked\":\"1111111111111111111111111111111111111111111111111111111111111111\","
	"\"moves\":[[4096,8192,256],[8192,1048576,16]]}";

static struct address_filter run_line(const char *module, bool back, const char *line,
				      size_t size, const char *expected,
				      size_t expected_size)
{
	struct move_map map = {0};
	struct address_filter filter = {.map = &map, .module = module, .back = back};
	char *text = NULL;
	size_t written = 0;
	FILE *out = open_memstream(&text, &written);

	assert_int_equal(move_map_parse(&map, map_text, sizeof(map_text) - 1, NULL),
			 STATUS_OK);
	assert_non_null(out);
	address_filter_line(&filter, line, size, out);
	fclose(out);
	assert_int_equal(written, expected_size);
	assert_memory_equal(text, expected, written);
	free(text);
	move_map_release(&map);
	return filter;
}

static void check(const char *line, const char *expected, unsigned translated,
		  unsigned gone)
{
	struct address_filter filter =
		run_line("app.dll", true, line, strlen(line), expected, strlen(expected));

	assert_int_equal(filter.translated, translated);
	assert_int_equal(filter.gone, gone);
}

static void test_addresses(void **state)
{
	(void)state;
	check("app+0x2010", "app+0x1010", 1, 0);
	check("#1 0x7ff61000 app.dll+0x2010 (x)\n", "#1 0x7ff61000 app.dll+0x1010 (x)\n", 1,
	      0);
	check("APP.DLL+0X00002010,App+0x100000!", "APP.DLL+0X00001010,App+0x002000!", 2, 0);
	check("app+0x9000", "app+0x9000", 1, 0);
}

static void test_what_is_none(void **state)
{
	(void)state;
	check("myapp+0x2010", "myapp+0x2010", 0, 0);
	check("my-app+0x2010 x.app+0x2010", "my-app+0x2010 x.app+0x2010", 0, 0);
	check("\xc3\xa9"
	      "app+0x2010",
	      "\xc3\xa9"
	      "app+0x2010",
	      0, 0);
	check("app!f+0x2010 app.exe+0x2010", "app!f+0x2010 app.exe+0x2010", 0, 0);
	check("app+2010 app+0x app +0x2010 app+0xg", "app+2010 app+0x app +0x2010 app+0xg",
	      0, 0);
	check("", "", 0, 0);
}

/* Code has moved away from 0x1000; and an address that is no RVA. */
static void test_what_has_no_other(void **state)
{
	(void)state;
	check("app+0x1004 app+0x123456789", "app+0x1004 app+0x123456789", 0, 2);
}

static void test_forward_and_other_names(void **state)
{
	static const char nul[] = "a\0app+0x1000\0", moved[] = "a\0app+0x2000\0";

	(void)state;
	run_line("app", false, nul, sizeof(nul), moved, sizeof(moved));
	run_line(".dll", false, ".dll+0x1000", 11, ".dll+0x2000", 11);
	run_line("a b.dll", false, "a b+0x2000", 10, "a b+0x100000", 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_what_has_no_other),
		cmocka_unit_test(test_forward_and_other_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
