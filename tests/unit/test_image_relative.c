/* MSVC's jump tables: RVAs, read at a displacement from the image's own address, mostly in
 * the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "built_graph.h"

/* lea rdx, [image base] */
#define LEA_BASE "\x48\x8d\x15\0\0\0\0"
/* mov ecx, [rdx + rax * 4 + table]; add rcx, rdx; jmp rcx */
#define READ "\x8b\x8c\x82\0\0\0\0\x48\x01\xd1\xff\xe1"
/* movzx eax, byte [rdx + rax + table] */
#define READ_BYTE "\x0f\xb6\x84\x02\0\0\0\0"
/* cmp eax, last; ja over what is behind */
#define BOUND(last, over) "\x83\xf8" last "\x77" over
/* Four cases and the default: ret; xor eax, eax; ret and so on. */
#define CASES "\xc3\x31\xc0\xc3\x31\xdb\xc3\x31\xc9\xc3\xc3"

static const uint32_t case_at[] = {0, 1, 4, 7};
enum { READ_SIZE = 12, CASES_SIZE = 11, BOUND_SIZE = 5, LEA_SIZE = 7, READ_BYTE_SIZE = 8 };

static void point_at_base(struct built_graph *t, struct rva lea)
{
	built_graph_point(t, rva_add(lea, 3), rva_of(0));
}

static void displace(struct built_graph *t, struct rva field, struct rva target)
{
	store_u32(image_builder_at(&t->b, field), target.v);
}

static void put_entries(struct built_graph *t, struct rva cases, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		image_builder_u32(&t->b, cases.v + case_at[i % 4]);
}

/* Begins a function with a table of RVAs; the caller puts entries and the row. */
struct switch_function {
	struct rva begin, field, cases, table;
};

static struct switch_function put_switch(struct built_graph *t)
{
	struct switch_function f;

	f.begin = BARE(t, BOUND("\x03", "\x1d") LEA_BASE READ CASES "\x90");
	point_at_base(t, rva_add(f.begin, BOUND_SIZE));
	f.field = rva_add(f.begin, BOUND_SIZE + LEA_SIZE + 3);
	f.cases = rva_add(f.begin, BOUND_SIZE + LEA_SIZE + READ_SIZE);
	f.table = image_builder_here(&t->b);
	displace(t, f.field, f.table);
	built_graph_export(t, f.begin);
	return f;
}

static void put_row(struct built_graph *t, struct rva begin)
{
	built_graph_row(t, begin, image_builder_here(&t->b).v - begin.v);
	image_builder_fill(&t->b, 0xcc, 16);
}

static void assert_displacement(const struct built_graph *t, struct rva field,
				struct rva table)
{
	const struct ref *ref = built_graph_ref(t, field);

	assert_non_null(ref);
	assert_int_equal(ref->kind, REF_DISPLACEMENT);
	assert_int_equal(ref->target.v, table.v);
	assert_int_equal(ref->size, 4);
	assert_false(ref->enters);
}

static void test_table_in_the_row(void **unused)
{
	struct built_graph t;
	struct switch_function f;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	put_entries(&t, f.cases, 4);
	put_row(&t, f.begin);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(t.graph.jump_tables.len, 1);
	assert_int_equal(t.graph.jump_tables.data[0].count, 4);
	assert_displacement(&t, f.field, f.table);
	for (uint32_t i = 0; i < 4; i++) {
		const struct ref *ref = built_graph_ref(&t, rva_add(f.table, 4 * i));

		assert_int_equal(ref->kind, REF_TABLE);
		assert_int_equal(ref->base.v, 0);
		assert_int_equal(ref->target.v, f.cases.v + case_at[i]);
	}
	built_graph_release(&t);
}

/* An entry that is never used is 0. */
static void test_empty_entry(void **unused)
{
	struct built_graph t;
	struct switch_function f;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	put_entries(&t, f.cases, 2);
	image_builder_u32(&t.b, 0);
	put_entries(&t, f.cases, 1);
	put_row(&t, f.begin);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_null(built_graph_ref(&t, rva_add(f.table, 8)));
	assert_int_equal(LEADS(&t, rva_add(f.table, 12)), f.cases.v);
	built_graph_release(&t);
}

