#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_builder.h"
#include "pdb_builder.h"
#include "symbols/pdb_symbols.h"

enum { DEBUG_ROW_BYTES = 28 };

struct trial {
	struct built_image built;
	struct pdb_builder builder;
	uint8_t *bytes;
	size_t size;
	struct pdb pdb;
	struct symbol_set set;
	struct diag diag;
};

/* Code of 64 bytes at 0x1000, and a CodeView entry with the builder's GUID and age. */
static void make_image(struct built_image *ret_built, const struct pdb_builder *p)
{
	struct image_builder b;
	struct rva data, row;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 64);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	data = image_builder_put(&b, "RSDS", 4);
	image_builder_put(&b, p->guid, 16);
	image_builder_u32(&b, p->age);
	image_builder_string(&b, "a.pdb");
	row = image_builder_align(&b, 4);
	image_builder_fill(&b, 0, 12);
	image_builder_u32(&b, 2);
	image_builder_u32(&b, 30);
	image_builder_u32(&b, data.v);
	image_builder_u32(&b, 0x400 + 0x200); /* in the file */
	image_builder_directory(&b, DIRECTORY_DEBUG, row, DEBUG_ROW_BYTES);
	built_image_open(ret_built, &b);
	image_builder_release(&b);
	assert_int_equal(ret_built->status, STATUS_OK);
	store_u32(ret_built->bytes + ret_built->image.sections[1].raw.v + (row.v - data.v) + 24,
		  ret_built->image.sections[1].raw.v);
}

static void begin(struct trial *t)
{
	memset(t, 0, sizeof(*t));
	diag_init(&t->diag);
	pdb_builder_init(&t->builder, 512);
	make_image(&t->built, &t->builder);
	pdb_builder_section(&t->builder, 0x1000);
	pdb_builder_section(&t->builder, 0x2000);
}

static enum status open_trial(struct trial *t)
{
	t->bytes = pdb_builder_finish(&t->builder, &t->size);
	return pdb_open_bytes(&t->pdb, t->bytes, t->size, &t->diag);
}

static void end(struct trial *t)
{
	symbol_set_release(&t->set);
	pdb_close(&t->pdb);
	free(t->bytes);
	pdb_builder_release(&t->builder);
	built_image_close(&t->built);
}

static enum status add(struct trial *t)
{
	enum status status = open_trial(t);

	if (status == STATUS_OK)
		status = pdb_symbols_add(&t->pdb, &t->built.image, &t->set, &t->diag);
	return status;
}

static void assert_symbol(const struct trial *t, uint32_t index, const char *name,
			  uint32_t rva, uint32_t size, enum symbol_kind kind)
{
	const struct symbol *s = &t->set.symbols.data[index];

	assert_true(index < t->set.symbols.len);
	assert_string_equal(s->name, name);
	assert_int_equal(s->rva.v, rva);
	assert_int_equal(s->size, size);
	assert_int_equal(s->kind, kind);
}

static void functions_are_named(void **state)
{
	uint8_t label[7] = {0x28, 0, 0, 0, 1, 0, 0}, thunk[21] = {0};
	struct trial t;

	(void)state;
	begin(&t);
	store_u32(thunk + 12, 0x30);
	store_u16(thunk + 16, 1);
	store_u16(thunk + 18, 5);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0x10, 4);
	pdb_builder_procedure(&t.builder, BUILT_LPROC32, "of_one_file", 1, 0x20, 8);
	built_record(&t.builder.streams[BUILT_STREAM_MODULE], BUILT_LABEL32, label, 7, "l");
	built_record(&t.builder.streams[BUILT_STREAM_MODULE], BUILT_THUNK32, thunk, 21, "t");
	pdb_builder_public(&t.builder, "?f@@YAXXZ", 1, 0x10, true);
	pdb_builder_public(&t.builder, "some_place", 1, 0x10, false);
	assert_int_equal(add(&t), STATUS_OK);
	assert_int_equal(pdb_check_image(&t.pdb, &t.built.image, &t.diag), STATUS_OK);
	assert_true(symbol_set_finish(&t.set));
	assert_int_equal(t.set.symbols.len, 6);
	assert_symbol(&t, 0, "?f@@YAXXZ", 0x1010, 0, SYMBOL_FUNCTION);
	assert_symbol(&t, 1, "f", 0x1010, 4, SYMBOL_PROCEDURE);
	assert_symbol(&t, 2, "some_place", 0x1010, 0, SYMBOL_PLACE);
	assert_symbol(&t, 3, "of_one_file", 0x1020, 8, SYMBOL_PROCEDURE);
	assert_symbol(&t, 4, "l", 0x1028, 0, SYMBOL_LABEL);
	assert_symbol(&t, 5, "t", 0x1030, 5, SYMBOL_PLACE);
	end(&t);
}

