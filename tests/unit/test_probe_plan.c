#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../instrument/probe_plan.h"
#include "full_image.h"

/* An opened image with its graph, and the plan for it. */
struct planned {
	struct built_image built;
	struct graph graph;
	struct probe_plan plan;
};

static void open_graph(struct planned *p, struct image_builder *b)
{
	struct discovery_options options = {0};
	struct diag diag;

	built_image_open(&p->built, b);
	assert_int_equal(p->built.status, STATUS_OK);
	assert_int_equal(graph_discover(&p->graph, &p->built.image, &options, &diag),
			 STATUS_OK);
	image_builder_release(b);
}

static void make_plan(struct planned *p, const struct probe_filter *filter)
{
	static const struct probe_filter all = {0};
	struct diag diag;

	assert_int_equal(probe_plan_make(&p->graph, filter ? filter : &all, &p->plan, &diag),
			 STATUS_OK);
}

static void release(struct planned *p)
{
	probe_plan_release(&p->plan);
	graph_release(&p->graph);
	built_image_close(&p->built);
}

static bool has_probe(const struct planned *p, struct rva rva)
{
	uint32_t function = graph_function_starting(&p->graph, rva);

	return function != NO_FUNCTION && p->plan.probe_of[function] >= 0;
}

/* Whatever the plan is, its parts fit each other. */
static void assert_consistent(const struct planned *p)
{
	uint32_t probes = 0;

	for (uint32_t i = 0; i < p->graph.functions.len; i++) {
		if (p->plan.probe_of[i] < 0)
			continue;
		assert_int_equal(p->plan.probe_of[i], probes);
		assert_int_equal(p->plan.functions.data[probes], i);
		probes++;
	}
	assert_int_equal(p->plan.functions.len, probes);
	assert_int_equal(probes + p->plan.unreachable + p->plan.doubtful +
				 p->plan.filtered + p->plan.pinned,
			 p->graph.functions.len);
}

/* Code, then int3 up to a multiple of 16. */
static struct rva code(struct image_builder *b, const void *bytes, size_t size)
{
	struct rva begin = image_builder_put(b, bytes, size);

	while (image_builder_here(b).v % 16)
		image_builder_fill(b, 0xcc, 1);
	return begin;
}

#define CODE(b, bytes) code(b, bytes, sizeof(bytes) - 1)

static void point(struct image_builder *b, struct rva field, struct rva target)
{
	store_u32(image_builder_at(b, field), target.v - field.v - 4);
}

struct places {
	struct rva entry, called, jumped_to, fallen_into, taken, island;
};

/* One function for each way to be entered. */
static void build_ways(struct image_builder *b, struct places *at)
{
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	at->entry = CODE(b, "\xe8\0\0\0\0"         /* call called */
			    "\x48\x8d\x0d\0\0\0\0" /* lea rcx, [taken] */
			    "\xc3");
	at->called = CODE(b, "\x31\xc0\xeb\x0c"); /* xor eax, eax; jmp short jumped_to */
	at->jumped_to = image_builder_put(b, "\xff\xc0", 2); /* inc eax; on into the next */
	at->fallen_into = CODE(b, "\xff\xc8\xc3");
	at->taken = CODE(b, "\x8d\x41\x01\xc3");
	at->island = CODE(b, "\x8d\x41\x02\xc3");
	point(b, rva_add(at->entry, 1), at->called);
	point(b, rva_add(at->entry, 8), at->taken);
	b->entry = at->entry;
	/* The function table says that they are functions. */
	image_builder_section(b, ".rdata", BUILT_CONST);
	{
		struct rva unwind = image_builder_u32(b, 1);
		struct rva table = image_builder_u32(b, at->jumped_to.v);

		image_builder_u32(b, at->fallen_into.v);
		image_builder_u32(b, unwind.v);
		image_builder_u32(b, at->fallen_into.v);
		image_builder_u32(b, at->fallen_into.v + 3);
		image_builder_u32(b, unwind.v);
		image_builder_directory(b, DIRECTORY_EXCEPTION, table, 24);
	}
}

static void functions_that_references_enter(void **state)
{
	struct image_builder b;
	struct planned p;
	struct places at;

	(void)state;
	build_ways(&b, &at);
	open_graph(&p, &b);
	make_plan(&p, NULL);
	assert_consistent(&p);
	assert_true(has_probe(&p, at.entry));
	assert_true(has_probe(&p, at.called));
	assert_true(has_probe(&p, at.taken));
	/* A thunk is out of reach for a short jump, and nothing leads to the others. */
	assert_false(has_probe(&p, at.jumped_to));
	assert_false(has_probe(&p, at.fallen_into));
	assert_false(has_probe(&p, at.island));
	assert_int_equal(p.plan.unreachable, 3);
	release(&p);
}