/* Behind a leaf without a row. */
static void test_table_behind_a_leaf(void **unused)
{
	struct built_graph t;
	struct switch_function f;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	put_entries(&t, f.cases, 4);
	image_builder_fill(&t.b, 0xcc, 16);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_displacement(&t, f.field, f.table);
	assert_int_equal(graph_block_at(&t.graph, rva_add(f.table, 15)),
			 graph_block_at(&t.graph, f.begin));
	built_graph_release(&t);
}

/* Behind the function's row. */
static void test_table_behind_a_row(void **unused)
{
	struct built_graph t;
	struct switch_function f;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	built_graph_row(&t, f.begin, f.table.v - f.begin.v);
	put_entries(&t, f.cases, 4);
	image_builder_fill(&t.b, 0xcc, 16);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(PINS(&t, f.table), 0);
	assert_displacement(&t, f.field, f.table);
	assert_int_equal(graph_block_at(&t.graph, rva_add(f.table, 15)),
			 graph_block_at(&t.graph, f.begin));
	built_graph_release(&t);
}

static void chain(struct built_graph *t, uint32_t row, uint32_t to)
{
	t->rows[row].unwind = image_builder_u32(&t->b, 1 | UNWIND_CHAININFO << 3);
	image_builder_u32(&t->b, t->rows[to].begin.v);
	image_builder_u32(&t->b, t->rows[to].end.v);
	image_builder_u32(&t->b, t->rows[to].unwind.v);
}

/* A chained row that holds the table only: its bytes decode, and must not be. */
static void test_table_in_a_row_of_its_own(void **unused)
{
	struct built_graph t;
	struct switch_function f;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	built_graph_row(&t, f.begin, f.table.v - f.begin.v);
	put_entries(&t, f.cases, 4);
	put_row(&t, f.table);
	image_builder_section(&t.b, ".xdata1", BUILT_CONST);
	t.rows[0].unwind = image_builder_u32(&t.b, 1);
	chain(&t, 1, 0);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(PINS(&t, f.table), 0);
	assert_int_equal(graph_code_state(&t.graph, f.table) & CODE_STATE, CODE_TABLE);
	assert_int_equal(graph_block_at(&t.graph, f.table),
			 graph_block_at(&t.graph, f.begin));
	built_graph_release(&t);
}

/* The base is taken in the first part of a function, and the jump stands in a chained one
 * that control runs into. */
static void test_base_from_another_part(void **unused)
{
	struct built_graph t;
	struct rva first, part, table;

	(void)unused;
	built_graph_init(&t);
	first = BARE(&t, LEA_BASE "\x31\xc0"); /* xor eax, eax */
	point_at_base(&t, first);
	built_graph_row(&t, first, LEA_SIZE + 2);
	part = BARE(&t, BOUND("\x03", "\x16") READ CASES "\x90");
	table = image_builder_here(&t.b);
	displace(&t, rva_add(part, BOUND_SIZE + 3), table);
	put_entries(&t, rva_add(part, BOUND_SIZE + READ_SIZE), 4);
	put_row(&t, part);
	built_graph_export(&t, first);
	image_builder_section(&t.b, ".xdata1", BUILT_CONST);
	t.rows[0].unwind = image_builder_u32(&t.b, 1);
	chain(&t, 1, 0);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, first), 0);
	assert_int_equal(PINS(&t, part), 0);
	assert_int_equal(t.graph.jump_tables.len, 1);
	assert_int_equal(graph_block_at(&t.graph, part), graph_block_at(&t.graph, first));
	built_graph_release(&t);
}

/* Two levels: a table of bytes gives the index into the table of RVAs. */
struct two_levels {
	struct rva begin, byte_field, field, cases;
};

static struct two_levels put_two_levels(struct built_graph *t)
{
	struct two_levels f;

