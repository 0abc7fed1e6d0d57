#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "image_builder.h"
#include "layout/pdb_rewrite.h"
#include "pdb_builder.h"
#include "symbols/pdb_symbols.h"

/* Code of 0x200 bytes at 0x1000; [0, 0x20) and [0x40, 0x60) of it have changed places,
 * where a test says nothing else. */
enum {
	TEXT = 0x1000,
	TEXT_BYTES = 0x200,
	MOVES_MAX = TEXT_BYTES / 2,
	MADE_BYTES = 1 << 16,
};

struct trial {
	struct built_image built;
	struct pdb_builder builder;
	struct move moves[MOVES_MAX];
	uint32_t move_count;
	struct pdb pdb;
	struct pdb_report report;
	struct diag diag;
	uint8_t made[MADE_BYTES]; /* the rewritten PDB */
	size_t made_size;
	uint8_t *bytes;
};

/* `size` bytes at `a` and at `b`, from the begin of the code. */
static void exchange(struct trial *t, uint32_t a, uint32_t b, uint32_t size)
{
	t->moves[t->move_count++] = (struct move){rva_of(TEXT + a), rva_of(TEXT + b), size};
	t->moves[t->move_count++] = (struct move){rva_of(TEXT + b), rva_of(TEXT + a), size};
}

enum { DATA_BYTES = 30, DEBUG_ROW = 2 * DATA_BYTES };

/* A section with two CodeView entries' data, and a debug directory of one row, which has the
 * RVA of the first. */
static void add_codeview(struct image_builder *b, const char *guid)
{
	struct rva data, row;

	image_builder_section(b, ".rdata", BUILT_CONST);
	data = image_builder_put(b, "RSDS", 4);
	image_builder_put(b, guid, 16);
	image_builder_u32(b, 1);
	image_builder_put(b, "a.pdb", 6);
	image_builder_put(b, "RSDSanother GUID 016\1\0\0\0a.pdb", DATA_BYTES);
	row = image_builder_align(b, 4);
	image_builder_fill(b, 0, 12);
	image_builder_u32(b, DEBUG_TYPE_CODEVIEW);
	image_builder_u32(b, DATA_BYTES);
	image_builder_u32(b, data.v);
	image_builder_u32(b, 0); /* in the file, once that is known */
	image_builder_directory(b, DIRECTORY_DEBUG, row, 28);
}

/* The image names its PDB when `guid` is given; in the file, the data of that index do. */
static void begin_with(struct trial *t, const char *guid, uint32_t file_index)
{
	struct image_builder b;

	memset(t, 0, sizeof(*t));
	diag_init(&t->diag);
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, TEXT_BYTES);
	if (guid)
		add_codeview(&b, guid);
	built_image_open(&t->built, &b);
	image_builder_release(&b);
	assert_int_equal(t->built.status, STATUS_OK);
	if (guid) {
		uint32_t data = t->built.image.sections[1].raw.v;

		store_u32(t->built.bytes + data + DEBUG_ROW + 24,
			  data + file_index * DATA_BYTES);
	}
	pdb_builder_init(&t->builder, 512);
	pdb_builder_section(&t->builder, TEXT);
	exchange(t, 0, 0x40, 0x20);
}

static void begin(struct trial *t)
{
	begin_with(t, NULL, 0);
}

/* Rewrites, and opens what came out as t->pdb. */
static enum status rewrite(struct trial *t)
{
	struct output_file out = {.fd = memfd_create("pdb", 0), .path = "pdb"};
	struct move_map map = {.moves = {t->moves, t->move_count, t->move_count}};
	struct pdb original;
	size_t size;
	enum status status;

	t->bytes = pdb_builder_finish(&t->builder, &size);
	assert_int_equal(move_map_finish(&map, &t->diag), STATUS_OK);
	assert_int_equal(pdb_open_bytes(&original, t->bytes, size, &t->diag), STATUS_OK);
	status = pdb_rewrite(&original, &t->built.image, &t->built.image, &map, &out,
			     &t->report, &t->diag);
	pdb_close(&original);
	free(map.by_target);
	t->made_size = (size_t)pread(out.fd, t->made, sizeof(t->made), 0);
	close(out.fd);
	if (status == STATUS_OK)
		assert_int_equal(pdb_open_bytes(&t->pdb, t->made, t->made_size, &t->diag),
				 STATUS_OK);
	return status;
}

static void end(struct trial *t)
{
	pdb_close(&t->pdb);
	free(t->bytes);
	pdb_builder_release(&t->builder);
	built_image_close(&t->built);
}

