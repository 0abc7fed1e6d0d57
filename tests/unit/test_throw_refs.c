/* What `throw` hands to the runtime: its functions are references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

/* A function that names a ThrowInfo, whose destructor and copy constructor nothing else
 * leads to. */
struct thrown {
	struct built_graph t;
	struct rva f, destructor, copy;
	struct rva descriptor, type, array, info;
};

static void begin(struct thrown *h)
{
	struct built_graph *t = &h->t;
	struct rva table;

	built_graph_init(t);
	h->f = CODE(t, "\x48\x8d\x15\0\0\0\0\xc3"); /* lea rdx, [info]; ret */
	h->destructor = CODE(t, "\x31\xc0\xc3");
	h->copy = CODE(t, "\x31\xdb\xc3");
	built_graph_row(t, h->f, 8);
	built_graph_export(t, h->f);
	image_builder_section(&t->b, ".rdata", BUILT_CONST);
	table = image_builder_u64(&t->b, 0); /* of virtual functions */
	h->descriptor = built_graph_pointer(t, table);
	image_builder_u64(&t->b, 0);
	image_builder_string(&t->b, ".?AUerror@@");
	h->type = (image_builder_align(&t->b, 4), image_builder_u32(&t->b, 0));
	image_builder_u32(&t->b, h->descriptor.v);
	image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, UINT32_MAX);
	image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, 8);
	image_builder_u32(&t->b, h->copy.v);
	h->array = image_builder_u32(&t->b, 1);
	image_builder_u32(&t->b, h->type.v);
	h->info = image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, h->destructor.v);
	image_builder_u32(&t->b, 0);
	image_builder_u32(&t->b, h->array.v);
	built_graph_point(t, rva_add(h->f, 3), h->info);
}

static void test_functions_are_references(void **unused)
{
	struct thrown h;

	(void)unused;
	begin(&h);
	built_graph_discover(&h.t);
	assert_int_equal(LEADS(&h.t, rva_add(h.info, 4)), h.destructor.v);
	assert_int_equal(LEADS(&h.t, rva_add(h.type, 24)), h.copy.v);
	assert_true(built_graph_ref(&h.t, rva_add(h.type, 24))->enters);
	assert_int_equal(PINS(&h.t, h.destructor), 0);
	assert_int_equal(PINS(&h.t, h.copy), 0);
	assert_int_equal(built_graph_function(&h.t, h.copy)->kind, FUNCTION_LEAF);
	built_graph_release(&h.t);
}

/* What lacks a part of the structure is something else, and its words are numbers. */
static void expect_nothing(struct thrown *h)
{
	built_graph_discover(&h->t);
	assert_null(built_graph_ref(&h->t, rva_add(h->info, 4)));
	assert_null(built_graph_ref(&h->t, rva_add(h->type, 24)));
	built_graph_release(&h->t);
}

static void test_all_of_it_must_be_there(void **unused)
{
	struct thrown h;

	(void)unused;
	begin(&h); /* no name of a type */
	*image_builder_at(&h.t.b, rva_add(h.descriptor, 16)) = 'x';
	expect_nothing(&h);
	begin(&h); /* no table of virtual functions */
	h.t.reloc_count = 0;
	store_u64(image_builder_at(&h.t.b, h.descriptor), 5);
	expect_nothing(&h);
	begin(&h); /* unknown attributes */
	store_u32(image_builder_at(&h.t.b, h.info), 0x20);
	expect_nothing(&h);
	begin(&h); /* a word that is always 0 */
	store_u32(image_builder_at(&h.t.b, rva_add(h.info, 8)), 4);
	expect_nothing(&h);
	begin(&h); /* more types than the file holds */
	store_u32(image_builder_at(&h.t.b, h.array), 0x40000000);
	expect_nothing(&h);
	begin(&h); /* an object without a size */
	store_u32(image_builder_at(&h.t.b, rva_add(h.type, 20)), 0);
	expect_nothing(&h);
	begin(&h); /* a copy constructor outside the code */
	store_u32(image_builder_at(&h.t.b, rva_add(h.type, 24)), h.info.v);
	expect_nothing(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_are_references),
		cmocka_unit_test(test_all_of_it_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