/* What is looked up by where it stands, found to be so or named by the user. */
static void code_that_must_be_left_alone(void **state)
{
	const enum pin_reason reasons[] = {PIN_POSITION_INDEXED, PIN_USER,
					   PIN_CODE_CONSTANT};

	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct image_builder b;
		struct planned p;
		struct places at;

		build_ways(&b, &at);
		open_graph(&p, &b);
		p.graph.functions.data[graph_function_starting(&p.graph, at.called)].pins =
			1u << reasons[i];
		make_plan(&p, NULL);
		assert_consistent(&p);
		assert_int_equal(has_probe(&p, at.called), reasons[i] == PIN_CODE_CONSTANT);
		assert_true(has_probe(&p, at.taken));
		release(&p);
	}
}

/* A function that lea leads to, followed by `data` that lea leads to as well. */
static bool data_has_probe(const void *data, size_t size, bool *ret_function_has)
{
	struct image_builder b;
	struct planned p;
	struct rva entry, place, function;
	bool has;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	entry = CODE(&b, "\x48\x8d\x0d\0\0\0\0\x48\x8d\x15\0\0\0\0\xc3");
	place = code(&b, data, size);
	function = CODE(&b, "\x8d\x41\x01\xc3");
	point(&b, rva_add(entry, 3), place);
	point(&b, rva_add(entry, 10), function);
	b.entry = entry;
	open_graph(&p, &b);
	make_plan(&p, NULL);
	assert_consistent(&p);
	has = has_probe(&p, place);
	*ret_function_has = has_probe(&p, function);
	release(&p);
	return has;
}

/* What is no code gets no probe: its reader would find a thunk. */
static void data_in_the_text(void **state)
{
	/* A descriptor of delayed imports, then a plain jump, as dlltool lays it. */
	static const char descriptor[] =
		"\x01\0\0\0\xbc\x94\0\0\x10\x30\0\0\x58\x92\0\0\x40\x91\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	static const char text[] = "illness: no outsider is in it\0\xc3";
	static const char floats[] = "\0\0\x80\x3f\0\0\0\x40\xc3";
	bool function_has;

	(void)state;
	assert_false(data_has_probe(descriptor, sizeof(descriptor) - 1, &function_has));
	assert_true(function_has);
	assert_false(data_has_probe(text, sizeof(text) - 1, &function_has));
	assert_true(function_has);
	assert_false(data_has_probe(floats, sizeof(floats) - 1, &function_has));
	assert_true(function_has);
	/* The same shape with code in it. */
	assert_true(data_has_probe("\x31\xc0\xc3", 3, &function_has));
}

/* An export directory of two words, the first of them the RVA of `target`. */
static void export_one(struct image_builder *b, struct rva target)
{
	struct rva words, directory, name;

	image_builder_section(b, ".edata", BUILT_CONST);
	name = image_builder_string(b, "x.dll");
	words = (image_builder_align(b, 4), image_builder_u32(b, target.v));
	directory = image_builder_fill(b, 0, 12);
	image_builder_u32(b, name.v);
	image_builder_u32(b, 1);
	image_builder_u32(b, 1);
	image_builder_u32(b, 0);
	image_builder_u32(b, words.v);
	image_builder_fill(b, 0, 8);
	image_builder_directory(b, DIRECTORY_EXPORT, directory, 40);
}

static bool export_has_probe(const void *bytes, size_t size)
{
	struct image_builder b;
	struct planned p;
	struct rva entry, place;
	bool has;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	entry = CODE(&b, "\x31\xc0\xc3");
	place = code(&b, bytes, size);
	b.entry = entry;
	export_one(&b, place);
	open_graph(&p, &b);
	make_plan(&p, NULL);
	assert_consistent(&p);
	assert_true(has_probe(&p, entry));
	has = has_probe(&p, place);
	release(&p);
	return has;
}

/* Linkers can merge read-only data into the code; then an export may be data. */
static void exports_of_both_kinds(void **state)
{
	static const char floats[] = "\0\0\x80\x3f\0\0\0\x40\xc3";
	static const char text[] = "a tool for all\0\xc3";

	(void)state;
	assert_true(export_has_probe("\x8d\x41\x01\xc3", 4));
	assert_false(export_has_probe(floats, sizeof(floats) - 1));
	assert_false(export_has_probe(text, sizeof(text) - 1));
}

static void code_that_is_read(void **state)
{
	struct image_builder b;
	struct planned p;
	struct rva entry, read, called;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	entry = CODE(&b, "\xe8\0\0\0\0"     /* call read */
			 "\xe8\0\0\0\0"     /* call called */
			 "\x8b\x05\0\0\0\0" /* mov eax, [read] */
			 "\xc3");
	read = CODE(&b, "\x31\xc0\xc3");
	called = CODE(&b, "\x31\xc0\xc3");
	point(&b, rva_add(entry, 1), read);
	point(&b, rva_add(entry, 6), called);
	point(&b, rva_add(entry, 12), read);
	b.entry = entry;
	open_graph(&p, &b);
	make_plan(&p, NULL);
	assert_consistent(&p);
	assert_false(has_probe(&p, read));
	assert_true(has_probe(&p, called));
	assert_true(p.plan.doubtful >= 1);
	release(&p);
}