static void assert_symbols(struct trial *t, const char *expected)
{
	struct symbol_set set = {0};
	char text[1024] = "";
	size_t used = 0;

	assert_int_equal(pdb_symbols_add(&t->pdb, &t->built.image, &set, &t->diag), STATUS_OK);
	assert_true(symbol_set_finish(&set));
	for (uint32_t i = 0; i < set.symbols.len; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %x+%x, ",
					 set.symbols.data[i].name, set.symbols.data[i].rva.v,
					 set.symbols.data[i].size);
	assert_string_equal(text, expected);
	symbol_set_release(&set);
}

static void procedures_and_publics_move(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "a", 1, 0, 0x20);
	pdb_builder_procedure(&t.builder, BUILT_LPROC32, "b", 1, 0x20, 0x20);
	pdb_builder_procedure(&t.builder, BUILT_LPROC32, "c", 1, 0x50, 0x10);
	pdb_builder_public(&t.builder, "?a", 1, 0, true);
	pdb_builder_public(&t.builder, "?c", 1, 0x50, true);
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_symbols(&t, "?c 1010+0, c 1010+10, b 1020+20, ?a 1040+0, a 1040+20, ");
	assert_int_equal(t.report.fragments, 0);
	end(&t);
}

/* One over three places: each part is told. */
static void procedures_fall_apart(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "wide", 1, 0x10, 0x38);
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_symbols(&t, "wide 1000+8, wide 1020+20, wide 1050+10, ");
	assert_int_equal(t.report.fragments, 2);
	assert_string_equal(t.report.first, "wide");
	end(&t);
}

/* Its prologue's end and its epilogue are told of as far as the first part has them. */
static void places_in_a_procedure_stay_in_it(void **state)
{
	/* DebugStart and DebugEnd, before and afterwards. */
	static const uint32_t places[][4] = {{4, 7, 4, 7}, {4, 0x30, 4, 0x10},
						{0x12, 0x38, 0x10, 0x10}};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct msf_reader r;
		uint8_t *fields;
		struct trial t;

		begin(&t);
		pdb_builder_procedure(&t.builder, BUILT_GPROC32, "wide", 1, 0x10, 0x38);
		/* Behind the signature, the record's size and its kind. */
		fields = t.builder.streams[BUILT_STREAM_MODULE].bytes.data + 8;
		store_u32(fields + 16, places[i][0]);
		store_u32(fields + 20, places[i][1]);
		assert_int_equal(rewrite(&t), STATUS_OK);
		r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_MODULE);
		msf_seek(&r, 8 + 12);
		assert_int_equal(msf_read_u32(&r), 0x10);
		assert_int_equal(msf_read_u32(&r), places[i][2]);
		assert_int_equal(msf_read_u32(&r), places[i][3]);
		end(&t);
	}
}

/* What nobody moved, between parts that went, is left out when it cannot be code. */
static void only_padding_is_left_out(void **state)
{
	enum { SIZE = 8 };
	static const struct {
		char bytes[SIZE + 1];
		bool padding;
	} gaps[] = {
		{"\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc", true},
		{"\x00\x00\x00\x00\x00\x00\x00\x00", true},
		{"\x90\x90\x90\x90\x90\x90\x90\x90", true},
		{"\x0f\x1f\x84\x00\x00\x00\x00\x00", true}, /* nop [rax + rax] */
		{"\x66\x90\x66\x66\x90\x0f\x1f\x00", true}, /* three nops */
		{"\x66\x0f\xef\xc0\xc3\xcc\xcc\xcc", false}, /* pxor xmm0, xmm0; ret */
		{"\x90\xc3\xcc\xcc\xcc\xcc\xcc\xcc", false}, /* nop; ret */
		{"\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xc3", false},
		{"\x00\x00\x00\x00\x00\x00\x00\xc3", false}, /* add [rax], al */
		{"\x90\x0f\x1f\x84\x00\x00\x00\x00", false}, /* its end is missing */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		struct trial t;

		begin(&t);
		t.move_count = 0;
		exchange(&t, 0, 0x10, SIZE);
		memcpy(t.built.bytes + t.built.image.sections[0].raw.v + SIZE, gaps[i].bytes,
		       SIZE);
		pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0, 0x18);
		assert_int_equal(rewrite(&t), STATUS_OK);
		assert_int_equal(t.report.fragments, gaps[i].padding ? 1 : 2);
		end(&t);
	}
}

