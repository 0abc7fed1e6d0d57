/* Computed jumps: which tables are found, how long they are, and what is pinned when a
 * jump is not understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "table_reader.h"

static void test_writable_table(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	table = image_builder_section(&t.b, ".data", BUILT_DATA);
	put_entries(&t, &f, table, 4);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_not_equal(PINS(&t, f.begin), 0);
	built_graph_release(&t);
}

/* LLVM lays tables behind the code, in the function's row or behind a bare leaf. */
static void test_table_in_the_text(void **unused)
{
	struct built_graph t;
	struct reader_function f, leaf;
	struct rva table, bare;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	table = image_builder_here(&t.b);
	put_entries(&t, &f, table, 4);
	t.rows[0].end = image_builder_here(&t.b);
	image_builder_fill(&t.b, 0xcc, 16);
	leaf = put_reader(&t, true);
	t.row_count = 1; /* no row for this one */
	bare = image_builder_here(&t.b);
	put_entries(&t, &leaf, bare, 4);
	image_builder_fill(&t.b, 0xcc, 16);
	built_graph_point(&t, f.field, table);
	built_graph_point(&t, leaf.field, bare);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(PINS(&t, leaf.begin), 0);
	assert_int_equal(t.graph.jump_tables.len, 2);
	assert_int_equal(graph_block_at(&t.graph, table),
			 graph_block_at(&t.graph, f.begin));
	assert_int_equal(graph_block_at(&t.graph, rva_add(bare, 15)),
			 graph_block_at(&t.graph, leaf.begin));
	assert_int_equal(graph_code_state(&t.graph, bare) & CODE_STATE, CODE_TABLE);
	built_graph_release(&t);
}

/* Two jumps through one table, with bounds of 2 and of 4. */
static void test_shared_table(void **unused)
{
	struct built_graph t;
	struct rva f, cases, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x83\xfa\x05\x74\x17"  /* cmp edx, 5; je second */
		     "\x83\xf9\x01\x77\x33"  /* cmp ecx, 1; ja default */
		 READ "\x83\xf9\x03\x77\x1c" /* second: cmp ecx, 3; ja default */
		 READ CASES);
	cases = rva_add(f, 51);
	built_graph_row(&t, f, 62);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	for (uint32_t i = 0; i < 4; i++)
		built_graph_entry(&t, rva_add(cases, case_at[i]), table);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, rva_add(f, 15), table);
	built_graph_point(&t, rva_add(f, 38), table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(t.graph.jump_tables.len, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(LEADS(&t, rva_add(table, 4 * i)), cases.v + case_at[i]);
	built_graph_release(&t);
}

/* The base stands in a register that lives through the whole loop. */
static void test_hoisted_base(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x53"                 /* push rbx */
		     "\x48\x8d\x1d\0\0\0\0" /* lea rbx, [table] */
		     "\xff\x15\0\0\0\0"     /* 8: call [pointer] */
		     "\x83\xf8\x01\x77\x0f" /* 14: cmp eax, 1; ja out */
		     "\x48\x63\x04\x83"     /* movsxd rax, [rbx + rax * 4] */
		     "\x48\x01\xd8\xff\xe0" /* add rax, rbx; jmp rax */
		     "\xeb\xe8"             /* 28: case 0: jmp 8 - the loop */
		     "\x31\xc9\xeb\xe8"     /* 30: case 1: xor ecx, ecx; jmp 10 */
		     "\x5b\xc3");           /* 34: out */
	memcpy(image_builder_at(&t.b, rva_add(f, 32)), "\xeb\xe6", 2); /* jmp 8 */
	memcpy(image_builder_at(&t.b, rva_add(f, 28)), "\xeb\xea", 2);
	built_graph_row(&t, f, 36);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, 28), table);
	built_graph_entry(&t, rva_add(f, 30), table);
	built_graph_entry(&t, rva_add(f, 34), table); /* not this one */
	image_builder_align(&t.b, 8);
	built_graph_point(&t, rva_add(f, 10), image_builder_u64(&t.b, 0));
	built_graph_point(&t, rva_add(f, 4), table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(table_length(&t, table), 2);
	built_graph_release(&t);
}

