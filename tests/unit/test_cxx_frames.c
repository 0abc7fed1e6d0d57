/* C++ exception data of the MSVC ABI: what it leads to, and when it is not understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frame_image.h"

static void expect_leads(struct frame_image *i, struct rva site, struct rva target,
			 bool enters)
{
	const struct ref *ref = built_graph_ref(&i->t, site);

	assert_non_null(ref);
	assert_int_equal(ref->target.v, target.v);
	assert_int_equal(ref->enters, enters);
}

static uint8_t form_of(const struct frame_image *i, struct rva function)
{
	const struct graph *graph = &i->t.graph;

	for (uint32_t k = 0; k < graph->handlers.len; k++) {
		const struct handler_use *use = &graph->handlers.data[k];

		if (graph->tables.functions.data[use->row].begin.v == function.v)
			return use->form;
	}
	return UINT8_MAX;
}

static void test_all_is_understood(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	built_graph_discover(&i.t);
	for (uint32_t k = 0; k < i.t.graph.functions.len; k++)
		assert_int_equal(i.t.graph.functions.data[k].pins, 0);
	assert_int_equal(form_of(&i, i.f), HANDLER_FRAME3);
	assert_int_equal(form_of(&i, i.catch3), HANDLER_FRAME3);
	assert_int_equal(form_of(&i, i.h), HANDLER_FRAME4);
	assert_int_equal(form_of(&i, i.second), HANDLER_FRAME4);
	assert_int_equal(form_of(&i, i.guarded), HANDLER_COOKIE);
	assert_int_equal(form_of(&i, i.labelled), HANDLER_LABELS);
	assert_int_equal(i.t.graph.handlers.len, 8);
	built_graph_release(&i.t);
}

static void test_frame3(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	built_graph_discover(&i.t);
	expect_leads(&i, rva_add(i.unwinds3, 4), i.cleanup, true);
	/* The system compares it with the funclet's row. */
	expect_leads(&i, rva_add(i.catches3, 12), i.catch3, false);
	expect_leads(&i, rva_add(i.states3, 8), rva_add(i.f, 9), false);
	assert_int_equal(built_graph_ref(&i.t, i.states3)->kind, REF_STATE);
	assert_int_equal(i.t.graph.state_maps.len, 1);
	assert_int_equal(i.t.graph.state_maps.data[0].rva.v, i.states3.v);
	assert_int_equal(i.t.graph.state_maps.data[0].count, 4);
	/* Function and funclet may move apart. */
	assert_ptr_not_equal(built_graph_block(&i.t, i.f),
			     built_graph_block(&i.t, i.catch3));
	built_graph_release(&i.t);
}

static void test_frame4(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	built_graph_discover(&i.t);
	expect_leads(&i, rva_add(i.unwinds4, 2), i.cleanup, true);
	expect_leads(&i, rva_add(i.catches4, 3), i.catch4, false);
	expect_leads(&i, i.continuation4, i.resume4b, false);
	expect_leads(&i, rva_add(i.segments, 1), i.first, false);
	expect_leads(&i, rva_add(i.segments, 9), i.second, false);
	/* Nothing but the data leads there. */
	assert_int_equal(graph_code_state(&i.t.graph, i.resume4) & CODE_STATE, CODE_START);
	assert_true(graph_code_state(&i.t.graph, i.resume4) & CODE_ENTERED);
	assert_true(graph_code_state(&i.t.graph, i.resume4b) & CODE_ENTERED);
	built_graph_release(&i.t);
}

/* A word of one user's data that no compiler writes: all users of the handler stay, and no
 * other's. */
static void expect_unknown(struct frame_image *i, bool three)
{
	built_graph_discover(&i->t);
	assert_int_equal(!!(PINS(&i->t, i->f) & PIN(UNKNOWN_HANDLER)), three);
	assert_int_equal(!!(PINS(&i->t, i->catch3) & PIN(UNKNOWN_HANDLER)), three);
	assert_int_equal(!!(PINS(&i->t, i->h) & PIN(UNKNOWN_HANDLER)), !three);
	assert_int_equal(!!(PINS(&i->t, i->second) & PIN(UNKNOWN_HANDLER)), !three);
	assert_int_equal(PINS(&i->t, i->guarded), 0);
	built_graph_release(&i->t);
}

