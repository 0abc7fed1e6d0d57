/* Bounds: which comparisons hold for an index, on which ways, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow_code.h"

#define COMPARE_ECX_7 "\x83\xf9\x07"
/* With a way out of 1 byte behind it: jcc over the ret. */
#define UNLESS(jcc) jcc "\x01\xc3"
/* cmp ecx, 7; jbe over the ret */
#define BOUNDED COMPARE_ECX_7 UNLESS("\x76")

static void test_conditions(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x76") READ_ENTRY), 8);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x72") READ_ENTRY), 7);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x77") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x73") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7e") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x74") READ_ENTRY), 8);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x75") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x75\x70" READ_ENTRY), 8);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x74\x70" READ_ENTRY), 0);
	/* Branches that are not taken lead on: ja, jae to somewhere else. */
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x77\x70" READ_ENTRY), 8);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x73\x70" READ_ENTRY), 7);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x72\x70" READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 "\x76\x70" READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX READ_ENTRY), 0);
	/* jo, js, jp, jl, jle, and those that are none of them: of sums, or with a sign. */
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x70") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x71") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x78") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x79") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7a") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7b") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7c") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7d") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7 UNLESS("\x7f") READ_ENTRY), 0);
	/* test ecx, 7; sub ecx, 7; dec ecx: no comparisons with 7. */
	assert_int_equal(
		BOUND_AFTER(LEA_RDX "\xf7\xc1\x07\0\0\0" UNLESS("\x76") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x83\xe9\x07" UNLESS("\x76") READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX "\xff\xc9" UNLESS("\x76") READ_ENTRY), 0);
}

static void assert_bound(struct value_bound bound, uint32_t count, bool wide)
{
	assert_int_equal(bound.count, count);
	assert_int_equal(bound.wide, wide);
}

/* Equality limits the index on the way on which it holds, but is no proof that the table
 * goes so far; a difference says nothing. */
static void test_equality(void **unused)
{
	(void)unused;
	assert_bound(bound_after(BYTES(LEA_RDX COMPARE_ECX_7 UNLESS("\x76") READ_ENTRY)), 8,
		     false);
	assert_bound(bound_after(BYTES(LEA_RDX COMPARE_ECX_7 UNLESS("\x74") READ_ENTRY)), 8,
		     true);
	assert_bound(bound_after(BYTES(LEA_RDX COMPARE_ECX_7 "\x75\x70" READ_ENTRY)), 8,
		     true);
	/* rustc: movzx ecx, byte [rbx]; cmp ecx, 255; je on; cmp ecx, 5; jne;
	 * on: test ebx, ebx; cmp ecx, 255; je */
	assert_bound(bound_after(BYTES(LEA_RDX "\x0f\xb6\x0b\x81\xf9\xff\0\0\0\x74\x05"
					       "\x83\xf9\x05\x75\x60\x85\xdb"
					       "\x81\xf9\xff\0\0\0\x74\x50" READ_ENTRY)),
		     256, true);
	/* cmp ecx, 3; je on; cmp ecx, 7; ja; on: the greater one is a proof */
	assert_bound(bound_after(BYTES(LEA_RDX "\x83\xf9\x03\x74\x05" COMPARE_ECX_7
					       "\x77\x60" READ_ENTRY)),
		     8, false);
	/* cmp ecx, 7; je on; cmp ecx, 7; ja; on: as great */
	assert_bound(bound_after(BYTES(LEA_RDX COMPARE_ECX_7 "\x74\x05" COMPARE_ECX_7
							     "\x77\x60" READ_ENTRY)),
		     8, false);
	/* cmp ecx, 9; je on; cmp ecx, 7; ja; on: the greater one is none */
	assert_bound(bound_after(BYTES(LEA_RDX "\x83\xf9\x09\x74\x05" COMPARE_ECX_7
					       "\x77\x60" READ_ENTRY)),
		     10, true);
	/* Two values: mov ecx, [rbx]; cmp ecx, 9; je on; mov ecx, [rsi]; cmp ecx, 7; ja */
	assert_bound(bound_after(BYTES(LEA_RDX
				       "\x8b\x0b\x83\xf9\x09\x74\x07\x8b\x0e" COMPARE_ECX_7
				       "\x77\x60" READ_ENTRY)),
		     10, true);
}

/* ja to somewhere else, with something between it and the comparison. */
#define BOUND_WITH(between) BOUND_AFTER(LEA_RDX COMPARE_ECX_7 between "\x77\x70" READ_ENTRY)

static void test_between_comparison_and_branch(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_WITH("\x89\xc9"), 8);         /* mov ecx, ecx */
	assert_int_equal(BOUND_WITH("\x48\x63\xc9"), 8);     /* movsxd rcx, ecx */
	assert_int_equal(BOUND_WITH("\x89\xc8\x89\xc1"), 8); /* over eax */
	assert_int_equal(BOUND_WITH("\x74\x70"), 8);         /* jz: flags stay */
	assert_int_equal(BOUND_WITH("\x8d\x49\x01"), 0);     /* lea ecx, [rcx + 1] */
	assert_int_equal(BOUND_WITH("\x85\xdb"), 0);         /* test ebx, ebx */
	assert_int_equal(BOUND_WITH("\xff\xc3"), 0);         /* inc ebx */
	assert_int_equal(BOUND_WITH("\x83\xc1\x01"), 0);     /* add ecx, 1 */
	assert_int_equal(BOUND_WITH("\xb1\x01"), 0);         /* mov cl, 1 */
	assert_int_equal(BOUND_WITH("\xb5\x01"), 0);         /* mov ch, 1 */
	assert_int_equal(BOUND_WITH("\x87\xd9"), 0);         /* xchg ecx, ebx */
	assert_int_equal(BOUND_WITH("\x0f\x44\xcb"), 0);     /* cmovz ecx, ebx */
	assert_int_equal(BOUND_WITH("\xff\xd3"), 0);         /* call rbx */
}

