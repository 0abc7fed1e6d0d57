#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "full_image.h"
#include "graph/analysis.h"

struct opened {
	struct full_image full;
	struct image image;
	struct diag diag;
};

static void open_full(struct opened *o)
{
	full_image_make(&o->full);
	assert_int_equal(image_open_bytes(&o->image, o->full.bytes, o->full.size, "full",
					  &o->diag),
			 STATUS_OK);
	diag_init(&o->diag);
}

static void close_full(struct opened *o)
{
	image_release(&o->image);
	full_image_release(&o->full);
}

static enum status find(struct opened *o, const char *word, struct pin_ranges *ret_ranges)
{
	const struct pin_words words = {&word, 1};

	return pin_ranges_find(&o->image, &words, NULL, ret_ranges, &o->diag);
}

static void assert_range(struct opened *o, const char *word, uint32_t begin, uint32_t end)
{
	struct pin_ranges ranges;

	assert_int_equal(find(o, word, &ranges), STATUS_OK);
	assert_int_equal(ranges.ranges.len, 1);
	assert_int_equal(ranges.ranges.data[0].begin.v, begin);
	assert_int_equal(ranges.ranges.data[0].end.v, end);
	pin_ranges_release(&ranges);
}

static void ranges_and_names_are_found(void **state)
{
	struct opened o;

	(void)state;
	open_full(&o);
	assert_range(&o, "0x1000-0x1010", 0x1000, 0x1010);
	assert_range(&o, "0X1000-0X100f", 0x1000, 0x100f);
	assert_range(&o, "0x1010", 0x1010, 0x1011);
	assert_range(&o, "leaf", o.full.leaf.v, o.full.leaf.v + 1);
	assert_range(&o, "alpha", o.full.exported.v, o.full.exported.v + 1);
	close_full(&o);
}

static void assert_refused(struct opened *o, const char *word, const char *problem)
{
	struct pin_ranges ranges = {0};
	char message[256];

	assert_int_equal(find(o, word, &ranges), STATUS_USAGE);
	snprintf(message, sizeof(message), "option '--pin': '%s' %s", word, problem);
	assert_string_equal(o->diag.message, message);
	assert_null(ranges.ranges.data);
}

static void what_pins_nothing_is_an_error(void **state)
{
	static const char outside[] = "does not lie wholly in one code section",
			  no_end[] = "needs an RVA of 32 bits as its end, as in "
				     "0x1000-0x2000",
			  no_range[] = "is no range of RVAs, as in 0x1000-0x2000",
			  no_rva[] = "is no RVA of 32 bits",
			  unknown[] = "is no export and no symbol of the image; an RVA "
				      "begins with 0x";
	struct opened o;

	(void)state;
	open_full(&o);
	assert_refused(&o, "0x1010-0x1010", "is empty, the end is exclusive");
	assert_refused(&o, "0x1010-0x1000", "ends before it begins");
	assert_refused(&o, "0x0", outside);              /* headers */
	assert_refused(&o, "0xfff-0x1010", outside);     /* from there into code */
	assert_refused(&o, "0x1000-0x2010", outside);    /* beyond its end */
	assert_refused(&o, "0x2000-0x2010", outside);    /* data */
	assert_refused(&o, "0x1000-0xffffffff", outside);
	assert_refused(&o, "0xffffffff", outside); /* its end is 0 */
	assert_refused(&o, "0x1000-", no_end);
	assert_refused(&o, "0x1000-2000", no_end);
	assert_refused(&o, "0x1000-0x", no_end);
	assert_refused(&o, "0x1000-0x100000000", no_end);
	assert_refused(&o, "0x1000-0x1010-0x1020", no_range);
	assert_refused(&o, "0x1000 ", no_range);
	assert_refused(&o, "0x", no_rva);
	assert_refused(&o, "1000", no_rva);
	assert_refused(&o, "0x100000000", no_rva);
	assert_refused(&o, "1000-2000", no_rva);
	assert_refused(&o, "", unknown);
	assert_refused(&o, "leaf2", unknown);
	assert_refused(&o, "Leaf", unknown);
	assert_refused(&o, "plain", "is no code"); /* a symbol of data */
	assert_refused(&o, "beta", "is no code");  /* a forwarder */
	close_full(&o);
}

/* Static functions of two files may have one name: both are meant. */
static void a_shared_name_means_all(void **state)
{
	static const char *const name = "twice";
	const struct pin_words words = {&name, 1};
	struct image_builder b;
	struct built_image built;
	struct pin_ranges ranges;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 64);
	image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_u32(&b, 0);
	image_builder_symbol(&b, "twice", 16, 1, 0x20, 3, 0);
	image_builder_symbol(&b, "twice", 32, 1, 0x20, 3, 0);
	image_builder_symbol(&b, "twice", 0, 2, 0, 3, 0);
	for (int i = 0; i < 4; i++)
		assert_true(vec_push(&b.symbols, i ? 0 : 4)); /* no strings */
	built_image_open(&built, &b);
	image_builder_release(&b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(pin_ranges_find(&built.image, &words, NULL, &ranges, &built.diag),
			 STATUS_OK);
	assert_int_equal(ranges.ranges.len, 2);
	assert_int_equal(ranges.ranges.data[0].begin.v, 0x1010);
	assert_int_equal(ranges.ranges.data[1].begin.v, 0x1020);
	pin_ranges_release(&ranges);
	built_image_close(&built);
}

static void discovery_pins_what_is_named(void **state)
{
	static const char *const names[] = {"leaf", "0x1000-0x1001"};
	const struct pin_words words = {names, 2};
	struct opened o;
	struct graph graph;
	uint32_t pinned = 0;

	(void)state;
	open_full(&o);
	assert_int_equal(o.full.entry.v, 0x1000);
	assert_int_equal(analysis_discover(&graph, &o.image, &words, NULL, &o.diag), STATUS_OK);
	for (uint32_t i = 0; i < graph.functions.len; i++) {
		const struct function *f = &graph.functions.data[i];
		bool named = f->begin.v == o.full.leaf.v || f->begin.v == 0x1000;

		assert_int_equal(f->pins, named ? 1u << PIN_USER : 0);
		assert_int_equal(graph.blocks.data[f->block].pins, f->pins);
		pinned += named;
	}
	assert_int_equal(pinned, 2);
	graph_release(&graph);
	close_full(&o);
}

static void padding_is_no_function(void **state)
{
	struct opened o;
	struct graph graph;
	char word[32];
	const char *const words[] = {"leaf", word};
	const struct pin_words pins = {words, 2};

	(void)state;
	open_full(&o);
	snprintf(word, sizeof(word), "0x%x-0x%x", o.full.padding.v, o.full.padding.v + 1);
	assert_int_equal(analysis_discover(&graph, &o.image, &pins, NULL, &o.diag), STATUS_USAGE);
	assert_non_null(strstr(o.diag.message, "holds no function, only padding"));
	assert_non_null(strstr(o.diag.message, word));
	close_full(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_and_names_are_found),
		cmocka_unit_test(what_pins_nothing_is_an_error),
		cmocka_unit_test(a_shared_name_means_all),
		cmocka_unit_test(discovery_pins_what_is_named),
		cmocka_unit_test(padding_is_no_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
