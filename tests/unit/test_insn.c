/* One instruction: length, flow, PC-relative field, constants, operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/insn.h"

/* What an instruction is, by the Intel manual's opcode tables. */
struct known {
	const char *bytes;
	uint8_t length;
	enum insn_flow flow;
	enum insn_field field;
	uint8_t field_offset, field_size;
	int32_t relative;
};

#define KNOWN(bytes, ...)                                                                  \
	{                                                                                  \
		bytes, sizeof(bytes) - 1, __VA_ARGS__                                      \
	}

static const struct known instructions[] = {
	KNOWN("\x90", FLOW_NEXT, FIELD_NONE, 0, 0, 0),
	KNOWN("\x48\x89\xe5", FLOW_NEXT, FIELD_NONE, 0, 0, 0), /* mov rbp, rsp */
	KNOWN("\xe8\x01\x02\x03\x04", FLOW_CALL, FIELD_BRANCH, 1, 4, 0x04030201),
	KNOWN("\xe9\xff\xff\xff\xff", FLOW_JUMP, FIELD_BRANCH, 1, 4, -1),
	KNOWN("\xeb\xfe", FLOW_JUMP, FIELD_BRANCH, 1, 1, -2),
	KNOWN("\x74\x10", FLOW_BRANCH, FIELD_BRANCH, 1, 1, 16),           /* jz */
	KNOWN("\x0f\x8f\x10\0\0\0", FLOW_BRANCH, FIELD_BRANCH, 2, 4, 16), /* jg */
	KNOWN("\x2e\x0f\x84\x10\0\0\0", FLOW_BRANCH, FIELD_BRANCH, 3, 4, 16),
	KNOWN("\xf2\xe9\x10\0\0\0", FLOW_JUMP, FIELD_BRANCH, 2, 4, 16),   /* bnd jmp */
	KNOWN("\xe3\x05", FLOW_BRANCH, FIELD_BRANCH, 1, 1, 5),            /* jrcxz */
	KNOWN("\xe2\xf0", FLOW_BRANCH, FIELD_BRANCH, 1, 1, -16),          /* loop */
	KNOWN("\xc7\xf8\x10\0\0\0", FLOW_BRANCH, FIELD_BRANCH, 2, 4, 16), /* xbegin */
	KNOWN("\xff\xd0", FLOW_CALL_INDIRECT, FIELD_NONE, 0, 0, 0),       /* call rax */
	KNOWN("\xff\x15\x08\0\0\0", FLOW_CALL_INDIRECT, FIELD_MEMORY, 2, 4, 8),
	KNOWN("\xff\x25\x08\0\0\0", FLOW_JUMP_INDIRECT, FIELD_MEMORY, 2, 4, 8),
	KNOWN("\x48\xff\x25\x08\0\0\0", FLOW_JUMP_INDIRECT, FIELD_MEMORY, 3, 4, 8),
	KNOWN("\xff\xe0", FLOW_JUMP_INDIRECT, FIELD_NONE, 0, 0, 0),
	KNOWN("\x3e\xff\xe2", FLOW_JUMP_INDIRECT, FIELD_NONE, 0, 0,
	      0), /* notrack jmp rdx */
	KNOWN("\xff\x24\xca", FLOW_JUMP_INDIRECT, FIELD_NONE, 0, 0,
	      0), /* jmp [rdx+rcx*8] */
	KNOWN("\xc3", FLOW_RETURN, FIELD_NONE, 0, 0, 0),
	KNOWN("\xc2\x08\0", FLOW_RETURN, FIELD_NONE, 0, 0, 0),
	KNOWN("\xf3\xc3", FLOW_RETURN, FIELD_NONE, 0, 0, 0), /* rep ret */
	KNOWN("\xcc", FLOW_STOP, FIELD_NONE, 0, 0, 0),
	KNOWN("\x0f\x0b", FLOW_STOP, FIELD_NONE, 0, 0, 0), /* ud2 */
	KNOWN("\xcd\x29", FLOW_STOP, FIELD_NONE, 0, 0, 0), /* int 29h */
	KNOWN("\xcd\x2d", FLOW_NEXT, FIELD_NONE, 0, 0, 0), /* int 2dh */
	KNOWN("\xf4", FLOW_STOP, FIELD_NONE, 0, 0, 0),     /* hlt */
	KNOWN("\x0f\x05", FLOW_NEXT, FIELD_NONE, 0, 0, 0), /* syscall */
	KNOWN("\x48\x8d\x05\x10\0\0\0", FLOW_NEXT, FIELD_ADDRESS, 3, 4, 16),
	KNOWN("\x8b\x05\x10\0\0\0", FLOW_NEXT, FIELD_MEMORY, 2, 4, 16),
	KNOWN("\xc7\x05\x10\0\0\0\x01\0\0\0", FLOW_NEXT, FIELD_MEMORY, 2, 4, 16),
	KNOWN("\x80\x3d\x10\0\0\0\x01", FLOW_NEXT, FIELD_MEMORY, 2, 4, 16), /* cmp byte */
	KNOWN("\x66\x0f\x6f\x05\x10\0\0\0", FLOW_NEXT, FIELD_MEMORY, 4, 4, 16), /* movdqa */
	KNOWN("\xc5\xf9\x6f\x05\x10\0\0\0", FLOW_NEXT, FIELD_MEMORY, 4, 4,
	      16), /* vmovdqa */
	KNOWN("\x62\xf1\x7d\x48\x6f\x05\x10\0\0\0", FLOW_NEXT, FIELD_MEMORY, 6, 4, 16),
	KNOWN("\x66\x0f\x3a\x0f\x05\x10\0\0\0\x08", FLOW_NEXT, FIELD_MEMORY, 5, 4,
	      16), /* palignr */
	KNOWN("\x48\x8d\x80\x10\0\0\0", FLOW_NEXT, FIELD_NONE, 0, 0,
	      0), /* lea rax, [rax+16] */
	KNOWN("\x48\x8d\x04\x25\x10\0\0\0", FLOW_NEXT, FIELD_NONE, 0, 0,
	      0),                                            /* lea rax, [16] */
	KNOWN("\x89\x6d\0", FLOW_NEXT, FIELD_NONE, 0, 0, 0), /* mov [rbp], ebp */
};

