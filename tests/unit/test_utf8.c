#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/utf8.h"

static void check(const char *text, bool keep_controls, const char *expected)
{
	char buffer[64];

	assert_true(strlen(text) < sizeof(buffer));
	strcpy(buffer, text);
	utf8_clean(buffer, keep_controls);
	assert_string_equal(buffer, expected);
}

static void well_formed_text_stays(void **state)
{
	/* The ends of each row of table 3-7. */
	static const char *const good[] = {"",
					   "plain ~",
					   "\xc2\xa0",
					   "\xdf\xbf",
					   "\xe0\xa0\x80",
					   "\xe0\xbf\xbf",
					   "\xe1\x80\x80",
					   "\xec\xbf\xbf",
					   "\xed\x80\x80",
					   "\xed\x9f\xbf",
					   "\xee\x80\x80",
					   "\xef\xbf\xbf",
					   "\xf0\x90\x80\x80",
					   "\xf0\xbf\xbf\xbf",
					   "\xf1\x80\x80\x80",
					   "\xf3\xbf\xbf\xbf",
					   "\xf4\x80\x80\x80",
					   "\xf4\x8f\xbf\xbf"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		check(good[i], false, good[i]);
		check(good[i], true, good[i]);
	}
}

static void ill_formed_bytes_become_question_marks(void **state)
{
	(void)state;
	check("a\x80z", true, "a?z");  /* a lone continuation byte */
	check("\xc0\x80", true, "??"); /* overlong */
	check("\xc1\xbf", true, "??");
	check("\xe0\x9f\xbf", true, "???");
	check("\xf0\x8f\xbf\xbf", true, "????");
	check("\xed\xa0\x80", true, "???");	 /* a surrogate */
	check("\xf4\x90\x80\x80", true, "????"); /* beyond U+10FFFF */
	check("\xf5\x80\x80\x80", true, "????");
	check("\xff\xfe", true, "??");
	check("\xe2\x82", true, "??");	 /* cut off at the end */
	check("\xe2\x82z", true, "??z"); /* and before another letter */
	check("\xf0\x9f\x98\xe2\x82\xac", true, "???\xe2\x82\xac");
}

static void controls_are_cleaned_unless_kept(void **state)
{
	(void)state;
	check("a\tb\nc\033[1m\x7f", true, "a\tb\nc\033[1m\x7f");
	check("a\tb\nc\033[1m\x7f", false, "a?b?c?[1m?");
	/* The one-character CSI. */
	check("\xc2\x9bm", true, "\xc2\x9bm");
	check("\xc2\x9bm", false, "??m");
	check("\xc2\x80\xc2\x9f\xc2\xa0", false, "????\xc2\xa0");
}

static void width_counts_code_points(void **state)
{
	(void)state;
	assert_int_equal(utf8_width(""), 0);
	assert_int_equal(utf8_width("abc"), 3);
	assert_int_equal(utf8_width("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x"), 4);
}

static void test_is_clean(void **unused)
{
	static const char *const clean[] = {"", "plain", "\xc3\xa4\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	static const char *const unclean[] = {"\x1b[2J", "\x7f", "\xc2\x9b", "\xff", "a\xe2\x82",
					      "\xc0\x80", "\xed\xa0\x80"};

	(void)unused;
	for (unsigned i = 0; i < sizeof(clean) / sizeof(*clean); i++)
		assert_true(utf8_is_clean(clean[i]));
	for (unsigned i = 0; i < sizeof(unclean) / sizeof(*unclean); i++)
		assert_false(utf8_is_clean(unclean[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_clean),
		cmocka_unit_test(well_formed_text_stays),
		cmocka_unit_test(ill_formed_bytes_become_question_marks),
		cmocka_unit_test(controls_are_cleaned_unless_kept),
		cmocka_unit_test(width_counts_code_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
