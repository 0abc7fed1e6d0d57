/* How long jump tables are: bounds, labels, and words that are no entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table_reader.h"

static void test_bounded(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 6); /* two words more that look like entries */
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(table_length(&t, table), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct ref *ref = built_graph_ref(&t, rva_add(table, 4 * i));

		assert_int_equal(ref->kind, REF_TABLE);
		assert_int_equal(ref->target.v, f.cases.v + case_at[i]);
		assert_int_equal(ref->base.v, table.v);
		assert_false(ref->enters);
	}
	built_graph_release(&t);
}

static void test_unbounded_up_to_no_entry(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 7);
	image_builder_u32(&t.b, 0);
	put_entries(&t, &f, table, 1);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(table_length(&t, table), 7);
	built_graph_release(&t);
}

/* Two tables without a bound that stand together: each ends where the other's label is. */
static void test_unbounded_up_to_label(void **unused)
{
	struct built_graph t;
	struct reader_function f, g;
	struct rva first, second;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	g = put_reader(&t, false);
	first = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, first, 5);
	second = image_builder_here(&t.b);
	/* Entries that would lead into f if they were the first table's. */
	for (uint32_t i = 0; i < 4; i++)
		built_graph_entry(&t, rva_add(g.cases, case_at[i]), second);
	built_graph_point(&t, f.field, first);
	built_graph_point(&t, g.field, second);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f.begin), 0);
	assert_int_equal(PINS(&t, g.begin), 0);
	assert_int_equal(t.graph.jump_tables.len, 2);
	assert_int_equal(LEADS(&t, rva_add(first, 16)), f.cases.v);
	assert_int_equal(LEADS(&t, second), g.cases.v);
	built_graph_release(&t);
}

/* A relocated pointer in data is a label where it stands, and where it leads. */
static void test_unbounded_up_to_relocation(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 4);
	/* An object that only a pointer names; it begins like one more entry. */
	put_entries(&t, &f, table, 1);
	image_builder_u32(&t.b, 0);
	built_graph_pointer(&t, rva_add(table, 16));
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	/* Nothing proves that the label is no table's middle. */
	assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
	assert_null(built_graph_ref(&t, rva_add(table, 16)));
	built_graph_release(&t);
}

/* A label in what is one table for the jump: was it read too short? */
static void test_label_in_the_midst(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, taker;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, false);
	taker = put_taker(&t);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 6);
	image_builder_u32(&t.b, 0);
	built_graph_point(&t, f.field, table);
	built_graph_point(&t, rva_add(taker, 3), rva_add(table, 8));
	built_graph_discover(&t);
	assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
	built_graph_release(&t);
}

static void test_bound_over_label(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table, taker;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	taker = put_taker(&t);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 4);
	built_graph_point(&t, f.field, table);
	built_graph_point(&t, rva_add(taker, 3), rva_add(table, 8));
	built_graph_discover(&t);
	assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
	assert_int_equal(PINS(&t, taker), 0);
	built_graph_release(&t);
}

/* Compared for another switch before, with more cases: the table ends where the next one
 * begins (observed: rustc, `x < 254` around a table of 60).  All up to there must be
 * entries. */
static void test_bound_over_another_table(void **unused)
{
	struct built_graph t;
	struct reader_function f, g;
	struct rva first, second;

	(void)unused;
	for (int odd = 0; odd < 2; odd++) {
		built_graph_init(&t);
		f = put_reader(&t, true);
		g = put_reader(&t, false);
		first = image_builder_section(&t.b, ".rdata", BUILT_CONST);
		put_entries(&t, &f, first, 2);
		built_graph_entry(&t, rva_add(f.cases, odd ? 2 : 4), first);
		second = image_builder_here(&t.b);
		put_entries(&t, &g, second, 4);
		image_builder_u32(&t.b, 0);
		built_graph_point(&t, f.field, first);
		built_graph_point(&t, g.field, second);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g.begin), 0);
		assert_int_equal(t.graph.jump_tables.len, odd ? 1 : 2);
		if (odd) {
			assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
		} else {
			assert_int_equal(PINS(&t, f.begin), 0);
			assert_int_equal(t.graph.jump_tables.data[0].count, 3);
			assert_int_equal(LEADS(&t, rva_add(first, 8)), f.cases.v + 4);
		}
		built_graph_release(&t);
	}
}