/* Of a byte only the byte is known. */
static void test_narrow_comparisons(void **unused)
{
	struct value_bound bound;

	(void)unused;
	/* cmp cl, 7; ja; movzx ecx, cl */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xf9\x07\x77\x70\x0f\xb6\xc9" READ_ENTRY),
			 8);
	/* cmp cl, 7; ja; the whole of ecx */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xf9\x07\x77\x70" READ_ENTRY), 0);
	/* cmp cl, 7; ja; movzx ecx, cx: the upper byte is free */
	bound = bound_after(BYTES(LEA_RDX "\x80\xf9\x07\x77\x70\x0f\xb7\xc9" READ_ENTRY));
	assert_int_equal(bound.count, 1 << 16);
	assert_true(bound.wide);
	/* A byte alone, and masks, tell no more than how long a table can be. */
	bound = bound_after(BYTES(LEA_RDX "\x0f\xb6\xc9" READ_ENTRY));
	assert_int_equal(bound.count, 256);
	assert_true(bound.wide);
	bound = bound_after(BYTES(LEA_RDX "\x0f\xb6\x0b" READ_ENTRY)); /* byte [rbx] */
	assert_int_equal(bound.count, 256);
	assert_true(bound.wide);
	bound = bound_after(BYTES(LEA_RDX "\x83\xe1\x0f" READ_ENTRY)); /* and ecx, 15 */
	assert_int_equal(bound.count, 16);
	assert_true(bound.wide);
	bound = bound_after(BYTES(LEA_RDX "\x83\xe1\xf0" READ_ENTRY)); /* and ecx, -16 */
	assert_int_equal(bound.count, 0);
	/* cmp bl, 7; ja; movzx cx, bl: what stands above is not zero */
	assert_int_equal(
		BOUND_AFTER(LEA_RDX "\x80\xfb\x07\x77\x70\x66\x0f\xb6\xcb" READ_ENTRY), 0);
	/* movzx ecx, bl; movsxd rcx, ecx; cmp cx, 300; ja; movzx ecx, bx: a word of which
	 * only the byte was compared */
	bound = bound_after(BYTES(LEA_RDX "\x0f\xb6\xcb\x48\x63\xc9\x66\x81\xf9\x2c\x01"
					  "\x77\x60\x0f\xb7\xcb" READ_ENTRY));
	assert_bound(bound, 1 << 16, true);
	/* cmp ch, 7; ja; movzx ecx, cl */
	bound = bound_after(BYTES(LEA_RDX "\x80\xfd\x07\x77\x70\x0f\xb6\xc9" READ_ENTRY));
	assert_bound(bound, 256, true);
}

