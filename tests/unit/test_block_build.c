/* What must move together: fall-through, short branches, and the byte behind a call that
 * ends a function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

static bool together(const struct built_graph *t, struct rva a, struct rva b)
{
	return graph_block_at(&t->graph, a) == graph_block_at(&t->graph, b);
}

static void test_apart(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xdb\xe9\xf9\xff\xff\xff"); /* xor ebx, ebx; jmp g */
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 7);
	built_graph_discover(&t);
	assert_int_equal(t.graph.blocks.len, 2);
	assert_int_equal(built_graph_block(&t, f)->size, 3);
	assert_int_equal(built_graph_block(&t, g)->size, 7);
	built_graph_release(&t);
}

static void test_fall_through(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0");         /* xor eax, eax: runs into g */
	g = BARE(&t, "\x85\xc9\x74\xfc"); /* test ecx, ecx; jz g: runs into h */
	h = CODE(&t, "\xc3");
	built_graph_row(&t, f, 2);
	built_graph_row(&t, g, 4);
	built_graph_row(&t, h, 1);
	built_graph_discover(&t);
	assert_int_equal(t.graph.functions.len, 3);
	assert_int_equal(t.graph.blocks.len, 1);
	assert_int_equal(built_graph_block(&t, f)->size, 7);
	built_graph_release(&t);
}

/* Through the padding that an assembler puts before an aligned entry. */
static void test_fall_through_padding(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0\x0f\x1f\x84\0\0\0\0\0\x66\x0f\x1f\x44\0\0");
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 16);
	built_graph_row(&t, g, 1);
	built_graph_discover(&t);
	assert_true(together(&t, f, g));
	built_graph_release(&t);
}

static void test_bare_code_falls_through(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0");
	g = CODE(&t, "\xc3");
	built_graph_export(&t, f);
	built_graph_export(&t, g);
	built_graph_discover(&t);
	assert_int_equal(t.graph.functions.len, 2);
	assert_true(together(&t, f, g));
	built_graph_release(&t);
}

static void test_short_branch(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3");
	g = CODE(&t, "\xc3");
	h = CODE(&t, "\x85\xc9\x75\xdc\xc3"); /* test ecx, ecx; jnz f; ret */
	built_graph_row(&t, f, 1);
	built_graph_row(&t, g, 1);
	built_graph_row(&t, h, 5);
	built_graph_discover(&t);
	/* All between them stays between them. */
	assert_int_equal(t.graph.blocks.len, 1);
	assert_int_equal(built_graph_block(&t, f)->pins, 0);
	assert_int_equal(built_graph_block(&t, f)->size, 37);
	built_graph_release(&t);
}

static void test_short_branch_inside(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x85\xc9\x75\xfc\xc3");
	g = CODE(&t, "\xff\xc9\x75\xfc\xc3"); /* bare: dec ecx; jnz g; ret */
	built_graph_row(&t, f, 5);
	built_graph_export(&t, g);
	built_graph_discover(&t);
	assert_int_equal(t.graph.blocks.len, 2);
	built_graph_release(&t);
}

/* The byte behind the call belongs to the function that calls, or the unwinder looks for
 * the return address in another one. */
static void test_call_at_end(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\x1b\0\0\0"); /* call h; int3 */
	g = BARE(&t, "\x31\xc0\x31\xc9\x31\xd2\x31\xdb\x31\xf6\x31\xff\xff\x15\0\0");
	h = CODE(&t, "\xc3");
	memcpy(image_builder_at(&t.b, rva_add(g, 11)), "\xe8\0\0\0\0", 5); /* call h */
	built_graph_row(&t, f, 5);
	built_graph_row(&t, g, 16);
	built_graph_row(&t, h, 1);
	built_graph_discover(&t);
	assert_int_equal(built_graph_block(&t, f)->size, 6);
	assert_int_equal(built_graph_function(&t, f)->size, 5);
	assert_true(together(&t, g, h)); /* no byte is left between them */
	assert_false(together(&t, f, g));
	built_graph_release(&t);
}

static void test_call_with_padding_inside(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t,
		 "\xe8\x0b\0\0\0\x90\x66\x90\x0f\x1f\x80\0\0\0\0\x90"); /* call g; nops */
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 16);
	built_graph_row(&t, g, 1);
	built_graph_discover(&t);
	assert_int_equal(built_graph_block(&t, f)->size, 16);
	assert_false(together(&t, f, g));
	built_graph_release(&t);
}

/* There is no byte behind that could go along. */
static void test_call_at_the_section_end(void **unused)
{
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	CODE(&t, "\xc3");
	f = BARE(&t, "\xe8\xfb\xff\xff\xff");
	built_graph_row(&t, f, 5);
	built_graph_discover(&t);
	assert_int_not_equal(PINS(&t, f), 0);
	built_graph_release(&t);
}

static void test_open_at_the_section_end(void **unused)
{
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0");
	built_graph_row(&t, f, 2);
	built_graph_discover(&t);
	assert_int_not_equal(PINS(&t, f), 0);
	built_graph_release(&t);
}

/* Two sections can be as close as a short branch reaches; they move by themselves. */
static void test_short_branch_to_another_section(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	image_builder_fill(&t.b, 0xcc, 4096 - 16);
	f = CODE(&t, "\x90\x90\x90\xeb\x0b\xc3"); /* jmp g */
	g = image_builder_section(&t.b, ".more", BUILT_CODE);
	CODE(&t, "\xc3");
	built_graph_row(&t, f, 6);
	built_graph_row(&t, g, 1);
	built_graph_discover(&t);
	assert_int_equal(g.v, f.v + 16);
	assert_int_not_equal(PINS(&t, f), 0);
	assert_int_not_equal(PINS(&t, g), 0);
	assert_false(together(&t, f, g));
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_fall_through),
		cmocka_unit_test(test_fall_through_padding),
		cmocka_unit_test(test_bare_code_falls_through),
		cmocka_unit_test(test_short_branch),
		cmocka_unit_test(test_short_branch_inside),
		cmocka_unit_test(test_call_at_end),
		cmocka_unit_test(test_call_with_padding_inside),
		cmocka_unit_test(test_call_at_the_section_end),
		cmocka_unit_test(test_open_at_the_section_end),
		cmocka_unit_test(test_short_branch_to_another_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
