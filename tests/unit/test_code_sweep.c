/* What is code, what is padding, and what is neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

static uint8_t state_of(const struct built_graph *t, struct rva rva)
{
	return graph_code_state(&t->graph, rva) & CODE_STATE;
}

static enum function_kind kind_of(const struct built_graph *t, struct rva rva)
{
	const struct function *function = built_graph_function(t, rva);

	assert_non_null(function);
	return (enum function_kind)function->kind;
}

static void test_all_kinds(void **unused)
{
	struct built_graph t;
	struct rva f, g, leaf, island, bytes;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\0\0\0\0\xc3"); /* call leaf; ret */
	leaf = CODE(&t, "\x8d\x41\x01\xc3");
	island = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\xc3");
	bytes = CODE(&t, "\x06\x07\x0e\x16"); /* no instructions in 64-bit mode */
	built_graph_row(&t, f, 6);
	built_graph_row(&t, g, 1);
	built_graph_point(&t, rva_add(f, 1), leaf);
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, f), FUNCTION_TABLE);
	assert_int_equal(kind_of(&t, leaf), FUNCTION_LEAF);
	assert_int_equal(kind_of(&t, island), FUNCTION_ISLAND);
	assert_int_equal(kind_of(&t, bytes), FUNCTION_BYTES);
	assert_int_equal(PINS(&t, f) | PINS(&t, leaf) | PINS(&t, island), 0);
	assert_int_equal(PINS(&t, bytes), PIN(UNKNOWN_BYTES));
	assert_int_equal(state_of(&t, rva_add(leaf, 4)), CODE_PADDING);
	assert_null(built_graph_function(&t, rva_add(leaf, 4)));
	assert_int_equal(LEADS(&t, rva_add(f, 1)), leaf.v);
	built_graph_release(&t);
}

/* A table that reads like instructions: their operand lies before the image.  It must not
 * be written anew, whatever moves. */
static void test_operand_before_the_image(void **unused)
{
	struct built_graph t;
	struct rva f, odd;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3");
	/* add [rip - 0x59ff12c2], al; ret */
	odd = CODE(&t, "\x00\x05\x3e\xed\x00\xa6\xc3");
	built_graph_row(&t, f, 1);
	built_graph_discover(&t);
	assert_true(PINS(&t, odd) & PIN(UNDECODED));
	assert_null(built_graph_ref(&t, rva_add(odd, 2)));
	assert_int_equal(t.graph.behind.v, 0);
	built_graph_release(&t);
}

/* The same with a branch. */
static void test_branch_before_the_image(void **unused)
{
	struct built_graph t;
	struct rva odd;

	(void)unused;
	built_graph_init(&t);
	odd = CODE(&t, "\x0f\x84\x3e\xed\x00\xa6\xc3"); /* jz $-0x59ff12bc; ret */
	built_graph_row(&t, odd, 7);
	built_graph_discover(&t);
	assert_true(PINS(&t, odd) & PIN(UNDECODED));
	assert_null(built_graph_ref(&t, rva_add(odd, 2)));
	built_graph_release(&t);
}

static void test_reference_fields(void **unused)
{
	struct built_graph t;
	struct rva f, g, data;
	const struct ref *ref;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8d\x05\0\0\0\0"       /* lea rax, [g] */
		     "\xc7\x05\0\0\0\0\x01\0\0\0" /* mov dword [data], 1 */
		     "\xe9\0\0\0\0");             /* jmp g */
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 22);
	built_graph_row(&t, g, 1);
	data = image_builder_section(&t.b, ".data", BUILT_DATA);
	image_builder_u64(&t.b, 0);
	built_graph_point(&t, rva_add(f, 3), g);
	store_u32(image_builder_at(&t.b, rva_add(f, 9)), data.v - (f.v + 17));
	built_graph_point(&t, rva_add(f, 18), g);
	built_graph_discover(&t);
	ref = built_graph_ref(&t, rva_add(f, 3));
	assert_int_equal(ref->kind, REF_ADDRESS);
	assert_int_equal(ref->target.v, g.v);
	assert_true(ref->enters);
	ref = built_graph_ref(&t, rva_add(f, 9));
	assert_int_equal(ref->kind, REF_MEMORY);
	assert_int_equal(ref->target.v, data.v);
	assert_int_equal(ref->tail, 4);
	assert_false(ref->enters);
	ref = built_graph_ref(&t, rva_add(f, 18));
	assert_int_equal(ref->kind, REF_BRANCH);
	assert_int_equal(ref->target.v, g.v);
	assert_true(built_graph_function(&t, g)->taken);
	assert_int_equal(PINS(&t, g), 0);
	built_graph_release(&t);
}