/* A mask of a byte or a word leaves what stands above. */
static void test_narrow_masks(void **unused)
{
	(void)unused;
	/* and cl, 7, and the whole of ecx, its word, its byte */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xe1\x07" READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xe1\x07\x0f\xb7\xc9" READ_ENTRY),
			 1 << 16);
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xe1\x07\x0f\xb6\xc9" READ_ENTRY), 8);
	/* and cx, 7 */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x66\x83\xe1\x07" READ_ENTRY), 0);
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x66\x83\xe1\x07\x0f\xb7\xc9" READ_ENTRY), 8);
	/* and ch, 7; movzx ecx, cl */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x80\xe5\x07\x0f\xb6\xc9" READ_ENTRY), 256);
	/* and ecx, 511, and its byte */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x81\xe1\xff\x01\0\0\x0f\xb6\xc9" READ_ENTRY),
			 256);
	/* and ecx, 7; movsx ecx, cl: with its sign it is another value */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x83\xe1\x07\x0f\xbe\xc9" READ_ENTRY), 0);
}

/* The last comparison on each way, and the widest of all ways. */
static void test_ways(void **unused)
{
	(void)unused;
	/* jz over the comparison */
	assert_int_equal(
		BOUND_AFTER(LEA_RDX "\x85\xdb\x74\x05" COMPARE_ECX_7 "\x77\x60" READ_ENTRY),
		0);
	/* jz else; cmp ecx, 7; ja; jmp on; else: cmp ecx, 9; ja */
	assert_int_equal(BOUND_AFTER(LEA_RDX
				     "\x85\xdb\x74\x07" COMPARE_ECX_7
				     "\x77\x60\xeb\x05\x83\xf9\x09\x77\x60" READ_ENTRY),
			 10);
	/* cmp ecx, 7; ja; cmp ecx, 20; ja: the one right before the table */
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7
				     "\x77\x60\x83\xf9\x14\x77\x60" READ_ENTRY),
			 21);
	/* A loop between the comparison and the table: xor esi, esi; jz back */
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7
				     "\x77\x60\x31\xf6\x85\xdb\x74\xfa" READ_ENTRY),
			 8);
	/* The same, and the loop changes the index: add ecx, 1 */
	assert_int_equal(BOUND_AFTER(LEA_RDX COMPARE_ECX_7
				     "\x77\x60\x83\xc1\x01\x85\xdb\x74\xf9" READ_ENTRY),
			 0);
}

/* Two values that come together, each with its bound. */
static void test_bounds_of_what_comes_together(void **unused)
{
	(void)unused;
	/* test ebx, ebx; jz else; mov ecx, [rbx]; cmp ecx, 7; ja; jmp on;
	 * else: mov ecx, [rsi]; cmp ecx, 9; ja */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x85\xdb\x74\x09\x8b\x0b" COMPARE_ECX_7
					     "\x77\x60\xeb\x07\x8b\x0e\x83\xf9\x09"
					     "\x77\x60" READ_ENTRY),
			 10);
	/* The same without the second comparison. */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x85\xdb\x74\x09\x8b\x0b" COMPARE_ECX_7
					     "\x77\x60\xeb\x02\x8b\x0e" READ_ENTRY),
			 0);
	/* A loop that changes it on: mov ecx, [rbx]; cmp ecx, 7; ja; loop: test ebx, ebx;
	 * jz over; add ecx, 1; jmp loop */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x8b\x0b" COMPARE_ECX_7
					     "\x77\x60\x85\xdb\x74\x05\x83\xc1\x01"
					     "\xeb\xf7" READ_ENTRY),
			 0);
}