/* The same with more of what look like the table's entries behind the other table: was
 * that one read too short? */
static void test_bound_over_a_short_table(void **unused)
{
	struct built_graph t;
	struct reader_function f, g;
	struct rva first, second;

	(void)unused;
	for (int more = 0; more < 3; more++) {
		built_graph_init(&t);
		f = put_reader(&t, true);
		g = reader_behind(&t, CODE(&t, BOUND("\x00") READ CASES), BOUND_SIZE);
		first = image_builder_section(&t.b, ".rdata", BUILT_CONST);
		put_entries(&t, &f, first, 2);
		second = image_builder_here(&t.b);
		put_entries(&t, &g, second, 1);
		if (more == 1)
			put_entries(&t, &f, first, 1);
		else if (more == 2) /* into f's code, but to no instruction */
			built_graph_entry(&t, rva_add(f.cases, 2), first);
		image_builder_u32(&t.b, 0);
		built_graph_point(&t, f.field, first);
		built_graph_point(&t, g.field, second);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g.begin), 0);
		assert_int_equal(PINS(&t, f.begin) & PIN(TABLE_CONFLICT),
				 more ? PIN(TABLE_CONFLICT) : 0);
		assert_int_equal(t.graph.jump_tables.len, 2);
		built_graph_release(&t);
	}
}

static void test_entry_in_the_midst_of_an_instruction(void **unused)
{
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	built_graph_init(&t);
	f = put_reader(&t, true);
	table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_entries(&t, &f, table, 3);
	built_graph_entry(&t, rva_add(f.cases, 2), table);
	built_graph_point(&t, f.field, table);
	built_graph_discover(&t);
	assert_true(PINS(&t, f.begin) & PIN(TABLE_CONFLICT));
	assert_int_equal(t.graph.jump_tables.len, 0);
	built_graph_release(&t);
}

/* The label that ends the first table stands in code that only this table leads to, and
 * that does not count as code by itself yet. */
static void test_label_behind_the_table(void **unused)
{
	struct built_graph t;
	struct rva f, first, second;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x85\xc9\x74\x29"   /* 0: test ecx, ecx; jz 45 */
		 READ                     /* 4: without a bound */
		     "\xe9\x25\0\0\0"     /* 22: case 0: jmp 64 */
		 READ                     /* 27: case 1: another switch */
		     "\xc3"               /* 45 */
		     "\xb8\x01\0\0\0\xc3" /* 46, 52, 58: its cases */
		     "\xb8\x02\0\0\0\xc3"
		     "\xb8\x03\0\0\0\xc3"
		     "\x31\xc0\xc3\xcc"); /* 64 */
	first = image_builder_here(&t.b);
	built_graph_entry(&t, rva_add(f, 22), first);
	built_graph_entry(&t, rva_add(f, 27), first);
	second = image_builder_here(&t.b);
	for (uint32_t i = 0; i < 3; i++)
		built_graph_entry(&t, rva_add(f, 46 + 6 * i), second);
	image_builder_fill(&t.b, 0xcc, 4);
	built_graph_export(&t, f);
	built_graph_point(&t, rva_add(f, 4 + LEA_FIELD), first);
	built_graph_point(&t, rva_add(f, 27 + LEA_FIELD), second);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(t.graph.jump_tables.len, 2);
	assert_int_equal(LEADS(&t, rva_add(second, 8)), f.v + 58);
	built_graph_release(&t);
}

enum { FIRST_COUNT = 10 };

/* mov rax, x: two words that look like a table of RVAs, so that what lies between known
 * code is not taken for code by itself */
#define LIKE_A_TABLE "\x48\xb8\0\0\0\0\0\0\0\0"

/* A function with a table of FIRST_COUNT entries without a bound, and a nop in its midst.
 * Its first case calls a leaf that nothing else leads to.  The leaf's table stands behind
 * the function's; relative to that one its first entry leads into the nop. */