/* Code that nothing leads to may be data: it must be sound in itself. */
static void test_islands_in_doubt(void **unused)
{
	struct built_graph t;
	struct rva f, into, out, open;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x83\xec\x28\xc3");
	into = CODE(&t, "\xe9\xed\xff\xff\xff"); /* jmp f + 2, amid an instruction */
	out = CODE(&t, "\xe9\0\0\0\x7f");        /* jmp out of the image */
	open = BARE(&t, "\x31\xc0\x31\xdb");     /* runs into what is no code */
	CODE(&t, "\x06\x07\x0e\x16");
	built_graph_row(&t, f, 5);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(kind_of(&t, into), FUNCTION_BYTES);
	assert_int_equal(kind_of(&t, out), FUNCTION_BYTES);
	assert_int_equal(kind_of(&t, open), FUNCTION_BYTES);
	assert_null(built_graph_ref(&t, rva_add(into, 1)));
	built_graph_release(&t);
}

/* A function, or bytes that are no instructions and that somebody exports. */
static void put_what_follows(struct built_graph *t, bool bytes)
{
	if (bytes)
		built_graph_export(t, CODE(t, "\x06\x07"));
	else
		built_graph_row(t, CODE(t, "\xc3"), 1);
}

/* mov eax, 1, or a call of f, with int3 behind: whether it is code does not depend on what
 * follows. */
static void test_int3_behind_what_runs_on(void **unused)
{
	struct built_graph t;
	struct rva f, loads, calls;

	(void)unused;
	for (int bytes = 0; bytes < 2; bytes++) {
		built_graph_init(&t);
		f = CODE(&t, "\xc3");
		built_graph_row(&t, f, 1);
		loads = CODE(&t, "\xb8\x01\0\0\0");
		put_what_follows(&t, bytes);
		built_graph_row(&t, CODE(&t, "\xc3"), 1);
		calls = CODE(&t, "\xe8\0\0\0\0");
		built_graph_point(&t, rva_add(calls, 1), f);
		put_what_follows(&t, bytes);
		built_graph_discover(&t);
		assert_int_equal(kind_of(&t, loads), FUNCTION_BYTES);
		assert_int_equal(kind_of(&t, calls), FUNCTION_ISLAND);
		built_graph_release(&t);
	}
}

static void test_island_that_is_read(void **unused)
{
	struct built_graph t;
	struct rva f, island;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x8b\x05\0\0\0\0\xc3"); /* mov eax, [island] */
	island = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 7);
	built_graph_point(&t, rva_add(f, 2), island);
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, island), FUNCTION_BYTES);
	assert_true(PINS(&t, island) & PIN(READ_AS_DATA));
	built_graph_release(&t);
}

/* A relocated pointer among the bytes: they are data. */
static void test_island_with_a_pointer(void **unused)
{
	struct built_graph t;
	struct rva f, island;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3");
	island = BARE(&t, "\x31\xc0\x31\xc0\x31\xc0\x31\xc0");
	built_graph_pointer(&t, f);
	CODE(&t, "\xc3");
	built_graph_row(&t, f, 1);
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, island), FUNCTION_BYTES);
	assert_int_equal(LEADS(&t, rva_add(island, 8)), f.v);
	built_graph_release(&t);
}

/* A function of 8 KiB whose bytes from `begin` on are all instructions, but for one of
 * ten bytes at `begin` + 0x100. */
static void put_big_function(struct built_graph *t)
{
	struct rva begin = image_builder_fill(&t->b, 0x90, 0x100);

	BARE(t, "\x48\xb8\x90\x90\x90\x90\x90\x90\x90\x90"); /* mov rax, imm64 */
	image_builder_fill(&t->b, 0x90, 0x1ef6);
	BARE(t, "\xc3");
	built_graph_row(t, begin, 0x100 + 10 + 0x1ef6 + 1);
	built_graph_export(t, begin);
}