static void test_unknown_base(void **unused)
{
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	/* movsxd rax, [rdx + rcx * 4]; add rax, rdx; jmp rax: rdx is a parameter */
	f = CODE(&t, "\x48\x63\x04\x8a\x48\x01\xd0\xff\xe0");
	built_graph_row(&t, f, 9);
	built_graph_export(&t, f);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), PIN(UNSOLVED_JUMP));
	built_graph_release(&t);
}

/* Either of two tables. */
static void test_two_bases(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8d\x15\0\0\0\0"     /* lea rdx, [table] */
		     "\x48\x8d\x05\0\0\0\0"     /* lea rax, [table + 8] */
		     "\x85\xc9\x48\x0f\x44\xd0" /* test ecx, ecx; cmovz rdx, rax */
		     "\x48\x63\x04\x8a\x48\x01\xd0\xff\xe0" CASES);
	built_graph_row(&t, f, 40);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	for (uint32_t i = 0; i < 4; i++)
		built_graph_entry(&t, rva_add(f, 29 + case_at[i]), table);
	built_graph_point(&t, rva_add(f, 3), table);
	built_graph_point(&t, rva_add(f, 10), rva_add(table, 8));
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), PIN(UNSOLVED_JUMP));
	built_graph_release(&t);
}

static void test_tail_calls(void **unused)
{
	struct built_graph t;
	struct rva f[5];

	(void)unused;
	built_graph_init(&t);
	f[0] = CODE(&t, "\x48\x8b\x01\xff\xe0"); /* mov rax, [rcx]; jmp rax */
	f[1] = CODE(&t, "\xff\xe2");             /* jmp rdx: a parameter */
	/* mov rax, [rsp + 40]; rex.W jmp rax: a parameter on the stack */
	f[2] = CODE(&t, "\x48\x8b\x44\x24\x28\x48\xff\xe0");
	f[3] = CODE(&t, "\x48\x8b\x44\x24\x28\xff\xe0"); /* not an epilogue's form */
	f[4] = CODE(&t, "\xff\x21");                     /* jmp [rcx] */
	for (int i = 0; i < 5; i++) {
		built_graph_row(&t, f[i], i == 2 ? 8 : i == 3 ? 7 : i == 0 ? 5 : 2);
		built_graph_export(&t, f[i]);
	}
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f[0]), 0);
	assert_int_equal(PINS(&t, f[1]), 0);
	assert_int_equal(PINS(&t, f[2]), 0);
	assert_int_equal(PINS(&t, f[3]), PIN(UNSOLVED_JUMP));
	assert_int_equal(PINS(&t, f[4]), 0);
	built_graph_release(&t);
}

static void test_absolute_table(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	/* lea rdx, [table]; jmp [rdx + rcx * 8]; ret; xor eax, eax; ret */
	f = CODE(&t, "\x48\x8d\x15\0\0\0\0\xff\x24\xca\xc3\x31\xc0\xc3");
	built_graph_row(&t, f, 14);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_pointer(&t, rva_add(f, 10));
	built_graph_pointer(&t, rva_add(f, 11));
	built_graph_point(&t, rva_add(f, 3), table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(built_graph_ref(&t, table)->kind, REF_VA64);
	assert_int_equal(LEADS(&t, rva_add(table, 8)), f.v + 11);
	built_graph_release(&t);
}

/* Labels relative to another label: the words need no care, and none behind them. */
static void test_relative_labels(void **unused)
{
	struct built_graph t;
	struct rva f, labels, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8d\x15\0\0\0\0" /* lea rdx, [table] */
		     "\x48\x63\x04\x8a"     /* movsxd rax, [rdx + rcx * 4] */
		     "\x48\x8d\x15\0\0\0\0" /* lea rdx, [labels] */
		     "\x48\x01\xd0\xff\xe0" CASES);
	labels = rva_add(f, 23);
	built_graph_row(&t, f, 34);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	for (uint32_t i = 0; i < 4; i++)
		built_graph_entry(&t, rva_add(labels, case_at[i]), labels);
	image_builder_u32(&t.b, 0); /* data that looks like another */
	built_graph_point(&t, rva_add(f, 3), table);
	built_graph_point(&t, rva_add(f, 14), labels);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_null(built_graph_ref(&t, rva_add(table, 4 * i)));
	built_graph_release(&t);
}