static void test_odd_frame3(void **unused)
{
	struct frame_image i;
	/* Offsets into the FuncInfo, and what is wrong there. */
	const struct {
		uint32_t field, value;
	} faults[] = {
		{0, 0x19930523}, /* an unknown magic number */
		{4, 0x10000000}, /* more states than the file holds */
		{4, 1},          /* a try block with states that are not */
		{12, 0x1000000}, /* more try blocks than the file holds */
		{20, 0x1000000}, /* more rows of the state map */
		{36, 8},         /* an unknown flag */
	};

	(void)unused;
	for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++) {
		frame_image_make(&i);
		frame_image_set(&i, rva_add(i.info3, faults[k].field), faults[k].value);
		expect_unknown(&i, true);
	}
	frame_image_make(&i); /* an array in the headers */
	frame_image_set(&i, rva_add(i.info3, 8), 0x40);
	expect_unknown(&i, true);
	frame_image_make(&i); /* an action outside the code */
	frame_image_set(&i, rva_add(i.unwinds3, 4), i.info3.v);
	expect_unknown(&i, true);
	frame_image_make(&i); /* a state that follows itself */
	frame_image_set(&i, rva_add(i.unwinds3, 8), 1);
	expect_unknown(&i, true);
	frame_image_make(&i); /* a funclet that is none */
	frame_image_set(&i, rva_add(i.catches3, 12), i.catch3.v + 4);
	expect_unknown(&i, true);
	frame_image_make(&i); /* a state that is not */
	frame_image_set(&i, rva_add(i.states3, 12), 2);
	expect_unknown(&i, true);
	frame_image_make(&i); /* the try block's states out of order */
	frame_image_set(&i, rva_add(i.tries3, 8), 0);
	expect_unknown(&i, true);
}

static void test_odd_frame4(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	*image_builder_at(&i.t.b, i.info4) |= 0x80; /* a flag that is not */
	expect_unknown(&i, false);
	frame_image_make(&i);
	*image_builder_at(&i.t.b, rva_add(i.unwinds4, 6)) = 0x40; /* a state behind -1 */
	expect_unknown(&i, false);
	frame_image_make(&i);
	*image_builder_at(&i.t.b, rva_add(i.states4, 2)) = 0x06; /* a state that is not */
	expect_unknown(&i, false);
	frame_image_make(&i);
	*image_builder_at(&i.t.b, rva_add(i.states4, 3)) = 0x40; /* outside the function */
	expect_unknown(&i, false);
	frame_image_make(&i);
	*image_builder_at(&i.t.b, rva_add(i.catches4, 7)) =
		0x40; /* goes on outside of it */
	expect_unknown(&i, false);
	frame_image_make(&i); /* a list in the headers */
	frame_image_set(&i, rva_add(i.info4, 9), 8);
	expect_unknown(&i, false);
	frame_image_make(&i); /* a segment that is no row */
	frame_image_set(&i, rva_add(i.segments, 1), i.first.v + 1);
	expect_unknown(&i, false);
	frame_image_make(&i); /* a user without its segment */
	frame_image_set(&i, rva_add(i.segments, 1), i.second.v);
	expect_unknown(&i, false);
	frame_image_make(&i);
	*image_builder_at(&i.t.b, rva_add(i.tries4, 3)) = 0x04; /* no such state */
	expect_unknown(&i, false);
}

/* What names functions in data that is not understood need not stand at a multiple of
 * four, and what it names need not be a user's. */
static void test_packed_word_of_odd_data(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	assert_int_not_equal((i.unwinds4.v + 2) % 4, 0);
	*image_builder_at(&i.t.b, i.info4) |= 0x80; /* a flag that is not */
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.h) & PIN(UNKNOWN_HANDLER));
	assert_true(PINS(&i.t, i.cleanup) & PIN(HIDDEN_REFERENCE));
	built_graph_release(&i.t);
}

static void set_unwind(struct frame_image *i, struct rva function, struct rva info)
{
	for (uint32_t k = 0; k < i->t.row_count; k++)
		if (i->t.rows[k].begin.v == function.v)
			i->t.rows[k].unwind = info;
}

/* Gives `first` a handler with so many words of data, all the same; where they stand. */
static struct rva put_handler(struct frame_image *i, uint32_t word, uint32_t count)
{
	struct rva handled, data;