/* Words side by side in jumps of an incremental linker (observed: DuckDB's addon, link
 * 14): nobody's thunks, and no table of RVAs. */
static void test_jumps_that_look_like_a_table(void **unused)
{
	struct built_graph t;
	struct rva f, island;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\xeb\x00\xc3");
	built_graph_row(&t, f, 3);
	built_graph_export(&t, f);
	BARE(&t, "\xcc\xcc\xcc");
	island = BARE(&t, "\xe9\xf4\xff\xff\xff\xe9\x10\x11\0\0\xe9\x10\0\0\0\xcc");
	put_big_function(&t);
	assert_int_equal(f.v, 0x1000);
	assert_int_equal(island.v, 0x1006);
	store_u32(image_builder_at(&t.b, rva_add(island, 1)), f.v - (island.v + 5));
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, island), FUNCTION_ISLAND);
	assert_int_equal(PINS(&t, island), 0);
	built_graph_release(&t);
}

/* Words side by side that lead into an instruction are no table. */
static void test_words_into_an_instruction(void **unused)
{
	struct built_graph t;
	struct rva island;

	(void)unused;
	built_graph_init(&t);
	put_big_function(&t);
	BARE(&t, "\xcc\xcc\xcc\xcc\xcc");
	island = BARE(&t, "\x48\xb8\x02\x11\0\0\x03\x11\0\0\xc3");
	assert_int_equal(island.v % 4, 2);
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, island), FUNCTION_ISLAND);
	built_graph_release(&t);
}

/* Code inside a row that only exception data or a table could lead to. */
static void test_hole_in_a_row(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3\x90\x48\x8d\x05\0\0\0\0\xc3"); /* ret; nop; lea rax, [g]; ret */
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 10);
	built_graph_row(&t, g, 1);
	built_graph_point(&t, rva_add(f, 5), g);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(LEADS(&t, rva_add(f, 5)), g.v);
	built_graph_release(&t);
}

static void test_undecodable_in_a_row(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\0\0\0\0\x06\xc3"); /* call g; no instruction */
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 7);
	built_graph_row(&t, g, 1);
	built_graph_export(&t, f);
	built_graph_point(&t, rva_add(f, 1), g);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(UNDECODED));
	/* Neither is edited, nor may what it seems to refer to move. */
	assert_null(built_graph_ref(&t, rva_add(f, 1)));
	assert_true(PINS(&t, g) & PIN(DOUBTFUL_TARGET));
	built_graph_release(&t);
}

/* Control enters amid an instruction, from inside the function and from another. */
static void test_overlap(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x83\xec\x28\x75\xfc\xc3"); /* sub rsp, 40; jnz f + 2; ret */
	g = CODE(&t, "\x48\x83\xec\x28\xc3");
	h = CODE(&t, "\xe9\0\0\0\0"); /* jmp g + 2 */
	built_graph_row(&t, f, 7);
	built_graph_row(&t, g, 5);
	built_graph_row(&t, h, 5);
	built_graph_export(&t, f);
	built_graph_export(&t, g);
	built_graph_export(&t, h);
	built_graph_point(&t, rva_add(h, 1), rva_add(g, 2));
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(OVERLAP));
	assert_true(PINS(&t, g) & PIN(OVERLAP));
	assert_int_equal(LEADS(&t, rva_add(h, 1)), g.v + 2);
	built_graph_release(&t);
}

/* An instruction that reaches over the end of its row. */
static void test_row_ends_amid_an_instruction(void **unused)
{
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xb8\0\0\0\0\xc3");
	built_graph_row(&t, f, 4);
	built_graph_export(&t, f);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(OVERLAP));
	built_graph_release(&t);
}

/* A branch out of all code: nothing compiled does that. */
static void test_branch_to_nowhere(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\0\0\0\x40\xe9\0\0\0\0"); /* call nowhere; jmp g */
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 10);
	built_graph_row(&t, g, 1);
	built_graph_point(&t, rva_add(f, 6), g);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(OVERLAP));
	assert_int_equal(PINS(&t, g), PIN(DOUBTFUL_TARGET));
	built_graph_release(&t);
}

