/* What is known of local variables in memory must not outlive a possible write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/value_flow.h"

/* Runs the instructions in `code` from `at` on; after the first comparison control
 * goes on as if a `ja` behind it was not taken. */
static struct rva run(struct flow_state *state, struct rva at, const uint8_t *code, size_t size)
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

/* The bound that a table read gets after `if ([rbp - 4] > 7) return`, `between`, and
 * a load of the variable. */
static uint32_t bound_after(const uint8_t *between, size_t size)
{
	static const uint8_t check[] = {0x83, 0x7d, 0xfc, 0x07}; /* cmp dword [rbp - 4], 7 */
	static const uint8_t read[] = {
		0x8b, 0x45, 0xfc,                         /* mov eax, [rbp - 4] */
		0x48, 0x8d, 0x15, 0x00, 0x10, 0x00, 0x00, /* lea rdx, [rip + 0x1000] */
		0x48, 0x63, 0x04, 0x82,                   /* movsxd rax, [rdx + rax * 4] */
	};
	struct flow_state state;
	struct rva at = rva_of(0x1000);

	flow_state_entry(&state, at.v);
	at = run(&state, at, check, sizeof(check));
	at = run(&state, at, between, size);
	run(&state, at, read, sizeof(read));
	assert_int_equal(state.registers[0].kind, VALUE_ENTRY);
	return state.registers[0].bound;
}

static void test_bound_holds(void **unused)
{
	static const uint8_t nop[] = {0x90};

	(void)unused;
	assert_int_equal(bound_after(nop, sizeof(nop)), 8);
}

static void test_call_may_write(void **unused)
{
	static const uint8_t call[] = {0xe8, 0, 0, 0, 0};

	(void)unused;
	assert_int_equal(bound_after(call, sizeof(call)), 0);
}

static void test_store_through_pointer_may_write(void **unused)
{
	static const uint8_t store[] = {0x89, 0x11}; /* mov [rcx], edx */

	(void)unused;
	assert_int_equal(bound_after(store, sizeof(store)), 0);
}

static void test_overlapping_store_writes(void **unused)
{
	static const uint8_t store[] = {0xc6, 0x45, 0xfd, 0x01}; /* mov byte [rbp - 3], 1 */

	(void)unused;
	assert_int_equal(bound_after(store, sizeof(store)), 0);
}

static void test_read_modify_write(void **unused)
{
	static const uint8_t add[] = {0x83, 0x45, 0xfc, 0x01}; /* add dword [rbp - 4], 1 */

	(void)unused;
	assert_int_equal(bound_after(add, sizeof(add)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound_holds),
		cmocka_unit_test(test_call_may_write),
		cmocka_unit_test(test_store_through_pointer_may_write),
		cmocka_unit_test(test_overlapping_store_writes),
		cmocka_unit_test(test_read_modify_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