/* The builder's PDB has the GUID of bytes from 0x10 on. */
static void the_identity_is_the_relinked_images(void **state)
{
	static const char same[] = "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d"
				   "\x1e\x1f";
	struct trial t;

	(void)state;
	begin_with(&t, "0123456789abcdef", 0);
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_string_equal(t.pdb.guid, "{33323130-3534-3736-3839-616263646566}");
	end(&t);
	/* It could not be renewed. */
	begin_with(&t, same, 0);
	assert_int_equal(rewrite(&t), STATUS_UNSUPPORTED);
	end(&t);
	/* The file's one is not the one in memory, whichever is renewed. */
	begin_with(&t, same, 1);
	assert_int_equal(rewrite(&t), STATUS_UNSUPPORTED);
	end(&t);
	begin_with(&t, "0123456789abcdef", 1);
	assert_int_equal(rewrite(&t), STATUS_UNSUPPORTED);
	end(&t);
	/* Nothing has moved, so it is the same image. */
	begin_with(&t, same, 0);
	t.move_count = 0;
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_string_equal(t.pdb.guid, "{13121110-1514-1716-1819-1A1B1C1D1E1F}");
	end(&t);
}

/* The index of public symbols goes by places. */
static void the_index_is_sorted_anew(void **state)
{
	uint8_t index[8];
	struct msf_reader r;
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_public(&t.builder, "?a", 1, 0, true);
	pdb_builder_public(&t.builder, "?c", 1, 0x50, true);
	assert_int_equal(rewrite(&t), STATUS_OK);
	r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_PUBLICS);
	msf_skip(&r, 28 + 8);
	msf_read(&r, index, sizeof(index));
	assert_int_equal(load_u32(index), t.builder.publics.data[1]);
	assert_int_equal(load_u32(index + 4), t.builder.publics.data[0]);
	end(&t);
}

static void contributions_fall_apart(void **state)
{
	/* Section 1: offset and size of each. */
	static const uint32_t expected[][2] = {{0, 0x20}, {0x20, 0x20}, {0x40, 0x20},
					       {0x60, 0x20}, {0x100, 0x40}};
	struct msf_reader r;
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_contribution(&t.builder, 1, 0, 0x80);
	pdb_builder_contribution(&t.builder, 1, 0x100, 0x40);
	assert_int_equal(rewrite(&t), STATUS_OK);
	r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_DBI);
	msf_seek(&r, 64 + 2 * 84 + 4);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		uint8_t row[28];

		msf_read(&r, row, sizeof(row));
		assert_int_equal(load_u16(row), 1);
		assert_int_equal(load_u32(row + 4), expected[i][0]);
		assert_int_equal(load_u32(row + 8), expected[i][1]);
	}
	end(&t);
}

static uint32_t word_at(struct msf_reader *r)
{
	return msf_read_u32(r);
}

static void lines_follow_their_code(void **state)
{
	static const uint32_t whole[][2] = {{0, 70}, {4, 71}};
	static const uint32_t wide[][2] = {{0, 1}, {8, 2}, {0x28, 3}, {0x44, 4}};
	/* For each piece: place, size, and its lines; first the one that stays whole. */
	static const uint32_t expected[] = {
		0x50, 0x10, 2, 0, 70, 4, 71,        /* [0x10, 0x20) */
		0x40, 0x20, 2, 0, 1, 8, 2,          /* [0, 0x20) */
		0x20, 0x20, 2, 0, 2, 8, 3,          /* [0x20, 0x40): line 2 goes on */
		0x00, 0x20, 2, 0, 3, 4, 4,          /* [0x40, 0x60) */
	};
	struct msf_reader r;
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0, 0x20);
	pdb_builder_lines(&t.builder, 1, 0x10, 0x10, whole, 2);
	pdb_builder_lines(&t.builder, 1, 0, 0x60, wide, 4);
	assert_int_equal(rewrite(&t), STATUS_OK);
	r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_MODULE);
	msf_seek(&r, t.pdb.modules.data[1].symbol_bytes);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i += 7) {
		assert_int_equal(word_at(&r), 0xf2);
		assert_int_equal(word_at(&r), 12 + 12 + 8 * 2);
		assert_int_equal(word_at(&r), expected[i]);
		assert_int_equal(word_at(&r), 1); /* section, no columns */
		assert_int_equal(word_at(&r), expected[i + 1]);
		assert_int_equal(word_at(&r), 0);
		assert_int_equal(word_at(&r), 2);
		assert_int_equal(word_at(&r), 12 + 8 * 2);
		for (size_t k = 3; k < 7; k++)
			assert_int_equal(word_at(&r), expected[i + k]);
	}
	/* Behind them stands what stood there. */
	assert_int_equal(word_at(&r), 0);
	assert_int_equal(msf_left(&r), 0);
	end(&t);
}