static void places_outside_of_the_code_are_left_out(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_public(&t.builder, "no_section", 0, 0x10, true);
	pdb_builder_public(&t.builder, "absolute", 3, 0x10, true);
	pdb_builder_public(&t.builder, "behind", 1, 64, true);
	pdb_builder_public(&t.builder, "far_behind", 1, UINT32_MAX, true);
	pdb_builder_public(&t.builder, "data", 2, 0, false);
	pdb_builder_public(&t.builder, "last", 1, 63, true);
	pdb_builder_public(&t.builder, "", 1, 0, true);
	assert_int_equal(add(&t), STATUS_OK);
	assert_int_equal(t.set.symbols.len, 1);
	assert_int_equal(t.set.outside, 5);
	assert_symbol(&t, 0, "last", 0x103f, 0, SYMBOL_FUNCTION);
	end(&t);
}

/* What the index does not name has been replaced. */
static void public_symbols_are_those_of_the_index(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_public(&t.builder, "old", 1, 0, true);
	pdb_builder_public(&t.builder, "new", 1, 0, true);
	t.builder.publics.data[0] = t.builder.publics.data[1];
	t.builder.publics.len = 1;
	assert_int_equal(add(&t), STATUS_OK);
	assert_int_equal(t.set.symbols.len, 1);
	assert_symbol(&t, 0, "new", 0x1000, 0, SYMBOL_FUNCTION);
	end(&t);
}

static void assert_other(struct trial *t, const char *message)
{
	assert_int_equal(open_trial(t), STATUS_OK);
	assert_int_equal(pdb_check_image(&t->pdb, &t->built.image, &t->diag),
			 STATUS_OTHER_IMAGE);
	if (!strstr(t->diag.message, message))
		fail_msg("'%s' is not in '%s'", message, t->diag.message);
	end(t);
}

static void a_pdb_of_another_image_is_told(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	t.builder.guid[15]++;
	assert_other(&t, "another image");
	begin(&t);
	t.builder.age++;
	assert_other(&t, "another image");
	assert_string_equal(t.diag.found, "{13121110-1514-1716-1819-1A1B1C1D1E1F} age 2");
	assert_string_equal(t.diag.expected, "{13121110-1514-1716-1819-1A1B1C1D1E1F} age 1");
	begin(&t);
	store_u32(t.builder.streams[BUILT_STREAM_SECTIONS].bytes.data + 40 + 12, 0x3000);
	assert_other(&t, "other sections");
	begin(&t);
	t.builder.streams[BUILT_STREAM_SECTIONS].bytes.len = 79;
	assert_other(&t, "other sections");
	begin(&t);
	t.built.image.directories[DIRECTORY_DEBUG].size = 0;
	assert_other(&t, "does not say which PDB");
}

static void a_rearranged_one_is_not_understood(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	t.builder.omap = 2;
	assert_int_equal(open_trial(&t), STATUS_OK);
	assert_int_equal(pdb_check_image(&t.pdb, &t.built.image, &t.diag),
			 STATUS_UNSUPPORTED);
	end(&t);
}

static void assert_refused(struct trial *t, const char *message)
{
	assert_int_equal(add(t), STATUS_BAD_SYMBOLS);
	if (!strstr(t->diag.message, message))
		fail_msg("'%s' is not in '%s'", message, t->diag.message);
	end(t);
}

static void other_machines_are_refused(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	t.builder.machine = 0x14c;
	assert_refused(&t, "another machine");
}

static void records_that_lie_are_refused(void **state)
{
	struct built_bytes *module;
	struct trial t;

	(void)state;
	begin(&t);
	module = &t.builder.streams[BUILT_STREAM_MODULE];
	store_u32(module->bytes.data, 2);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0, 4);
	assert_refused(&t, "unknown form");
	/* No byte of a kind. */
	begin(&t);
	built_u32(&t.builder.streams[BUILT_STREAM_MODULE], 1);
	assert_refused(&t, "has no size");
	/* A kind that is skipped, and one that is read, that leave the stream. */
	begin(&t);
	built_u32(&t.builder.streams[BUILT_STREAM_MODULE], 6 << 16 | 3);
	assert_refused(&t, "leaves its stream");
	begin(&t);
	built_u32(&t.builder.streams[BUILT_STREAM_MODULE], BUILT_GPROC32 << 16 | 60);
	assert_refused(&t, "leaves its stream");
	/* A name without an end, and none. */
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "1234", 1, 0, 4);
	module = &t.builder.streams[BUILT_STREAM_MODULE];
	store_u16(module->bytes.data + 4, 2 + 35 + 4);
	assert_refused(&t, "too short");
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "1234", 1, 0, 4);
	module = &t.builder.streams[BUILT_STREAM_MODULE];
	store_u16(module->bytes.data + 4, 2 + 35);
	assert_refused(&t, "too short");
}

