#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pe/section_name.h"
#include "pe/toolchain.h"

struct made {
	struct image_builder b;
	struct built_image built;
	struct toolchain toolchain;
};

static void begin(struct made *made)
{
	image_builder_init(&made->b);
	image_builder_section(&made->b, ".text", BUILT_CODE);
	image_builder_fill(&made->b, 0xc3, 16);
	image_builder_section(&made->b, ".rdata", BUILT_CONST);
	image_builder_u32(&made->b, 0);
}

static void finish(struct made *made, uint8_t major, uint8_t minor)
{
	made->built.bytes = image_builder_finish(&made->b, &made->built.size);
	made->built.bytes[BUILT_OPTIONAL + 2] = major;
	made->built.bytes[BUILT_OPTIONAL + 3] = minor;
	assert_int_equal(image_open_bytes(&made->built.image, made->built.bytes,
					  made->built.size, "made", NULL),
			 STATUS_OK);
	assert_int_equal(toolchain_read(&made->built.image, &made->toolchain, NULL),
			 STATUS_OK);
	image_builder_release(&made->b);
}

static void end(struct made *made)
{
	built_image_close(&made->built);
}

static void assert_sign(const struct toolchain *t, uint32_t index, const char *name,
			const char *version, const char *found)
{
	assert_true(index < t->sign_count);
	assert_string_equal(t->signs[index].name, name);
	assert_string_equal(t->signs[index].version, version);
	assert_string_equal(t->signs[index].found, found);
}

static void gnu_tools_are_known(void **state)
{
	struct made made;

	(void)state;
	begin(&made);
	image_builder_string(&made.b, "Mingw-w64 runtime failure:\n");
	image_builder_string(&made.b, "GCC: (GNU) 12-win32");
	finish(&made, 2, 40);
	assert_int_equal(made.toolchain.linker, LINKER_GNU);
	assert_int_equal(made.toolchain.sign_count, 2);
	assert_sign(&made.toolchain, 0, "GCC", "12-win32", ".rdata");
	assert_sign(&made.toolchain, 1, "mingw-w64", "", ".rdata");
	end(&made);
}

static void producers_are_read(void **state)
{
	struct made made;

	(void)state;
	begin(&made);
	image_builder_string(&made.b, "GNU C17 12 20220819 -m64");
	image_builder_string(&made.b, "Debian clang version 14.0.6");
	finish(&made, 9, 9);
	assert_int_equal(made.toolchain.linker, LINKER_UNKNOWN);
	assert_null(made.toolchain.linker_found);
	assert_int_equal(made.toolchain.sign_count, 2);
	assert_sign(&made.toolchain, 0, "GCC", "12", ".rdata");
	assert_sign(&made.toolchain, 1, "clang", "14.0.6", ".rdata");
	end(&made);
}

/* A path of Rust's library has a commit; other paths with "rustc" have none. */
static void rust_is_known_by_its_commit(void **state)
{
	static const char commit[] = "ded5c06cf21d2b93bffd5d884aa6e96934ee4234";
	struct made made;

	(void)state;
	begin(&made);
	image_builder_string(&made.b, "/home/me/rustc/src/main.rs");
	image_builder_string(&made.b,
			     "/rustc/ded5c06cf21d2b93bffd5d884aa6e96934ee4234/lib");
	finish(&made, 9, 9);
	assert_int_equal(made.toolchain.sign_count, 1);
	assert_sign(&made.toolchain, 0, "Rust", commit, ".rdata");
	end(&made);
}

/* A text that ends with the section, before its version. */
static void texts_without_a_version_are_no_sign(void **state)
{
	struct made made;

	(void)state;
	begin(&made);
	image_builder_string(&made.b, "GCC: (none)");
	image_builder_put(&made.b, "GNU C 1", 7);
	finish(&made, 9, 9);
	assert_int_equal(made.toolchain.sign_count, 0);
	end(&made);
}