	frame_image_make(i);
	image_builder_align(&i->t.b, 4);
	handled = PUT(i, "\x19\x04\x01\x00\x04\x42\0\0");
	frame_image_rva(i, i->g);
	data = image_builder_here(&i->t.b);
	for (uint32_t k = 0; k < count; k++)
		image_builder_u32(&i->t.b, word);
	set_unwind(i, i->first, handled);
	set_unwind(i, i->second, PUT(i, "\x01\x04\x01\x00\x04\x42\0\0"));
	return data;
}

static void expect_caught(struct frame_image *i, bool caught)
{
	built_graph_discover(&i->t);
	assert_true(PINS(&i->t, i->first) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(PINS(&i->t, i->cleanup), caught ? PIN(HIDDEN_REFERENCE) : 0);
	built_graph_release(&i->t);
}

/* A word behind the data, at no multiple of four, in the same section. */
static void expect_packed(uint32_t word, uint32_t count, bool packed)
{
	struct frame_image i;

	put_handler(&i, word, count);
	PUT(&i, "\0");
	frame_image_rva(&i, i.cleanup);
	expect_caught(&i, packed);
}

enum { NUMBER = 0x7fffffff, CODE_RVA = 0x1001, DATA_RVA = 0x2000 };

/* A handler without data, as that of V8's own code, or with words that lead to none: nothing
 * is packed there. */
static void test_handler_with_little_data(void **unused)
{
	(void)unused;
	expect_packed(0, 0, false);
	expect_packed(NUMBER, 1, false);
	expect_packed(CODE_RVA, 2, false);
	expect_packed(DATA_RVA, 1, true);
	expect_packed(NUMBER, 17, true); /* who knows how much it is */
}

/* Not the first word leads to the section where a function is named. */
static void test_handler_data_in_another_section(void **unused)
{
	struct frame_image i;
	struct rva data, other;

	(void)unused;
	data = put_handler(&i, NUMBER, 2);
	other = image_builder_section(&i.t.b, ".other", BUILT_CONST);
	PUT(&i, "\0");
	frame_image_rva(&i, i.cleanup);
	frame_image_set(&i, rva_add(data, 4), other.v);
	expect_caught(&i, true);
}

/* Data that leads nowhere names a function by itself. */
static void test_handler_data_names_a_function(void **unused)
{
	struct frame_image i;
	struct rva data;

	(void)unused;
	data = put_handler(&i, 0xffffff00, 2);
	frame_image_set(&i, data, i.cleanup.v << 8 | 0x7f);
	expect_caught(&i, true);
}

/* A count of 128 and more has two bytes, and so state -1 is two bytes before the rows
 * (observed: DuckDB's DLL, link 14.51). */
static void test_long_unwind_map(void **unused)
{
	struct frame_image i;
	struct rva map;

	(void)unused;
	frame_image_make(&i);
	map = PUT(&i, "\x01\x02"); /* 128 */
	PUT(&i, "\x12");           /* 0: next is 2 bytes back, with an object */
	frame_image_rva(&i, i.cleanup);
	PUT(&i, "\x40"); /* the object */
	PUT(&i, "\x30"); /* 1: the row before, nothing */
	for (int row = 2; row < 128; row++)
		PUT(&i, "\x08"); /* likewise */
	frame_image_set(&i, rva_add(i.info4, 1), map.v);
	frame_image_set(&i, rva_add(i.info4_catch, 1), map.v);
	built_graph_discover(&i.t);
	assert_int_equal(PINS(&i.t, i.h), 0);
	expect_leads(&i, rva_add(map, 3), i.cleanup, true);
	built_graph_release(&i.t);
}

/* A funclet that has no row of the map at its begin is in the state in which the unit
 * before has ended. */
static void test_unit_without_a_row(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	frame_image_set(&i, rva_add(i.states3, 24), i.catch3.v + 4);
	built_graph_discover(&i.t);
	assert_int_equal(PINS(&i.t, i.f), 0);
	assert_ptr_equal(built_graph_block(&i.t, i.f), built_graph_block(&i.t, i.catch3));
	built_graph_release(&i.t);
	/* The first has none, and the other would come before it. */
	frame_image_make(&i);
	frame_image_set(&i, i.states3, i.f.v + 4);
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.f) & PIN(UNKNOWN_HANDLER));
	assert_true(PINS(&i.t, i.catch3) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(i.t.graph.state_maps.len, 0);
	built_graph_release(&i.t);
}