	f.begin = BARE(t, BOUND("\x07", "\x25") LEA_BASE READ_BYTE READ CASES "\x90");
	point_at_base(t, rva_add(f.begin, BOUND_SIZE));
	f.byte_field = rva_add(f.begin, BOUND_SIZE + LEA_SIZE + 4);
	f.field = rva_add(f.byte_field, 4 + 3);
	f.cases = rva_add(f.field, READ_SIZE - 3);
	built_graph_export(t, f.begin);
	return f;
}

static void test_bytes_in_the_text(void **unused)
{
	static const char bytes[] = {0, 2, 1, 0, 0, 2, 2, 1};
	struct built_graph t;
	struct two_levels f;
	struct rva table, indices;

	(void)unused;
	built_graph_init(&t);
	f = put_two_levels(&t);
	table = image_builder_here(&t.b);
	put_entries(&t, f.cases, 3);
	indices = image_builder_put(&t.b, bytes, sizeof(bytes));
	put_row(&t, f.begin);
	displace(&t, f.byte_field, indices);
	displace(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(t.graph.jump_tables.len, 1);
	assert_int_equal(t.graph.jump_tables.data[0].count, 3);
	assert_displacement(&t, f.byte_field, indices);
	assert_displacement(&t, f.field, table);
	assert_int_equal(graph_code_state(&t.graph, rva_add(indices, 7)) & CODE_STATE,
			 CODE_TABLE);
	built_graph_release(&t);
}

/* movzx eax, al; lea rdx, [image base]; two levels */
#define READ_WIDE "\x0f\xb6\xc0" LEA_BASE READ_BYTE READ
enum { WIDE_BYTE_FIELD = 3 + LEA_SIZE + 4, WIDE_FIELD = WIDE_BYTE_FIELD + 4 + 3,
       WIDE_SIZE = WIDE_FIELD - 3 + READ_SIZE };

static struct rva put_wide_tables(struct built_graph *t, struct rva begin, uint32_t count,
				  struct rva cases)
{
	static const char bytes[] = {0, 2, 1, 0, 0, 2, 2, 1};
	struct rva indices;

	point_at_base(t, rva_add(begin, 3));
	displace(t, rva_add(begin, WIDE_FIELD), image_builder_here(&t->b));
	for (uint32_t i = 0; i < 3; i++)
		image_builder_u32(&t->b, cases.v + (count > 1 ? case_at[i] : 0));
	indices = image_builder_put(&t->b, bytes, sizeof(bytes));
	displace(t, rva_add(begin, WIDE_BYTE_FIELD), indices);
	built_graph_export(t, begin);
	return indices;
}

/* An index of one byte that nothing is known of (observed: V8, which compares with a
 * register): the table of bytes ends where something else begins, and not behind 256 of
 * them, where another function has cases that are found later. */
static void test_bytes_of_unknown_number(void **unused)
{
	struct rva f, g, inner, cases, indices;
	struct built_graph t;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, READ_WIDE CASES "\x90");
	indices = put_wide_tables(&t, f, 3, rva_add(f, WIDE_SIZE));
	put_row(&t, f);
	/* and eax, 3; a second switch in the one case of the first */
	g = BARE(&t, READ_WIDE "\x83\xe0\x03" LEA_BASE READ CASES "\x90");
	inner = rva_add(g, WIDE_SIZE);
	cases = rva_add(inner, 3 + LEA_SIZE + READ_SIZE);
	point_at_base(&t, rva_add(inner, 3));
	displace(&t, rva_add(inner, 3 + LEA_SIZE + 3), image_builder_here(&t.b));
	put_entries(&t, cases, 4);
	put_wide_tables(&t, g, 1, inner);
	put_row(&t, g);
	image_builder_fill(&t.b, 0xcc, 256);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(PINS(&t, g), 0);
	assert_int_equal(t.graph.jump_tables.len, 3);
	assert_int_equal(graph_code_state(&t.graph, rva_add(indices, 7)) & CODE_STATE,
			 CODE_TABLE);
	assert_int_equal(graph_code_state(&t.graph, rva_add(cases, 1)) & CODE_STATE,
			 CODE_START);
	built_graph_release(&t);
}

/* The bytes bound the table only when nobody can change them; else it goes on to the first
 * word that is no entry. */