static void texts_in_code_are_chance(void **state)
{
	struct made made;

	(void)state;
	image_builder_init(&made.b);
	image_builder_section(&made.b, ".text", BUILT_CODE);
	image_builder_string(&made.b, "GCC: (GNU) 12.2");
	finish(&made, 9, 9);
	assert_int_equal(made.toolchain.sign_count, 0);
	end(&made);
}

static void packers_are_known_by_sections(void **state)
{
	struct made made;

	(void)state;
	begin(&made);
	image_builder_section(&made.b, "UPX0", BUILT_CODE);
	image_builder_section(&made.b, "UPX1", BUILT_CODE);
	finish(&made, 9, 9);
	assert_int_equal(made.toolchain.sign_count, 1);
	assert_string_equal(made.toolchain.signs[0].name, "UPX");
	assert_true(made.toolchain.signs[0].packer);
	end(&made);
}

/* Each byte as often as another, against text of few letters. */
static void compressed_data_is_seen(void **state)
{
	for (unsigned letters = 100; letters <= 256; letters += 156) {
		struct made made;
		uint32_t seed = 1;

		begin(&made);
		image_builder_section(&made.b, ".data", BUILT_DATA);
		for (unsigned i = 0; i < 0x10000; i++) {
			uint8_t byte;

			seed = (uint32_t)((uint64_t)seed * 48271 % 0x7fffffff);
			byte = (uint8_t)((seed >> 8) % letters);
			image_builder_put(&made.b, &byte, 1);
		}
		finish(&made, 9, 9);
		if (letters == 256) {
			assert_non_null(made.toolchain.opaque);
			assert_string_equal(made.toolchain.opaque->name, ".data");
		} else {
			assert_null(made.toolchain.opaque);
		}
		end(&made);
	}
	(void)state;
}

static void releases_have_names(void **state)
{
	(void)state;
	assert_string_equal(visual_studio_of(8, 0), "Visual Studio 2005");
	assert_string_equal(visual_studio_of(14, 0), "Visual Studio 2015");
	assert_string_equal(visual_studio_of(14, 16), "Visual Studio 2017");
	assert_string_equal(visual_studio_of(14, 29), "Visual Studio 2019");
	assert_string_equal(visual_studio_of(14, 44), "Visual Studio 2022");
	assert_null(visual_studio_of(7, 10));
	assert_null(visual_studio_of(15, 0));
}

static void put_strings(struct image_builder *b, const char *text)
{
	uint8_t head[4];

	store_u32(head, (uint32_t)strlen(text) + 5);
	for (int i = 0; i < 4; i++)
		assert_true(vec_push(&b->symbols, head[i]));
	for (size_t i = 0; i <= strlen(text); i++)
		assert_true(vec_push(&b->symbols, (uint8_t)text[i]));
}

static void long_section_names_are_found(void **state)
{
	static const struct {
		const char *row, *name;
	} cases[] = {
		{"/4", ".debug_info"}, {"/11", "info"}, {"/0", "/0"}, {"/3", "/3"},
		{"/x", "/x"}, {"/9999999", "/9999999"}, {".text", ".text"}, {"/", "/"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made made;

		image_builder_init(&made.b);
		image_builder_section(&made.b, cases[i].row, BUILT_CONST);
		image_builder_u32(&made.b, 0);
		image_builder_symbol(&made.b, "symbol", 0, 1, 0, 3, 0);
		put_strings(&made.b, ".debug_info");
		finish(&made, 9, 9);
		assert_string_equal(section_name(&made.built.image,
						 &made.built.image.sections[0]),
				    cases[i].name);
		end(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gnu_tools_are_known),
		cmocka_unit_test(producers_are_read),
		cmocka_unit_test(rust_is_known_by_its_commit),
		cmocka_unit_test(texts_without_a_version_are_no_sign),
		cmocka_unit_test(texts_in_code_are_chance),
		cmocka_unit_test(packers_are_known_by_sections),
		cmocka_unit_test(compressed_data_is_seen),
		cmocka_unit_test(releases_have_names),
		cmocka_unit_test(long_section_names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