/* The constant stands in a register: mov eax, 300; cmp cx, ax; ja; movzx ecx, cx */
static void test_compared_with_a_register(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_AFTER(LEA_RDX "\xb8\x2c\x01\0\0\x66\x39\xc1\x77\x60"
					     "\x0f\xb7\xc9" READ_ENTRY),
			 301);
	/* mov eax, 0x18000: the word is another number */
	assert_int_equal(bound_after(BYTES(LEA_RDX "\xb8\x00\x80\x01\0\x66\x39\xc1"
						   "\x77\x60\x0f\xb7\xc9" READ_ENTRY))
				 .wide,
			 true);
	/* mov eax, 7; cmp rcx, rax */
	assert_int_equal(
		BOUND_AFTER(LEA_RDX "\xb8\x07\0\0\0\x48\x39\xc1\x77\x60" READ_ENTRY), 8);
	/* mov rax, -1; cmp rcx, rax */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x48\xc7\xc0\xff\xff\xff\xff\x48\x39\xc1"
					     "\x77\x60" READ_ENTRY),
			 0);
	/* mov eax, 7; call rbx; cmp esi, eax; ja; mov ecx, esi: what was returned */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\xb8\x07\0\0\0\xff\xd3\x39\xc6\x77\x60"
					     "\x89\xf1" LEA_RDX READ_ENTRY),
			 0);
	/* mov eax, [rbx] */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x8b\x03\x39\xc1\x77\x60" READ_ENTRY), 0);
}

/* In a loop an instruction makes another value each time: a bound that was checked for
 * the one of the round before is none of the new one's, and the other way round. */
static void test_rounds_of_a_loop(void **unused)
{
	(void)unused;
	/* jmp in; loop: cmp ecx, 7; ja; in: mov ecx, [rbx]; test; jz loop */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\xeb\x05" COMPARE_ECX_7
					     "\x77\x60\x8b\x0b\x85\xf6\x74\xf5" READ_ENTRY),
			 0);
	/* loop: mov esi, ecx; mov ecx, [rbx]; cmp ecx, 7; ja; test edi, edi; jz loop;
	 * mov ecx, esi: what was loaded in the round before */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x89\xce\x8b\x0b" COMPARE_ECX_7
					     "\x77\x60\x85\xff\x74\xf3\x89\xf1" READ_ENTRY),
			 0);
	/* Compared in the same round: loop: mov ecx, [rbx]; mov esi, ecx; cmp ecx, 7; ja;
	 * test edi, edi; jz loop; mov ecx, esi */
	assert_int_equal(BOUND_AFTER(LEA_RDX "\x8b\x0b\x89\xce" COMPARE_ECX_7
					     "\x77\x60\x85\xff\x74\xf3\x89\xf1" READ_ENTRY),
			 8);
}

/* push rbp; sub rsp, 64; lea rbp, [rsp + 64]; lea rdx, [table] */
#define FRAME "\x55\x48\x83\xec\x40\x48\x8d\x6c\x24\x40" LEA_RDX
/* `if ([rbp - 4] > 7) return`, something, mov ecx, [rbp - 4], and the read */
#define BOUND_OF_VARIABLE(between)                                                         \
	BOUND_AFTER(FRAME "\x83\x7d\xfc\x07\x77\x70" between "\x8b\x4d\xfc" READ_ENTRY)

static void test_variable_stays(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_OF_VARIABLE("\x90"), 8);
	/* mov [rbp - 8], ecx; mov byte [rbp + 0], 1 */
	assert_int_equal(BOUND_OF_VARIABLE("\x89\x4d\xf8\xc6\x45\x00\x01"), 8);
	assert_int_equal(BOUND_OF_VARIABLE("\x51"), 8); /* push rcx */
	/* Stored again as it was. */
	assert_int_equal(BOUND_OF_VARIABLE("\x8b\x4d\xfc\x89\x4d\xfc"), 8);
}

