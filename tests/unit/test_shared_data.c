/* Tables that many rows or names share: neither memory nor time may grow with the
 * square. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "graph/graph.h"
#include "image_builder.h"

enum {
	ROWS = 2000,
	CALL_SITES = 4000,
	NAMES = 2000,
	NAME_BYTES = 30000,
	EACH_BYTES = 16,
	LIMIT = 48 << 10, /* KiB that discovery may take */
	LONG_LIST = 4 << 20,
	SECONDS = 20, /* for what takes one when it is read a few times */
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The most memory that the process has had, in KiB, since the last reset; 0 when the
 * system does not tell. */
static long peak_memory(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long peak = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &peak) == 1)
			break;
	if (file)
		fclose(file);
	return peak;
}

static void reset_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

static void text(struct image_builder *b, struct rva *ret_first)
{
	image_builder_section(b, ".text", BUILT_CODE);
	*ret_first = image_builder_here(b);
	for (int i = 0; i < ROWS; i++)
		image_builder_put(b,
				  "\xc3\xcc\xcc\xcc\xcc\xcc\xcc\xcc"
				  "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc",
				  EACH_BYTES);
}

/* Rows of 16 bytes each; the unwind information of each begins `step` bytes behind that
 * of the row before. */
static void rows(struct image_builder *b, struct rva first, struct rva unwind,
		 uint32_t step)
{
	struct rva table = image_builder_section(b, ".pdata", BUILT_CONST);

	for (uint32_t i = 0; i < ROWS; i++) {
		image_builder_u32(b, first.v + i * EACH_BYTES);
		image_builder_u32(b, first.v + (i + 1) * EACH_BYTES);
		image_builder_u32(b, unwind.v + i * step);
	}
	image_builder_directory(b, DIRECTORY_EXCEPTION, table, 12 * ROWS);
}

static enum status discover(struct image_builder *b, struct graph *graph,
			    struct built_image *built)
{
	struct discovery_options options = {0};
	enum status status;
	long before;

	built_image_open(built, b);
	assert_int_equal(built->status, STATUS_OK);
	reset_peak();
	before = peak_memory();
	status = graph_discover(graph, &built->image, &options, &built->diag);
	assert_in_range(peak_memory(), 0, before + LIMIT);
	return status;
}

static void test_lsda(void **unused)
{
	struct image_builder b;
	struct built_image built;
	struct graph graph;
	struct rva first, unwind;
	uint8_t size[] = {0x80 | (4 * CALL_SITES & 0x7f),
			  0x80 | (4 * CALL_SITES >> 7 & 0x7f), 4 * CALL_SITES >> 14};

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	image_builder_section(&b, ".xdata", BUILT_CONST);
	unwind = image_builder_u32(&b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&b, first.v);
	image_builder_put(&b, "\xff\xff\x01", 3);
	image_builder_put(&b, size, sizeof(size));
	for (int i = 0; i < CALL_SITES; i++)
		image_builder_put(&b, "\0\0\1\0", 4);
	rows(&b, first, unwind, 0);
	assert_int_equal(discover(&b, &graph, &built), STATUS_OK);
	graph_release(&graph);
	built_image_close(&built);
	image_builder_release(&b);
}

static void test_scope_table(void **unused)
{
	struct image_builder b;
	struct built_image built;
	struct graph graph;
	struct rva first, unwind;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	image_builder_section(&b, ".xdata", BUILT_CONST);
	unwind = image_builder_u32(&b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&b, first.v);
	image_builder_u32(&b, CALL_SITES);
	for (uint32_t i = 0; i < CALL_SITES; i++) {
		image_builder_u32(&b, first.v);
		image_builder_u32(&b, first.v + 1);
		image_builder_u32(&b, 1);
		image_builder_u32(&b, first.v);
	}
	rows(&b, first, unwind, 0);
	assert_int_equal(discover(&b, &graph, &built), STATUS_OK);
	graph_release(&graph);
	built_image_close(&built);
	image_builder_release(&b);
}