/* A case in another function: GCC's cold parts. */
static void test_case_in_a_cold_part(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, cold;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	cold = CODE(&t, "\x31\xc0\x0f\x0b"); /* nothing else leads there */
	built_graph_row(&t, cold, 4);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 2);
	built_graph_entry(&t, cold, table);
	put_entries(&t, &f, table, 2);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(table_length(&t, table), 5);
	assert_int_equal(LEADS(&t, rva_add(table, 8)), cold.v);
	/* Chance cannot be told from an entry, so the word must stay as it is. */
	assert_int_equal(PINS(&t, cold), PIN(UNSOLVED_JUMP));
	built_graph_release(&t);
}

static void test_case_in_a_cold_part_bounded(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, cold;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	cold = CODE(&t, "\x31\xc0\x0f\x0b");
	built_graph_row(&t, cold, 4);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 3);
	built_graph_entry(&t, cold, table);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(PINS(&t, cold), 0);
	assert_int_equal(LEADS(&t, rva_add(table, 12)), cold.v);
	built_graph_release(&t);
}

/* A cold part jumps to behind the comparison: no bound holds there. */
static void test_way_back_behind_the_bound(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, cold;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	cold = CODE(&t, "\x89\xd1\xe9\0\0\0\0"); /* mov ecx, edx; jmp behind the bound */
	built_graph_row(&t, cold, 7);
	built_graph_point(&t, rva_add(cold, 3), rva_add(f.begin, BOUND_SIZE));
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 6);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(table_length(&t, table), 6);
	built_graph_release(&t);
}

/* The same from bare code, where functions are known only at the end. */
static void test_way_back_between_leaves(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, leaf;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	leaf = CODE(&t, "\x89\xd1\xe9\0\0\0\0");
	t.row_count = 0;
	built_graph_export(&t, leaf);
	built_graph_point(&t, rva_add(leaf, 3), rva_add(f.begin, BOUND_SIZE));
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 6);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(table_length(&t, table), 6);
	built_graph_release(&t);
}

/* The entry of a table of another function is a way in as well. */
static void test_way_in_through_a_table(void **unused)
{
	struct built_graph t;
	struct reader_function f, g;
	struct rva first, second;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	g = put_reader(&t, false); /* with a bound of its own, f has that one */
	first = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, first, 6);
	image_builder_u32(&t.b, 0);
	second = image_builder_here(&t.b);
	put_entries(&t, &g, second, 3);
	built_graph_entry(&t, rva_add(f.begin, BOUND_SIZE), second);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, first);
	built_graph_point(&t, g.field, second);
	built_graph_discover(&t);
	/* f's bound does not hold; without one its table is 6 long. */
	assert_int_equal(LEADS(&t, rva_add(first, 20)), f.cases.v + case_at[1]);
	assert_int_equal(LEADS(&t, rva_add(second, 12)), f.begin.v + BOUND_SIZE);
	built_graph_release(&t);
}

/* The registers of a cold part are no parameters. */
static void test_jump_in_a_cold_part(void **unused)
{
	struct built_graph t;
	struct rva hot, cold, dead, called;

	(void)unused;
	built_graph_init(&t);
	/* add rax, rcx; jz cold; ret */
	hot = CODE(&t, "\x48\x01\xc8\x0f\x84\0\0\0\0\xc3");
	cold = CODE(&t, "\xff\xe0"); /* jmp rax */
	dead = CODE(&t, "\xc3");
	called = CODE(&t, "\xc3");
	built_graph_row(&t, hot, 10);
	built_graph_row(&t, cold, 2);
	built_graph_row(&t, dead, 1);
	built_graph_row(&t, called, 1);
	built_graph_export(&t, hot);
	built_graph_export(&t, called);
	built_graph_point(&t, rva_add(hot, 5), cold);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, cold), PIN(UNSOLVED_JUMP));
	assert_int_equal(PINS(&t, hot), PIN(UNSOLVED_JUMP));
	/* It may lead to what nothing leads to. */
	assert_int_equal(PINS(&t, dead), PIN(DOUBTFUL_TARGET));
	assert_int_equal(PINS(&t, called), 0);
	built_graph_release(&t);
}