/* The jump table counts from the function's own start: lea must keep leading there. */
static void bases_of_jump_tables(void **state)
{
	struct image_builder b;
	struct planned p;
	struct rva entry, function, table;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	entry = CODE(&b, "\xe8\0\0\0\0\xc3");
	function = CODE(&b, "\x83\xf9\x01"             /* cmp ecx, 1 */
			    "\x77\x20"                 /* ja default */
			    "\x89\xc9"                 /* mov ecx, ecx */
			    "\x48\x8d\x15\0\0\0\0"     /* lea rdx, [function] */
			    "\x4c\x8d\x05\0\0\0\0"     /* lea r8, [table] */
			    "\x49\x63\x04\x88"         /* movsxd rax, [r8 + rcx * 4] */
			    "\x48\x01\xd0"             /* add rax, rdx */
			    "\xff\xe0"                 /* jmp rax */
			    "\x31\xc0\xc3"             /* case 0 at 30 */
			    "\xb0\x01\xc3"             /* case 1 at 33 */
			    "\x90\xb0\x02\xc3");       /* default at 37 */
	image_builder_section(&b, ".rdata", BUILT_CONST);
	table = image_builder_u32(&b, 30);
	image_builder_u32(&b, 33);
	point(&b, rva_add(entry, 1), function);
	point(&b, rva_add(function, 10), function);
	point(&b, rva_add(function, 17), table);
	b.entry = entry;
	open_graph(&p, &b);
	assert_int_equal(p.graph.jump_tables.len, 1);
	assert_int_equal(p.graph.jump_tables.data[0].base.v, function.v);
	make_plan(&p, NULL);
	assert_consistent(&p);
	assert_true(has_probe(&p, entry));
	assert_false(has_probe(&p, function));
	release(&p);
}

/* The functions of full_image.h that have a name go by it, the others by their RVA. */
static void filters(void **state)
{
	static const char *const leaf_and_alpha[] = {"le?f", "alpha"}, *const alpha[] = {"a*"};
	struct full_image full;
	struct image image;
	struct planned p = {0};
	struct discovery_options options = {0};
	struct probe_filter filter = {leaf_and_alpha, 2, alpha, 1};
	char rva[16];
	const char *const by_rva[] = {rva};
	uint32_t all;

	(void)state;
	full_image_make(&full);
	assert_int_equal(image_open_bytes(&image, full.bytes, full.size, "full", NULL),
			 STATUS_OK);
	assert_int_equal(graph_discover(&p.graph, &image, &options, NULL), STATUS_OK);
	make_plan(&p, NULL);
	assert_consistent(&p);
	all = p.plan.functions.len;
	assert_true(all > 5);
	assert_int_equal(p.plan.filtered, 0);
	assert_true(has_probe(&p, full.leaf));
	assert_true(has_probe(&p, full.exported)); /* its name is alpha */
	probe_plan_release(&p.plan);

	filter.skip_count = 0;
	make_plan(&p, &filter);
	assert_int_equal(p.plan.functions.len, 2);
	assert_true(has_probe(&p, full.leaf));
	assert_true(has_probe(&p, full.exported));
	probe_plan_release(&p.plan);

	/* What is skipped is skipped, whatever else takes it. */
	filter.skip_count = 1;
	make_plan(&p, &filter);
	assert_consistent(&p);
	assert_int_equal(p.plan.functions.len, 1);
	assert_false(has_probe(&p, full.exported));
	probe_plan_release(&p.plan);

	snprintf(rva, sizeof(rva), "0x%x", full.switches.v);
	filter = (struct probe_filter){.skip = by_rva, .skip_count = 1};
	make_plan(&p, &filter);
	assert_int_equal(p.plan.functions.len, all - 1);
	assert_int_equal(p.plan.filtered, 1);
	assert_false(has_probe(&p, full.switches));
	probe_plan_release(&p.plan);
	graph_release(&p.graph);
	image_release(&image);
	full_image_release(&full);
}

/* Who pins code wants it left alone: nothing is to lead around it. */
static void what_the_user_pins(void **state)
{
	struct full_image full;
	struct image image;
	struct planned p = {0};
	struct pin_range range;
	struct discovery_options options = {.pins = &range, .pin_count = 1};

	(void)state;
	full_image_make(&full);
	range = (struct pin_range){full.leaf, rva_add(full.leaf, 1)};
	assert_int_equal(image_open_bytes(&image, full.bytes, full.size, "full", NULL),
			 STATUS_OK);
	assert_int_equal(graph_discover(&p.graph, &image, &options, NULL), STATUS_OK);
	make_plan(&p, NULL);
	assert_consistent(&p);
	assert_int_equal(p.plan.pinned, 1);
	assert_false(has_probe(&p, full.leaf));
	assert_true(has_probe(&p, full.exported));
	probe_plan_release(&p.plan);
	graph_release(&p.graph);
	image_release(&image);
	full_image_release(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_that_references_enter),
		cmocka_unit_test(code_that_must_be_left_alone),
		cmocka_unit_test(data_in_the_text),
		cmocka_unit_test(exports_of_both_kinds),
		cmocka_unit_test(code_that_is_read),
		cmocka_unit_test(bases_of_jump_tables),
		cmocka_unit_test(filters),
		cmocka_unit_test(what_the_user_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
