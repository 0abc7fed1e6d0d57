/* From doubts to pins: what doubt spreads to, and where it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

/* Any four of the unknown bytes may be a branch's field. */
static void test_named_by_unknown_bytes(void **unused)
{
	struct built_graph t;
	struct rva f, g, bytes;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	bytes = CODE(&t, "\x06\x07\x0e\0\0\0\0");
	built_graph_point(&t, rva_add(bytes, 3), f);
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), PIN(DOUBTFUL_TARGET));
	assert_int_equal(PINS(&t, g), 0);
	assert_true(PINS(&t, bytes) & PIN(UNKNOWN_BYTES));
	built_graph_release(&t);
}

static void test_neighbours_of_unknown_bytes(void **unused)
{
	struct built_graph t;
	struct rva before, bytes, behind;

	(void)unused;
	built_graph_init(&t);
	before = BARE(&t, "\x31\xc0\xc3"); /* perhaps never code */
	bytes = BARE(&t, "\x06\x07\x0e\x16");
	behind = CODE(&t, "\x31\xc0\xc3"); /* perhaps run into */
	built_graph_export(&t, before);
	built_graph_row(&t, behind, 3);
	built_graph_discover(&t);
	assert_true(PINS(&t, before) & PIN(UNDECODED));
	assert_true(PINS(&t, bytes) & PIN(UNKNOWN_BYTES));
	assert_true(PINS(&t, behind) & PIN(DOUBTFUL_TARGET));
	built_graph_release(&t);
}

/* All that doubtful code seems to refer to stays; its relocated words are pointers
 * wherever they stand. */
static void test_references_of_doubtful_code(void **unused)
{
	struct built_graph t;
	struct rva f, called, taken, pointed;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\0\0\0\0"             /* call called */
		     "\x48\x8d\x05\0\0\0\0"     /* lea rax, [taken] */
		     "\x48\xb9\0\0\0\0\0\0\0\0" /* mov rcx, pointed */
		     "\x06");                   /* no instruction */
	called = CODE(&t, "\xc3");
	taken = CODE(&t, "\xc3");
	pointed = CODE(&t, "\xc3");
	built_graph_point(&t, rva_add(f, 1), called);
	built_graph_point(&t, rva_add(f, 8), taken);
	store_u64(image_builder_at(&t.b, rva_add(f, 14)), BUILT_IMAGE_BASE + pointed.v);
	t.relocs[t.reloc_count++] = rva_add(f, 14);
	built_graph_row(&t, f, 23);
	built_graph_row(&t, called, 1);
	built_graph_row(&t, taken, 1);
	built_graph_row(&t, pointed, 1);
	built_graph_export(&t, f);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(UNDECODED));
	assert_int_equal(PINS(&t, called), PIN(DOUBTFUL_TARGET));
	assert_int_equal(PINS(&t, taken), PIN(DOUBTFUL_TARGET));
	assert_int_equal(PINS(&t, pointed), 0);
	assert_null(built_graph_ref(&t, rva_add(f, 1)));
	assert_null(built_graph_ref(&t, rva_add(f, 8)));
	assert_int_equal(LEADS(&t, rva_add(f, 14)), pointed.v);
	built_graph_release(&t);
}

static void test_read_as_data(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x8b\x05\0\0\0\0\xc3"); /* mov eax, [g] */
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_point(&t, rva_add(f, 2), g);
	built_graph_row(&t, f, 7);
	built_graph_row(&t, g, 3);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(PINS(&t, g), PIN(READ_AS_DATA));
	built_graph_release(&t);
}

static void test_reference_to_no_instruction(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3");
	g = CODE(&t, "\x48\x83\xec\x28\xc3");
	built_graph_row(&t, f, 1);
	built_graph_row(&t, g, 5);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_pointer(&t, rva_add(g, 2));
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, g), PIN(OUTSIDE_REFERENCE));
	assert_int_equal(PINS(&t, f), 0);
	built_graph_release(&t);
}

/* A row of length zero: its two fields belong to two places. */
static void test_row_of_length_zero(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	h = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 0);
	built_graph_row(&t, g, 3);
	built_graph_row(&t, h, 3);
	built_graph_discover(&t);
	assert_int_equal(t.graph.functions.len, 3);
	assert_int_not_equal(PINS(&t, f), 0);
	assert_int_not_equal(PINS(&t, g), 0);
	assert_int_equal(PINS(&t, h), 0);
	built_graph_release(&t);
}

