/* Calls that do not return, and what is known behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

enum { FLAG_EHANDLER = 1 << 3, FLAG_UHANDLER = 2 << 3 }; /* with version 0 */

/* A function whose table is known but for the way over a call of `callee`. */
static struct rva put_switch(struct built_graph *t, struct rva callee)
{
	struct rva f = CODE(t, "\x48\x8d\x1d\0\0\0\0" /* lea rbx, [table] */
			       "\x45\x85\xc0"         /* test r8d, r8d */
			       "\x75\x07"             /* jne bad */
			       "\x83\xf9\x01"         /* cmp ecx, 1 */
			       "\x77\x16"             /* ja end */
			       "\xeb\x07"             /* jmp read */
			       "\x31\xdb"             /* bad: xor ebx, ebx */
			       "\xe8\0\0\0\0"         /* call callee */
			       "\x89\xc8"             /* read: mov eax, ecx */
			       "\x48\x63\x04\x83"     /* movsxd rax, [rbx + rax * 4] */
			       "\x48\x01\xd8"         /* add rax, rbx */
			       "\xff\xe0"             /* jmp rax */
			       "\xc3\xc3\xc3");
	struct rva table;

	built_graph_row(t, f, 40);
	built_graph_export(t, f);
	built_graph_point(t, rva_add(f, 22), callee);
	table = image_builder_section(&t->b, ".rdata", BUILT_CONST);
	built_graph_entry(t, rva_add(f, 37), table);
	built_graph_entry(t, rva_add(f, 38), table);
	built_graph_point(t, rva_add(f, 3), table);
	return f;
}

static void check(struct built_graph *t, struct rva f, bool known)
{
	built_graph_discover(t);
	assert_int_equal(t->graph.jump_tables.len, known ? 1 : 0);
	assert_int_equal(PINS(t, f) & PIN(UNSOLVED_JUMP), known ? 0 : PIN(UNSOLVED_JUMP));
	built_graph_release(t);
}

static void test_what_a_callee_ends_in(void **unused)
{
	static const struct {
		const char *bytes;
		uint32_t size;
		bool returns;
	} callees[] = {
		{"\x0f\x0b", 2, false},                    /* ud2 */
		{"\xff\xd1\xcc", 3, false},                /* call rcx; int3 */
		{"\xff\xd1", 2, false},                    /* call rcx */
		{"\xeb\xfe", 2, false},                    /* jmp to itself */
		{"\xc3", 1, true},                         /* ret */
		{"\x85\xc9\x74\x02\x0f\x0b\xc3", 7, true}, /* je to a ret */
		{"\xff\xd1\x90", 3, true},                 /* call rcx; nop */
		{"\xff\xe1", 2, true},                     /* jmp rcx */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(callees) / sizeof(callees[0]); i++) {
		struct built_graph t;
		struct rva callee;

		built_graph_init(&t);
		callee = built_graph_code(&t, callees[i].bytes, callees[i].size);
		built_graph_row(&t, callee, callees[i].size);
		check(&t, put_switch(&t, callee), !callees[i].returns);
	}
}

/* By a jump to another function, which returns or does not. */
static void test_a_callee_that_jumps_on(void **unused)
{
	(void)unused;
	for (int returns = 0; returns <= 1; returns++) {
		struct built_graph t;
		struct rva callee, last;

		built_graph_init(&t);
		callee = CODE(&t, "\xe9\0\0\0\0");
		last = returns ? CODE(&t, "\xc3") : CODE(&t, "\xcc");
		built_graph_point(&t, rva_add(callee, 1), last);
		built_graph_row(&t, callee, 5);
		built_graph_row(&t, last, 1);
		built_graph_export(&t, last);
		check(&t, put_switch(&t, callee), !returns);
	}
}

/* Where control goes on after an exception is not told by the code that it leaves; a leaf
 * without a row has no known end. */
static void test_callees_of_which_too_little_is_known(void **unused)
{
	static const uint8_t flags[] = {0, FLAG_EHANDLER, FLAG_UHANDLER};

	(void)unused;
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct built_graph t;
		struct rva f, callee, handler;

		built_graph_init(&t);
		callee = CODE(&t, "\xff\xd1\xcc");
		handler = CODE(&t, "\xc3");
		built_graph_row(&t, callee, 3);
		built_graph_row(&t, handler, 1);
		f = put_switch(&t, callee);
		image_builder_section(&t.b, ".unwind", BUILT_CONST);
		t.rows[0].unwind = image_builder_u32(&t.b, 1 | flags[i]);
		image_builder_u32(&t.b, handler.v);
		image_builder_u32(&t.b, 0);
		check(&t, f, flags[i] == 0);
	}
	for (int row = 0; row <= 1; row++) {
		struct built_graph t;
		struct rva callee;

		built_graph_init(&t);
		callee = CODE(&t, "\xff\xd1\xcc");
		if (row)
			built_graph_row(&t, callee, 3);
		check(&t, put_switch(&t, callee), row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_callee_ends_in),
		cmocka_unit_test(test_a_callee_that_jumps_on),
		cmocka_unit_test(test_callees_of_which_too_little_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