static void test_jump_in_a_chained_part(void **unused)
{
	struct built_graph t;
	struct rva whole, part;

	(void)unused;
	built_graph_init(&t);
	whole = CODE(&t, "\x85\xc9\x0f\x84\0\0\0\0\xc3");
	part = CODE(&t, "\xff\xe0");
	built_graph_row(&t, whole, 9);
	built_graph_row(&t, part, 2);
	built_graph_export(&t, whole);
	built_graph_export(&t, part);
	built_graph_point(&t, rva_add(whole, 4), part);
	image_builder_section(&t.b, ".xdata1", BUILT_CONST);
	t.rows[0].unwind = image_builder_u32(&t.b, 1);
	t.rows[1].unwind = image_builder_u32(&t.b, 1 | UNWIND_CHAININFO << 3);
	image_builder_u32(&t.b, whole.v);
	image_builder_u32(&t.b, whole.v + 9);
	image_builder_u32(&t.b, t.rows[0].unwind.v);
	built_graph_discover(&t);
	assert_true(PINS(&t, part) & PIN(UNSOLVED_JUMP));
	built_graph_release(&t);
}

/* Unreachable code at a function's end has no bytes: its label is the end. */
static void test_case_at_the_end(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 3);
	built_graph_entry(&t, rva_add(f.begin, f.size), table);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(LEADS(&t, rva_add(table, 8)), f.cases.v + case_at[2]);
	assert_null(built_graph_ref(&t, rva_add(table, 12)));
	built_graph_release(&t);
}

/* `case 1: break;` without optimization: a nop that looks like padding, since nothing
 * but the table leads to it. */
static void test_case_that_is_a_nop(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, READ "\x31\xc0\xc3\x90\x31\xdb\xc3");
	built_graph_row(&t, f, 25);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, 18), table);
	built_graph_entry(&t, rva_add(f, 21), table);
	built_graph_entry(&t, rva_add(f, 22), table);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, rva_add(f, LEA_FIELD), table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(table_length(&t, table), 3);
	built_graph_release(&t);
}

/* A case right behind a comparison: who comes from the table has not been compared.
 * Only a pointer leads to the code, so no exploring has made a label of the case. */
static void test_case_behind_a_bound(void **unused)
{
	struct built_graph t;
	struct rva f, first, second;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3\x41\x83\xf8\x01\x77\x31" /* 0: ret; cmp r8d, 1; ja out */
		     "\x45\x89\xc0"                 /* mov r8d, r8d */
		     "\x48\x8d\x15\0\0\0\0"         /* 10: lea rdx, [first] */
		     "\x4a\x63\x04\x82"             /* movsxd rax, [rdx + r8 * 4] */
		     "\x48\x01\xd0\xff\xe0"         /* add rax, rdx; jmp rax */
		     "\x83\xf9\x01\x77\x19"         /* 26: case 0: cmp ecx, 1; ja out */
		 READ                               /* 31: case 1 */
		     "\xc3\x31\xc0\xc3\x31\xdb\xc3" /* 49, 50, 53: its cases */
		     "\x0f\x0b");                   /* 56: out */
	built_graph_row(&t, f, 58);
	built_graph_export(&t, f);
	first = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, 26), first);
	built_graph_entry(&t, rva_add(f, 31), first);
	second = image_builder_here(&t.b);
	built_graph_entry(&t, rva_add(f, 49), second);
	built_graph_entry(&t, rva_add(f, 50), second);
	built_graph_entry(&t, rva_add(f, 53), second);
	image_builder_align(&t.b, 8);
	built_graph_pointer(&t, rva_add(f, 1));
	built_graph_point(&t, rva_add(f, 13), first);
	built_graph_point(&t, rva_add(f, 31 + LEA_FIELD), second);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(LEADS(&t, rva_add(second, 8)), f.v + 53);
	built_graph_release(&t);
}

