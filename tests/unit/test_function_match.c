/* Functions of two builds, described by hand: "name:content>callee,callee ..." in the
 * order of the image; a callee is its place in the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/function_match.h"

enum { FUNCTIONS_MAX = 32, CALLEES_MAX = 128, SIZE = 100, STRIDE = 0x100 };

struct build {
	struct function_identity list[FUNCTIONS_MAX];
	struct rva callees[CALLEES_MAX];
	char names[FUNCTIONS_MAX][16];
	struct function_identities functions;
};

static void describe(struct build *b, const char *text)
{
	uint32_t count = 0, callees = 0;

	memset(b, 0, sizeof(*b));
	while (*text) {
		struct function_identity *f = &b->list[count];
		size_t length = strcspn(text, ":");

		memcpy(b->names[count], text, length);
		f->name = length ? b->names[count] : NULL;
		f->rva = rva_of(0x1000 + STRIDE * count++);
		f->size = SIZE;
		f->content = strtoull(text + length + 1, (char **)&text, 10);
		f->first_callee = callees;
		while (*text == '>' || *text == ',')
			b->callees[callees++] = rva_of(
				0x1000 +
				STRIDE * (uint32_t)strtoul(text + 1, (char **)&text, 10));
		f->callee_count = callees - f->first_callee;
		text += *text == ' ';
	}
	b->functions = (struct function_identities){b->list, count, b->callees, callees};
}

/* The matches as "n3 c1 b0 -": the way's letter, and the place in the new build. */
static void assert_matches(const char *before, const char *after, const char *expected)
{
	static const char letters[MATCH_WAY_COUNT] = {'-', 'n', 'c', 'b'};
	static struct build old, new;
	struct function_match match;
	char found[256] = "";

	describe(&old, before);
	describe(&new, after);
	assert_int_equal(function_match_make(&old.functions, &new.functions, &match, NULL),
			 STATUS_OK);
	for (uint32_t i = 0; i < match.count; i++) {
		char one[16] = "-";

		if (match.to[i] != NO_FUNCTION)
			snprintf(one, sizeof(one), "%c%u", letters[match.way[i]], match.to[i]);
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s",
			 i ? " " : "", one);
	}
	assert_string_equal(found, expected);
	function_match_release(&match);
}

static void names_come_first(void **state)
{
	(void)state;
	assert_matches("a:1 b:2", "b:1 a:2", "n1 n0");
	assert_matches("", "a:1", "");
	assert_matches("a:1", "", "-");
}

/* Two static functions of one name: their content tells them apart. */
static void a_name_of_two_needs_content(void **state)
{
	(void)state;
	assert_matches("x:1 x:2", ":9 x:2 x:1", "n2 n1");
	assert_matches("x:1 x:2 q:5", "x:3 x:4 q:5 :8", "- - n2");
}

static void content_that_is_unique(void **state)
{
	(void)state;
	assert_matches(":11 :12 :13", ":13 :99 :11", "c2 - c0");
	/* Unknown content is equal to nothing. */
	assert_matches(":0", ":0", "-");
}

/* The second callee of a matched function, both of whose others are matched. */
static void callees_by_their_place(void **state)
{
	(void)state;
	assert_matches("m:1>1,2,3 a:2 :3 c:4 z:9", "z:9 m:1>4,3,2 c:4 :7 a:2",
		       "n1 n4 b3 n2 n0");
}

/* The order in the image alone, where nothing calls anything. */
static void functions_between_matched_ones(void **state)
{
	(void)state;
	assert_matches("a:1 :2 :3 b:4", "a:1 :5 :6 b:4", "n0 b1 b2 n3");
	/* One more stands between: which one is new cannot be told. */
	assert_matches("a:1 :2 :3 b:4", "a:1 :5 :6 :7 b:4", "n0 - - n4");
}

/* The only function that calls a matched one. */
static void the_lone_caller(void **state)
{
	(void)state;
	assert_matches("leaf:1 x:8 y:9 :2>0", ":3>3 y:9 x:8 leaf:1", "n3 n2 n1 b0");
}

/* Two copies of one thunk: who calls them tells them apart. */
static void equal_content_by_its_callers(void **state)
{
	(void)state;
	assert_matches("f:1>2 g:2>3 :7 :7", "g:2>2 f:1>3 :7 :7", "n1 n0 b3 b2");
	/* Without callers, as many on both sides: in their order. */
	assert_matches(":7 f:1 :7", ":7 :7 f:1", "c0 n2 c1");
	assert_matches(":7 f:1 :7", ":7 :7 :7 f:1", "- n3 -");
}

/* A function that became ten times as large is another one. */
static void sizes_must_be_alike(void **state)
{
	static struct build old, new;
	struct function_match match;

	(void)state;
	describe(&old, "a:1 :2 b:4");
	describe(&new, "a:1 :5 b:4");
	new.list[1].size = 10 * SIZE;
	assert_int_equal(function_match_make(&old.functions, &new.functions, &match, NULL),
			 STATUS_OK);
	assert_int_equal(match.to[1], NO_FUNCTION);
	function_match_release(&match);
}

/* Callees outside the list are passed over. */
static void callees_that_are_not_there(void **state)
{
	(void)state;
	assert_matches("m:1>9,1 :2", "m:1>9,1 :3", "n0 b1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_first),
		cmocka_unit_test(a_name_of_two_needs_content),
		cmocka_unit_test(content_that_is_unique),
		cmocka_unit_test(callees_by_their_place),
		cmocka_unit_test(functions_between_matched_ones),
		cmocka_unit_test(the_lone_caller),
		cmocka_unit_test(equal_content_by_its_callers),
		cmocka_unit_test(sizes_must_be_alike),
		cmocka_unit_test(callees_that_are_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
