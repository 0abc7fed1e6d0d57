#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "full_image.h"
#include "image_builder.h"
#include "layout/image_file.h"

enum { CHECKSUM = BUILT_OPTIONAL + 64, HEADERS_SIZE = BUILT_OPTIONAL + 60 };

/* What is written, and read again. */
struct emitted {
	uint8_t *bytes;
	size_t size;
	struct image image;
};

static void emit(struct image_file *file, struct emitted *e)
{
	struct diag diag;

	diag_init(&diag);
	assert_int_equal(image_file_emit(file, &e->bytes, &e->size, &diag), STATUS_OK);
	assert_int_equal(image_open_bytes(&e->image, e->bytes, e->size, "emitted", &diag),
			 STATUS_OK);
}

static void release(struct emitted *e)
{
	image_release(&e->image);
	free(e->bytes);
}

static void open_file(const struct image *image, struct image_file *file)
{
	assert_int_equal(image_file_init(file, image, NULL), STATUS_OK);
}

static enum status emit_status(struct image_file *file)
{
	uint8_t *bytes = NULL;
	size_t size;
	enum status status = image_file_emit(file, &bytes, &size, NULL);

	free(bytes);
	return status;
}

static enum status add(struct image_file *file, uint32_t size, struct rva *rva)
{
	return image_file_add_section(file, ".new", size, 0xab, BUILT_CODE, rva, NULL);
}

/* Every section of `was` is in `is` with the same bytes, at the same RVA, but for the
 * file offsets in the debug entries. */
static void assert_sections_kept(const struct image *was, const struct image *is)
{
	struct data_directory debug = was->directories[DIRECTORY_DEBUG];

	for (uint32_t i = 0; i < was->section_count; i++) {
		const struct section *a = &was->sections[i], *b = &is->sections[i];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->rva.v, b->rva.v);
		assert_int_equal(a->virtual_size, b->virtual_size);
		assert_int_equal(a->characteristics, b->characteristics);
		assert_true(b->raw_size >= a->raw_size);
		for (uint32_t at = 0; at < a->raw_size; at++) {
			uint32_t in_debug = a->rva.v + at - debug.rva.v;

			if (in_debug >= debug.size || in_debug % DEBUG_ENTRY_BYTES < 24)
				assert_int_equal(was->bytes[a->raw.v + at],
						 is->bytes[b->raw.v + at]);
		}
	}
}

/* 32-bit sums of 16-bit words, folded at the end, in another way than the writer's. */
static uint32_t naive_checksum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++) {
		uint32_t byte = i - CHECKSUM < 4 ? 0 : bytes[i];

		sum += i % 2 ? byte << 8 : byte;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum + (uint32_t)size;
}

static void nothing_edited_nothing_changed(void **state)
{
	struct full_image full;
	struct image image;
	struct image_file file;
	struct emitted e;
	uint32_t overlay;

	(void)state;
	full_image_make(&full);
	assert_int_equal(image_open_bytes(&image, full.bytes, full.size, "full", NULL),
			 STATUS_OK);
	open_file(&image, &file);
	emit(&file, &e);
	/* Only the signature has gone, with its directory, and the checksum is made new. */
	assert_true(file.had_certificate);
	assert_int_equal(e.size, full.size - 16);
	overlay = load_u32(e.bytes + CHECKSUM);
	assert_int_equal(overlay, naive_checksum(e.bytes, e.size));
	store_u32(e.bytes + CHECKSUM, load_u32(full.bytes + CHECKSUM));
	assert_int_equal(e.image.directories[DIRECTORY_CERTIFICATE].size, 0);
	memset(full.bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_CERTIFICATE, 0, 8);
	assert_memory_equal(e.bytes, full.bytes, e.size);
	release(&e);
	image_file_release(&file);
	image_release(&image);
	full_image_release(&full);
}

/* An image whose section table fills its headers up to the last byte: 3 rows up to
 * 0x200.  With code, a debug entry that points at data in the file, .bss, symbols. */