/* FuncInfos that stand in each other, so that each begins the same long array. */
static void test_frame3(void **unused)
{
	struct image_builder b;
	struct built_image built;
	struct graph graph;
	struct rva first, states, infos, unwind;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	states = image_builder_section(&b, ".xdata", BUILT_CONST);
	for (uint32_t i = 0; i < CALL_SITES; i++) {
		image_builder_u32(&b, UINT32_MAX);
		image_builder_u32(&b, first.v);
	}
	infos = image_builder_here(&b);
	for (uint32_t i = 0; i < ROWS; i++) {
		image_builder_u32(&b, 0x19930520);
		image_builder_u32(&b, CALL_SITES);
		image_builder_u32(&b, states.v);
		for (int k = 0; k < 5; k++)
			image_builder_u32(&b, 0);
	}
	unwind = image_builder_here(&b);
	for (uint32_t i = 0; i < ROWS; i++) {
		image_builder_u32(&b, 1 | UNWIND_EHANDLER << 3);
		image_builder_u32(&b, first.v);
		image_builder_u32(&b, infos.v + 32 * i);
	}
	rows(&b, first, unwind, 12);
	assert_int_equal(discover(&b, &graph, &built), STATUS_OK);
	graph_release(&graph);
	built_image_close(&built);
	image_builder_release(&b);
}

/* Unwind information for rows that have each a handler of its own, and the same word as
 * its data. */
static struct rva own_handlers(struct image_builder *b, struct rva first, uint32_t word)
{
	struct rva unwind = image_builder_here(b);

	for (uint32_t i = 0; i < ROWS; i++) {
		image_builder_u32(b, 1 | UNWIND_EHANDLER << 3);
		image_builder_u32(b, first.v + i * EACH_BYTES);
		image_builder_u32(b, word);
	}
	return unwind;
}