static void test_known_instructions(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(*instructions); i++) {
		const struct known *known = &instructions[i];
		struct insn insn;

		assert_true(
			insn_decode((const uint8_t *)known->bytes, known->length, &insn));
		assert_int_equal(insn.length, known->length);
		assert_int_equal(insn.flow, known->flow);
		assert_int_equal(insn.field, known->field);
		assert_int_equal(insn.field_offset, known->field_offset);
		assert_int_equal(insn.field_size, known->field_size);
		assert_int_equal(insn.relative, known->relative);
		/* Cut off by a byte it is none, whatever it was. */
		assert_false(insn_decode((const uint8_t *)known->bytes, known->length - 1u,
					 &insn) &&
			     insn.length == known->length);
	}
}

static struct insn decoded(const char *bytes, size_t size)
{
	struct insn insn;

	assert_true(insn_decode((const uint8_t *)bytes, size, &insn));
	assert_int_equal(insn.length, size);
	return insn;
}

#define DECODED(bytes) decoded(bytes, sizeof(bytes) - 1)

/* Newer than Zydis 4.0; bytes by GNU as 2.40. */
static void test_unknown_instructions(void **unused)
{
	struct insn_detail detail;
	struct insn insn;

	(void)unused;
	/* vpdpbssd ymm1, ymm2, [rip + 0x12345678] */
	insn = DECODED("\xc4\xe2\x6f\x50\x0d\x78\x56\x34\x12");
	assert_int_equal(insn.flow, FLOW_NEXT);
	assert_int_equal(insn.field, FIELD_MEMORY);
	assert_int_equal(insn.field_offset, 5);
	assert_int_equal(insn.field_size, 4);
	assert_int_equal(insn.relative, 0x12345678);
	/* vpdpbsud xmm1, xmm2, [rax + 0x11223344] */
	insn = DECODED("\xc4\xe2\x6a\x50\x88\x44\x33\x22\x11");
	assert_int_equal(insn.field, FIELD_NONE);
	assert_int_equal(insn.constant_count, 1);
	assert_int_equal(insn.constants[0], 0x11223344);
	/* vpdpbuud ymm8, ymm9, [r12 + rcx * 4 + 64] */
	DECODED("\xc4\x42\x34\x50\x44\x8c\x40");
	DECODED("\xc4\xe2\x6f\x51\x0c\x24");     /* vpdpbssds ymm1, ymm2, [rsp] */
	DECODED("\xc4\xe2\xed\xb4\x0d\x08\0\0\0"); /* {vex} vpmadd52luq, [rip + 8] */
	DECODED("\xc4\xe2\xe9\xb5\x4d\0");       /* {vex} vpmadd52huq, [rbp + 0] */
	DECODED("\xc4\xe2\x79\xb0\x0c\x11");     /* vcvtneeph2ps xmm1, [rcx + rdx] */
	DECODED("\xc4\xe2\xe1\xe6\x94\x48\x99\0\0\0"); /* cmpbexadd */
	DECODED("\xc4\xe2\x63\x5c\xca");         /* tdpfp16ps tmm1, tmm2, tmm3 */
	/* Whatever it does: it may change every register but rsp, flags and memory. */
	assert_true(insn_describe((const uint8_t *)"\xc4\xe2\x63\x5c\xca", 5, &insn,
				  &detail));
	assert_int_equal(insn.length, 5);
	assert_int_equal(detail.written, 0xffff & ~(1 << REGISTER_RSP));
	assert_int_equal(detail.store, STORE_OTHER);
	assert_true(detail.changes_flags);
	assert_int_equal(detail.target.kind, OPERAND_NONE);
}

