#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "image_builder.h"

/* Three functions that a guard table names; the second has a hash before it. */
struct place {
	struct image_builder b;
	struct rva caller, hash, hashed, last; /* begins */
	struct rva return_address;             /* in `caller`, behind its call */
	struct rva config, guard, long_jumps, pointer;
	uint32_t reloc_count;
	struct rva relocs[8];
	struct built_image built;
	struct graph graph;
};

enum { FLAGS = 0x10010500 }; /* tables of functions and of longjmp, one byte a row */

static void put_va(struct place *p, struct rva target)
{
	p->relocs[p->reloc_count++] = image_builder_va(&p->b, target);
}

/* `before` ends the first function: the hash follows it at once. */
static void put_text(struct place *p, const void *before, size_t size)
{
	struct image_builder *b = &p->b;

	image_builder_section(b, ".text", BUILT_CODE);
	p->caller = image_builder_put(b,
				      "\x48\x83\xec\x28" /* sub rsp, 40 */
				      "\xe8\0\0\0\0"     /* call last */
				      "\x48\x83\xc4\x28", /* add rsp, 40 */
				      13);
	p->return_address = rva_add(p->caller, 9);
	image_builder_put(b, before, size);
	p->hash = image_builder_put(b, "\x70\xa1\x35\x82\x19\xe4\xb7\xc6", 8);
	p->hashed = image_builder_put(b, "\x8d\x41\x05\xc3", 4);
	image_builder_fill(b, 0xcc, 28);
	p->last = image_builder_put(b, "\x8d\x41\x07\xc3", 4);
	image_builder_fill(b, 0xcc, 12);
	store_u32(image_builder_at(b, rva_add(p->caller, 5)),
		  p->last.v - p->return_address.v);
}

static void put_config(struct place *p)
{
	struct image_builder *b = &p->b;

	image_builder_section(b, ".rdata", BUILT_CONST);
	p->guard = image_builder_u32(b, p->caller.v);
	image_builder_put(b, "\0", 1);
	image_builder_u32(b, p->hashed.v);
	image_builder_put(b, "\x08", 1);
	image_builder_u32(b, p->last.v);
	image_builder_put(b, "\0", 1);
	p->long_jumps = image_builder_u32(b, p->return_address.v);
	image_builder_put(b, "\0", 1);
	p->config = image_builder_align(b, 8);
	image_builder_u32(b, 0x118);
	image_builder_fill(b, 0, 0x118 - 4);
	store_u32(image_builder_at(b, rva_add(p->config, 0x90)), FLAGS);
	store_u64(image_builder_at(b, rva_add(p->config, 0x80)),
		  BUILT_IMAGE_BASE + p->guard.v);
	store_u64(image_builder_at(b, rva_add(p->config, 0x88)), 3);
	store_u64(image_builder_at(b, rva_add(p->config, 0xb0)),
		  BUILT_IMAGE_BASE + p->long_jumps.v);
	store_u64(image_builder_at(b, rva_add(p->config, 0xb8)), 1);
	image_builder_directory(b, DIRECTORY_LOAD_CONFIG, p->config, 0x118);
	/* Who calls the function with the hash does it through this. */
	p->pointer = image_builder_here(b);
	put_va(p, p->hashed);
}

static void put_pdata(struct place *p)
{
	struct image_builder *b = &p->b;
	struct rva unwind = image_builder_put(b, "\x01\x04\x01\x00\x04\x42\x00\x00", 8);
	struct rva row = image_builder_u32(b, p->caller.v);

	image_builder_u32(b, p->hash.v);
	image_builder_u32(b, unwind.v);
	image_builder_directory(b, DIRECTORY_EXCEPTION, row, 12);
}

static void put_relocs(struct place *p)
{
	struct image_builder *b = &p->b;
	struct rva table = image_builder_section(b, ".reloc", BUILT_CONST);

	image_builder_u32(b, p->relocs[0].v & ~0xfffu);
	image_builder_u32(b, 12);
	image_builder_u16(b, (uint16_t)(RELOC_DIR64 << 12 | (p->relocs[0].v & 0xfff)));
	image_builder_u16(b, 0);
	image_builder_directory(b, DIRECTORY_RELOCATION, table, 12);
}

static void make(struct place *p, const void *before, size_t size)
{
	memset(p, 0, sizeof(*p));
	image_builder_init(&p->b);
	put_text(p, before, size);
	put_config(p);
	put_pdata(p);
	put_relocs(p);
}

static void discover(struct place *p)
{
	struct discovery_options options = {0};

	built_image_open(&p->built, &p->b);
	image_builder_release(&p->b);
	assert_int_equal(p->built.status, STATUS_OK);
	assert_int_equal(
		graph_discover(&p->graph, &p->built.image, &options, &p->built.diag),
		STATUS_OK);
}

