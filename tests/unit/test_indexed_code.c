/* Code that is reached by an offset from one address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

enum { FEW = 40, MANY = 150, DISTANCE = 16 /* bytes from one to the next */ };

/* An engine's code: functions that nothing refers to, the first of them taken. */
struct engine {
	struct built_graph t;
	struct rva before, first, behind;
	unsigned count;
};

/* `before` ... the engine ... `behind`, which has a row of its own. */
static void begin(struct engine *e, unsigned count)
{
	e->count = count;
	built_graph_init(&e->t);
	e->before = CODE(&e->t, "\xe8\0\0\0\0\xc3"); /* call behind; ret */
	for (unsigned i = 0; i < count; i++) {
		struct rva f = CODE(&e->t, "\x31\xc0\x90\x90\x31\xdb\xc3");

		if (i == 0)
			e->first = f;
	}
	e->behind = CODE(&e->t, "\xe8\0\0\0\0\xc3");
	built_graph_point(&e->t, rva_add(e->before, 1), e->behind);
	built_graph_point(&e->t, rva_add(e->behind, 1), e->behind);
	built_graph_row(&e->t, e->before, 6);
	built_graph_row(&e->t, e->behind, 6);
	built_graph_export(&e->t, e->before);
	image_builder_section(&e->t.b, ".rdata", BUILT_CONST);
}

/* {offset, length} of each but for `bias`, ascending. */
static void put_table(struct engine *e, unsigned count, uint32_t bias)
{
	for (unsigned i = 0; i < count; i++) {
		image_builder_u32(&e->t.b, DISTANCE * i + bias);
		image_builder_u32(&e->t.b, 7);
	}
}

static struct rva nth(const struct engine *e, unsigned i)
{
	return rva_add(e->first, DISTANCE * i);
}

static unsigned indexed(const struct engine *e)
{
	unsigned count = 0;

	for (unsigned i = 0; i < e->count; i++)
		count += (PINS(&e->t, nth(e, i)) & PIN(POSITION_INDEXED)) != 0;
	return count;
}

static void test_table_of_offsets(void **unused)
{
	struct engine e;
	struct rva pointer;

	(void)unused;
	begin(&e, FEW);
	put_table(&e, FEW, 0);
	pointer = built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), FEW);
	assert_int_equal(PINS(&e.t, e.before), 0);
	assert_int_equal(PINS(&e.t, e.behind), 0);
	assert_int_equal(LEADS(&e.t, pointer), e.first.v);
	built_graph_release(&e.t);
}

/* The base is no function's begin, the offsets lead behind the begins: V8's head in
 * node.exe 18. */
static void test_base_in_the_first_function(void **unused)
{
	struct engine e;

	(void)unused;
	begin(&e, FEW);
	e.t.row_count--;
	built_graph_row(&e.t, e.first, 7);
	built_graph_row(&e.t, e.behind, 6);
	put_table(&e, FEW, 0);
	built_graph_pointer(&e.t, rva_add(e.first, 4));
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), FEW);
	built_graph_release(&e.t);
}

/* The base is taken by an instruction. */
static void test_base_of_lea(void **unused)
{
	struct engine e;
	struct rva taker;

	(void)unused;
	begin(&e, FEW);
	image_builder_section(&e.t.b, ".text2", BUILT_CODE);
	taker = CODE(&e.t, "\x48\x8d\x05\0\0\0\0\xc3");
	built_graph_point(&e.t, rva_add(taker, 3), e.first);
	built_graph_row(&e.t, taker, 8);
	built_graph_export(&e.t, taker);
	image_builder_section(&e.t.b, ".data", BUILT_DATA);
	put_table(&e, FEW, 0);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), FEW);
	assert_int_equal(PINS(&e.t, taker), 0);
	built_graph_release(&e.t);
}

/* Numbers that do not ascend, that lead into instructions, too few of them, or without
 * an address to count from. */