static void build_full_headers(struct built_image *built, uint32_t bss)
{
	struct image_builder b;
	struct rva data, debug;
	struct diag diag;

	image_builder_init(&b);
	b.header_rows = 3;
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x210);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	data = image_builder_put(&b, "debug data", 10);
	debug = (image_builder_align(&b, 4), image_builder_fill(&b, 0, 12));
	image_builder_u32(&b, 4); /* any kind */
	image_builder_u32(&b, 10);
	image_builder_u32(&b, data.v);
	image_builder_u32(&b, 0x200 + 0x400); /* behind the headers and .text */
	image_builder_directory(&b, DIRECTORY_DEBUG, debug, 28);
	image_builder_section(&b, ".bss", BUILT_DATA);
	image_builder_virtual_size(&b, bss);
	image_builder_symbol(&b, "symbol", 0, 1, 0x20, 2, 0);
	built_image_open(built, &b);
	diag = built->diag;
	assert_int_equal(diag.status, STATUS_OK);
	assert_int_equal(load_u32(built->bytes + HEADERS_SIZE), 0x200);
	image_builder_release(&b);
}

static void headers_grow_for_a_new_section(void **state)
{
	struct built_image built;
	struct image_file file;
	struct emitted e;
	const uint8_t *entry, *symbol;
	struct rva rva;

	(void)state;
	build_full_headers(&built, 0x12345);
	open_file(&built.image, &file);
	assert_int_equal(add(&file, 0x321, &rva), STATUS_OK);
	/* .bss begins at 0x3000. */
	assert_int_equal(rva.v, 0x16000);
	emit(&file, &e);
	assert_sections_kept(&built.image, &e.image);
	assert_int_equal(e.image.section_count, 4);
	assert_int_equal(e.image.headers.size_of_headers, 0x400);
	assert_int_equal(e.image.headers.size_of_image, 0x17000);
	assert_int_equal(e.image.sections[3].virtual_size, 0x321);
	assert_int_equal(e.image.sections[3].raw_size, 0x400);
	assert_int_equal(e.image.sections[3].characteristics, BUILT_CODE);
	for (uint32_t i = 0; i < 0x321; i++)
		assert_int_equal(image_bytes(&e.image, rva, 0x321)[i], 0xab);
	/* All that was 0x200 bytes further is pointed at anew. */
	entry = image_bytes(&e.image, e.image.directories[DIRECTORY_DEBUG].rva, 28);
	assert_memory_equal(e.bytes + load_u32(entry + 24), "debug data", 10);
	symbol = e.bytes + e.image.headers.symbol_table.v;
	assert_memory_equal(symbol, "symbol\0\0", 8);
	assert_int_equal(symbol - e.bytes, built.image.headers.symbol_table.v + 0x200 + 0x400);
	/* SizeOfCode grew by the new section. */
	assert_int_equal(load_u32(e.bytes + BUILT_OPTIONAL + 4),
			 load_u32(built.bytes + BUILT_OPTIONAL + 4) + 0x400);
	release(&e);
	image_file_release(&file);
	built_image_close(&built);
}

static void a_bound_import_table_makes_way(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct image_file file;
	struct emitted e;
	struct rva rva;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 16);
	b.directories[DIRECTORY_BOUND_IMPORT] =
		(struct data_directory){rva_of(BUILT_SECTIONS + 40), 32};
	built_image_open(&built, &b);
	memset(built.bytes + BUILT_SECTIONS + 40, 'b', 32);
	open_file(&built.image, &file);
	assert_int_equal(add(&file, 16, &rva), STATUS_OK);
	emit(&file, &e);
	assert_int_equal(e.image.directories[DIRECTORY_BOUND_IMPORT].size, 0);
	release(&e);
	image_file_release(&file);
	/* Anything else there is in the way. */
	open_file(&built.image, &file);
	file.directories[DIRECTORY_BOUND_IMPORT] = (struct data_directory){0};
	assert_int_equal(add(&file, 16, &rva), STATUS_OK);
	assert_int_equal(emit_status(&file), STATUS_NO_ROOM);
	image_file_release(&file);
	built_image_close(&built);
	image_builder_release(&b);
}

static void many_sections(struct built_image *built, uint32_t count)
{
	struct image_builder b;

	image_builder_init(&b);
	b.header_rows = count;
	for (uint32_t i = 0; i < count; i++) {
		image_builder_section(&b, ".s", BUILT_CONST);
		image_builder_fill(&b, (uint8_t)i, 4);
	}
	built_image_open(built, &b);
	assert_int_equal(built->status, STATUS_OK);
	image_builder_release(&b);
}

