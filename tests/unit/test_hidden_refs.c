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

/* Two functions, of which a word that is put next may name the second. */
static struct rva begin_net(struct built_graph *t)
{
	struct rva f, g;

	built_graph_init(t);
	f = CODE(t, "\x31\xdb\xc3");
	g = CODE(t, "\x31\xc0\xc3");
	built_graph_row(t, f, 3);
	built_graph_row(t, g, 3);
	return g;
}

/* What Swift has in its metadata: the distance from the word itself. */
static void test_word_relative_to_itself(void **unused)
{
	(void)unused;
	for (uint32_t off = 0; off <= 1; off++) {
		struct built_graph t;
		struct rva g, site;

		g = begin_net(&t);
		image_builder_section(&t.b, ".rdata", BUILT_CONST);
		image_builder_u64(&t.b, 0);
		site = image_builder_here(&t.b);
		image_builder_u32(&t.b, g.v - site.v + off);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g), off ? 0 : PIN(HIDDEN_REFERENCE));
		built_graph_release(&t);
	}
}

/* What clang makes of virtual functions on request: distances from the table, whose
 * address an instruction takes. */
static void test_words_relative_to_their_table(void **unused)
{
	(void)unused;
	for (int taken = 0; taken <= 1; taken++) {
		struct built_graph t;
		struct rva f, g, h, table;

		built_graph_init(&t);
		f = CODE(&t, "\x48\x8d\x05\0\0\0\0\xc3"); /* lea rax, [table]; ret */
		g = CODE(&t, "\x31\xc0\xc3");
		h = CODE(&t, "\x31\xdb\xc3");
		built_graph_row(&t, f, 8);
		built_graph_row(&t, g, 3);
		built_graph_row(&t, h, 3);
		built_graph_export(&t, f);
		image_builder_section(&t.b, ".rdata", BUILT_CONST);
		image_builder_u64(&t.b, 0);
		table = image_builder_here(&t.b);
		image_builder_u32(&t.b, 0);
		image_builder_u32(&t.b, g.v - table.v);
		image_builder_u32(&t.b, h.v - table.v);
		built_graph_point(&t, rva_add(f, 3), taken ? table : rva_of(table.v - 4));
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g), taken ? PIN(HIDDEN_REFERENCE) : 0);
		assert_int_equal(PINS(&t, h), taken ? PIN(HIDDEN_REFERENCE) : 0);
		built_graph_release(&t);
	}
}

static void test_counts_by_section(void **unused)
{
	struct built_graph t;
	struct rva g;

	(void)unused;
	g = begin_net(&t);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	image_builder_u32(&t.b, g.v);
	image_builder_u32(&t.b, g.v);
	image_builder_section(&t.b, ".data", BUILT_DATA);
	image_builder_u32(&t.b, g.v + 1);
	image_builder_u32(&t.b, g.v);
	built_graph_discover(&t);
	assert_string_equal(t.built.image.sections[1].name, ".rdata");
	assert_int_equal(t.graph.hidden_words[0], 0);
	assert_int_equal(t.graph.hidden_words[1], 2);
	assert_int_equal(t.graph.hidden_words[2], 1);
	built_graph_release(&t);
}

/* A driver reads data that will be discarded once it is initialized. */
static void test_discarded_data_that_is_read(void **unused)
{
	struct built_graph t;
	struct rva f, g, init;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x48\x8b\x05\0\0\0\0\xc3"); /* mov rax, [init]; ret */
	g = CODE(&t, "\x31\xc0\xc3");
	built_graph_row(&t, f, 8);
	built_graph_row(&t, g, 3);
	init = image_builder_section(&t.b, "INIT", BUILT_CONST | DISCARDABLE);
	image_builder_u64(&t.b, 0);
	image_builder_u32(&t.b, g.v);
	built_graph_point(&t, rva_add(f, 3), init);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, g), PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

/* The header of ICU's common data or of one of its items. */
static void put_icu_header(struct built_graph *t, const char *format)
{
	image_builder_align(&t->b, 16);
	image_builder_u16(&t->b, 32);
	image_builder_put(&t->b, "\xda\x27\x14\0\0\0\0\0\x02\0", 10);
	image_builder_put(&t->b, format, 4);
	image_builder_fill(&t->b, 0, 16);
}

/* Common data with two items, the first of which holds `word`. */
static struct rva put_icu(struct built_graph *t, uint32_t word)
{
	struct rva toc;

	put_icu_header(t, "CmnD");
	toc = image_builder_u32(&t->b, 2);
	image_builder_u32(&t->b, 20); /* the names' place is not looked at */
	image_builder_u32(&t->b, 32);
	image_builder_u32(&t->b, 20);
	image_builder_u32(&t->b, 80);
	image_builder_align(&t->b, 32);
	put_icu_header(t, "ResB");
	image_builder_u32(&t->b, word);
	put_icu_header(t, "ResB");
	return toc;
}

static void test_icu_data(void **unused)
{
	struct built_graph t;
	struct rva g;

	(void)unused;
	g = begin_net(&t);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	image_builder_fill(&t.b, 0, 64);
	put_icu(&t, g.v);
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, g), 0);
	built_graph_release(&t);
	g = begin_net(&t);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	put_icu(&t, 0);
	image_builder_u32(&t.b, g.v); /* behind the last item's header */
	built_graph_discover(&t);
	assert_int_equal(PINS(&t, g), PIN(HIDDEN_REFERENCE));
	built_graph_release(&t);
}

/* Each place of the format that may be something else. */
static void test_what_only_looks_like_icu_data(void **unused)
{
	static const struct {
		int32_t at; /* from the table of contents */
		uint32_t word;
	} changes[] = {
		{-20, 0x446e6d44},   /* the format */
		{-32, 0x27db0020},   /* the magic bytes */
		{0, 3},              /* one item more than there are */
		{0, 0x40000000},     /* too many */
		{16, 32},            /* an item twice */
		{16, 0x10000},       /* outside */
		{16, 64},            /* an item without a header */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct built_graph t;
		struct rva g, toc;

		g = begin_net(&t);
		image_builder_section(&t.b, ".rdata", BUILT_CONST);
		toc = put_icu(&t, g.v);
		store_u32(image_builder_at(&t.b, rva_of(toc.v + (uint32_t)changes[i].at)),
			  changes[i].word);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g), PIN(HIDDEN_REFERENCE));
		built_graph_release(&t);
	}
}

/* A resource's data, when the directory begins a section, and when it does not. */
static void test_resources(void **unused)
{
	(void)unused;
	for (int own = 0; own <= 1; own++) {
		struct built_graph t;
		struct rva g, directory;

		g = begin_net(&t);
		image_builder_section(&t.b, ".rsrc", BUILT_CONST);
		if (!own)
			image_builder_u64(&t.b, 0);
		directory = image_builder_fill(&t.b, 0, 12); /* an empty directory */
		image_builder_u32(&t.b, 0);
		image_builder_u32(&t.b, g.v);
		image_builder_directory(&t.b, DIRECTORY_RESOURCE, directory, 20);
		built_graph_discover(&t);
		assert_int_equal(PINS(&t, g), own ? 0 : PIN(HIDDEN_REFERENCE));
		built_graph_release(&t);
	}
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
		cmocka_unit_test(test_word_relative_to_itself),
		cmocka_unit_test(test_words_relative_to_their_table),
		cmocka_unit_test(test_counts_by_section),
		cmocka_unit_test(test_discarded_data_that_is_read),
		cmocka_unit_test(test_icu_data),
		cmocka_unit_test(test_what_only_looks_like_icu_data),
		cmocka_unit_test(test_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