/* No handler is understood, and that takes little time. */
static void expect_unknown(struct image_builder *b)
{
	struct discovery_options options = {0};
	struct built_image built;
	struct graph graph;
	double start = seconds();

	built_image_open(&built, b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(graph_discover(&graph, &built.image, &options, &built.diag),
			 STATUS_OK);
	assert_true(seconds() - start < SECONDS);
	assert_int_equal(graph.handlers.len, ROWS);
	for (uint32_t i = 0; i < ROWS; i++)
		assert_int_equal(graph.handlers.data[i].form, HANDLER_UNKNOWN);
	graph_release(&graph);
	built_image_close(&built);
}

/* A packed number of five bytes. */
static void packed(struct image_builder *b, uint32_t value)
{
	image_builder_put(b, "\x0f", 1);
	image_builder_u32(b, value);
}

/* The unwind map of a FuncInfo4, whose last row alone is none: each handler has to read
 * all of it to know. */
static void test_frame4_in_vain(void **unused)
{
	struct image_builder b;
	struct rva first, info;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	info = image_builder_section(&b, ".xdata", BUILT_CONST);
	image_builder_put(&b, "\x08", 1);
	image_builder_u32(&b, info.v + 9);
	image_builder_u32(&b, 0);
	packed(&b, LONG_LIST);
	image_builder_put(&b, "\x28", 1); /* state -1 is 5 bytes before */
	image_builder_fill(&b, 0x08, LONG_LIST - 2);
	image_builder_put(&b, "\0", 1);
	image_builder_align(&b, 4);
	rows(&b, first, own_handlers(&b, first, info.v), 12);
	expect_unknown(&b);
	image_builder_release(&b);
}

/* Long scope tables that stand in each other. */
static void test_scopes_in_vain(void **unused)
{
	struct image_builder b;
	struct rva first, unwind;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	image_builder_section(&b, ".xdata", BUILT_CONST);
	unwind = own_handlers(&b, first, 4 * LONG_LIST / 16);
	image_builder_fill(&b, 0, 4 * LONG_LIST);
	rows(&b, first, unwind, 12);
	expect_unknown(&b);
	image_builder_release(&b);
}

/* Many rows with one FuncInfo4 of many catches, which the verifier reads for each. */
static void test_shared_catches(void **unused)
{
	struct image_builder b;
	struct rva first, info, unwind;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	info = image_builder_section(&b, ".xdata", BUILT_CONST);
	image_builder_put(&b, "\x18", 1);
	for (uint32_t i = 0; i < 3; i++)
		image_builder_u32(&b, info.v + 16 + 16 * i);
	image_builder_align(&b, 16);
	image_builder_put(&b, "\4\x08\x08", 3); /* two states */
	image_builder_align(&b, 16);
	image_builder_put(&b, "\2\0\0\2", 4); /* a try block: 0, 0, 1 */
	image_builder_u32(&b, info.v + 64);
	image_builder_align(&b, 16);
	image_builder_put(&b, "\2\0\2", 3); /* state 0 from the begin on */
	image_builder_align(&b, 16);
	packed(&b, CALL_SITES);
	for (uint32_t i = 0; i < CALL_SITES; i++) {
		image_builder_put(&b, "\0", 1);
		image_builder_u32(&b, first.v);
	}
	unwind = image_builder_align(&b, 4);
	image_builder_u32(&b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&b, first.v);
	image_builder_u32(&b, info.v);
	rows(&b, first, unwind, 0);
	expect_unknown(&b);
	image_builder_release(&b);
}

/* Many rows with one FuncInfo, in whose long map the verifier looks up each. */
static void test_shared_states(void **unused)
{
	struct image_builder b;
	struct rva first, info, unwind;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	info = image_builder_section(&b, ".xdata", BUILT_CONST);
	image_builder_u32(&b, 0x19930520);
	for (uint32_t i = 0; i < 4; i++)
		image_builder_u32(&b, 0);
	image_builder_u32(&b, ROWS);
	image_builder_u32(&b, info.v + 32);
	image_builder_u32(&b, 0);
	for (uint32_t i = 0; i < ROWS; i++) {
		image_builder_u32(&b, first.v + i * EACH_BYTES);
		image_builder_u32(&b, UINT32_MAX);
	}
	unwind = image_builder_u32(&b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&b, first.v);
	image_builder_u32(&b, info.v);
	rows(&b, first, unwind, 0);
	expect_unknown(&b);
	image_builder_release(&b);
}

/* Names of exports that are all tails of one, in the text. */
static void test_names(void **unused)
{
	struct image_builder b;
	struct built_image built;
	struct graph graph;
	struct rva first, name, directory, words;

	(void)unused;
	image_builder_init(&b);
	text(&b, &first);
	name = image_builder_fill(&b, 'a', NAME_BYTES);
	image_builder_u32(&b, 0);
	directory = image_builder_section(&b, ".edata", BUILT_CONST);
	words = rva_add(directory, 40);
	for (int i = 0; i < 3; i++)
		image_builder_u32(&b, 0);
	image_builder_u32(&b, name.v);
	image_builder_u32(&b, 1);
	image_builder_u32(&b, NAMES);
	image_builder_u32(&b, NAMES);
	image_builder_u32(&b, words.v);
	image_builder_u32(&b, words.v + 4 * NAMES);
	image_builder_u32(&b, words.v + 8 * NAMES);
	for (uint32_t i = 0; i < NAMES; i++)
		image_builder_u32(&b, first.v + EACH_BYTES * i);
	for (uint32_t i = 0; i < NAMES; i++)
		image_builder_u32(&b, name.v + NAMES - i);
	for (uint32_t i = 0; i < NAMES; i++)
		image_builder_u16(&b, (uint16_t)i);
	image_builder_directory(&b, DIRECTORY_EXPORT, directory, 40);
	assert_int_equal(discover(&b, &graph, &built), STATUS_MALFORMED);
	built_image_close(&built);
	image_builder_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lsda),
		cmocka_unit_test(test_scope_table),
		cmocka_unit_test(test_frame3),
		cmocka_unit_test(test_frame4_in_vain),
		cmocka_unit_test(test_scopes_in_vain),
		cmocka_unit_test(test_shared_catches),
		cmocka_unit_test(test_shared_states),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
