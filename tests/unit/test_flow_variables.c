/* What is known of local variables in memory must not outlive a possible write, and a
 * value that went over the stack must not be taken for a whole pointer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/value_flow.h"

enum { RAX = 0, RDX = 2, RBX = 3 };

/* Runs the instructions in `code` from `at` on; after each comparison control goes on
 * as if a `ja` behind it was not taken. */
static struct rva run(struct flow_state *state, struct rva at, const uint8_t *code,
		      size_t size)
{
	for (size_t i = 0; i < size;) {
		struct insn_detail detail;
		struct insn insn;

		assert_true(insn_describe(code + i, size - i, &insn, &detail));
		flow_state_step(state, at, &insn, &detail);
		if (detail.op == OP_COMPARE)
			flow_state_branch(state, CONDITION_ABOVE, false);
		i += insn.length;
		at = rva_add(at, insn.length);
	}
	return at;
}

#define RUN(state, at, bytes) run(state, at, (const uint8_t *)(bytes), sizeof(bytes) - 1)

#define FRAME "\x55\x48\x89\xe5\x48\x83\xec\x40" /* push rbp; mov rbp, rsp; sub rsp, 64 */
#define LEA_RDX "\x48\x8d\x15\x00\x10\x00\x00"   /* lea rdx, [rip + 0x1000] */
#define READ_ENTRY "\x48\x63\x04\x82"            /* movsxd rax, [rdx + rax * 4] */
#define ADD_BASE "\x48\x01\xd0"                  /* add rax, rdx */

/* The bound that a table read gets after `if ([rbp - 4] > 7) return`, `between`, and
 * a load of the variable. */
static uint32_t bound_after(const char *between, size_t size)
{
	struct flow_state state;
	struct rva at = rva_of(0x1000);

	flow_state_entry(&state, at.v);
	at = RUN(&state, at, FRAME "\x83\x7d\xfc\x07"); /* cmp dword [rbp - 4], 7 */
	at = run(&state, at, (const uint8_t *)between, size);
	RUN(&state, at, "\x8b\x45\xfc" LEA_RDX READ_ENTRY); /* mov eax, [rbp - 4] */
	assert_int_equal(state.registers[RAX].kind, VALUE_ENTRY);
	return state.registers[RAX].bound;
}

#define BOUND_AFTER(bytes) bound_after(bytes, sizeof(bytes) - 1)

static void test_bound_holds(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_AFTER("\x90"), 8);
	/* mov [rbp - 8], ecx; mov byte [rbp + 0], 1 */
	assert_int_equal(BOUND_AFTER("\x89\x4d\xf8\xc6\x45\x00\x01"), 8);
	assert_int_equal(BOUND_AFTER("\x51"), 8); /* push rcx */
	assert_int_equal(BOUND_AFTER("\x8b\x4d\xfc\x89\x4d\xfc"),
			 8); /* stored again as it was */
}

static void test_variable_changes(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_AFTER("\xe8\0\0\0\0"), 0);     /* call */
	assert_int_equal(BOUND_AFTER("\xff\xd0"), 0);         /* call rax */
	assert_int_equal(BOUND_AFTER("\x89\x11"), 0);         /* mov [rcx], edx */
	assert_int_equal(BOUND_AFTER("\xc6\x45\xfd\x01"), 0); /* mov byte [rbp - 3], 1 */
	assert_int_equal(BOUND_AFTER("\x83\x45\xfc\x01"), 0); /* add dword [rbp - 4], 1 */
	assert_int_equal(BOUND_AFTER("\xff\x45\xfc"), 0);     /* inc dword [rbp - 4] */
	assert_int_equal(BOUND_AFTER("\x87\x45\xfc"), 0);     /* xchg [rbp - 4], eax */
	assert_int_equal(BOUND_AFTER("\x89\x44\x24\x3c"),
			 0); /* mov [rsp + 60], eax: the same */
	assert_int_equal(BOUND_AFTER("\x89\x44\x0c\x10"),
			 0); /* mov [rsp + rcx + 16], eax */
	assert_int_equal(BOUND_AFTER("\x0f\x11\x45\xf0"), 0); /* movups [rbp - 16], xmm0 */
	assert_int_equal(BOUND_AFTER("\xf3\x48\xab"), 0);     /* rep stosq */
	/* lea rcx, [rbp - 4]; mov dword [rcx], 99 */
	assert_int_equal(BOUND_AFTER("\x48\x8d\x4d\xfc\xc7\x01\x63\0\0\0"), 0);
	/* and rsp, -32; mov [rsp + 8], ecx: nobody knows where that is */
	assert_int_equal(BOUND_AFTER("\x48\x83\xe4\xe0\x89\x4c\x24\x08"), 0);
}