static void test_variable_changes(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_OF_VARIABLE("\xe8\0\0\0\0"), 0);     /* call */
	assert_int_equal(BOUND_OF_VARIABLE("\xff\xd0"), 0);         /* call rax */
	assert_int_equal(BOUND_OF_VARIABLE("\x89\x11"), 0);         /* mov [rcx], edx */
	assert_int_equal(BOUND_OF_VARIABLE("\xc6\x45\xfd\x01"), 0); /* byte [rbp - 3] */
	assert_int_equal(BOUND_OF_VARIABLE("\x83\x45\xfc\x01"), 0); /* add [rbp - 4], 1 */
	assert_int_equal(BOUND_OF_VARIABLE("\xff\x45\xfc"), 0);     /* inc [rbp - 4] */
	assert_int_equal(BOUND_OF_VARIABLE("\x87\x45\xfc"), 0);     /* xchg [rbp - 4] */
	assert_int_equal(BOUND_OF_VARIABLE("\x89\x44\x24\x3c"),
			 0); /* [rsp + 60]: the same */
	assert_int_equal(BOUND_OF_VARIABLE("\x89\x44\x0c\x10"), 0); /* [rsp + rcx + 16] */
	assert_int_equal(BOUND_OF_VARIABLE("\x0f\x11\x45\xf0"), 0); /* movups [rbp - 16] */
	assert_int_equal(BOUND_OF_VARIABLE("\xf3\x48\xab"), 0);     /* rep stosq */
	/* lea rcx, [rbp - 4]; mov dword [rcx], 99 */
	assert_int_equal(BOUND_OF_VARIABLE("\x48\x8d\x4d\xfc\xc7\x01\x63\0\0\0"), 0);
	/* and rsp, -32; mov [rsp + 8], ecx: nobody knows where that is */
	assert_int_equal(BOUND_OF_VARIABLE("\x48\x83\xe4\xe0\x89\x4c\x24\x08"), 0);
}

/* mov [rsp + 8], ecx; cmp ecx, 7; ja; something; mov ecx, [rsp + 8] */
#define BOUND_OF_SLOT(between)                                                             \
	BOUND_AFTER(LEA_RDX "\x89\x4c\x24\x08" COMPARE_ECX_7 "\x77\x60" between            \
			    "\x8b\x4c\x24\x08" READ_ENTRY)

/* Where rsp points to one place or another, [rsp + 8] is no variable that is known. */
static void test_stack_of_two_depths(void **unused)
{
	(void)unused;
	assert_int_equal(BOUND_OF_SLOT("\x85\xdb\x74\x01\x90"), 8); /* jz over a nop */
	/* jz over push rbx; and the same, put right again by pop rbx */
	assert_int_equal(BOUND_OF_SLOT("\x85\xdb\x74\x01\x53"), 0);
	assert_int_equal(BOUND_OF_SLOT("\x85\xdb\x74\x02\x53\x5b"), 8);
	/* Once around a loop: push rbx; test ebx, ebx; jz loop; and with pop rbx in it */
	assert_int_equal(BOUND_OF_SLOT("\x53\x85\xdb\x74\xfb"), 0);
	assert_int_equal(BOUND_OF_SLOT("\x53\x5b\x85\xdb\x74\xfa"), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_equality),
		cmocka_unit_test(test_between_comparison_and_branch),
		cmocka_unit_test(test_narrow_comparisons),
		cmocka_unit_test(test_narrow_masks),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_bounds_of_what_comes_together),
		cmocka_unit_test(test_compared_with_a_register),
		cmocka_unit_test(test_rounds_of_a_loop),
		cmocka_unit_test(test_variable_stays),
		cmocka_unit_test(test_variable_changes),
		cmocka_unit_test(test_stack_of_two_depths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
