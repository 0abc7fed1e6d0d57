/* What a jump that is not understood may lead to: parts of its own function, and what
 * nothing else leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

/* add rax, rcx; jmp rax */
#define UNSOLVED "\x48\x01\xc8\xff\xe0"

/* A function with such a jump, one without, a part of either, and one more row. */
struct family {
	struct built_graph t;
	struct rva jumper, jumper_part, other, other_part, alone;
};

static void begin(struct family *m)
{
	built_graph_init(&m->t);
	m->jumper = CODE(&m->t, UNSOLVED);
	m->jumper_part = CODE(&m->t, "\x31\xc0\xc3");
	m->other = CODE(&m->t, "\x31\xdb\xc3");
	m->other_part = CODE(&m->t, "\x31\xd2\xc3");
	m->alone = CODE(&m->t, "\x31\xc9\xc3");
	built_graph_row(&m->t, m->jumper, 5);
	built_graph_row(&m->t, m->jumper_part, 3);
	built_graph_row(&m->t, m->other, 3);
	built_graph_row(&m->t, m->other_part, 3);
	built_graph_row(&m->t, m->alone, 3);
	built_graph_export(&m->t, m->jumper);
	built_graph_export(&m->t, m->other);
	image_builder_section(&m->t.b, ".xdata1", BUILT_CONST);
}

/* Makes a row a part of another (Microsoft Learn, "x64 exception handling"). */
static void chain(struct family *m, unsigned part, unsigned whole)
{
	struct built_row *row = &m->t.rows[whole];

	if (row->unwind.v == 0)
		row->unwind = image_builder_u32(&m->t.b, 1);
	m->t.rows[part].unwind = image_builder_u32(&m->t.b, 1 | UNWIND_CHAININFO << 3);
	image_builder_u32(&m->t.b, row->begin.v);
	image_builder_u32(&m->t.b, row->end.v);
	image_builder_u32(&m->t.b, row->unwind.v);
}

static void test_parts_by_their_rows(void **unused)
{
	struct family m;

	(void)unused;
	begin(&m);
	chain(&m, 1, 0);
	chain(&m, 3, 2);
	built_graph_discover(&m.t);
	assert_int_equal(PINS(&m.t, m.jumper), PIN(UNSOLVED_JUMP));
	assert_int_equal(PINS(&m.t, m.jumper_part) & PIN(UNSOLVED_JUMP),
			 PIN(UNSOLVED_JUMP));
	assert_int_equal(PINS(&m.t, m.other), 0);
	assert_int_equal(PINS(&m.t, m.other_part) & PIN(UNSOLVED_JUMP), 0);
	assert_int_equal(PINS(&m.t, m.other_part) & PIN(DOUBTFUL_TARGET), 0);
	assert_int_equal(PINS(&m.t, m.alone), PIN(DOUBTFUL_TARGET));
	built_graph_release(&m.t);
}

/* That something is chained to a function does not mean that anything leads to it. */
static void test_a_whole_that_nothing_leads_to(void **unused)
{
	struct family m;

	(void)unused;
	begin(&m);
	chain(&m, 3, 4);
	chain(&m, 1, 4);
	built_graph_discover(&m.t);
	assert_int_equal(PINS(&m.t, m.alone), PIN(DOUBTFUL_TARGET));
	built_graph_release(&m.t);
}

/* A scope table leads to the function that handles its exceptions. */
static void test_exception_data_leads_to_it(void **unused)
{
	struct family m;

	(void)unused;
	begin(&m);
	m.t.rows[2].unwind = image_builder_u32(&m.t.b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&m.t.b, m.jumper.v);
	image_builder_u32(&m.t.b, 1);
	image_builder_u32(&m.t.b, m.other.v);
	image_builder_u32(&m.t.b, m.other.v + 2);
	image_builder_u32(&m.t.b, 1);
	image_builder_u32(&m.t.b, m.alone.v);
	built_graph_discover(&m.t);
	assert_int_equal(PINS(&m.t, m.other), 0);
	assert_int_equal(PINS(&m.t, m.alone), 0);
	assert_int_equal(PINS(&m.t, m.other_part), PIN(DOUBTFUL_TARGET));
	built_graph_release(&m.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_by_their_rows),
		cmocka_unit_test(test_a_whole_that_nothing_leads_to),
		cmocka_unit_test(test_exception_data_leads_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