static struct rva put_neighbours(struct built_graph *t, const char *leaf, size_t size,
				 uint32_t leaf_read)
{
	struct rva f, g, first, second;

	f = CODE(t, READ LIKE_A_TABLE     /* 18: case 0 */
		 "\xe8\x0f\0\0\0\xc3"     /* 28: call 48; ret */
		 "\x0f\x1f\x84\0\0\0\0\0" /* 34: nop */
		 "\x31\xc0\xc3");         /* 42: case 1 */
	built_graph_row(t, f, 45);
	built_graph_export(t, f);
	g = built_graph_code(t, leaf, size);
	assert_int_equal(g.v, f.v + 48);
	for (uint32_t i = 0; i < 2; i++) {
		store_u32(image_builder_at(&t->b, rva_add(f, 20 + 4 * i)), f.v + 2);
		store_u32(image_builder_at(&t->b, rva_add(g, 4 + 4 * i)), f.v + 2);
	}
	first = image_builder_section(&t->b, ".rdata", BUILT_CONST);
	for (uint32_t i = 0; i < FIRST_COUNT; i++)
		built_graph_entry(t, rva_add(f, i % 2 ? 42 : 18), first);
	second = image_builder_here(&t->b);
	built_graph_entry(t, rva_add(g, leaf_read + READ_SIZE), second);
	image_builder_u32(&t->b, 0);
	built_graph_point(t, rva_add(f, LEA_FIELD), first);
	built_graph_point(t, rva_add(g, leaf_read + LEA_FIELD), second);
	built_graph_discover(t);
	assert_int_equal(t->graph.jump_tables.len, 2);
	assert_int_equal(t->graph.jump_tables.data[0].count, FIRST_COUNT);
	return f;
}

/* The label that ends the first table stands in another function's code, which only this
 * table leads to (observed: rustc): read too far meanwhile, it made an instruction of a
 * nop's midst, and the verifier did not find that in the relinked image. */
static void test_label_in_another_function(void **unused)
{
	static const char leaf[] = "\x31\xc0" LIKE_A_TABLE READ "\xc3";
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	f = put_neighbours(&t, leaf, sizeof(leaf) - 1, 12);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(graph_code_state(&t.graph, rva_add(f, 38)) & CODE_STATE,
			 CODE_PADDING);
	built_graph_release(&t);
}

/* The same with a label that is not seen before control comes there: jmp over a byte that
 * begins another instruction.  What was made of the nop is no code. */
static void test_table_that_was_read_too_far(void **unused)
{
	static const char leaf[] = "\xeb\x0c" LIKE_A_TABLE "\x90\xe8" READ "\xc3";
	struct built_graph t;
	struct rva f;

	(void)unused;
	built_graph_init(&t);
	f = put_neighbours(&t, leaf, sizeof(leaf) - 1, 14);
	assert_true(PINS(&t, f) & PIN(TABLE_CONFLICT));
	built_graph_release(&t);
}

/* More entries than any table has: nobody reads so many, so nothing is proven. */
static void test_bound_over_the_limit(void **unused)
{
	enum { LIMIT = 65536, HEAD = 8 };
	struct built_graph t;
	struct reader_function f;
	struct rva table;

	(void)unused;
	for (uint32_t more = 0; more < 2; more++) {
		built_graph_init(&t);
		/* cmp ecx, last; ja default */
		f = reader_behind(
			&t,
			more ? CODE(&t, "\x81\xf9\0\0\x01\0\x77\x1c" READ CASES)
			     : CODE(&t, "\x81\xf9\xff\xff\0\0\x77\x1c" READ CASES),
			HEAD);
		table = image_builder_section(&t.b, ".rdata", BUILT_CONST);
		put_entries(&t, &f, table, LIMIT + more);
		image_builder_u32(&t.b, 0);
		built_graph_point(&t, f.field, table);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, f.begin) & PIN(TABLE_CONFLICT),
				 more ? PIN(TABLE_CONFLICT) : 0);
		assert_int_equal(t.graph.jump_tables.len, 1 - more);
		built_graph_release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_unbounded_up_to_no_entry),
		cmocka_unit_test(test_unbounded_up_to_label),
		cmocka_unit_test(test_unbounded_up_to_relocation),
		cmocka_unit_test(test_label_in_the_midst),
		cmocka_unit_test(test_bound_over_label),
		cmocka_unit_test(test_bound_over_another_table),
		cmocka_unit_test(test_bound_over_a_short_table),
		cmocka_unit_test(test_entry_in_the_midst_of_an_instruction),
		cmocka_unit_test(test_label_behind_the_table),
		cmocka_unit_test(test_label_in_another_function),
		cmocka_unit_test(test_table_that_was_read_too_far),
		cmocka_unit_test(test_bound_over_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
