#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "built_graph.h"

/* What the image's fixed tables say of code: each claim that is wrong keeps what it
 * names. */

/* A function, and one more that nothing is said of. */
static struct rva two_functions(struct built_graph *t, struct rva *ret_other)
{
	struct rva f, other;

	built_graph_init(t);
	f = CODE(t, "\x8b\x01"     /* mov eax, [rcx] */
		    "\xff\x12"     /* call [rdx] */
		    "\x31\xc0"     /* xor eax, eax */
		    "\xc3");
	other = CODE(t, "\x31\xc0\xc3");
	built_graph_row(t, f, 7);
	built_graph_row(t, other, 3);
	built_graph_export(t, f);
	built_graph_export(t, other);
	*ret_other = other;
	return f;
}

/* A load configuration of 0x118 bytes. */
static struct rva put_config(struct built_graph *t)
{
	struct rva config = image_builder_align(&t->b, 8);

	image_builder_u32(&t->b, 0x118);
	image_builder_fill(&t->b, 0, 0x118 - 4);
	image_builder_directory(&t->b, DIRECTORY_LOAD_CONFIG, config, 0x118);
	return config;
}

/* Volatile metadata with one access. */
static uint32_t pins_with_access(uint32_t offset, uint32_t *ret_other)
{
	struct rva f, other, access, metadata, config;
	struct built_graph t;
	uint32_t pins, ref;

	f = two_functions(&t, &other);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	access = image_builder_u32(&t.b, f.v + offset);
	metadata = image_builder_u32(&t.b, 24);
	image_builder_u32(&t.b, 0x80038003);
	image_builder_u32(&t.b, access.v);
	image_builder_u32(&t.b, 4);
	image_builder_u64(&t.b, 0);
	config = put_config(&t);
	store_u64(image_builder_at(&t.b, rva_add(config, 0x100)),
		  BUILT_IMAGE_BASE + metadata.v);
	built_graph_discover(&t);
	assert_int_equal(t.status, STATUS_OK);
	pins = PINS(&t, f);
	*ret_other = PINS(&t, other);
	ref = graph_ref_from(&t.graph, access);
	assert_int_equal(t.graph.refs.data[ref].site.v, access.v);
	assert_int_equal(t.graph.refs.data[ref].target.v, f.v + offset);
	assert_false(t.graph.refs.data[ref].enters);
	/* Padding that it names is kept. */
	assert_int_equal((graph_code_state(&t.graph, rva_add(f, 9)) & CODE_LABEL) != 0,
			 offset == 9);
	built_graph_release(&t);
	return pins;
}

static void volatile_accesses_are_instructions(void **state)
{
	uint32_t other;

	(void)state;
	assert_int_equal(pins_with_access(0, &other), 0);
	assert_int_equal(pins_with_access(4, &other), 0);
	assert_int_equal(other, 0);
	assert_int_equal(pins_with_access(3, &other), PIN(OUTSIDE_REFERENCE));
	assert_int_equal(other, 0);
	assert_int_equal(pins_with_access(9, &other), 0);
}

/* One dynamic value relocation of `symbol`, with `rest` behind the offset in the page. */
static uint32_t pins_with_fixup(uint64_t symbol, uint32_t offset, uint16_t rest)
{
	struct rva f, other, config, table;
	struct built_graph t;
	uint32_t pins;

	f = two_functions(&t, &other);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	config = put_config(&t);
	table = image_builder_u32(&t.b, 1);
	image_builder_u32(&t.b, 12 + 12);
	image_builder_u64(&t.b, symbol);
	image_builder_u32(&t.b, 12);
	image_builder_u32(&t.b, f.v & ~0xfffu);
	image_builder_u32(&t.b, 12);
	image_builder_u16(&t.b, (uint16_t)(rest << 12 | ((f.v + offset) & 0xfff)));
	image_builder_u16(&t.b, 0);
	store_u32(image_builder_at(&t.b, rva_add(config, 0xe0)), table.v - config.v);
	store_u16(image_builder_at(&t.b, rva_add(config, 0xe4)), 2);
	built_graph_discover(&t);
	assert_int_equal(t.status, STATUS_OK);
	pins = PINS(&t, f);
	assert_int_equal(PINS(&t, other), 0);
	built_graph_release(&t);
	return pins;
}

static void dynamic_relocations_are_instructions_or_inside(void **state)
{
	(void)state;
	assert_int_equal(pins_with_fixup(4, 2, 1), 0);
	assert_int_equal(pins_with_fixup(4, 3, 1), PIN(OUTSIDE_REFERENCE));
	assert_int_equal(pins_with_fixup(0x7ffe0000, 3, RELOC_HIGHLOW), 0);
	assert_int_equal(pins_with_fixup(0x7ffe0000, 2, RELOC_HIGHLOW),
			 PIN(OUTSIDE_REFERENCE));
}

/* A DLL that is loaded late: the words lead to stubs. */
static uint32_t pins_with_delay_import(bool address_relocated, bool unload_relocated)
{
	struct rva f, other, dll, hint, names, addresses, unload, descriptor;
	struct built_graph t;
	uint32_t pins;

	f = two_functions(&t, &other);
	image_builder_section(&t.b, ".data", BUILT_DATA);
	addresses = address_relocated ? built_graph_pointer(&t, f)
				      : image_builder_va(&t.b, f);
	image_builder_u64(&t.b, 0);
	unload = unload_relocated ? built_graph_pointer(&t, f)
				  : image_builder_va(&t.b, f);
	image_builder_u64(&t.b, 0);
	dll = image_builder_string(&t.b, "late.dll");
	hint = (image_builder_align(&t.b, 2), image_builder_u16(&t.b, 0));
	image_builder_string(&t.b, "F");
	names = (image_builder_align(&t.b, 8), image_builder_u64(&t.b, hint.v));
	image_builder_u64(&t.b, 0);
	descriptor = image_builder_u32(&t.b, 1);
	image_builder_u32(&t.b, dll.v);
	image_builder_u32(&t.b, image_builder_here(&t.b).v); /* the handle */
	image_builder_u32(&t.b, addresses.v);
	image_builder_u32(&t.b, names.v);
	image_builder_u32(&t.b, 0);
	image_builder_u32(&t.b, unload.v);
	image_builder_u32(&t.b, 0);
	image_builder_fill(&t.b, 0, 32);
	image_builder_directory(&t.b, DIRECTORY_DELAY_IMPORT, descriptor, 64);
	built_graph_discover(&t);
	assert_int_equal(t.status, STATUS_OK);
	pins = PINS(&t, f);
	assert_int_equal(PINS(&t, other), 0);
	built_graph_release(&t);
	return pins;
}

static void words_of_delay_imports_are_relocated(void **state)
{
	(void)state;
	assert_int_equal(pins_with_delay_import(true, true), 0);
	assert_int_equal(pins_with_delay_import(false, true), PIN(HIDDEN_REFERENCE));
	assert_int_equal(pins_with_delay_import(true, false), PIN(HIDDEN_REFERENCE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volatile_accesses_are_instructions),
		cmocka_unit_test(dynamic_relocations_are_instructions_or_inside),
		cmocka_unit_test(words_of_delay_imports_are_relocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
