#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "image_builder.h"
#include "pe/spare_exports.h"

/* A function, the exports that the directory names, and the ones that ld adds. */
struct place {
	struct image_builder b;
	struct rva function, first, spare, addresses, names, ordinals, strings, end;
	struct built_image built;
};

static void put_directory(struct image_builder *b, uint32_t shift, uint32_t addresses,
			  uint32_t names)
{
	uint32_t begin = image_builder_here(b).v - shift, behind = begin + 40;

	image_builder_u32(b, 0);
	image_builder_u32(b, 0x63f14e2b); /* the time */
	image_builder_u32(b, 0);
	image_builder_u32(b, behind + 4 * addresses + 6 * names);
	image_builder_u32(b, 1);
	image_builder_u32(b, addresses);
	image_builder_u32(b, names);
	image_builder_u32(b, behind);
	image_builder_u32(b, behind + 4 * addresses);
	image_builder_u32(b, behind + 4 * addresses + 4 * names);
}

/* Two names for three addresses, each RVA of the table too small by `shift`. */
static void put_table(struct place *p, uint32_t shift, const char *dll)
{
	struct image_builder *b = &p->b;
	uint32_t strings;

	p->spare = image_builder_here(b);
	put_directory(b, shift, 3, 2);
	p->addresses = image_builder_u32(b, p->function.v);
	image_builder_u32(b, 0);
	image_builder_u32(b, 0x2000); /* data */
	strings = image_builder_here(b).v + 8 + 4 + (uint32_t)strlen(dll) + 1;
	p->names = image_builder_u32(b, strings - shift);
	image_builder_u32(b, strings + 6 - shift);
	p->ordinals = image_builder_u16(b, 0);
	image_builder_u16(b, 2);
	p->strings = image_builder_string(b, dll);
	image_builder_string(b, "alpha");
	image_builder_string(b, "beta");
	p->end = image_builder_here(b);
}

static void make(struct place *p)
{
	struct image_builder *b = &p->b;

	memset(p, 0, sizeof(*p));
	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xcc, 0x40);
	p->function = image_builder_put(b, "\x8d\x41\x01\xc3", 4);
	p->first = image_builder_section(b, ".edata", BUILT_CONST);
	put_directory(b, 0, 1, 1);
	image_builder_u32(b, p->function.v);
	image_builder_u32(b, image_builder_here(b).v + 4 + 2 + 6);
	image_builder_u16(b, 0);
	image_builder_string(b, "a.dll");
	image_builder_string(b, "alpha");
	image_builder_align(b, 4);
	put_table(p, image_builder_here(b).v - p->first.v, "a.dll");
	image_builder_directory(b, DIRECTORY_EXPORT, p->first, p->end.v - p->first.v);
}

static bool next(struct place *p, struct rva *from, struct spare_exports *ret_spare)
{
	bool found;

	built_image_open(&p->built, &p->b);
	assert_int_equal(p->built.status, STATUS_OK);
	found = spare_exports_next(&p->built.image, from, ret_spare);
	built_image_close(&p->built);
	return found;
}

static bool is_found(struct place *p)
{
	struct rva from = rva_add(p->first, 4);
	struct spare_exports spare;
	bool found = next(p, &from, &spare);

	image_builder_release(&p->b);
	return found;
}

static void the_second_table_is_found(void **state)
{
	struct spare_exports spare;
	struct place p;
	struct rva from;

	(void)state;
	make(&p);
	from = rva_add(p.first, 4);
	assert_true(next(&p, &from, &spare));
	assert_int_equal(spare.begin.v, p.spare.v);
	assert_int_equal(spare.size, p.end.v - p.spare.v);
	assert_int_equal(spare.addresses.v, p.addresses.v);
	assert_int_equal(spare.count, 3);
	assert_int_equal(from.v, p.end.v);
	assert_false(next(&p, &from, &spare));
	image_builder_release(&p.b);
}

static void what_is_no_whole_table_is_not_found(void **state)
{
	/* Of each field of the directory but the time and the base, one that does not
	 * fit. */
	static const uint32_t fields[] = {0, 12, 20, 24, 28, 32, 36};
	struct place p;

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint8_t *field;

		make(&p);
		field = image_builder_at(&p.b, rva_add(p.spare, fields[i]));
		store_u32(field, load_u32(field) + 1);
		assert_false(is_found(&p));
	}
	make(&p); /* names that overlap */
	store_u32(image_builder_at(&p.b, rva_add(p.names, 4)),
		  load_u32(image_builder_at(&p.b, p.names)) + 5);
	assert_false(is_found(&p));
	make(&p); /* that do not ascend */
	*image_builder_at(&p.b, rva_add(p.strings, 6)) = 'c';
	assert_false(is_found(&p));
	make(&p); /* an ordinal without an address */
	store_u16(image_builder_at(&p.b, p.ordinals), 3);
	assert_false(is_found(&p));
	make(&p); /* the last name leaves the exports */
	image_builder_directory(&p.b, DIRECTORY_EXPORT, p.first, p.end.v - p.first.v - 1);
	assert_false(is_found(&p));
	make(&p); /* all of it does */
	image_builder_directory(&p.b, DIRECTORY_EXPORT, p.first, p.spare.v - p.first.v);
	assert_false(is_found(&p));
}

static bool is_pinned(struct place *p, struct ref *ret_ref)
{
	struct discovery_options options = {0};
	struct graph graph;
	uint32_t id, ref;
	bool pinned;

	built_image_open(&p->built, &p->b);
	assert_int_equal(p->built.status, STATUS_OK);
	assert_int_equal(
		graph_discover(&graph, &p->built.image, &options, &p->built.diag),
		STATUS_OK);
	id = graph_function_starting(&graph, p->function);
	assert_true(id != NO_FUNCTION);
	pinned = graph.functions.data[id].pins & 1u << PIN_HIDDEN_REFERENCE;
	ref = graph_ref_from(&graph, p->addresses);
	memset(ret_ref, 0, sizeof(*ret_ref));
	if (ref < graph.refs.len)
		*ret_ref = graph.refs.data[ref];
	graph_release(&graph);
	built_image_close(&p->built);
	image_builder_release(&p->b);
	return pinned;
}

/* The words are references; those of something that only looks like it are a doubt. */
static void its_words_mean_functions(void **state)
{
	struct place p;
	struct ref ref;

	(void)state;
	make(&p);
	assert_false(is_pinned(&p, &ref));
	assert_int_equal(ref.site.v, p.addresses.v);
	assert_int_equal(ref.target.v, p.function.v);
	assert_int_equal(ref.kind, REF_RVA);
	assert_false(ref.enters);
	make(&p);
	store_u32(image_builder_at(&p.b, p.spare), 1);
	assert_true(is_pinned(&p, &ref));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_table_is_found),
		cmocka_unit_test(what_is_no_whole_table_is_not_found),
		cmocka_unit_test(its_words_mean_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