static bool is_instruction(const char *bytes, size_t size)
{
	struct insn insn;

	return insn_decode((const uint8_t *)bytes, size, &insn);
}

/* Where the length is not certain, or the form is wrong, nothing is guessed. */
static void test_uncertain_instructions(void **unused)
{
	(void)unused;
	/* Cut off. */
	assert_false(is_instruction("\xc4\xe2\x6f\x50\x0d\x78\x56\x34", 8));
	/* Maps 1 and 7, and one that nobody has. */
	assert_false(is_instruction("\xc4\xe1\x6f\x3f\xca\0\0\0\0\0", 10));
	assert_false(is_instruction("\xc4\xe7\x7b\xf8\xc0\0\0\0\0\0", 10));
	assert_false(is_instruction("\xc4\xe9\x7b\xf8\xc0\0\0\0\0\0", 10));
	/* A prefix before VEX: of these the processor wants none. */
	assert_false(is_instruction("\x66\xc4\xe2\x6f\x50\xca\0\0\0\0", 10));
	assert_false(is_instruction("\x48\xc4\xe2\x6f\x50\xca\0\0\0\0", 10));
	/* EVEX with a bit of APX in its first and in its second byte, and its map 4. */
	assert_true(is_instruction("\x62\xf2\x6f\x48\x50\xca\0\0\0\0", 10));
	assert_false(is_instruction("\x62\xfa\x6f\x48\x50\xca\0\0\0\0", 10));
	assert_false(is_instruction("\x62\xf2\x6b\x48\x50\xca\0\0\0\0", 10));
	assert_false(is_instruction("\x62\xf4\x6f\x48\x50\xca\0\0\0\0", 10));
	/* An instruction that Zydis knows, in a form that is none: vpgatherdd with one
	 * register twice. */
	assert_true(is_instruction("\xc4\xe2\x69\x90\x0c\x18\0\0\0\0", 10));
	assert_false(is_instruction("\xc4\xe2\x71\x90\x0c\x18\0\0\0\0", 10));
}