static void no_room_before_the_first_section(void **state)
{
	/* 92 rows end at 0x188 + 92 * 40 = 0xfe8, and the first section begins at 0x1000. */
	struct built_image built;
	struct image_file file;
	struct rva rva;

	(void)state;
	many_sections(&built, 92);
	assert_int_equal(built.image.sections[0].rva.v, 0x1000);
	open_file(&built.image, &file);
	assert_int_equal(emit_status(&file), STATUS_OK);
	assert_int_equal(add(&file, 1, &rva), STATUS_OK);
	assert_int_equal(emit_status(&file), STATUS_NO_ROOM);
	image_file_release(&file);
	built_image_close(&built);
}

static void no_more_than_96_sections(void **state)
{
	struct built_image built;
	struct image_file file;
	struct emitted e;
	struct rva rva;

	(void)state;
	many_sections(&built, 95);
	open_file(&built.image, &file);
	assert_int_equal(add(&file, 1, &rva), STATUS_OK);
	assert_int_equal(add(&file, 1, &rva), STATUS_NO_ROOM);
	emit(&file, &e);
	assert_int_equal(e.image.section_count, 96);
	assert_sections_kept(&built.image, &e.image);
	release(&e);
	image_file_release(&file);
	built_image_close(&built);
}

static void another_file_alignment(void **state)
{
	struct full_image full;
	struct image image;
	struct image_file file;
	struct emitted e;
	struct rva rva;

	(void)state;
	full_image_make(&full);
	assert_int_equal(image_open_bytes(&image, full.bytes, full.size, "full", NULL),
			 STATUS_OK);
	open_file(&image, &file);
	file.file_alignment = 4096;
	assert_int_equal(add(&file, 5000, &rva), STATUS_OK);
	emit(&file, &e);
	assert_sections_kept(&image, &e.image);
	assert_int_equal(e.image.headers.file_alignment, 4096);
	assert_int_equal(e.image.headers.size_of_headers % 4096, 0);
	for (uint32_t i = 0; i < e.image.section_count; i++) {
		assert_int_equal(e.image.sections[i].raw.v % 4096, 0);
		assert_int_equal(e.image.sections[i].raw_size % 4096, 0);
	}
	/* The overlay begins with the symbols and ends with what was appended. */
	assert_memory_equal(e.bytes + e.image.headers.symbol_table.v,
			    full.bytes + image.headers.symbol_table.v,
			    full.size - 16 - image.headers.symbol_table.v);
	release(&e);
	image_file_release(&file);
	image_release(&image);
	full_image_release(&full);
}

/* Such an image is mapped as one piece, so no byte may stand elsewhere in the file. */
static void low_alignment_allows_no_shift(void **state)
{
	struct image_builder b;
	struct built_image built;
	struct image_file file;
	struct emitted e;
	struct rva rva;

	(void)state;
	image_builder_init(&b);
	b.section_alignment = b.file_alignment = 0x20;
	b.header_rows = 3;
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x40);
	image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_fill(&b, 1, 0x30);
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	open_file(&built.image, &file);
	assert_int_equal(add(&file, 0x10, &rva), STATUS_OK);
	emit(&file, &e);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(e.image.sections[i].raw.v, e.image.sections[i].rva.v);
	release(&e);
	/* A fourth row makes the headers longer. */
	assert_int_equal(add(&file, 0x10, &rva), STATUS_OK);
	assert_int_equal(emit_status(&file), STATUS_NO_ROOM);
	image_file_release(&file);
	built_image_close(&built);
	/* Behind memory that the file does not have. */
	image_builder_virtual_size(&b, 0x100);
	built_image_open(&built, &b);
	open_file(&built.image, &file);
	assert_int_equal(emit_status(&file), STATUS_OK);
	assert_int_equal(add(&file, 0x10, &rva), STATUS_OK);
	assert_int_equal(emit_status(&file), STATUS_NO_ROOM);
	image_file_release(&file);
	built_image_close(&built);
	image_builder_release(&b);
}

