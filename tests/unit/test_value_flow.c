/* Joins of what flows together, ids in loops, and bounds from comparisons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/value_flow.h"

enum { RAX = 0, RCX = 1, RDX = 2, RBX = 3 };

/* Runs straight code from `at` on. */
static struct rva run(struct flow_state *state, struct rva at, const char *code,
		      size_t size)
{
	for (size_t i = 0; i < size;) {
		struct insn_detail detail;
		struct insn insn;

		assert_true(
			insn_describe((const uint8_t *)code + i, size - i, &insn, &detail));
		flow_state_step(state, at, &insn, &detail);
		i += insn.length;
		at = rva_add(at, insn.length);
	}
	return at;
}

#define RUN(state, at, bytes) run(state, rva_of(at), bytes, sizeof(bytes) - 1)

/* lea rdx, [rip + displacement], which is the address at + 7 + displacement */
#define LEA_RDX(low, high) "\x48\x8d\x15" low high "\0\0"
#define READ_ENTRY "\x48\x63\x04\x8a" /* movsxd rax, [rdx + rcx * 4] */
#define ADD_BASE "\x48\x01\xd0"       /* add rax, rdx */
#define COMPARE_ECX_7 "\x83\xf9\x07"  /* cmp ecx, 7 */

static struct flow_state entered(void)
{
	struct flow_state state;

	flow_state_entry(&state, 0x1000);
	return state;
}

/* The bound of a read of the table at rdx by ecx. */
static uint32_t bound_of_read(struct flow_state *state, uint32_t at)
{
	RUN(state, at, READ_ENTRY);
	assert_int_equal(state->registers[RAX].kind, VALUE_ENTRY);
	return state->registers[RAX].bound;
}

static uint32_t bound_by(enum insn_condition condition, bool taken)
{
	struct flow_state state = entered();

	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	flow_state_branch(&state, condition, taken);
	return bound_of_read(&state, 0x1010);
}

static void test_conditions(void **unused)
{
	(void)unused;
	assert_int_equal(bound_by(CONDITION_ABOVE, false), 8);
	assert_int_equal(bound_by(CONDITION_ABOVE, true), 0);
	assert_int_equal(bound_by(CONDITION_BELOW_EQUAL, true), 8);
	assert_int_equal(bound_by(CONDITION_BELOW_EQUAL, false), 0);
	assert_int_equal(bound_by(CONDITION_BELOW, true), 7);
	assert_int_equal(bound_by(CONDITION_BELOW, false), 0);
	assert_int_equal(bound_by(CONDITION_ABOVE_EQUAL, false), 7);
	assert_int_equal(bound_by(CONDITION_ABOVE_EQUAL, true), 0);
	assert_int_equal(bound_by(CONDITION_OTHER, true), 0);
}

/* Flags of something else than the comparison, and another value than the compared. */
static uint32_t bound_with(const char *between, size_t size)
{
	struct flow_state state = entered();

	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	run(&state, rva_of(0x100a), between, size);
	flow_state_branch(&state, CONDITION_ABOVE, false);
	return bound_of_read(&state, 0x1020);
}

#define BOUND_WITH(bytes) bound_with(bytes, sizeof(bytes) - 1)

static void test_between_comparison_and_branch(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_WITH("\x89\xc9"), 8);     /* mov ecx, ecx */
	assert_int_equal(BOUND_WITH("\x48\x63\xc9"), 8); /* movsxd rcx, ecx */
	assert_int_equal(BOUND_WITH("\x89\xc8\x89\xc1"),
			 8);                             /* mov eax, ecx; mov ecx, eax */
	assert_int_equal(BOUND_WITH("\x8d\x49\x01"), 0); /* lea ecx, [rcx + 1] */
	assert_int_equal(BOUND_WITH("\x85\xdb"), 0);     /* test ebx, ebx */
	assert_int_equal(BOUND_WITH("\xff\xc3"), 0);     /* inc ebx */
	assert_int_equal(BOUND_WITH("\x83\xc1\x01"), 0); /* add ecx, 1 */
	assert_int_equal(BOUND_WITH("\xb1\x01"), 0);     /* mov cl, 1 */
	assert_int_equal(BOUND_WITH("\xb5\x01"), 0);     /* mov ch, 1 */
	assert_int_equal(BOUND_WITH("\x87\xd9"), 0);     /* xchg ecx, ebx */
	assert_int_equal(BOUND_WITH("\x0f\x44\xcb"), 0); /* cmovz ecx, ebx */
	assert_int_equal(BOUND_WITH("\xff\xd0"), 0);     /* call rax */
}