/* Two tables claim a word for different things. */
static void test_references_that_disagree(void **unused)
{
	struct built_graph t;
	struct rva f, g, directory;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_put_rows(&t);
	t.row_count = 0;
	/* One export whose word is the upper half of a relocated pointer. */
	t.b.image_base = (uint64_t)f.v << 32;
	image_builder_section(&t.b, ".edata", BUILT_CONST);
	directory = image_builder_here(&t.b);
	image_builder_fill(&t.b, 0, 40);
	built_graph_pointer(&t, g);
	store_u32(image_builder_at(&t.b, rva_add(directory, 12)), directory.v);
	store_u32(image_builder_at(&t.b, rva_add(directory, 20)), 1);
	store_u32(image_builder_at(&t.b, rva_add(directory, 28)), directory.v + 44);
	image_builder_directory(&t.b, DIRECTORY_EXPORT, directory, 40);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(TABLE_CONFLICT));
	assert_true(PINS(&t, g) & PIN(TABLE_CONFLICT));
	built_graph_release(&t);
}

static void test_user_pins(void **unused)
{
	struct built_graph t;
	struct rva f, g, h;
	struct pin_range range;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	h = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_row(&t, h, 3);
	range = (struct pin_range){rva_add(f, 2), g}; /* f's last byte */
	t.options = (struct discovery_options){.pins = &range, .pin_count = 1};
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), PIN(USER));
	assert_int_equal(PINS(&t, g), 0);
	assert_int_equal(PINS(&t, h), 0);
	built_graph_release(&t);
}

/* A block carries the pins of all its functions. */
static void test_pins_of_a_block(void **unused)
{
	struct built_graph t;
	struct rva f, g;
	struct pin_range range;

	(void)unused;
	built_graph_init(&t);
	f = BARE(&t, "\x31\xc0");
	g = CODE(&t, "\xc3");
	built_graph_row(&t, f, 2);
	built_graph_row(&t, g, 1);
	range = (struct pin_range){g, rva_add(g, 1)};
	t.options = (struct discovery_options){.pins = &range, .pin_count = 1};
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(built_graph_block(&t, f)->pins, PIN(USER));
	built_graph_release(&t);
}

/* References ascend, one for each site, and none is inside one function. */
static void test_order_of_references(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\xfb\xff\xff\xff\xe9\0\0\0\0"); /* call f; jmp g */
	g = CODE(&t, "\xc3");
	built_graph_point(&t, rva_add(f, 6), g);
	built_graph_row(&t, f, 10);
	built_graph_row(&t, g, 1);
	built_graph_export(&t, g);
	built_graph_discover(&t);
	assert_null(built_graph_ref(&t, rva_add(f, 1)));
	for (uint32_t i = 1; i < t.graph.refs.len; i++)
		assert_true(t.graph.refs.data[i - 1].site.v < t.graph.refs.data[i].site.v);
	/* jmp, two rows of two fields, one export. */
	assert_int_equal(t.graph.refs.len, 6);
	built_graph_release(&t);
}

/* Who asks for facts gets the references of doubtful code too, and nothing that is made
 * of pins. */
static void test_facts_only(void **unused)
{
	struct built_graph t;
	struct rva f, called;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xe8\0\0\0\0" /* call called */
		     "\x06");        /* no instruction */
	called = CODE(&t, "\xc3");
	built_graph_point(&t, rva_add(f, 1), called);
	built_graph_row(&t, f, 6);
	built_graph_row(&t, called, 1);
	built_graph_export(&t, f);
	t.options.facts_only = true;
	built_graph_discover(&t);
	assert_int_equal(t.graph.blocks.len, 0);
	assert_int_equal(t.graph.functions.len, 2);
	assert_int_equal(t.graph.functions.data[0].pins, 0);
	assert_int_equal(t.graph.refs.data[graph_ref_from(&t.graph, f)].site.v, f.v + 1);
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts_only),
		cmocka_unit_test(test_named_by_unknown_bytes),
		cmocka_unit_test(test_neighbours_of_unknown_bytes),
		cmocka_unit_test(test_references_of_doubtful_code),
		cmocka_unit_test(test_read_as_data),
		cmocka_unit_test(test_reference_to_no_instruction),
		cmocka_unit_test(test_row_of_length_zero),
		cmocka_unit_test(test_references_that_disagree),
		cmocka_unit_test(test_user_pins),
		cmocka_unit_test(test_pins_of_a_block),
		cmocka_unit_test(test_order_of_references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
