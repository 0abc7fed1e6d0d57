#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"

/* A DLL with one relocation, which every tool may touch. */
static void make(struct image_builder *b)
{
	struct rva word, relocs;

	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	image_builder_fill(b, 0xc3, 64);
	image_builder_section(b, ".data", BUILT_DATA);
	word = image_builder_va(b, b->sections[0].rva);
	image_builder_fill(b, 0, 0x100);
	image_builder_section(b, ".reloc", BUILT_CONST);
	relocs = image_builder_u32(b, word.v & ~0xfffu);
	image_builder_u32(b, 12);
	image_builder_u16(b, (uint16_t)(0xa000 | (word.v & 0xfff)));
	image_builder_u16(b, 0);
	image_builder_directory(b, DIRECTORY_RELOCATION, relocs, 12);
}

static enum status supported(struct image_builder *b)
{
	struct built_image built;
	struct diag diag;
	enum status status;

	built_image_open(&built, b);
	assert_int_equal(built.status, STATUS_OK);
	diag_init(&diag);
	status = image_check_supported(&built.image, &diag);
	assert_int_equal(diag.status, status);
	if (status != STATUS_OK)
		assert_string_equal(diag.file, "built");
	built_image_close(&built);
	image_builder_release(b);
	return status;
}

static void plain_images_pass(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	assert_int_equal(supported(&b), STATUS_OK);
}

/* What is in them is found another way (test_absolute_refs.c). */
static void images_without_relocations_pass(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	image_builder_directory(&b, DIRECTORY_RELOCATION, rva_of(0), 0);
	assert_int_equal(supported(&b), STATUS_OK);
	make(&b);
	b.directories[DIRECTORY_RELOCATION].size = 0;
	assert_int_equal(supported(&b), STATUS_OK);
	make(&b);
	b.characteristics = 0x23; /* an EXE, stripped */
	image_builder_directory(&b, DIRECTORY_RELOCATION, rva_of(0), 0);
	assert_int_equal(supported(&b), STATUS_OK);
}

static void relocations_that_are_stripped_are_refused(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	b.characteristics |= 1;
	assert_int_equal(supported(&b), STATUS_NO_RELOCATIONS);
}

/* Whether a loader may put it anywhere. */
static bool moves(uint16_t characteristics, uint16_t dll_characteristics)
{
	struct image_builder b;
	struct built_image built;
	bool answer;

	make(&b);
	b.characteristics = characteristics;
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	built.image.headers.dll_characteristics = dll_characteristics;
	answer = image_may_lie_anywhere(&built.image);
	built_image_close(&built);
	image_builder_release(&b);
	return answer;
}

static void some_images_may_lie_anywhere(void **state)
{
	(void)state;
	assert_true(moves(0x2022, 0));
	assert_true(moves(0x22, DLL_DYNAMIC_BASE));
	assert_false(moves(0x22, 0));
	assert_false(moves(0x2023, DLL_DYNAMIC_BASE));
}

static void dotnet_is_refused(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	image_builder_directory(&b, DIRECTORY_CLR, rva_of(0x2008), 72);
	assert_int_equal(supported(&b), STATUS_DOTNET);
}

/* Puts `text` and a byte at `offset` of section `index`. */
static enum status with_text(uint32_t index, uint32_t offset, const char *text,
			     uint8_t last)
{
	struct image_builder b;
	uint8_t *p;

	make(&b);
	p = image_builder_at(&b, rva_add(b.sections[index].rva, offset));
	memcpy(p, text, strlen(text));
	p[strlen(text)] = last;
	return supported(&b);
}

static void go_is_refused(void **state)
{
	(void)state;
	assert_int_equal(with_text(0, 0, "\xff Go build ID: \"", 'a'), STATUS_GO);
	assert_int_equal(with_text(0, 7, "\xff Go build ID: \"", 'a'), STATUS_GO);
	assert_int_equal(with_text(1, 0x20, "\xff Go buildinf:", 8), STATUS_GO);
	/* A program that only speaks of Go. */
	assert_int_equal(with_text(0, 0, " Go build ID: \"", 'a'), STATUS_OK);
	assert_int_equal(with_text(1, 0x20, "\xff Go build ID: \"", 'a'), STATUS_OK);
	assert_int_equal(with_text(1, 0x28, "\xff Go buildinf:", 8), STATUS_OK);
	assert_int_equal(with_text(1, 0x20, "\xff Go buildinf:", 'x'), STATUS_OK);
	assert_int_equal(with_text(0, 0x20, "\xff Go buildinf:", 8), STATUS_OK);
}

/* The last possible place, and cut off there. */
static void go_marks_at_the_end(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	image_builder_section(&b, ".more", BUILT_DATA);
	image_builder_fill(&b, 0, 32);
	image_builder_put(&b, "\xff Go buildinf:\x08", 15);
	assert_int_equal(supported(&b), STATUS_GO);
	make(&b);
	image_builder_section(&b, ".more", BUILT_DATA);
	image_builder_fill(&b, 0, 32);
	image_builder_put(&b, "\xff Go buildinf:", 14);
	assert_int_equal(supported(&b), STATUS_OK);
}