/* Of a byte only the byte is known. */
static void test_narrow_comparisons(void **unused)
{
	struct flow_state state = entered();

	(void)unused;
	/* cmp cl, 7; ja; movzx ecx, cl */
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\x80\xf9\x07");
	flow_state_branch(&state, CONDITION_ABOVE, false);
	RUN(&state, 0x100a, "\x0f\xb6\xc9");
	assert_int_equal(bound_of_read(&state, 0x100d), 8);
	/* cmp cl, 7; ja; the whole of ecx */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\x80\xf9\x07");
	flow_state_branch(&state, CONDITION_ABOVE, false);
	assert_int_equal(bound_of_read(&state, 0x100a), 0);
	/* cmp ecx, 7; ja; movzx ecx, cl: below 8 as well, which need not be seen */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	flow_state_branch(&state, CONDITION_ABOVE, false);
	RUN(&state, 0x100a, "\x0f\xb7\xc9");
	assert_in_range(bound_of_read(&state, 0x100d), 0, 8);
	/* cmp cl, 7; ja; movzx ecx, cx: the upper byte is free */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\x80\xf9\x07");
	flow_state_branch(&state, CONDITION_ABOVE, false);
	RUN(&state, 0x100a, "\x0f\xb7\xc9");
	assert_int_equal(bound_of_read(&state, 0x100d), 0);
}