/* Padding that something points at is kept, and not filled by anything else. */
static void test_padding_that_is_named(void **unused)
{
	struct built_graph t;
	struct rva f, padding;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8d\x05\0\0\0\0\xc3"); /* lea rax, [padding] */
	padding = rva_add(f, 12);
	built_graph_row(&t, f, 8);
	built_graph_point(&t, rva_add(f, 3), padding);
	built_graph_discover(&t);
	assert_non_null(built_graph_function(&t, padding));
	assert_int_equal(LEADS(&t, rva_add(f, 3)), padding.v);
	assert_null(built_graph_function(&t, rva_add(f, 9)));
	built_graph_release(&t);
}

/* A leaf goes on behind the nops that align a loop. */
static void test_leaf_with_padding(void **unused)
{
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe9\x0b\0\0\0"                   /* jmp 16 */
		     "\x66\x90\x0f\x1f\x44\0\0\x66\x90" /* nops up to 14 */
		     "\x31\xc0"                         /* 14: xor eax, eax */
		     "\xff\xc9\x0f\x85\xf6\xff\xff\xff" /* 16: dec ecx; jnz 14 */
		     "\xc3");
	built_graph_export(&t, f);
	built_graph_discover(&t);
	assert_int_equal(built_graph_function(&t, f)->size, 25);
	assert_int_equal(PINS(&t, f), 0);
	built_graph_release(&t);
}

/* A chained row may hold a table only. */
static void test_chained_row_is_no_entry(void **unused)
{
	struct built_graph t;
	struct rva whole, part;

	(void)unused;
	built_graph_init(&t);
	whole = CODE(&t, "\xc3");
	part = CODE(&t, "\x06\x07\x0e\x16");
	built_graph_row(&t, whole, 1);
	built_graph_row(&t, part, 4);
	image_builder_section(&t.b, ".xdata1", BUILT_CONST);
	t.rows[0].unwind = image_builder_u32(&t.b, 1);
	t.rows[1].unwind = image_builder_u32(&t.b, 1 | UNWIND_CHAININFO << 3);
	image_builder_u32(&t.b, whole.v);
	image_builder_u32(&t.b, whole.v + 1);
	image_builder_u32(&t.b, t.rows[0].unwind.v);
	built_graph_discover(&t);
	assert_int_equal(kind_of(&t, part), FUNCTION_CHAINED);
	assert_true(PINS(&t, part) & PIN(UNKNOWN_BYTES));
	assert_false(PINS(&t, part) & PIN(UNDECODED));
	assert_int_equal(PINS(&t, whole), 0);
	/* The chained information names the whole. */
	assert_int_equal(LEADS(&t, rva_add(t.rows[1].unwind, 4)), whole.v);
	assert_int_equal(built_graph_ref(&t, rva_add(t.rows[1].unwind, 8))->kind,
			 REF_RVA_END);
	built_graph_release(&t);
}

/* What becomes of `data` that the lea at the begin of `taker` takes the address of. */
static enum function_kind taken(const char *taker, size_t taker_size, const char *data,
				size_t size)
{
	struct built_graph t;
	struct rva f, place;
	enum function_kind kind;

	built_graph_init(&t);
	f = built_graph_code(&t, taker, taker_size);
	place = built_graph_code(&t, data, size);
	built_graph_row(&t, f, (uint32_t)taker_size);
	built_graph_point(&t, rva_add(f, 3), place);
	built_graph_export(&t, f);
	built_graph_discover(&t);
	kind = kind_of(&t, place);
	assert_true(kind != FUNCTION_BYTES || PINS(&t, place) & PIN(UNKNOWN_BYTES));
	built_graph_release(&t);
	return kind;
}

#define TAKEN(taker, data) taken(taker, sizeof(taker) - 1, data, sizeof(data) - 1)
#define LEA_RAX "\x48\x8d\x05\0\0\0\0"
#define LEA_RBX "\x48\x8d\x1d\0\0\0\0"
#define ADD_ONE "\x8d\x41\x01\xc3" /* lea eax, [rcx + 1]; ret */