/* LLVM's rows may stand one byte behind the unit. */
static void test_row_behind_a_unit(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	frame_image_set(&i, rva_add(i.states3, 16), i.f.v + 24);
	built_graph_discover(&i.t);
	assert_int_equal(PINS(&i.t, i.f), 0);
	assert_null(built_graph_ref(&i.t, rva_add(i.states3, 16)));
	assert_int_equal(i.t.graph.state_maps.len, 1);
	built_graph_release(&i.t);
	/* Two bytes behind it means something else. */
	frame_image_make(&i);
	frame_image_set(&i, rva_add(i.states3, 16), i.f.v + 25);
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.f) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&i.t);
}

static void test_map_out_of_order(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	frame_image_set(&i, rva_add(i.states3, 8), i.f.v + 15);
	frame_image_set(&i, rva_add(i.states3, 16), i.f.v + 9);
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.f) & PIN(UNKNOWN_HANDLER));
	assert_true(PINS(&i.t, i.catch3) & PIN(UNKNOWN_HANDLER));
	assert_null(built_graph_ref(&i.t, i.states3));
	built_graph_release(&i.t);
}

static void test_odd_cookies(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i); /* behind the frame */
	frame_image_set(&i, i.cookie, 0x28);
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.guarded) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&i.t);
	frame_image_make(&i); /* a place in the function stands behind it */
	image_builder_u32(&i.t.b, i.guarded.v + 4);
	built_graph_discover(&i.t);
	assert_true(PINS(&i.t, i.guarded) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&i.t);
}

/* A handler of hand-written assembly that looks up places in its users. */
static void test_labels(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	built_graph_discover(&i.t);
	expect_leads(&i, i.labels, rva_add(i.labelled, 4), false);
	expect_leads(&i, rva_add(i.labels, 4), rva_add(i.labelled, 10), false);
	assert_int_equal(built_graph_ref(&i.t, rva_add(i.labels, 4))->kind, REF_RVA_END);
	assert_null(built_graph_ref(&i.t, rva_add(i.labels, 8)));
	built_graph_release(&i.t);
}

static void test_odd_labels(void **unused)
{
	struct frame_image i;
	/* Words, and what is wrong with them. */
	const struct {
		uint32_t word, value;
	} faults[] = {
		{0, 4},      /* no label */
		{1, 4},      /* only one */
		{2, 0x1000}, /* a place in another function */
	};

	(void)unused;
	for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++) {
		frame_image_make(&i);
		frame_image_set(&i, rva_add(i.labels, 4 * faults[k].word), faults[k].value);
		built_graph_discover(&i.t);
		assert_true(PINS(&i.t, i.labelled) & PIN(UNKNOWN_HANDLER));
		assert_null(built_graph_ref(&i.t, i.labels));
		built_graph_release(&i.t);
	}
}

/* Data that is of two forms: a cookie's place and a scope table of one row. */
static void test_two_forms(void **unused)
{
	struct frame_image i;

	(void)unused;
	frame_image_make(&i);
	frame_image_set(&i, i.cookie, 1);
	image_builder_u32(&i.t.b, i.g.v + 2); /* no scope of the function */
	built_graph_discover(&i.t);
	assert_int_equal(form_of(&i, i.guarded), HANDLER_COOKIE);
	built_graph_release(&i.t);
	frame_image_make(&i);
	frame_image_set(&i, i.cookie, 1);
	image_builder_u32(&i.t.b, i.guarded.v);
	image_builder_u32(&i.t.b, i.guarded.v + 9);
	image_builder_u32(&i.t.b, 1);
	image_builder_u32(&i.t.b, i.guarded.v + 9);
	built_graph_discover(&i.t);
	assert_int_equal(form_of(&i, i.guarded), HANDLER_SCOPES);
	built_graph_release(&i.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_understood),
		cmocka_unit_test(test_frame3),
		cmocka_unit_test(test_frame4),
		cmocka_unit_test(test_odd_frame3),
		cmocka_unit_test(test_odd_frame4),
		cmocka_unit_test(test_packed_word_of_odd_data),
		cmocka_unit_test(test_handler_with_little_data),
		cmocka_unit_test(test_handler_data_in_another_section),
		cmocka_unit_test(test_handler_data_names_a_function),
		cmocka_unit_test(test_long_unwind_map),
		cmocka_unit_test(test_unit_without_a_row),
		cmocka_unit_test(test_row_behind_a_unit),
		cmocka_unit_test(test_map_out_of_order),
		cmocka_unit_test(test_odd_cookies),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_odd_labels),
		cmocka_unit_test(test_two_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