/* The forms in which GCC computes an entry's address without optimization. */
static void test_scaled_index(void **unused)
{
	struct flow_state state = entered();

	(void)unused;
	/* cmp ecx, 7; lea rbx, [rcx * 4]; lea rax, [table]; mov eax, [rbx + rax]; cdqe */
	RUN(&state, 0x1000, COMPARE_ECX_7);
	flow_state_branch(&state, CONDITION_ABOVE, false);
	RUN(&state, 0x1003,
	    "\x48\x8d\x1c\x8d\0\0\0\0\x48\x8d\x05\0\x10\0\0\x8b\x04\x03\x48\x98");
	assert_int_equal(state.registers[RAX].kind, VALUE_ENTRY);
	assert_int_equal(state.registers[RAX].bound, 8);
	assert_int_equal(state.registers[RAX].table.v, 0x1003 + 8 + 7 + 0x1000);
	/* shl ecx, 2; add rcx, rdx; movsxd rax, [rcx]; add rax, rdx */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	flow_state_branch(&state, CONDITION_ABOVE, false);
	RUN(&state, 0x100a, "\xc1\xe1\x02\x48\x01\xd1\x48\x63\x01" ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	assert_int_equal(state.registers[RAX].bound, 8);
	/* shl cl, 2 is no index times four */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\xc0\xe1\x02\x48\x01\xd1\x48\x63\x01");
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
	/* movzx eax, word [rdx + rcx * 2] is no entry of 32 bits */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\x0f\xb7\x04\x4a" ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
}

/* A table that is read at an offset from the address that lea gives. */
static void test_displaced_base(void **unused)
{
	struct flow_state state = entered();

	(void)unused;
	/* movsxd rax, [rdx + rcx * 4 - 20] */
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10") "\x48\x63\x44\x8a\xec" ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	assert_int_equal(state.registers[RAX].table.v, 0x1007 + 0x1000 - 20);
	assert_int_equal(state.registers[RAX].base.v, 0x1007 + 0x1000);
	/* add rdx, 8; sub rdx, 4; lea rdx, [rdx + 4] */
	state = entered();
	RUN(&state, 0x1000,
	    LEA_RDX("\0", "\x10") "\x48\x83\xc2\x08\x48\x83\xea\x04\x48\x8d\x52\x04");
	assert_int_equal(state.registers[RDX].kind, VALUE_ADDRESS);
	assert_int_equal(state.registers[RDX].table.v, 0x1007 + 0x1000 + 8);
}

static void test_join(void **unused)
{
	struct flow_state a = entered(), b;

	(void)unused;
	/* The same base on both ways, a bound on one. */
	RUN(&a, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	b = a;
	flow_state_branch(&a, CONDITION_ABOVE, false);
	assert_true(flow_state_join(&a, &b, rva_of(0x1100)));
	assert_false(flow_state_join(&a, &b, rva_of(0x1100)));
	assert_int_equal(bound_of_read(&a, 0x1100), 0);
	/* Bounds on both: the wider. */
	a = entered();
	RUN(&a, 0x1000, LEA_RDX("\0", "\x10") COMPARE_ECX_7);
	b = a;
	flow_state_branch(&a, CONDITION_ABOVE, false);
	flow_state_branch(&b, CONDITION_BELOW, true);
	assert_true(flow_state_join(&b, &a, rva_of(0x1100)));
	assert_int_equal(bound_of_read(&b, 0x1100), 8);
	/* Two bases: either, and no table. */
	a = entered();
	b = entered();
	RUN(&a, 0x1000, LEA_RDX("\0", "\x10"));
	RUN(&b, 0x1020, LEA_RDX("\0", "\x20"));
	assert_true(flow_state_join(&a, &b, rva_of(0x1100)));
	assert_int_equal(a.registers[RDX].kind, VALUE_WHOLE);
	RUN(&a, 0x1100, READ_ENTRY ADD_BASE);
	assert_int_equal(a.registers[RAX].kind, VALUE_COMPUTED);
	/* Two targets of different tables. */
	a = entered();
	b = entered();
	RUN(&a, 0x1000, LEA_RDX("\0", "\x10") READ_ENTRY ADD_BASE);
	RUN(&b, 0x1020, LEA_RDX("\0", "\x20") READ_ENTRY ADD_BASE);
	assert_true(flow_state_join(&a, &b, rva_of(0x1100)));
	assert_int_equal(a.registers[RAX].kind, VALUE_COMPUTED);
	/* A sign-extended entry and one that is not. */
	a = entered();
	b = entered();
	RUN(&a, 0x1000, LEA_RDX("\0", "\x10") READ_ENTRY);
	RUN(&b, 0x1000, LEA_RDX("\0", "\x10") "\x8b\x04\x8a");
	assert_true(flow_state_join(&a, &b, rva_of(0x1100)));
	RUN(&a, 0x1100, ADD_BASE);
	assert_int_equal(a.registers[RAX].kind, VALUE_COMPUTED);
}

/* The pointer on one way comes from the stack, on the other it is a parameter. */
static void test_join_of_pointers(void **unused)
{
	struct flow_state a = entered(), b = entered();

	(void)unused;
	RUN(&a, 0x1000, "\x48\x8b\x54\x24\x28"); /* mov rdx, [rsp + 40] */
	assert_int_equal(a.registers[RDX].kind, VALUE_COMPUTED);
	flow_state_join(&a, &b, rva_of(0x1100));
	assert_int_equal(a.registers[RDX].kind, VALUE_COMPUTED);
	RUN(&b, 0x1000, "\x48\x83\xc2\x08"); /* add rdx, 8 */
	flow_state_join(&a, &b, rva_of(0x1100));
	assert_int_equal(a.registers[RDX].kind, VALUE_COMPUTED);
}

/* In a loop an instruction gives its ids to new values: a bound that was checked for
 * the old one must not be taken for the new one's, nor stay with the old one's copy. */
static void test_ids_in_loops(void **unused)
{
	static const char load[] = "\x8b\x0b"; /* mov ecx, [rbx] */
	struct flow_state state = entered();

	(void)unused;
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10"));
	run(&state, rva_of(0x1010), load, 2);
	RUN(&state, 0x1012, "\x89\xce" COMPARE_ECX_7); /* mov esi, ecx */
	flow_state_branch(&state, CONDITION_ABOVE, false);
	flow_state_retire(&state, rva_of(0x1010));
	run(&state, rva_of(0x1010), load, 2);
	assert_int_equal(bound_of_read(&state, 0x1012), 0);
	RUN(&state, 0x1020, "\x89\xf1"); /* mov ecx, esi: the value of the last round */
	assert_int_equal(bound_of_read(&state, 0x1022), 0);
	/* A comparison of the last round's value is none of the new one's. */
	state = entered();
	RUN(&state, 0x1000, LEA_RDX("\0", "\x10"));
	run(&state, rva_of(0x1010), load, 2);
	RUN(&state, 0x1012, COMPARE_ECX_7);
	flow_state_retire(&state, rva_of(0x1010));
	run(&state, rva_of(0x1010), load, 2);
	flow_state_branch(&state, CONDITION_ABOVE, false);
	assert_int_equal(bound_of_read(&state, 0x1015), 0);
}

static void test_unknown_state(void **unused)
{
	struct flow_state state;

	(void)unused;
	flow_state_unknown(&state, 0x1000);
	assert_int_equal(state.registers[RBX].kind, VALUE_COMPUTED);
	assert_int_equal(state.registers[REGISTER_RSP].kind, VALUE_STACK);
	/* mov rax, [rbp - 8]: rbp may be the frame; mov rcx, [rbx]: an object */
	RUN(&state, 0x1000, "\x48\x8b\x45\xf8\x48\x8b\x0b");
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
	assert_int_equal(state.registers[RCX].kind, VALUE_WHOLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_between_comparison_and_branch),
		cmocka_unit_test(test_narrow_comparisons),
		cmocka_unit_test(test_scaled_index),
		cmocka_unit_test(test_displaced_base),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_join_of_pointers),
		cmocka_unit_test(test_ids_in_loops),
		cmocka_unit_test(test_unknown_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
