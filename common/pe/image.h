/* A PE image as it stands in its file.
 *
 * image_open maps the file read-only, validates its headers, and reads the
 * tables that have a fixed place.  Everything is then addressed by RVA.  All
 * that an image's tables point at is untrusted: use the checked accessors.
 *
 * Invariants once open: PE32+ for x86-64; sections ascend by RVA, do not
 * overlap in memory or in the file, and end inside size_of_image; the raw data
 * of each lies inside the file.
 */
#ifndef APPULSE_PE_IMAGE_H
#define APPULSE_PE_IMAGE_H

#include "base/address.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/sha256.h"
#include "pe/format.h"

/* One row of the section table (PE/COFF specification, "Section Table"). */
struct section {
	char name[9];             /* NUL-terminated; "/123" long names stay as they are */
	struct rva rva;           /* VirtualAddress */
	uint32_t virtual_size;    /* bytes in memory, never 0 (raw_size where the file says 0) */
	struct file_off raw;      /* PointerToRawData; 0 when raw_size is 0 */
	uint32_t raw_size;        /* bytes in the file */
	uint32_t characteristics; /* SECTION_* */
	struct file_off header;   /* of this row in the file; RVA and offset agree there */
};

struct data_directory {
	struct rva rva;
	uint32_t size; /* bytes */
};

/* One imported symbol. */
struct import {
	const char *dll;  /* as spelt in the image */
	const char *name; /* NULL when imported by ordinal */
	uint16_t ordinal; /* or the hint when there is a name */
	struct rva slot;  /* of its word in the import address table */
};

/* Header fields, named as in the specification. */
struct pe_headers {
	struct file_off pe;              /* of the "PE\0\0" signature */
	struct file_off optional;        /* of the optional header */
	struct file_off section_table;
	struct file_off directories;     /* of the first data directory */
	uint16_t machine;
	uint16_t characteristics;        /* IMAGE_FILE_* */
	uint32_t time_date_stamp;
	struct file_off symbol_table;    /* 0 when there is none */
	uint32_t symbol_count;
	uint64_t image_base;
	struct rva entry;                /* 0 when there is none */
	uint32_t section_alignment, file_alignment; /* bytes, powers of two */
	uint32_t size_of_image, size_of_headers;    /* bytes */
	uint32_t checksum;
	uint16_t subsystem, dll_characteristics;
	uint32_t directory_count;        /* at most DIRECTORY_COUNT */
};

struct image {
	struct arena arena;          /* owns all tables below */
	struct mapped_file file;     /* owned when opened by path */
	const uint8_t *bytes;        /* the file's bytes, borrowed from `file` or the caller */
	size_t size;                 /* bytes */
	const char *path;            /* for messages; never NULL */
	struct pe_headers headers;
	struct data_directory directories[DIRECTORY_COUNT]; /* zero where absent */
	struct section *sections;
	uint32_t section_count;
	struct import *imports;      /* in file order */
	uint32_t import_count;
};

/* Opens the image at `path`.  Statuses: IO, NO_MEMORY, NOT_PE, MACHINE,
 * MALFORMED, OVERLAP, UNSUPPORTED (a file beyond 4 GiB, names of imported DLLs
 * that LIEF does not read).  On failure nothing is owned. */
enum status image_open(struct image *image, const char *path, struct diag *diag);

/* As image_open for bytes in memory, which must outlive the image. */
enum status image_open_bytes(struct image *image, const void *bytes, size_t size,
			     const char *name, struct diag *diag);

/* Refuses what no tool of ours may touch: DOTNET, NATIVE_AOT, GO, PACKED, UNSUPPORTED
 * (CHPE and ARM64EC/X images), NO_RELOCATIONS (an image that says that its base
 * relocations are stripped, and has some). */
enum status image_check_supported(const struct image *image, struct diag *diag);

void image_release(struct image *image);

/* Whether base relocations say where the image holds addresses. */
bool image_has_relocations(const struct image *image);

/* Whether a loader may put the image elsewhere than at its preferred base: a DLL, or an
 * EXE that says so, unless it says that its relocations are stripped. */
bool image_may_lie_anywhere(const struct image *image);

/* The section that holds `rva`, or NULL (the headers are no section). */
const struct section *image_section_at(const struct image *image, struct rva rva);

/* `size` bytes at `rva` that the file holds, or NULL when any of them lies
 * outside the file's data (headers count as data).  Never crosses a section. */
const uint8_t *image_bytes(const struct image *image, struct rva rva, uint32_t size);

/* A reader over the file's data from `rva` to the end of its section (or of
 * the headers); empty and failed when there is none. */
struct reader image_reader(const struct image *image, struct rva rva);

/* A NUL-terminated string inside the file's data, or NULL; also NULL for one
 * of IMAGE_STRING_MAX bytes or more, so that a table of names that all lead to
 * one endless string cannot cost its square. */
enum { IMAGE_STRING_MAX = 0x8000 };
const char *image_string(const struct image *image, struct rva rva);

/* Whether `rva` lies in a section with the execute characteristic. */
bool image_is_code(const struct image *image, struct rva rva);

/* Whether `rva` lies in a section without the write characteristic. */
bool image_is_read_only(const struct image *image, struct rva rva);

/* Exclusive end in memory of a section: rva + virtual_size. */
static inline struct rva section_end(const struct section *section)
{
	return rva_add(section->rva, section->virtual_size);
}

#endif
