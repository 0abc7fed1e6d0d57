#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "full_image.h"
#include "graph/analysis.h"

struct trial {
	struct full_image full;
	struct image image;
	struct graph graph;
	struct symbol_set set;
	struct name_report report;
	struct diag diag;
};

static void begin(struct trial *t)
{
	memset(t, 0, sizeof(*t));
	full_image_make(&t->full);
	diag_init(&t->diag);
	assert_int_equal(image_open_bytes(&t->image, t->full.bytes, t->full.size, "full",
					  &t->diag),
			 STATUS_OK);
	assert_int_equal(graph_discover(&t->graph, &t->image, NULL, &t->diag), STATUS_OK);
}

static void end(struct trial *t)
{
	graph_release(&t->graph);
	image_release(&t->image);
	full_image_release(&t->full);
	symbol_set_release(&t->set);
}

static void put(struct trial *t, const char *name, struct rva rva, uint32_t size,
		enum symbol_kind kind)
{
	struct symbol symbol = {.name = name, .rva = rva, .size = size, .kind = kind};

	assert_true(symbol_set_add(&t->set, &t->image, &symbol, strlen(name)));
}

static void name(struct trial *t)
{
	assert_true(symbol_set_finish(&t->set));
	function_names_add(&t->graph, &t->set, &t->report);
}

static const char *name_at(const struct trial *t, struct rva rva)
{
	return t->graph.functions.data[graph_function_starting(&t->graph, rva)].name;
}

static void the_best_name_is_taken(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	put(&t, "a_place", t.full.entry, 0, SYMBOL_PLACE);
	put(&t, "procedure", t.full.entry, 0x21, SYMBOL_PROCEDURE);
	/* Folded by the linker: the first in the alphabet, wherever it stands. */
	put(&t, "?second", t.full.entry, 0, SYMBOL_FUNCTION);
	put(&t, "?first", t.full.entry, 0, SYMBOL_FUNCTION);
	put(&t, "?third", t.full.entry, 0, SYMBOL_FUNCTION);
	put(&t, "a_label", t.full.switches, 0, SYMBOL_LABEL);
	put(&t, "some_place", t.full.switches, 0, SYMBOL_PLACE);
	put(&t, "other_name", t.full.exported, 0, SYMBOL_FUNCTION);
	name(&t);
	assert_string_equal(name_at(&t, t.full.entry), "?first");
	assert_string_equal(name_at(&t, t.full.switches), "some_place");
	/* An export has a name of its own. */
	assert_string_equal(name_at(&t, t.full.exported), "alpha");
	assert_int_equal(t.report.added, 2);
	assert_true(t.report.own > 0);
	assert_int_equal(t.report.conflict_count, 0);
	end(&t);
}

static void what_contradicts_the_code_is_counted(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	put(&t, "in_an_instruction", rva_add(t.full.entry, 1), 0, SYMBOL_FUNCTION);
	put(&t, "inside", rva_add(t.full.entry, 4), 0, SYMBOL_PROCEDURE);
	put(&t, "label", rva_add(t.full.entry, 4), 0, SYMBOL_PLACE);
	put(&t, "too_short", t.full.switches, 1, SYMBOL_PROCEDURE);
	put(&t, "right", t.full.entry, 0x21, SYMBOL_PROCEDURE);
	put(&t, "in_padding", t.full.padding, 0, SYMBOL_FUNCTION);
	name(&t);
	assert_int_equal(t.report.conflicts[NAME_NO_INSTRUCTION], 2);
	assert_int_equal(t.report.conflicts[NAME_INSIDE], 1);
	assert_int_equal(t.report.conflicts[NAME_ENDS_INSIDE], 1);
	assert_int_equal(t.report.conflict_count, 4);
	assert_int_equal(t.report.example_count, NAME_EXAMPLES);
	assert_string_equal(t.report.examples[0]->name, "in_an_instruction");
	end(&t);
}

/* All but the names, whatever the file says. */
static void nothing_but_names_changes(void **state)
{
	struct trial with, without;

	(void)state;
	begin(&with);
	begin(&without);
	for (uint32_t at = 0; at < 0x100; at++)
		put(&with, "anywhere", rva_add(with.full.text, at), at, at % 3);
	name(&with);
	assert_int_equal(with.graph.functions.len, without.graph.functions.len);
	for (uint32_t i = 0; i < with.graph.functions.len; i++) {
		const struct function *f = &with.graph.functions.data[i];
		const struct function *g = &without.graph.functions.data[i];

		assert_true(f->name || f->begin.v >= 0x1100);
		assert_int_equal(f->begin.v, g->begin.v);
		assert_int_equal(f->size, g->size);
		assert_int_equal(f->kind, g->kind);
		assert_int_equal(f->pins, g->pins);
	}
	assert_int_equal(with.graph.refs.len, without.graph.refs.len);
	assert_memory_equal(with.graph.blocks.data, without.graph.blocks.data,
			    with.graph.blocks.len * sizeof(struct block));
	end(&with);
	end(&without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_name_is_taken),
		cmocka_unit_test(what_contradicts_the_code_is_counted),
		cmocka_unit_test(nothing_but_names_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