static void packed_images_are_refused(void **state)
{
	struct image_builder b;

	(void)state;
	make(&b);
	b.sections[0].characteristics |= SECTION_WRITE;
	assert_int_equal(supported(&b), STATUS_PACKED);
}

static enum status with_section(const char *name)
{
	struct image_builder b;

	make(&b);
	snprintf(b.sections[0].name, sizeof(b.sections[0].name), "%s", name);
	return supported(&b);
}

static void names_of_packers_are_refused(void **state)
{
	static const char *const names[] = {"UPX0",     "UPX1",  ".aspack", "MPRESS1",
					    ".petite",  ".vmp0", ".vmp1",   ".themida",
					    ".winlice", ".enigma1"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(with_section(names[i]), STATUS_PACKED);
	assert_int_equal(with_section("UPX"), STATUS_OK);
	assert_int_equal(with_section(".vmp"), STATUS_OK);
}

/* An image whose exports have this name. */
static enum status with_export(const char *name)
{
	struct image_builder b;
	struct rva begin;

	make(&b);
	begin = image_builder_section(&b, ".edata", BUILT_CONST);
	image_builder_fill(&b, 0, 40);
	image_builder_string(&b, "made.dll");
	image_builder_string(&b, name);
	image_builder_directory(&b, DIRECTORY_EXPORT, begin,
				image_builder_here(&b).v - begin.v);
	return supported(&b);
}

static void native_aot_is_refused(void **state)
{
	(void)state;
	assert_int_equal(with_section(".managed"), STATUS_NATIVE_AOT);
	assert_int_equal(with_section("hydrated"), STATUS_NATIVE_AOT);
	assert_int_equal(with_export("DotNetRuntimeDebugHeader"), STATUS_NATIVE_AOT);
	assert_int_equal(with_export("DotNetRuntimeDebugHeaders"), STATUS_OK);
	assert_int_equal(with_export("NoDotNetRuntimeDebugHeader"), STATUS_OK);
}

/* A load configuration of `size` bytes with `v` at `offset`. */
static enum status with_config(uint32_t size, uint32_t offset, uint64_t v)
{
	struct image_builder b;
	struct rva config;

	make(&b);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	config = image_builder_u32(&b, size);
	image_builder_fill(&b, 0, 0x200);
	store_u64(image_builder_at(&b, rva_add(config, offset)), v);
	image_builder_directory(&b, DIRECTORY_LOAD_CONFIG, config, size);
	return supported(&b);
}

static enum status with_chpe(uint32_t size, uint64_t pointer)
{
	return with_config(size, 0xc8, pointer);
}

static void arm64ec_is_refused(void **state)
{
	(void)state;
	assert_int_equal(with_chpe(0xd0, BUILT_IMAGE_BASE + 0x1000), STATUS_UNSUPPORTED);
	assert_int_equal(with_chpe(0xd0, 0), STATUS_OK);
	/* The structure ends before the field. */
	assert_int_equal(with_chpe(0xc8, BUILT_IMAGE_BASE + 0x1000), STATUS_OK);
	assert_int_equal(with_chpe(0xd0, 1), STATUS_MALFORMED);
}

static void other_load_configurations_are_refused(void **state)
{
	const uint64_t pointer = BUILT_IMAGE_BASE + 0x1000;

	(void)state;
	assert_int_equal(with_config(0x140, 0xf0, 0x20), STATUS_UNSUPPORTED);
	assert_int_equal(with_config(0xf0, 0xf0, 0x20), STATUS_OK);
	assert_int_equal(with_config(0x140, 0x20, pointer), STATUS_UNSUPPORTED);
	/* A field of Windows to come, when it says something. */
	assert_int_equal(with_config(0x150, 0x148, 0), STATUS_OK);
	assert_int_equal(with_config(0x150, 0x14f, 1), STATUS_UNSUPPORTED);
	assert_int_equal(with_config(0x150, 0x150, 1), STATUS_OK);
	assert_int_equal(with_config(0x148, 0x140, pointer), STATUS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_images_pass),
		cmocka_unit_test(images_without_relocations_pass),
		cmocka_unit_test(relocations_that_are_stripped_are_refused),
		cmocka_unit_test(some_images_may_lie_anywhere),
		cmocka_unit_test(dotnet_is_refused),
		cmocka_unit_test(go_is_refused),
		cmocka_unit_test(go_marks_at_the_end),
		cmocka_unit_test(packed_images_are_refused),
		cmocka_unit_test(names_of_packers_are_refused),
		cmocka_unit_test(native_aot_is_refused),
		cmocka_unit_test(arm64ec_is_refused),
		cmocka_unit_test(other_load_configurations_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