static void an_index_that_lies_is_refused(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_public(&t.builder, "f", 1, 0, true);
	t.builder.publics.data[0] = 1000;
	assert_refused(&t, "no size");
	/* One record, a thousand times: names would take more room than the file. */
	begin(&t);
	pdb_builder_public(&t.builder, "f", 1, 0, true);
	for (int i = 0; i < 1000; i++)
		assert_true(vec_push(&t.builder.publics, 0));
	assert_refused(&t, "several times");
}

/* Changes one number of `size` bytes in the DBI stream's header or module list and expects
 * a refusal. */
static void assert_changed_refused(uint32_t at, const void *value, size_t size,
				   const char *message)
{
	struct trial t;
	struct built_bytes *dbi;

	begin(&t);
	dbi = &t.builder.streams[BUILT_STREAM_DBI];
	built_info(&t.builder);
	built_publics(&t.builder);
	built_dbi(&t.builder);
	memcpy(dbi->bytes.data + at, value, size);
	t.bytes = built_file(t.builder.streams, BUILT_STREAMS, 512, &t.size);
	assert_int_equal(pdb_open_bytes(&t.pdb, t.bytes, t.size, &t.diag),
			 STATUS_BAD_SYMBOLS);
	if (!strstr(t.diag.message, message))
		fail_msg("'%s' is not in '%s'", message, t.diag.message);
	end(&t);
}

static void assert_dbi_refused(uint32_t at, uint32_t value, const char *message)
{
	uint8_t bytes[4];

	store_u32(bytes, value);
	assert_changed_refused(at, bytes, sizeof(bytes), message);
}

static void assert_dbi_refused_u16(uint32_t at, uint16_t value, const char *message)
{
	uint8_t bytes[2];

	store_u16(bytes, value);
	assert_changed_refused(at, bytes, sizeof(bytes), message);
}

static void a_dbi_stream_that_lies_is_refused(void **state)
{
	enum { FIRST = 64, SECOND = 64 + 84, STREAM = 34, SYMBOL_BYTES_AT = 36 };

	(void)state;
	assert_dbi_refused(0, 0, "old version");
	assert_dbi_refused(4, 19970606, "old version");
	assert_dbi_refused(24, 0x10000, "leave it");
	assert_dbi_refused(28, UINT32_MAX, "leave it");
	assert_dbi_refused(24, 100, "ends too early");
	assert_dbi_refused(SECOND + STREAM, 100, "no stream of its own");
	assert_dbi_refused(FIRST + STREAM, BUILT_STREAM_MODULE, "no stream of its own");
	assert_dbi_refused(SECOND + SYMBOL_BYTES_AT, UINT32_MAX, "more than its stream");
}

/* Streams with a number of their own, and one that is a part's already, are no module's. */
static void streams_have_one_use(void **state)
{
	enum { PUBLICS = 16, RECORDS = 20, MODULE = 64 + 84 + 34 };

	(void)state;
	for (uint16_t stream = 0; stream <= BUILT_STREAM_RECORDS; stream++)
		if (stream != 4)
			assert_dbi_refused_u16(MODULE, stream, "no stream of its own");
	for (uint16_t stream = 0; stream < 4; stream++) {
		assert_dbi_refused_u16(PUBLICS, stream, "share a stream");
		assert_dbi_refused_u16(RECORDS, stream, "share a stream");
	}
}

static void streams_that_are_missing_are_refused(void **state)
{
	struct built_bytes streams[4] = {0};
	struct trial t;

	(void)state;
	begin(&t);
	t.bytes = built_file(streams, 4, 512, &t.size);
	assert_int_equal(pdb_open_bytes(&t.pdb, t.bytes, t.size, &t.diag),
			 STATUS_BAD_SYMBOLS);
	assert_non_null(strstr(t.diag.message, "info stream"));
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_named),
		cmocka_unit_test(places_outside_of_the_code_are_left_out),
		cmocka_unit_test(public_symbols_are_those_of_the_index),
		cmocka_unit_test(a_pdb_of_another_image_is_told),
		cmocka_unit_test(a_rearranged_one_is_not_understood),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(records_that_lie_are_refused),
		cmocka_unit_test(an_index_that_lies_is_refused),
		cmocka_unit_test(a_dbi_stream_that_lies_is_refused),
		cmocka_unit_test(streams_have_one_use),
		cmocka_unit_test(streams_that_are_missing_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
