#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "symbols/linker_map.h"

/* As MSVC's linker writes it, with what else it may write. */
static const char of_msvc[] =
	" app\r\n\r\n Timestamp is 5eaf00d5 (Sun May  3 17:31:49 2020)\r\n\r\n"
	" Preferred load address is 0000000180000000\r\n\r\n"
	" Start         Length     Name                   Class\r\n"
	" 0001:00000000 00000040H .text$mn                CODE\r\n"
	" 0002:00000000 00000010H .rdata                  DATA\r\n\r\n"
	"  Address         Publics by Value              Rva+Base               Lib:Object\r\n\r\n"
	" 0000:00000000       __guard_flags              0000000000000000     <absolute>\r\n"
	" 0001:00000000       ?first@@YAHXZ              0000000180001000 f   a.obj\r\n"
	" 0001:00000010       ?second@@YAHXZ             0000000180001010 f i a.obj\r\n"
	" 0001:00000018       of_assembly                0000000180001018     b.obj\r\n"
	" 0002:00000008       ??_C@_03text@              0000000180002008     a.obj\r\n\r\n"
	" entry point at        0001:00000010\r\n\r\n Static symbols\r\n\r\n"
	" 0001:00000020       ?third@@YAHXZ              0000000180001020 f   a.obj\r\n\r\n"
	" Exports\r\n\r\n  ordinal    name\r\n\r\n        1    second\r\n";

/* lld does not tell functions. */
static const char of_lld[] =
	" app\n\n Timestamp is 00000000 (Repro mode)\n\n"
	" Preferred load address is 0000000180000000\n\n"
	" Start         Length     Name                   Class\n"
	" 0001:00000000 00000040H .text                   CODE\n\n"
	"  Address         Publics by Value              Rva+Base               Lib:Object\n\n"
	" 0001:00000000       first                      0000000180001000     a.obj\n\n"
	" entry point at         0000:00000000\n\n Static symbols\n\n"
	" 0001:00000000       .text                      0000000180001000     a.obj\n"
	" 0001:00000010       second                     0000000180001010     a.obj";

struct trial {
	struct built_image built;
	struct symbol_set set;
	struct diag diag;
};

static void begin(struct trial *t)
{
	struct image_builder b;

	memset(t, 0, sizeof(*t));
	diag_init(&t->diag);
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 64);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	image_builder_fill(&b, 0, 16);
	built_image_open(&t->built, &b);
	image_builder_release(&b);
	assert_int_equal(t->built.status, STATUS_OK);
	t->built.image.headers.time_date_stamp = 0x5eaf00d5;
}

static void end(struct trial *t)
{
	symbol_set_release(&t->set);
	built_image_close(&t->built);
}

/* A copy of exactly that size, so that a sanitizer sees what is read behind it. */
static enum status add(struct trial *t, const char *text)
{
	size_t size = strlen(text);
	char *copy = malloc(size + 1);
	enum status status;

	assert_non_null(copy);
	memcpy(copy, text, size);
	status = linker_map_add(copy, size, &t->built.image, &t->set, &t->diag);
	free(copy);
	return status;
}

static void assert_symbol(const struct trial *t, uint32_t index, const char *name,
			  uint32_t rva, enum symbol_kind kind)
{
	const struct symbol *s = &t->set.symbols.data[index];

	assert_true(index < t->set.symbols.len);
	assert_string_equal(s->name, name);
	assert_int_equal(s->rva.v, rva);
	assert_int_equal(s->size, 0);
	assert_int_equal(s->kind, kind);
}

static void maps_of_msvc_are_read(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	assert_int_equal(add(&t, of_msvc), STATUS_OK);
	assert_int_equal(t.set.symbols.len, 4);
	assert_int_equal(t.set.outside, 2);
	assert_symbol(&t, 0, "?first@@YAHXZ", 0x1000, SYMBOL_FUNCTION);
	assert_symbol(&t, 1, "?second@@YAHXZ", 0x1010, SYMBOL_FUNCTION);
	assert_symbol(&t, 2, "of_assembly", 0x1018, SYMBOL_PLACE);
	assert_symbol(&t, 3, "?third@@YAHXZ", 0x1020, SYMBOL_FUNCTION);
	end(&t);
}

static void maps_of_lld_are_read(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	assert_int_equal(add(&t, of_lld), STATUS_OK);
	assert_int_equal(t.set.symbols.len, 2);
	assert_symbol(&t, 0, "first", 0x1000, SYMBOL_PLACE);
	assert_symbol(&t, 1, "second", 0x1010, SYMBOL_PLACE);
	end(&t);
}

/* The map of MSVC's with one text for another. */
static void assert_answer(const char *was, const char *is, enum status status,
			  const char *message)
{
	char text[4096];
	const char *at = strstr(of_msvc, was);
	struct trial t;

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - of_msvc), of_msvc, is,
		 at + strlen(was));
	begin(&t);
	assert_int_equal(add(&t, text), status);
	if (!strstr(t.diag.message, message))
		fail_msg("'%s' is not in '%s'", message, t.diag.message);
	end(&t);
}

static void maps_of_other_images_are_told(void **state)
{
	(void)state;
	assert_answer("5eaf00d5", "5eaf00d6", STATUS_OTHER_IMAGE, "its time stamp differs");
	/* The section stands elsewhere, or the image. */
	assert_answer("0000000180001010", "0000000180003010", STATUS_OTHER_IMAGE, "line 15");
	assert_answer("is 0000000180000000", "is 0000000140000000", STATUS_OTHER_IMAGE,
		      "line 14");
}

static void damaged_lines_are_refused(void **state)
{
	(void)state;
	assert_answer("5eaf00d5", "some day", STATUS_BAD_SYMBOLS, "line 3 has no time stamp");
	assert_answer("is 0000000180000000", "is near", STATUS_BAD_SYMBOLS,
		      "line 5 has no load address");
	assert_answer("0000000180001010 f i", "f i", STATUS_BAD_SYMBOLS,
		      "line 15 has no address");
	assert_answer("?third@@YAHXZ              0000000180001020 f   a.obj", "",
		      STATUS_BAD_SYMBOLS, "line 23 has no address");
	assert_answer("Preferred load address", "Address", STATUS_BAD_SYMBOLS,
		      "stands before the load address");
	assert_answer("Publics by Value", "Publics by Name", STATUS_BAD_SYMBOLS,
		      "no linker map of MSVC's linker or lld");
}

static void other_files_are_refused(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	assert_int_equal(linker_map_add("a\0b", 3, &t.built.image, &t.set, &t.diag),
			 STATUS_BAD_SYMBOLS);
	assert_non_null(strstr(t.diag.message, "no text"));
	assert_int_equal(linker_map_add(NULL, 0, &t.built.image, &t.set, &t.diag),
			 STATUS_BAD_SYMBOLS);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_of_msvc_are_read),
		cmocka_unit_test(maps_of_lld_are_read),
		cmocka_unit_test(maps_of_other_images_are_told),
		cmocka_unit_test(damaged_lines_are_refused),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
