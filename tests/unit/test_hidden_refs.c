/* The nets: words and constants that equal a function's RVA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

enum { DISCARDABLE = 0x02000000 };

static void test_word_in_data(void **unused)
{
	struct built_graph t;
	struct rva f, g, h, k;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	h = CODE(&t, "\x31\xc0\xc3");
	k = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_row(&t, h, 3);
	built_graph_row(&t, k, 3);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	image_builder_u32(&t.b, f.v);
	image_builder_u32(&t.b, g.v + 2); /* an instruction, no function */
	image_builder_u16(&t.b, 0);
	image_builder_u32(&t.b, h.v); /* not aligned */
	image_builder_section(&t.b, ".data", BUILT_DATA);
	image_builder_u32(&t.b, k.v);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), PIN(HIDDEN_REFERENCE));
	assert_int_equal(PINS(&t, g), 0);
	assert_int_equal(PINS(&t, h), 0);
	assert_int_equal(PINS(&t, k), PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

/* Code that nothing else names is the likeliest to have only such a reference. */
static void test_word_names_an_island(void **unused)
{
	struct built_graph t;
	struct rva f, island;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xc3");
	island = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 1);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	image_builder_u32(&t.b, island.v);
	built_graph_discover(&t);
	assert_int_equal(built_graph_function(&t, island)->kind, FUNCTION_ISLAND);
	assert_int_equal(PINS(&t, island), PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

static void test_explained_words(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_export(&t, f); /* one word in the exports, two in the function table */
	built_graph_export(&t, g);
	image_builder_section(&t.b, ".debug_x", BUILT_CONST | DISCARDABLE);
	image_builder_u32(&t.b, g.v); /* nobody reads it at run time */
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(PINS(&t, g), 0);
	built_graph_release(&t);
}

/* What may be discarded is read before that. */
static void test_discardable_data(void **unused)
{
	static const struct {
		const char *name;
		uint32_t characteristics;
		bool pins;
	} cases[] = {
		{".junk", BUILT_CONST | DISCARDABLE, true},
		{".debug_x", BUILT_CONST, true},
		{".debug_x", BUILT_CONST | DISCARDABLE, false},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct built_graph t;
		struct rva f;

		built_graph_init(&t);
		f = CODE(&t, "\x31\xc0\xc3");
		built_graph_row(&t, f, 3);
		image_builder_section(&t.b, cases[i].name, cases[i].characteristics);
		image_builder_u32(&t.b, f.v);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, f), cases[i].pins ? PIN(HIDDEN_REFERENCE) : 0);
		built_graph_release(&t);
	}
}

/* A pointer's lower half explains itself, a word beside it not. */
static void test_words_beside_a_pointer(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	t.b.image_base = 0x100000000u; /* a pointer's lower half is the RVA itself */
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	built_graph_pointer(&t, f);
	image_builder_u32(&t.b, g.v);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, f), 0);
	assert_int_equal(PINS(&t, g), PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

static void test_constants(void **unused)
{
	struct built_graph t;
	struct rva f, moved, displaced, compared;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\xb9\0\0\0\0"     /* mov ecx, moved */
		     "\x8b\x80\0\0\0\0" /* mov eax, [rax + displaced] */
		     "\x81\xf9\0\0\0\0" /* cmp ecx, compared: never an address */
		     "\xc3");
	moved = CODE(&t, "\x31\xc0\xc3");
	displaced = CODE(&t, "\x31\xc0\xc3");
	compared = CODE(&t, "\x31\xc0\xc3");
	store_u32(image_builder_at(&t.b, rva_add(f, 1)), moved.v);
	store_u32(image_builder_at(&t.b, rva_add(f, 7)), displaced.v);
	store_u32(image_builder_at(&t.b, rva_add(f, 13)), compared.v);
	built_graph_row(&t, f, 18);
	built_graph_row(&t, moved, 3);
	built_graph_row(&t, displaced, 3);
	built_graph_row(&t, compared, 3);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, moved), PIN(CODE_CONSTANT));
	assert_int_equal(PINS(&t, displaced), PIN(CODE_CONSTANT));
	assert_int_equal(PINS(&t, compared), 0);
	built_graph_release(&t);
}

/* Unknown bytes in the text may hold RVAs as well as code. */
static void test_word_in_unknown_bytes(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = BARE(&t, "\x06\x07\x0e\x16");
	image_builder_u32(&t.b, f.v);
	built_graph_row(&t, f, 3);
	built_graph_discover(&t);
	assert_int_equal(built_graph_function(&t, g)->kind, FUNCTION_BYTES);
	assert_true(PINS(&t, f) & PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_word_in_data),
		cmocka_unit_test(test_word_names_an_island),
		cmocka_unit_test(test_explained_words),
		cmocka_unit_test(test_discardable_data),
		cmocka_unit_test(test_words_beside_a_pointer),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_word_in_unknown_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
