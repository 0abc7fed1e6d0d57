/* Makes small PE32+ images in memory, for tests.
 *
 *     struct image_builder b;
 *     image_builder_init(&b);
 *     image_builder_section(&b, ".text", BUILT_CODE);
 *     struct rva f = image_builder_put(&b, "\xc3", 1);
 *     image_builder_section(&b, ".pdata", BUILT_CONST);
 *     struct rva rows = image_builder_u32(&b, f.v);
 *     ...
 *     image_builder_directory(&b, DIRECTORY_EXCEPTION, rows, 12);
 *     bytes = image_builder_finish(&b, &size);     free(bytes) later
 *     image_builder_release(&b);
 *
 * Sections are filled one after the other: what is put goes to the end of the
 * last one, and a new one begins at the next multiple of the section alignment.
 * A value that is known only later is patched through image_builder_at.  All
 * functions end the program when memory is out.
 *
 * The builder shares no code with the readers in pe/; it knows the layout of
 * the headers by itself.
 */
#ifndef APPULSE_TESTS_IMAGE_BUILDER_H
#define APPULSE_TESTS_IMAGE_BUILDER_H

#include "base/address.h"
#include "base/vec.h"
#include "pe/image.h"

enum {
	BUILT_CODE = 0x60000020,  /* code, execute, read */
	BUILT_CONST = 0x40000040, /* initialized data, read */
};
#define BUILT_DATA 0xc0000040u /* initialized data, read, write */

/* Where finished files have their headers. */
enum {
	BUILT_PE = 0x80,                   /* of "PE\0\0" */
	BUILT_FILE_HEADER = BUILT_PE + 4,  /* 20 bytes */
	BUILT_OPTIONAL = BUILT_PE + 24,    /* 240 bytes */
	BUILT_DIRECTORIES = BUILT_OPTIONAL + 112,
	BUILT_SECTIONS = BUILT_OPTIONAL + 240, /* rows of 40 bytes */
	BUILT_SECTION_MAX = 96,
	BUILT_HEADER_ROWS = 16, /* of the section table, unless `header_rows` says more */
};
#define BUILT_IMAGE_BASE 0x180000000u

struct built_section {
	char name[9];
	struct rva rva;
	uint32_t virtual_size; /* 0: as many bytes as were put, 1 if none was */
	uint32_t characteristics;
	VEC(uint8_t) bytes;
};

/* The public fields may be changed before image_builder_finish. */
struct image_builder {
	uint64_t image_base;
	uint32_t section_alignment, file_alignment; /* set before the first section */
	uint32_t header_rows; /* sections that the headers have room for; set before too */
	uint16_t machine;
	uint16_t characteristics; /* of the file: a DLL unless changed */
	struct rva entry;
	struct data_directory directories[DIRECTORY_COUNT];
	struct built_section sections[BUILT_SECTION_MAX];
	uint32_t section_count;
	uint32_t symbol_count; /* rows of 18 bytes at the start of `symbols` */
	VEC(uint8_t) symbols;  /* the symbol table and its string table */
};

void image_builder_init(struct image_builder *b);
void image_builder_release(struct image_builder *b);

/* Begins a section; gives its RVA. */
struct rva image_builder_section(struct image_builder *b, const char *name,
				 uint32_t characteristics);

/* The RVA of what is put next. */
struct rva image_builder_here(const struct image_builder *b);

/* Each puts something at the end of the last section and gives its RVA. */
struct rva image_builder_put(struct image_builder *b, const void *data, size_t size);
struct rva image_builder_fill(struct image_builder *b, uint8_t byte, size_t count);
struct rva image_builder_u16(struct image_builder *b, uint16_t v);
struct rva image_builder_u32(struct image_builder *b, uint32_t v);
struct rva image_builder_u64(struct image_builder *b, uint64_t v);
struct rva image_builder_va(struct image_builder *b, struct rva rva);
struct rva image_builder_string(struct image_builder *b, const char *text);

/* Puts zeros up to the next multiple of `alignment`; gives the RVA behind. */
struct rva image_builder_align(struct image_builder *b, uint32_t alignment);

/* What was put at `rva`, for a patch; valid until more is put. */
uint8_t *image_builder_at(struct image_builder *b, struct rva rva);

/* The size in memory of the last section, when it is not what was put. */
void image_builder_virtual_size(struct image_builder *b, uint32_t size);

void image_builder_directory(struct image_builder *b, uint32_t index, struct rva rva,
			     uint32_t size);

/* Appends a row to the symbol table: a name of at most 8 bytes, a section
 * number from 1 on.  All rows come before the string table, which the caller
 * may append to `symbols`. */
void image_builder_symbol(struct image_builder *b, const char *name, uint32_t value,
			  uint16_t section, uint16_t type, uint8_t storage_class,
			  uint8_t aux_count);

/* The file, on the heap, owned by the caller. */
uint8_t *image_builder_finish(const struct image_builder *b, size_t *ret_size);

/* A finished file, opened. */
struct built_image {
	uint8_t *bytes; /* owned */
	size_t size;
	struct image image; /* valid when `status` is STATUS_OK */
	enum status status;
	struct diag diag;
};

/* Finishes and opens what `b` has; `b` may be changed and opened again. */
void built_image_open(struct built_image *built, const struct image_builder *b);
void built_image_close(struct built_image *built);

#endif