static void release(struct place *p)
{
	graph_release(&p->graph);
	built_image_close(&p->built);
}

static uint32_t pins_at(const struct place *p, struct rva rva)
{
	uint32_t id = graph_function_at(&p->graph, rva);

	assert_true(id != NO_FUNCTION);
	return p->graph.functions.data[id].pins;
}

static const struct ref *ref_at(const struct place *p, struct rva site)
{
	uint32_t i = graph_ref_from(&p->graph, site);

	assert_true(i < p->graph.refs.len && p->graph.refs.data[i].site.v == site.v);
	return &p->graph.refs.data[i];
}

/* A return and padding before the hash. */
static void a_hash_goes_with_its_function(void **state)
{
	struct place p;
	const struct block *block;
	uint32_t id;

	(void)state;
	make(&p, "\xc3\xcc\xcc", 3);
	discover(&p);
	id = graph_block_at(&p.graph, p.hashed);
	assert_int_equal(id, graph_block_at(&p.graph, p.hash));
	assert_true(id != graph_block_at(&p.graph, p.caller));
	block = &p.graph.blocks.data[id];
	assert_int_equal(block->begin.v, p.hash.v);
	assert_int_equal(block->size, 8 + 4);
	assert_int_equal(block->function_count, 1);
	assert_int_equal(block->pins, 0);
	assert_int_equal(pins_at(&p, p.caller), 0);
	/* No function is made of it. */
	assert_int_equal(graph_function_at(&p.graph, p.hash), NO_FUNCTION);
	release(&p);
}

/* An indirect call through a thunk would find no hash. */
static void pointers_to_hashed_functions_take_no_thunk(void **state)
{
	struct place p;

	(void)state;
	make(&p, "\xc3\xcc\xcc", 3);
	discover(&p);
	assert_false(ref_at(&p, p.pointer)->enters);
	assert_false(ref_at(&p, rva_add(p.guard, 5))->enters);
	assert_true(ref_at(&p, rva_add(p.guard, 10))->enters);
	assert_true(ref_at(&p, rva_add(p.caller, 5))->enters);
	release(&p);
}

/* The caller ends in a call: a byte behind it is its own. */
static void a_hash_that_is_a_guard_byte_joins(void **state)
{
	struct place p;

	(void)state;
	make(&p, "\xff\xd0", 2); /* call rax */
	discover(&p);
	assert_int_equal(graph_block_at(&p.graph, p.hash),
			 graph_block_at(&p.graph, p.caller));
	assert_int_equal(graph_block_at(&p.graph, p.hashed),
			 graph_block_at(&p.graph, p.caller));
	release(&p);
}

/* The row of the caller covers the hash. */
static void a_hash_inside_of_code_is_none(void **state)
{
	struct place p;

	(void)state;
	make(&p, "\xc3\xcc\xcc", 3);
	store_u32(image_builder_at(&p.b, rva_add(p.b.directories[DIRECTORY_EXCEPTION].rva,
						 4)),
		  p.hash.v + 8);
	discover(&p);
	assert_true(pins_at(&p, p.caller) & 1u << PIN_OUTSIDE_REFERENCE);
	assert_true(pins_at(&p, p.hashed) & 1u << PIN_OUTSIDE_REFERENCE);
	release(&p);
}

static void longjmp_goes_behind_calls(void **state)
{
	struct place p;
	const struct ref *ref;

	(void)state;
	make(&p, "\xc3\xcc\xcc", 3);
	discover(&p);
	ref = ref_at(&p, p.long_jumps);
	assert_int_equal(ref->target.v, p.return_address.v);
	assert_false(ref->enters);
	release(&p);
	make(&p, "\xc3\xcc\xcc", 3);
	/* Behind the sub. */
	store_u32(image_builder_at(&p.b, p.long_jumps), p.caller.v + 4);
	discover(&p);
	assert_int_equal(pins_at(&p, p.caller), 1u << PIN_OUTSIDE_REFERENCE);
	release(&p);
}

/* Also in a field that has no name yet. */
static void pointers_without_relocation_stay(void **state)
{
	struct place p;

	(void)state;
	make(&p, "\xc3\xcc\xcc", 3);
	store_u64(image_builder_at(&p.b, rva_add(p.config, 0xd0)),
		  BUILT_IMAGE_BASE + p.last.v);
	discover(&p);
	assert_int_equal(pins_at(&p, p.last), 1u << PIN_HIDDEN_REFERENCE);
	assert_int_equal(pins_at(&p, p.hashed), 0);
	release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_goes_with_its_function),
		cmocka_unit_test(pointers_to_hashed_functions_take_no_thunk),
		cmocka_unit_test(a_hash_that_is_a_guard_byte_joins),
		cmocka_unit_test(a_hash_inside_of_code_is_none),
		cmocka_unit_test(longjmp_goes_behind_calls),
		cmocka_unit_test(pointers_without_relocation_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