static void test_what_is_no_table(void **unused)
{
	struct engine e;

	(void)unused;
	begin(&e, FEW);
	for (unsigned i = FEW; i > 0; i--)
		image_builder_u32(&e.t.b, DISTANCE * i);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
	begin(&e, FEW);
	put_table(&e, FEW, 1);
	image_builder_align(&e.t.b, 8);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
	begin(&e, FEW);
	put_table(&e, 20, 0);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
	begin(&e, FEW);
	put_table(&e, FEW, 0);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
}

/* Wine's relay stubs: few, some of them for no function. */
static void test_relay_descriptor(void **unused)
{
	enum { STUBS = 5 };

	(void)unused;
	for (int whole = 0; whole <= 1; whole++) {
		struct engine e;
		struct rva table;

		begin(&e, FEW);
		table = image_builder_here(&e.t.b);
		for (unsigned i = 0; i < STUBS; i++)
			image_builder_u32(&e.t.b, i == 2 ? 0 : DISTANCE * (10 - i));
		image_builder_align(&e.t.b, 8);
		image_builder_u64(&e.t.b, 0xdeb90002u + !whole);
		image_builder_u64(&e.t.b, 0);
		image_builder_u64(&e.t.b, 0);
		built_graph_pointer(&e.t, e.first);
		built_graph_pointer(&e.t, table);
		built_graph_pointer(&e.t, rva_add(table, 4 * STUBS));
		built_graph_discover(&e.t);
		/* From the base to the last one that is named. */
		assert_int_equal(indexed(&e), whole ? 11 : 0);
		built_graph_release(&e.t);
	}
}

/* Something outside calls one of them after all; the table goes on behind it. */
static void test_table_goes_on_behind_a_called_one(void **unused)
{
	struct engine e;

	(void)unused;
	begin(&e, FEW);
	built_graph_point(&e.t, rva_add(e.behind, 1), nth(&e, FEW - 8));
	put_table(&e, FEW, 0);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), FEW);
	assert_int_equal(PINS(&e.t, e.behind), 0);
	built_graph_release(&e.t);
}

/* So many functions in a row that nobody refers to need no table... */
static void test_many_without_a_table(void **unused)
{
	struct engine e;

	(void)unused;
	begin(&e, MANY);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), MANY);
	assert_int_equal(PINS(&e.t, e.before), 0);
	assert_int_equal(PINS(&e.t, e.behind), 0);
	built_graph_release(&e.t);
}

/* ...but dead code is no engine's: its first function is called, or nothing at all leads
 * to it. */
static void test_many_dead(void **unused)
{
	struct engine e;

	(void)unused;
	begin(&e, MANY);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
	begin(&e, MANY);
	built_graph_point(&e.t, rva_add(e.behind, 1), e.first);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), 0);
	built_graph_release(&e.t);
}

/* What refers to something outside is not edited, since it may be copied; what it names
 * stays. */
static void test_its_references_are_left_alone(void **unused)
{
	struct engine e;
	struct rva call;

	(void)unused;
	begin(&e, FEW);
	call = nth(&e, 30);
	memcpy(image_builder_at(&e.t.b, call), "\xe8\0\0\0\0\x90", 6);
	built_graph_point(&e.t, rva_add(call, 1), e.behind);
	put_table(&e, FEW, 0);
	built_graph_pointer(&e.t, e.first);
	built_graph_discover(&e.t);
	assert_int_equal(indexed(&e), FEW);
	assert_null(built_graph_ref(&e.t, rva_add(call, 1)));
	assert_int_equal(PINS(&e.t, e.behind), PIN(DOUBTFUL_TARGET));
	built_graph_release(&e.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_of_offsets),
		cmocka_unit_test(test_base_in_the_first_function),
		cmocka_unit_test(test_base_of_lea),
		cmocka_unit_test(test_what_is_no_table),
		cmocka_unit_test(test_relay_descriptor),
		cmocka_unit_test(test_table_goes_on_behind_a_called_one),
		cmocka_unit_test(test_many_without_a_table),
		cmocka_unit_test(test_many_dead),
		cmocka_unit_test(test_its_references_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
