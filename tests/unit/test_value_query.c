/* Values followed backwards: through straight code, joins, loops, calls and the stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow_code.h"

/* push rbp; sub rsp, 64; lea rbp, [rsp + 64] */
#define FRAME "\x55\x48\x83\xec\x40\x48\x8d\x6c\x24\x40"

/* The forms in which GCC computes an entry's address without optimization. */
static void test_scaled_index(void **unused)
{
	struct value value;

	(void)unused;
	/* lea rbx, [rcx * 4]; lea rax, [table]; mov eax, [rbx + rax]; cdqe */
	value = RAX_AFTER("\x48\x8d\x1c\x8d\0\0\0\0\x48\x8d\x05\0\x10\0\0\x8b\x04\x03"
			  "\x48\x98");
	assert_int_equal(value.kind, VALUE_ENTRY);
	assert_int_equal(value.table.v, FLOW_CODE_BEGIN + 15 + 0x1000);
	assert_int_not_equal(value.index, NO_ID);
	/* shl ecx, 2; add rcx, rdx; movsxd rax, [rcx] */
	value = RAX_AFTER(LEA_RDX "\xc1\xe1\x02\x48\x01\xd1\x48\x63\x01" ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	/* shl cl, 2 is no index times four */
	value = RAX_AFTER(LEA_RDX "\xc0\xe1\x02\x48\x01\xd1\x48\x63\x01" ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
	/* movzx eax, word [rdx + rcx * 2] is no entry of 32 bits */
	value = RAX_AFTER(LEA_RDX "\x0f\xb7\x04\x4a" ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
}

/* A table that is read at an offset from the address that lea gives. */
static void test_displaced_base(void **unused)
{
	struct value value;

	(void)unused;
	/* movsxd rax, [rdx + rcx * 4 - 20] */
	value = RAX_AFTER(LEA_RDX "\x48\x63\x44\x8a\xec" ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_int_equal(value.table.v, 0x2007 - 20);
	assert_int_equal(value.base.v, 0x2007);
	/* add rdx, 8; sub rdx, 4; lea rdx, [rdx + 4] */
	value = register_after(
		BYTES(LEA_RDX "\x48\x83\xc2\x08\x48\x83\xea\x04\x48\x8d\x52\x04"), RDX);
	assert_int_equal(value.kind, VALUE_ADDRESS);
	assert_int_equal(value.table.v, 0x2007 + 8);
}

/* An entry that was loaded without its sign would lead 4 GiB too far once its target
 * stands before the table; RVAs have none. */
static void test_entry_needs_its_sign(void **unused)
{
	struct value value;

	(void)unused;
	value = RAX_AFTER(LEA_RDX "\x8b\x04\x8a" ADD_BASE); /* mov eax, [rdx + rcx * 4] */
	assert_int_equal(value.kind, VALUE_COMPUTED);
	value = RAX_AFTER(LEA_RDX "\x8b\x04\x8a\x48\x98" ADD_BASE); /* and cdqe */
	assert_int_equal(value.kind, VALUE_TARGET);
	/* lea rdx, [image base]; mov eax, [rdx + rcx * 4 + 0x3000]; add rax, rdx */
	value = RAX_AFTER("\x48\x8d\x15\xf9\xef\xff\xff\x8b\x84\x8a\0\x30\0\0" ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_int_equal(value.table.v, 0x3000);
	assert_int_equal(value.base.v, 0);
}

/* test ebx, ebx; jz over `size` bytes */
#define EITHER(size) "\x85\xdb\x74" size

static void test_join(void **unused)
{
	struct value value;

	(void)unused;
	/* Two ways that change neither base nor index. */
	value = RAX_AFTER(LEA_RDX EITHER("\x02") "\x31\xf6" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_int_not_equal(value.index, NO_ID);
	/* Two bases: either, and no table. */
	value = RAX_AFTER(LEA_RDX EITHER("\x07") LEA_RDX READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
	value = register_after(BYTES(LEA_RDX EITHER("\x07") LEA_RDX "\x90"), RDX);
	assert_int_equal(value.kind, VALUE_WHOLE);
	/* A sign-extended entry and one that is not: mov eax, [rdx + rcx * 4] */
	value = RAX_AFTER(LEA_RDX READ_ENTRY EITHER("\x03") "\x8b\x04\x8a" ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
	/* A parameter, and something computed: add rcx, 8 */
	value = register_after(BYTES(EITHER("\x04") "\x48\x83\xc1\x08\x90"), RCX);
	assert_int_equal(value.kind, VALUE_COMPUTED);
	value = register_after(BYTES(EITHER("\x02") "\x31\xd2\x90"), RCX);
	assert_int_equal(value.kind, VALUE_WHOLE);
}

/* A base that is taken before a loop. */
static void test_loop(void **unused)
{
	struct value value;

	(void)unused;
	/* lea; loop: xor esi, esi; test ebx, ebx; jz loop */
	value = RAX_AFTER(LEA_RDX "\x31\xf6\x85\xdb\x74\xfa" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	/* loop: add rdx, 4; test ebx, ebx; jz loop */
	value = RAX_AFTER(LEA_RDX "\x48\x83\xc2\x04\x85\xdb\x74\xf8" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
}

/* Something leads to behind the address: nothing is known there. */
static void test_label_that_is_entered(void **unused)
{
	struct flow_code c;

	(void)unused;
	flow_code_init(&c, BYTES(LEA_RDX READ_ENTRY ADD_BASE));
	c.map[7] |= CODE_LABEL | CODE_ENTERED;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_COMPUTED);
	flow_code_release(&c);
	/* A label that nothing is known to lead to: for the hopeful, nothing does.
	 * lea; jmp to the read; label: xor edx, edx */
	flow_code_init(&c, BYTES(LEA_RDX "\xeb\x02\x31\xd2" READ_ENTRY ADD_BASE));
	c.map[9] |= CODE_LABEL;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_COMPUTED);
	value_query_forget(&c.query);
	c.query.hopeful = true;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_COMPUTED);
	flow_code_release(&c);
	flow_code_init(&c, BYTES(LEA_RDX "\xeb\x02\x31\xf6" READ_ENTRY ADD_BASE));
	c.map[9] |= CODE_LABEL;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_COMPUTED);
	value_query_forget(&c.query);
	c.query.hopeful = true;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_TARGET);
	assert_true(c.query.guessed);
	flow_code_release(&c);
}

static void test_target_over_the_stack(void **unused)
{
	struct value value;

	(void)unused;
	/* mov [rsp + 32], rax; xor eax, eax; mov rax, [rsp + 32] */
	value = RAX_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE
			  "\x48\x89\x44\x24\x20\x31\xc0\x48\x8b\x44\x24\x20");
	assert_int_equal(value.kind, VALUE_TARGET);
	/* push rax; xor eax, eax; pop rax */
	value = RAX_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE "\x50\x31\xc0\x58");
	assert_int_equal(value.kind, VALUE_TARGET);
	/* mov [rsp + 32], rax; call; mov rax, [rsp + 32]: it may be that target still */
	value = RAX_AFTER(FRAME LEA_RDX READ_ENTRY ADD_BASE
			  "\x48\x89\x44\x24\x20\xe8\0\0\0\0\x48\x8b\x44\x24\x20");
	assert_int_equal(value.kind, VALUE_COMPUTED);
	/* mov rax, [rsp + rcx * 8 + 32]; mov rax, [rcx + 8]; mov rax, [rbp - 8] */
	assert_int_equal(RAX_AFTER("\x48\x8b\x44\xcc\x20").kind, VALUE_COMPUTED);
	assert_int_equal(RAX_AFTER("\x48\x8b\x41\x08").kind, VALUE_WHOLE);
	/* add rbp, rax first: it may be the frame */
	assert_int_equal(RAX_AFTER("\x48\x01\xc5\x48\x8b\x45\xf8").kind, VALUE_COMPUTED);
}

static void test_base_over_the_stack(void **unused)
{
	struct value value;

	(void)unused;
	/* mov [rsp + 32], rdx; call; mov rdx, [rsp + 32] */
	value = RAX_AFTER(
		FRAME LEA_RDX
		"\x48\x89\x54\x24\x20\xe8\0\0\0\0\x48\x8b\x54\x24\x20" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_true(value.survived);
	/* The same without the call; with another store into the slot's upper half. */
	value = RAX_AFTER(FRAME LEA_RDX
			  "\x48\x89\x54\x24\x20\x48\x8b\x54\x24\x20" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_false(value.survived);
	value = RAX_AFTER(
		FRAME LEA_RDX
		"\x48\x89\x54\x24\x20\x89\x44\x24\x24\x48\x8b\x54\x24\x20" READ_ENTRY
			ADD_BASE);
	assert_int_equal(value.kind, VALUE_COMPUTED);
	/* mov [rbp - 8], rdx; mov rdx, [rsp + 56]: the same place */
	value = RAX_AFTER(FRAME LEA_RDX
			  "\x48\x89\x55\xf8\x48\x8b\x54\x24\x38" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
}

/* A compiler that knows the callee keeps a table's base in a register that calls may
 * change. */
static void test_base_over_a_call(void **unused)
{
	struct value value;

	(void)unused;
	value = RAX_AFTER(LEA_RDX "\xe8\0\0\0\0" READ_ENTRY ADD_BASE);
	assert_int_equal(value.kind, VALUE_TARGET);
	assert_true(value.survived);
	/* mov rdx, rbx; call */
	assert_int_equal(register_after(BYTES("\x48\x89\xda\xe8\0\0\0\0"), RDX).kind,
			 VALUE_COMPUTED);
	assert_int_equal(register_after(BYTES("\x48\x89\xda\xe8\0\0\0\0"), RBX).kind,
			 VALUE_WHOLE);
	assert_int_equal(RAX_AFTER("\x48\x01\xc8\xe8\0\0\0\0").kind, VALUE_WHOLE);
}

static void test_part_of_a_variable(void **unused)
{
	(void)unused;
	/* mov [rsp + 32], edx; mov rdx, [rsp + 32]: half of it is something else */
	assert_int_equal(
		register_after(BYTES(LEA_RDX "\x89\x54\x24\x20\x48\x8b\x54\x24\x20"), RDX)
			.kind,
		VALUE_COMPUTED);
	/* mov edx, edx */
	assert_int_equal(register_after(BYTES(LEA_RDX "\x89\xd2"), RDX).kind,
			 VALUE_COMPUTED);
}

/* When too many steps were made nothing is known. */
static void test_steps(void **unused)
{
	struct flow_code c;

	(void)unused;
	flow_code_init(&c, BYTES(LEA_RDX READ_ENTRY ADD_BASE));
	c.d.flow_steps = 4;
	assert_int_equal(AT_END(&c, RAX).kind, VALUE_COMPUTED);
	assert_int_equal(c.d.flow_steps, 0);
	flow_code_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scaled_index),
		cmocka_unit_test(test_displaced_base),
		cmocka_unit_test(test_entry_needs_its_sign),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_label_that_is_entered),
		cmocka_unit_test(test_target_over_the_stack),
		cmocka_unit_test(test_base_over_the_stack),
		cmocka_unit_test(test_base_over_a_call),
		cmocka_unit_test(test_part_of_a_variable),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