/* An entry that leads to bytes which are no code, again and again. */
static void test_entry_to_no_code(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, READ "\x31\xc0\xc3\x06\x07\x0e\x16");
	built_graph_row(&t, f, 25);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, 18), table);
	built_graph_entry(&t, rva_add(f, 21), table);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, rva_add(f, LEA_FIELD), table);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(TABLE_CONFLICT));
	built_graph_release(&t);
}

/* What ends a table without a bound must not lead into the function. */
static void test_unbounded_ends_oddly(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 3);
	built_graph_entry(&t, rva_add(f.cases, 2), table);
	put_entries(&t, &f, table, 2);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
	built_graph_release(&t);
}

/* A loop makes the same instruction compare another value: the old bound is not the
 * new value's. */
static void test_bound_of_the_last_round(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8d\x1d\0\0\0\0" /* 0: lea rbx, [table] */
		     "\x8b\x02"             /* 7: loop: mov eax, [rdx] */
		     "\x85\xc9\x74\x05"     /* 9: test ecx, ecx; jz unchecked */
		     "\x83\xf8\x01\x77\x0f" /* 13: cmp eax, 1; ja out */
		     "\x89\xc0"             /* 18: unchecked: mov eax, eax */
		     "\x48\x63\x04\x83"     /* 20: movsxd rax, [rbx + rax * 4] */
		     "\x48\x01\xd8\xff\xe0" /* 24: add rax, rbx; jmp rax */
		     "\xeb\xe8"             /* 29: case 0: jmp loop */
		     "\x31\xc3"             /* 31: case 1 */
		     "\x0f\x0b");           /* 33: case 2, out */
	built_graph_row(&t, f, 35);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, 29), table);
	built_graph_entry(&t, rva_add(f, 31), table);
	built_graph_entry(&t, rva_add(f, 33), table);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, rva_add(f, 3), table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(table_length(&t, table), 3);
	built_graph_release(&t);
}

/* Each look at the function found the entry's target not decoded yet, and looked once
 * more, for ever. */
static void test_entry_to_no_instruction_ends(void **unused)
{
	struct built_graph t;
	struct rva f, table;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, READ "\xc3\x06\xc3"); /* 06: push es, not in 64-bit mode */
	built_graph_row(&t, f, READ_SIZE + 3);
	built_graph_export(&t, f);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_entry(&t, rva_add(f, READ_SIZE), table);
	built_graph_entry(&t, rva_add(f, READ_SIZE + 1), table);
	built_graph_point(&t, rva_add(f, LEA_FIELD), table);
	alarm(60);
	built_graph_discover(&t);
	alarm(0);
	assert_int_not_equal(PINS(&t, f), 0);
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writable_table),
		cmocka_unit_test(test_table_in_the_text),
		cmocka_unit_test(test_shared_table),
		cmocka_unit_test(test_hoisted_base),
		cmocka_unit_test(test_unknown_base),
		cmocka_unit_test(test_two_bases),
		cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_absolute_table),
		cmocka_unit_test(test_relative_labels),
		cmocka_unit_test(test_case_in_a_cold_part),
		cmocka_unit_test(test_case_in_a_cold_part_bounded),
		cmocka_unit_test(test_way_back_behind_the_bound),
		cmocka_unit_test(test_way_back_between_leaves),
		cmocka_unit_test(test_way_in_through_a_table),
		cmocka_unit_test(test_jump_in_a_cold_part),
		cmocka_unit_test(test_jump_in_a_chained_part),
		cmocka_unit_test(test_case_at_the_end),
		cmocka_unit_test(test_case_that_is_a_nop),
		cmocka_unit_test(test_case_behind_a_bound),
		cmocka_unit_test(test_entry_to_no_code),
		cmocka_unit_test(test_unbounded_ends_oddly),
		cmocka_unit_test(test_bound_of_the_last_round),
		cmocka_unit_test(test_entry_to_no_instruction_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
