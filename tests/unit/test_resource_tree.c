#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/resource_tree.h"

enum { ROOT = 0x1000 };

#define SUB 0x80000000u

static void directory(struct image_builder *b, uint16_t named, uint16_t ids)
{
	image_builder_fill(b, 0, 12);
	image_builder_u16(b, named);
	image_builder_u16(b, ids);
}

static void entry(struct image_builder *b, uint32_t name, uint32_t to)
{
	image_builder_u32(b, name);
	image_builder_u32(b, to);
}

/* A type by name and one by number; the first has one resource, the second none. */
static void make(struct image_builder *b)
{
	image_builder_init(b);
	image_builder_section(b, ".rsrc", BUILT_CONST);
	directory(b, 1, 1);
	entry(b, SUB | 0x80, SUB | 0x20);
	entry(b, 16, SUB | 0x68);
	directory(b, 0, 1); /* at 0x20 */
	entry(b, 1, SUB | 0x38);
	directory(b, 0, 1); /* at 0x38 */
	entry(b, 1033, 0x50);
	image_builder_align(b, 16);
	image_builder_u32(b, ROOT + 0x90); /* at 0x50: the data */
	image_builder_u32(b, 8);
	image_builder_u64(b, 0);
	image_builder_fill(b, 0, 8);
	directory(b, 0, 0); /* at 0x68 */
	image_builder_fill(b, 0, 8);
	image_builder_u16(b, 3); /* at 0x80: a name */
	image_builder_fill(b, 'x', 6);
	image_builder_align(b, 16);
	image_builder_u64(b, 0x1122334455667788);
	image_builder_directory(b, DIRECTORY_RESOURCE, rva_of(ROOT), 0x98);
}

static uint32_t read_made(struct image_builder *b, struct resource_part *ret_parts)
{
	struct built_image built;
	struct resource_tree tree;

	built_image_open(&built, b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(resource_tree_read(&built.image, &tree, &built.diag), STATUS_OK);
	for (uint32_t i = 0; i < tree.count && i < 8; i++)
		ret_parts[i] = tree.parts[i];
	built_image_close(&built);
	image_builder_release(b);
	return tree.count;
}

static void its_own_bytes_are_found(void **state)
{
	static const struct resource_part expected[] = {
		{{ROOT}, 32},        {{ROOT + 0x80}, 8},  {{ROOT + 0x20}, 24},
		{{ROOT + 0x38}, 24}, {{ROOT + 0x50}, 16}, {{ROOT + 0x68}, 16},
	};
	struct resource_part parts[8];
	struct image_builder b;

	(void)state;
	make(&b);
	assert_int_equal(read_made(&b, parts), 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(parts[i].begin.v, expected[i].begin.v);
		assert_int_equal(parts[i].size, expected[i].size);
	}
}

static void left_alone(uint32_t offset, uint32_t v)
{
	struct resource_part parts[8];
	struct image_builder b;

	make(&b);
	store_u32(image_builder_at(&b, rva_of(ROOT + offset)), v);
	if (read_made(&b, parts) != 0)
		fail_msg("0x%x at 0x%x", v, offset);
}

static void what_is_no_tree_is_left_alone(void **state)
{
	struct resource_part parts[8];
	struct image_builder b;

	(void)state;
	left_alone(12, 0xffffffff);         /* entries */
	left_alone(16, SUB | 0x7fffffff);   /* a name */
	left_alone(16, SUB | 0x98);         /* behind the resources */
	left_alone(0x80, 0xffff);           /* a long name */
	left_alone(20, SUB | 0);            /* a loop */
	left_alone(28, SUB | 0x7ffffff0);   /* a directory */
	left_alone(0x4c, 0x90);             /* data entry that ends behind */
	make(&b);
	image_builder_directory(&b, DIRECTORY_RESOURCE, rva_of(0), 0);
	assert_int_equal(read_made(&b, parts), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_own_bytes_are_found),
		cmocka_unit_test(what_is_no_tree_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
