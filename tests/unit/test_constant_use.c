/* Constants that equal a function's RVA, and what becomes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

/* A function in which the field at `field` holds the RVA of another. */
struct form {
	const char *bytes;
	size_t size;
	uint32_t field; /* offset of the constant */
	bool pins;      /* the function that it equals */
};

#define FORM(bytes, field, pins)                                                           \
	{                                                                                  \
		bytes, sizeof(bytes) - 1, field, pins                                      \
	}

static void check_forms(const struct form *forms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct built_graph t;
		struct rva f, g;

		built_graph_init(&t);
		f = built_graph_code(&t, forms[i].bytes, forms[i].size);
		g = CODE(&t, "\x31\xc0\xc3");
		built_graph_row(&t, f, (uint32_t)forms[i].size);
		built_graph_row(&t, g, 3);
		store_u32(image_builder_at(&t.b, rva_add(f, forms[i].field)), g.v);
		built_graph_discover(&t);
		if (PINS(&t, g) != (forms[i].pins ? PIN(CODE_CONSTANT) : 0))
			fail_msg("form %zu pins %x", i, PINS(&t, g));
		built_graph_release(&t);
	}
}

#define CHECK_FORMS(forms) check_forms(forms, sizeof(forms) / sizeof((forms)[0]))

#define PUSH_RBP "\x55"
#define POP_RBP "\x5d"
#define RBP_IS_RSP "\x48\x89\xe5"            /* mov rbp, rsp */
#define LOAD_FROM_RBP "\x48\x8b\x8d\0\0\0\0" /* mov rcx, [rbp + g] */

/* What is added to rsp is a place on the stack; another constant of the instruction, or
 * one that is added to another register, may be an RVA. */
static void test_offsets_from_rsp(void **unused)
{
	static const struct form forms[] = {
		FORM("\x48\x8b\x8c\x24\0\0\0\0\xc3", 4, false), /* mov rcx, [rsp + g] */
		FORM("\x48\x89\x8c\x24\0\0\0\0\xc3", 4, false), /* mov [rsp + g], rcx */
		FORM("\x4c\x8d\x9c\x24\0\0\0\0\xc3", 4, false), /* lea r11, [rsp + g] */
		FORM("\x48\x81\xc4\0\0\0\0\xc3", 3, false),     /* add rsp, g */
		FORM(LOAD_FROM_RBP "\xc3", 3, true),
		FORM("\x48\x81\xc1\0\0\0\0\xc3", 3, true), /* add rcx, g */
		/* mov dword [rsp + 8], g; mov dword [rsp + 0x100], g */
		FORM("\xc7\x44\x24\x08\0\0\0\0\xc3", 4, true),
		FORM("\xc7\x84\x24\0\x01\0\0\0\0\0\0\xc3", 7, true),
	};

	(void)unused;
	CHECK_FORMS(forms);
}

static void test_offsets_from_a_frame_pointer(void **unused)
{
	static const struct form forms[] = {
		FORM(PUSH_RBP RBP_IS_RSP LOAD_FROM_RBP POP_RBP "\xc3", 7, false),
		/* lea rbp, [rsp + 64]; call rcx */
		FORM(PUSH_RBP "\x48\x8d\x6c\x24\x40\xff\xd1" LOAD_FROM_RBP POP_RBP "\xc3",
		     11, false),
		/* lea rdx, [rbp + g]; the same from rbx, which is not followed */
		FORM(PUSH_RBP RBP_IS_RSP "\x48\x8d\x95\0\0\0\0" POP_RBP "\xc3", 7, false),
		FORM(PUSH_RBP RBP_IS_RSP "\x48\x8d\x93\0\0\0\0" POP_RBP "\xc3", 7, true),
		/* mov dword [rbp + 8], g */
		FORM(PUSH_RBP RBP_IS_RSP "\xc7\x45\x08\0\0\0\0" POP_RBP "\xc3", 7, true),
		/* lea ebp, [rsp + 64]: half of an address */
		FORM(PUSH_RBP "\x8d\x6c\x24\x40" LOAD_FROM_RBP POP_RBP "\xc3", 8, true),
		/* Again the caller's. */
		FORM(PUSH_RBP RBP_IS_RSP POP_RBP LOAD_FROM_RBP "\xc3", 8, true),
		/* test ecx, ecx; je behind mov rbp, rdx */
		FORM(PUSH_RBP RBP_IS_RSP
		     "\x85\xc9\x74\x03\x48\x89\xd5" LOAD_FROM_RBP POP_RBP "\xc3",
		     14, true),
		/* test ecx, ecx; je behind mov rdi, rdx */
		FORM(PUSH_RBP RBP_IS_RSP
		     "\x85\xc9\x74\x03\x48\x89\xd7" LOAD_FROM_RBP POP_RBP "\xc3",
		     14, false),
	};

	(void)unused;
	CHECK_FORMS(forms);
}

/* A jump that is not understood may lead to any place in its function. */
static void test_a_frame_pointer_beside_an_unsolved_jump(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	/* test edx, edx; jne behind imul rcx, rcx, 3; jmp rcx */
	f = CODE(&t, PUSH_RBP RBP_IS_RSP
		 "\x85\xd2\x75\x06\x48\x6b\xc9\x03\xff\xe1" LOAD_FROM_RBP POP_RBP "\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 23);
	built_graph_row(&t, g, 3);
	store_u32(image_builder_at(&t.b, rva_add(f, 17)), g.v);
	built_graph_export(&t, f);
	built_graph_export(&t, g);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(UNSOLVED_JUMP));
	assert_int_equal(PINS(&t, g), PIN(CODE_CONSTANT));
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets_from_rsp),
		cmocka_unit_test(test_offsets_from_a_frame_pointer),
		cmocka_unit_test(test_a_frame_pointer_beside_an_unsolved_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