static void test_no_instruction(void **unused)
{
	struct insn insn;

	(void)unused;
	assert_false(insn_decode((const uint8_t *)"\x06", 1,
				 &insn)); /* push es: not in 64 bits */
	assert_false(insn_decode((const uint8_t *)"\xff\xff", 2, &insn));
	assert_false(insn_decode((const uint8_t *)"", 0, &insn));
	assert_false(insn_decode((const uint8_t *)"\x66\x66\x66", 3, &insn));
}

static void test_padding(void **unused)
{
	(void)unused;
	assert_true(DECODED("\x90").padding);
	assert_true(DECODED("\x66\x90").padding);
	assert_true(DECODED("\x0f\x1f\x40\0").padding);
	assert_true(DECODED("\x66\x66\x2e\x0f\x1f\x84\0\0\0\0\0").padding);
	assert_true(DECODED("\xcc").padding);
	assert_false(DECODED("\xf3\x90").padding);         /* pause */
	assert_false(DECODED("\xf3\x0f\x1e\xfa").padding); /* endbr64 */
	assert_false(DECODED("\x89\xf6").padding);
	assert_false(DECODED("\0\0").padding);
}

static void test_computed_jumps(void **unused)
{
	(void)unused;
	assert_true(DECODED("\xff\xe0").jump_computed);
	assert_true(DECODED("\x41\xff\xe3").jump_computed);          /* jmp r11 */
	assert_true(DECODED("\xff\x64\x24\x20").jump_computed);      /* jmp [rsp + 32] */
	assert_true(DECODED("\xff\x65\xf8").jump_computed);          /* jmp [rbp - 8] */
	assert_false(DECODED("\xff\x20").jump_computed);             /* jmp [rax] */
	assert_false(DECODED("\x41\xff\x64\x24\x08").jump_computed); /* jmp [r12 + 8] */
	assert_false(DECODED("\xff\x25\0\0\0\0").jump_computed);
	assert_false(DECODED("\xff\xd0").jump_computed); /* a call */
	assert_true(DECODED("\x48\xff\xe0").tail_call);
	assert_false(DECODED("\xff\xe0").tail_call);
	assert_true(DECODED("\xff\x25\0\0\0\0").jump_memory);
	assert_true(DECODED("\xff\x15\0\0\0\0").jump_memory);
	assert_false(DECODED("\xff\x20").jump_memory);
}

static void test_constants(void **unused)
{
	struct insn insn;

	(void)unused;
	insn = DECODED("\xb9\x10\x20\x30\x40"); /* mov ecx, imm32 */
	assert_int_equal(insn.constant_count, 1);
	assert_int_equal(insn.constants[0], 0x40302010);
	insn = DECODED("\x48\xb9\x10\x20\x30\x40\x50\x60\x70\0"); /* mov rcx, imm64 */
	assert_int_equal(insn.constant_count, 1);
	assert_int_equal(insn.constants[0], 0x70605040302010);
	insn = DECODED("\x8b\x80\x10\x20\0\0"); /* mov eax, [rax + 0x2010] */
	assert_int_equal(insn.constant_count, 1);
	assert_int_equal(insn.constants[0], 0x2010);
	insn = DECODED("\xc7\x80\x10\x20\0\0\x30\x40\0\0"); /* mov dword [rax + x], y */
	assert_int_equal(insn.constant_count, 2);
	insn = DECODED("\x8b\x05\x10\x20\0\0"); /* PC-relative */
	assert_int_equal(insn.constant_count, 0);
	insn = DECODED("\x83\xc0\x10"); /* too small for an address */
	assert_int_equal(insn.constant_count, 0);
}

static struct insn_detail described(const char *bytes, size_t size)
{
	struct insn_detail detail;
	struct insn insn;