/* The state behind the code of a function. */
static struct flow_state state_after(const char *code, size_t size)
{
	struct flow_state state;

	flow_state_entry(&state, 0x1000);
	run(&state, rva_of(0x1000), (const uint8_t *)code, size);
	return state;
}

#define STATE_AFTER(bytes) state_after(bytes, sizeof(bytes) - 1)

static void test_target_over_the_stack(void **unused)
{
	struct flow_state state;

	(void)unused;
	/* mov [rsp + 32], rax; xor eax, eax; mov rax, [rsp + 32] */
	state = STATE_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE
			    "\x48\x89\x44\x24\x20\x31\xc0\x48\x8b\x44\x24\x20");
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	/* push rax; xor eax, eax; pop rax */
	state = STATE_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE "\x50\x31\xc0\x58");
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	/* mov [rsp + 32], rax; call; mov rax, [rsp + 32]: it may be that target still */
	state = STATE_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE
			    "\x48\x89\x44\x24\x20\xe8\0\0\0\0\x48\x8b\x44\x24\x20");
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
	/* mov rax, [rsp + rcx * 8 + 32]; mov rax, [rcx + 8] */
	state = STATE_AFTER("\x48\x8b\x44\xcc\x20");
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
	state = STATE_AFTER("\x48\x8b\x41\x08");
	assert_int_equal(state.registers[RAX].kind, VALUE_WHOLE);
}

static void test_base_over_the_stack(void **unused)
{
	struct flow_state state;

	(void)unused;
	/* mov [rsp + 32], rdx; call; mov rdx, [rsp + 32] */
	state = STATE_AFTER(
		FRAME LEA_RDX
		"\x48\x89\x54\x24\x20\xe8\0\0\0\0\x48\x8b\x54\x24\x20" READ_ENTRY ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	assert_true(state.registers[RAX].survived);
	/* The same without the call; with another store into the slot's upper half. */
	state = STATE_AFTER(FRAME LEA_RDX
			    "\x48\x89\x54\x24\x20\x48\x8b\x54\x24\x20" READ_ENTRY ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	assert_false(state.registers[RAX].survived);
	state = STATE_AFTER(
		FRAME LEA_RDX
		"\x48\x89\x54\x24\x20\x89\x44\x24\x24\x48\x8b\x54\x24\x20" READ_ENTRY
			ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
}

/* A compiler that knows the callee keeps a table's base in a register that calls may
 * change. */
static void test_base_over_a_call(void **unused)
{
	struct flow_state state;

	(void)unused;
	state = STATE_AFTER(LEA_RDX "\xe8\0\0\0\0" READ_ENTRY ADD_BASE);
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
	assert_true(state.registers[RAX].survived);
	/* mov rdx, rbx; call */
	state = STATE_AFTER("\x48\x89\xda\xe8\0\0\0\0");
	assert_int_equal(state.registers[RDX].kind, VALUE_COMPUTED);
	assert_int_equal(state.registers[RBX].kind, VALUE_WHOLE);
}

static void test_part_of_a_variable(void **unused)
{
	struct flow_state state;

	(void)unused;
	/* mov [rsp + 32], edx; mov rdx, [rsp + 32]: half of it is something else */
	state = STATE_AFTER(LEA_RDX "\x89\x54\x24\x20\x48\x8b\x54\x24\x20");
	assert_int_equal(state.registers[RDX].kind, VALUE_COMPUTED);
	state = STATE_AFTER(LEA_RDX "\x89\xd2"); /* mov edx, edx */
	assert_int_equal(state.registers[RDX].kind, VALUE_COMPUTED);
}

/* An entry that was loaded without its sign would lead 4 GiB too far once its target
 * stands before the table. */
static void test_entry_needs_its_sign(void **unused)
{
	struct flow_state state;

	(void)unused;
	state = STATE_AFTER(LEA_RDX "\x8b\x04\x82" ADD_BASE); /* mov eax, [rdx + rax * 4] */
	assert_int_equal(state.registers[RAX].kind, VALUE_COMPUTED);
	state = STATE_AFTER(LEA_RDX "\x8b\x04\x82\x48\x98" ADD_BASE); /* and cdqe */
	assert_int_equal(state.registers[RAX].kind, VALUE_TARGET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound_holds),
		cmocka_unit_test(test_variable_changes),
		cmocka_unit_test(test_target_over_the_stack),
		cmocka_unit_test(test_base_over_the_stack),
		cmocka_unit_test(test_base_over_a_call),
		cmocka_unit_test(test_part_of_a_variable),
		cmocka_unit_test(test_entry_needs_its_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