static void test_bytes_that_are_written(void **unused)
{
	static const char bytes[] = {0, 1, 1, 0, 0, 1, 1, 1};
	struct built_graph t;
	struct two_levels f;
	struct rva table, indices;
	bool writable;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		writable = i;
		built_graph_init(&t);
		f = put_two_levels(&t);
		put_row(&t, f.begin);
		table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
		put_entries(&t, f.cases, 4);
		image_builder_u32(&t.b, 0);
		indices = writable ? image_builder_section(&t.b, ".data", BUILT_DATA)
				   : image_builder_here(&t.b);
		image_builder_put(&t.b, bytes, sizeof(bytes));
		displace(&t, f.byte_field, indices);
		displace(&t, f.field, table);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, f.begin), 0);
		assert_int_equal(t.graph.jump_tables.data[0].count, writable ? 4 : 2);
		assert_null(built_graph_ref(&t, f.field)); /* nothing there moves */
		built_graph_release(&t);
	}
}

/* A mask tells how long a table can be, and nothing else: one that is as long has a bound,
 * one that is not ends where its entries do. */
static void test_mask(void **unused)
{
	struct built_graph t;
	struct rva f, table, cases;

	(void)unused;
	for (uint32_t entries = 2; entries <= 6; entries += 2) {
		built_graph_init(&t);
		f = BARE(&t, LEA_BASE "\x83\xe0\x03" READ CASES); /* and eax, 3 */
		point_at_base(&t, f);
		cases = rva_add(f, LEA_SIZE + 3 + READ_SIZE);
		put_row(&t, f);
		built_graph_export(&t, f);
		table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
		put_entries(&t, cases, entries);
		image_builder_u32(&t.b, 0);
		displace(&t, rva_add(f, LEA_SIZE + 3 + 3), table);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, f), 0);
		assert_int_equal(t.graph.jump_tables.data[0].count,
				 entries < 4 ? entries : 4);
		built_graph_release(&t);
	}
}

/* Nobody knows what the register holds: the jump is not understood, and the table is bytes
 * that somebody may read. */
static void test_unknown_base(void **unused)
{
	struct built_graph t;
	struct rva f, table, cases;

	(void)unused;
	built_graph_init(&t);
	/* add rdx, rcx instead of the base */
	f = BARE(&t, BOUND("\x03", "\x19") "\x48\x01\xca" READ CASES "\x90");
	cases = rva_add(f, BOUND_SIZE + 3 + READ_SIZE);
	table = image_builder_here(&t.b);
	displace(&t, rva_add(f, BOUND_SIZE + 3 + 3), table);
	put_entries(&t, cases, 4);
	put_row(&t, f);
	built_graph_export(&t, f);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(UNSOLVED_JUMP));
	assert_null(built_graph_ref(&t, rva_add(f, BOUND_SIZE + 3 + 3)));
	built_graph_release(&t);
}

/* Another instruction names the table, and it is not known how: the table must stay. */
static void test_constant_that_names_a_table(void **unused)
{
	struct built_graph t;
	struct switch_function f;
	struct rva other;

	(void)unused;
	built_graph_init(&t);
	f = put_switch(&t);
	put_entries(&t, f.cases, 4);
	put_row(&t, f.begin);
	other = BARE(&t, "\x8b\x81\0\0\0\0\xc3"); /* mov eax, [rcx + table]; ret */
	displace(&t, rva_add(other, 2), f.table);
	put_row(&t, other);
	built_graph_export(&t, other);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), PIN(CODE_CONSTANT));
	assert_int_equal(PINS(&t, other), 0);
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_in_the_row),
		cmocka_unit_test(test_empty_entry),
		cmocka_unit_test(test_table_behind_a_leaf),
		cmocka_unit_test(test_table_behind_a_row),
		cmocka_unit_test(test_table_in_a_row_of_its_own),
		cmocka_unit_test(test_base_from_another_part),
		cmocka_unit_test(test_bytes_in_the_text),
		cmocka_unit_test(test_bytes_of_unknown_number),
		cmocka_unit_test(test_bytes_that_are_written),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_unknown_base),
		cmocka_unit_test(test_constant_that_names_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