	assert_true(insn_describe((const uint8_t *)bytes, size, &insn, &detail));
	assert_int_equal(insn.length, size);
	return detail;
}

#define DESCRIBED(bytes) described(bytes, sizeof(bytes) - 1)

static void test_operands(void **unused)
{
	struct insn_detail d =
		DESCRIBED("\x49\x63\x44\x93\xec"); /* movsxd rax, [r11+rdx*4-20] */

	(void)unused;
	assert_int_equal(d.op, OP_SIGN_EXTEND);
	assert_int_equal(d.target.kind, OPERAND_REGISTER);
	assert_int_equal(d.target.reg, 0);
	assert_int_equal(d.target.size, 8);
	assert_int_equal(d.source.kind, OPERAND_MEMORY);
	assert_int_equal(d.source.size, 4);
	assert_int_equal(d.source.base, 11);
	assert_int_equal(d.source.index, 2);
	assert_int_equal(d.source.scale, 4);
	assert_int_equal(d.source.value, -20);
	d = DESCRIBED("\x48\x98"); /* cdqe */
	assert_int_equal(d.op, OP_SIGN_EXTEND);
	assert_int_equal(d.target.reg, 0);
	assert_int_equal(d.target.size, 8);
	assert_int_equal(d.source.reg, 0);
	assert_int_equal(d.source.size, 4);
	d = DESCRIBED("\x83\xf9\xff"); /* cmp ecx, -1 */
	assert_int_equal(d.op, OP_COMPARE);
	assert_int_equal(d.source.kind, OPERAND_CONSTANT);
	assert_int_equal(d.source.value, -1);
	d = DESCRIBED("\x88\xe1"); /* mov cl, ah: the upper byte has no number */
	assert_int_equal(d.target.reg, 1);
	assert_int_equal(d.source.reg, REGISTER_NONE);
	d = DESCRIBED("\x6b\xc1\x04"); /* imul eax, ecx, 4: three operands */
	assert_int_equal(d.op, OP_OTHER);
	d = DESCRIBED("\x65\x48\x8b\x04\x24"); /* mov rax, gs:[rsp]: not the stack */
	assert_int_equal(d.source.base, REGISTER_NONE);
	d = DESCRIBED("\x48\x8d\x05\0\0\0\0");
	assert_int_equal(d.source.base, REGISTER_RIP);
}

static void test_conditions(void **unused)
{
	(void)unused;
	assert_int_equal(DESCRIBED("\x77\0").condition, CONDITION_ABOVE);
	assert_int_equal(DESCRIBED("\x0f\x87\0\0\0\0").condition, CONDITION_ABOVE);
	assert_int_equal(DESCRIBED("\x73\0").condition, CONDITION_ABOVE_EQUAL);
	assert_int_equal(DESCRIBED("\x72\0").condition, CONDITION_BELOW);
	assert_int_equal(DESCRIBED("\x76\0").condition, CONDITION_BELOW_EQUAL);
	assert_int_equal(DESCRIBED("\x7f\0").condition, CONDITION_OTHER); /* jg: signed */
	assert_int_equal(DESCRIBED("\x74\0").condition, CONDITION_EQUAL);
	assert_int_equal(DESCRIBED("\x0f\x85\0\0\0\0").condition, CONDITION_NOT_EQUAL);
}