static void bytes_are_found_by_rva(void **state)
{
	struct built_image built;
	struct image_file file;

	(void)state;
	build_full_headers(&built, 0x2000);
	open_file(&built.image, &file);
	/* .text has 0x400 bytes in the file, of which 0x210 are its virtual size. */
	assert_non_null(image_file_at(&file, rva_of(0x1000), 0x210));
	assert_int_equal(*image_file_at(&file, rva_of(0x120f), 1), 0xc3);
	assert_null(image_file_at(&file, rva_of(0x1210), 1));
	assert_null(image_file_at(&file, rva_of(0x1000), 0x401));
	assert_null(image_file_at(&file, rva_of(0x1fff), 2));
	/* .bss has no bytes to edit. */
	assert_null(image_file_at(&file, rva_of(0x3000), 1));
	assert_int_equal(image_file_section_at(&file, rva_of(0x3000)), 2);
	assert_int_equal(image_file_section_at(&file, rva_of(0x5000)), UINT32_MAX);
	/* The headers. */
	assert_memory_equal(image_file_at(&file, rva_of(0), 2), "MZ", 2);
	assert_non_null(image_file_at(&file, rva_of(0x1ff), 1));
	assert_null(image_file_at(&file, rva_of(0x1ff), 2));
	assert_null(image_file_at(&file, rva_of(0x200), 1));
	image_file_release(&file);
	built_image_close(&built);
}

static void bytes_are_found_by_old_offset(void **state)
{
	struct built_image built;
	struct image_file file;
	uint8_t *symbol;
	struct rva rva;

	(void)state;
	build_full_headers(&built, 0x2000);
	open_file(&built.image, &file);
	/* Also after the section that moves them was added. */
	assert_int_equal(add(&file, 1, &rva), STATUS_OK);
	symbol = image_file_at_offset(&file, built.image.headers.symbol_table, 18);
	assert_memory_equal(symbol, "symbol\0\0", 8);
	assert_null(image_file_at_offset(&file, built.image.headers.symbol_table, 19));
	assert_ptr_equal(image_file_at_offset(&file, file_off_of(0x204), 4),
			 image_file_at(&file, rva_of(0x1004), 4));
	assert_memory_equal(image_file_at_offset(&file, file_off_of(0), 2), "MZ", 2);
	assert_null(image_file_at_offset(&file, file_off_of(0x1fe), 4));
	assert_null(image_file_at_offset(&file, file_off_of((uint32_t)built.size), 1));
	image_file_release(&file);
	built_image_close(&built);
}

static void edits_are_emitted(void **state)
{
	struct built_image built;
	struct image_file file;
	struct emitted e;

	(void)state;
	build_full_headers(&built, 0x2000);
	open_file(&built.image, &file);
	*image_file_at(&file, rva_of(0x1007), 1) = 0x90;
	emit(&file, &e);
	assert_int_equal(*image_bytes(&e.image, rva_of(0x1007), 1), 0x90);
	assert_int_equal(*image_bytes(&built.image, rva_of(0x1007), 1), 0xc3);
	release(&e);
	image_file_release(&file);
	built_image_close(&built);
}

/* Files of all sizes modulo 4, full of words that carry. */
static void checksums_agree(void **state)
{
	struct built_image built;
	uint8_t *bytes;

	(void)state;
	build_full_headers(&built, 0x2000);
	bytes = malloc(built.size + 7);
	assert_non_null(bytes);
	memcpy(bytes, built.bytes, built.size);
	memset(bytes + built.size, 0xff, 7);
	for (size_t more = 0; more < 8; more++) {
		struct image image;
		struct image_file file;
		struct emitted e;

		assert_int_equal(image_open_bytes(&image, bytes, built.size + more, "odd",
						  NULL), STATUS_OK);
		open_file(&image, &file);
		memset(image_file_at(&file, rva_of(0x1000), 0x210), 0xff, 0x210);
		emit(&file, &e);
		assert_int_equal(e.size, built.size + more);
		assert_int_equal(load_u32(e.bytes + CHECKSUM),
				 naive_checksum(e.bytes, e.size));
		release(&e);
		image_file_release(&file);
		image_release(&image);
	}
	free(bytes);
	built_image_close(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_edited_nothing_changed),
		cmocka_unit_test(headers_grow_for_a_new_section),
		cmocka_unit_test(a_bound_import_table_makes_way),
		cmocka_unit_test(no_room_before_the_first_section),
		cmocka_unit_test(no_more_than_96_sections),
		cmocka_unit_test(another_file_alignment),
		cmocka_unit_test(low_alignment_allows_no_shift),
		cmocka_unit_test(bytes_are_found_by_rva),
		cmocka_unit_test(bytes_are_found_by_old_offset),
		cmocka_unit_test(edits_are_emitted),
		cmocka_unit_test(checksums_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