static void lines_of_the_old_form_are_counted_and_kept(void **state)
{
	static const uint32_t lines[][2] = {{0, 1}, {8, 2}};
	uint32_t symbols;
	struct msf_reader r;
	struct trial t;

	(void)state;
	begin(&t);
	pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0x10, 0x38);
	symbols = t.builder.streams[BUILT_STREAM_MODULE].bytes.len;
	built_u32(&t.builder.old_lines, 0x12345678);
	pdb_builder_lines(&t.builder, 1, 0, 0x20, lines, 2);
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_int_equal(t.report.old_lines, 1);
	assert_int_equal(t.pdb.modules.data[1].c11_bytes, 4);
	r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_MODULE);
	/* Behind the records of both other parts. */
	assert_in_range(t.pdb.modules.data[1].symbol_bytes, symbols + 1, UINT32_MAX);
	msf_seek(&r, t.pdb.modules.data[1].symbol_bytes);
	assert_int_equal(msf_read_u32(&r), 0x12345678);
	assert_int_equal(msf_read_u32(&r), 0xf2);
	end(&t);
}

/* A block that loses its second part. */
static void ranges_that_are_cut_are_counted(void **state)
{
	uint8_t block[18] = {0};
	struct msf_reader r;
	struct trial t;

	(void)state;
	begin(&t);
	store_u32(block + 8, 0x38);
	store_u32(block + 12, 0x10);
	store_u16(block + 16, 1);
	built_record(&t.builder.streams[BUILT_STREAM_MODULE], 0x1103, block, sizeof(block),
		     "block");
	assert_int_equal(rewrite(&t), STATUS_OK);
	assert_int_equal(t.report.ranges, 1);
	assert_int_equal(t.report.fragments, 0);
	r = msf_reader_of(&t.pdb.msf, BUILT_STREAM_MODULE);
	msf_seek(&r, 8 + 8);
	assert_int_equal(msf_read_u32(&r), 0x10);
	assert_int_equal(msf_read_u32(&r), 0x50);
	end(&t);
}

static void unknown_contributions_are_not_guessed(void **state)
{
	struct trial t;

	(void)state;
	begin(&t);
	store_u32(t.builder.contributions.bytes.data, 1);
	assert_int_equal(rewrite(&t), STATUS_UNSUPPORTED);
	end(&t);
}

static void lines_that_lie_are_refused(void **state)
{
	static const uint32_t lines[][2] = {{0, 1}, {8, 2}};
	static const struct {
		uint32_t at, value;
	} faults[] = {{4, 1000}, {4, 4}, {24, 1000}, {28, 8}, {28, 1000}};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct trial t;

		begin(&t);
		pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0, 0x20);
		pdb_builder_lines(&t.builder, 1, 0, 0x60, lines, 2);
		store_u32(t.builder.lines.bytes.data + faults[i].at, faults[i].value);
		assert_int_equal(rewrite(&t), STATUS_BAD_SYMBOLS);
		end(&t);
	}
}

/* All code, again and again, in a PDB of a few kilobytes: what it falls apart into would
 * be the product of records and moves. */
static void what_overlaps_too_often_is_refused(void **state)
{
	static const uint32_t lines[][2] = {{0, 1}};
	enum { PROCEDURES, LINES, CONTRIBUTIONS, KINDS };

	(void)state;
	for (int kind = 0; kind < KINDS; kind++)
		for (int count = 2; count <= 100; count += 98) {
			struct trial t;

			begin(&t);
			t.move_count = 0;
			for (uint32_t at = 0; at < TEXT_BYTES; at += 4)
				exchange(&t, at, at + 2, 2);
			for (int i = 0; i < count && kind == PROCEDURES; i++)
				pdb_builder_procedure(&t.builder, BUILT_GPROC32, "f", 1, 0,
						      TEXT_BYTES);
			for (int i = 0; i < count && kind == LINES; i++)
				pdb_builder_lines(&t.builder, 1, 0, TEXT_BYTES, lines, 1);
			for (int i = 0; i < count && kind == CONTRIBUTIONS; i++)
				pdb_builder_contribution(&t.builder, 1, 0, TEXT_BYTES);
			assert_int_equal(rewrite(&t), count == 2 ? STATUS_OK
								 : STATUS_BAD_SYMBOLS);
			end(&t);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(procedures_and_publics_move),
		cmocka_unit_test(procedures_fall_apart),
		cmocka_unit_test(places_in_a_procedure_stay_in_it),
		cmocka_unit_test(only_padding_is_left_out),
		cmocka_unit_test(the_identity_is_the_relinked_images),
		cmocka_unit_test(the_index_is_sorted_anew),
		cmocka_unit_test(contributions_fall_apart),
		cmocka_unit_test(lines_follow_their_code),
		cmocka_unit_test(lines_of_the_old_form_are_counted_and_kept),
		cmocka_unit_test(ranges_that_are_cut_are_counted),
		cmocka_unit_test(unknown_contributions_are_not_guessed),
		cmocka_unit_test(lines_that_lie_are_refused),
		cmocka_unit_test(what_overlaps_too_often_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