static void test_what_is_written(void **unused)
{
	(void)unused;
	assert_int_equal(DESCRIBED("\xf7\xe1").written, 1 << 0 | 1 << 2); /* mul ecx */
	assert_int_equal(DESCRIBED("\x48\x87\xca").written,
			 1 << 1 | 1 << 2);                       /* xchg rdx, rcx */
	assert_int_equal(DESCRIBED("\x88\xcc").written, 1 << 0); /* mov ah, cl */
	assert_int_equal(DESCRIBED("\x83\xf9\x07").written, 0);
	assert_int_equal(DESCRIBED("\x53").written, 1 << 4); /* push rbx */
	assert_int_equal(DESCRIBED("\x0f\xa2").written, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
	assert_int_equal(DESCRIBED("\xf3\x48\xab").written,
			 1 << 1 | 1 << 7); /* rep stosq */
	assert_true(DESCRIBED("\xff\xc1").changes_flags);
	assert_false(DESCRIBED("\x89\xc8").changes_flags);
	assert_false(DESCRIBED("\x8d\x41\x01").changes_flags);
}

static void test_what_is_stored(void **unused)
{
	(void)unused;
	assert_int_equal(DESCRIBED("\x89\x45\xfc").store,
			 STORE_TARGET); /* mov [rbp-4], eax */
	assert_int_equal(DESCRIBED("\xff\x45\xfc").store, STORE_TARGET);     /* inc */
	assert_int_equal(DESCRIBED("\x0f\x11\x45\xf0").store, STORE_TARGET); /* movups */
	assert_int_equal(DESCRIBED("\x0f\x11\x45\xf0").target.size, 16);
	assert_int_equal(DESCRIBED("\x48\x0f\xc1\x03").store, STORE_TARGET); /* xadd */
	assert_int_equal(DESCRIBED("\xf3\x48\xab").store, STORE_OTHER);      /* rep stosq */
	assert_int_equal(DESCRIBED("\xa4").store, STORE_OTHER);              /* movsb */
	assert_int_equal(DESCRIBED("\x0f\xae\x03").store, STORE_OTHER);      /* fxsave */
	assert_int_equal(DESCRIBED("\x8b\x45\xfc").store, STORE_NONE);
	assert_int_equal(DESCRIBED("\x39\x45\xfc").store, STORE_NONE); /* cmp */
	assert_int_equal(DESCRIBED("\x48\x8d\x45\xfc").store, STORE_NONE);
	assert_int_equal(DESCRIBED("\x50").store, STORE_NONE);     /* push */
	assert_int_equal(DESCRIBED("\xff\xd0").store, STORE_NONE); /* call */
}

static bool same_insn(const struct insn *a, const struct insn *b)
{
	return a->length == b->length && a->flow == b->flow && a->field == b->field &&
	       a->field_offset == b->field_offset && a->field_size == b->field_size &&
	       a->padding == b->padding && a->jump_computed == b->jump_computed &&
	       a->tail_call == b->tail_call && a->loads_entry == b->loads_entry &&
	       a->jump_memory == b->jump_memory && a->unlikely == b->unlikely &&
	       a->relative == b->relative && a->constant_count == b->constant_count &&
	       a->constants[0] == b->constants[0] && a->constants[1] == b->constants[1];
}

/* The quick and the full decoding must tell the same, whatever the bytes. */
static void test_both_depths_agree(void **unused)
{
	uint64_t state = 0x9e3779b97f4a7c15u;
	uint32_t met = 0;

	(void)unused;
	for (int round = 0; round < 300000; round++) {
		struct insn quick, full;
		struct insn_detail detail;
		uint8_t bytes[16];
		bool is_one;

		for (unsigned i = 0; i < sizeof(bytes); i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			bytes[i] = (uint8_t)(state >> 32);
		}
		if (round % 3 == 0)
			bytes[0] = 0x48;
		if (round % 3 == 1)
			bytes[0] = 0x0f;
		is_one = insn_decode(bytes, sizeof(bytes), &quick);
		assert_int_equal(insn_describe(bytes, sizeof(bytes), &full, &detail),
				 is_one);
		if (!is_one)
			continue;
		met++;
		assert_true(same_insn(&quick, &full));
	}
	assert_true(met > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_instructions),
		cmocka_unit_test(test_unknown_instructions),
		cmocka_unit_test(test_uncertain_instructions),
		cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_computed_jumps),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_what_is_written),
		cmocka_unit_test(test_what_is_stored),
		cmocka_unit_test(test_both_depths_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