/* Constants that happen to be fine code, as the instructions behind lea tell. */
static void test_what_is_read_through_a_register(void **unused)
{
	(void)unused;
	assert_int_equal(TAKEN(LEA_RAX "\xc3", ADD_ONE), FUNCTION_LEAF);
	/* mov ecx, [rax + 8] */
	assert_int_equal(TAKEN(LEA_RAX "\x8b\x48\x08\xc3", ADD_ONE), FUNCTION_BYTES);
	/* movdqa xmm0, [rax]; movdqa [rax + rcx], xmm0 behind a branch */
	assert_int_equal(TAKEN(LEA_RAX "\x66\x0f\x6f\0\xc3", ADD_ONE), FUNCTION_BYTES);
	assert_int_equal(TAKEN(LEA_RAX "\x74\x05\x66\x0f\x7f\x04\x08\xc3", ADD_ONE),
			 FUNCTION_BYTES);
	/* Stored, not read through: mov [rcx], rax; called; another address made of it. */
	assert_int_equal(TAKEN(LEA_RAX "\x48\x89\x01\xc3", ADD_ONE), FUNCTION_LEAF);
	assert_int_equal(TAKEN(LEA_RAX "\xff\xd0\xc3", ADD_ONE), FUNCTION_LEAF);
	assert_int_equal(TAKEN(LEA_RAX "\x48\x8d\x48\x08\xc3", ADD_ONE), FUNCTION_LEAF);
	/* Something else by then: mov rax, rcx; call rdx, which keeps rbx but not rax. */
	assert_int_equal(TAKEN(LEA_RAX "\x48\x89\xc8\x8b\x48\x08\xc3", ADD_ONE),
			 FUNCTION_LEAF);
	assert_int_equal(TAKEN(LEA_RAX "\xff\xd2\x8b\x48\x08\xc3", ADD_ONE), FUNCTION_LEAF);
	assert_int_equal(TAKEN(LEA_RBX "\xff\xd2\x8b\x4b\x08\xc3", ADD_ONE),
			 FUNCTION_BYTES);
}

/* Constants that decode, but to nothing that a program would do. */
static void test_what_no_program_does(void **unused)
{
	(void)unused;
	/* test ecx, ecx; jne over xor eax, eax; ret */
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x85\xc9\x75\x02\x31\xc0\xc3"),
			 FUNCTION_LEAF);
	/* The same into the midst of mov eax, 1, back and forth. */
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\xb8\x01\0\0\0\x75\xfa\xc3"),
			 FUNCTION_BYTES);
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x75\x01\xb8\x01\0\0\0\xc3"),
			 FUNCTION_BYTES);
	/* mov eax, [rip + far away]; jmp far away; in al, dx; nothing ends it. */
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x8b\x05\0\0\0\x70\xc3"), FUNCTION_BYTES);
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\xe9\0\0\0\x70"), FUNCTION_BYTES);
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x31\xc0\xec\xc3"), FUNCTION_BYTES);
	/* A return, and code that only a branch leads to, behind it. */
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x75\x01\xc3\x31\xc0\xc3"), FUNCTION_LEAF);
	assert_int_equal(TAKEN(LEA_RAX "\xc3", "\x75\x01\xc3\x06\x07\x0e"), FUNCTION_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_reference_fields),
		cmocka_unit_test(test_islands_in_doubt),
		cmocka_unit_test(test_int3_behind_what_runs_on),
		cmocka_unit_test(test_island_that_is_read),
		cmocka_unit_test(test_island_with_a_pointer),
		cmocka_unit_test(test_jumps_that_look_like_a_table),
		cmocka_unit_test(test_words_into_an_instruction),
		cmocka_unit_test(test_hole_in_a_row),
		cmocka_unit_test(test_undecodable_in_a_row),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_row_ends_amid_an_instruction),
		cmocka_unit_test(test_branch_to_nowhere),
		cmocka_unit_test(test_padding_that_is_named),
		cmocka_unit_test(test_leaf_with_padding),
		cmocka_unit_test(test_chained_row_is_no_entry),
		cmocka_unit_test(test_operand_before_the_image),
		cmocka_unit_test(test_branch_before_the_image),
		cmocka_unit_test(test_what_is_read_through_a_register),
		cmocka_unit_test(test_what_no_program_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
