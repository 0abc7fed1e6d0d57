/* Makes small images for the sessions: the one of tests/unit/full_image.h, which has one
 * of everything that points at code, and what the tools refuse.
 *
 *     made_image KIND FILE
 *
 * Signed with its kind `signed`; of kind `plain` without the signature.  The others are
 * the plain one with what their name says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/full_image.h"
#include "base/file.h"

enum { TEXT = 0x1000 };

struct made {
	uint8_t *bytes; /* owned */
	size_t size;
};

static void remove_signature(struct made *m)
{
	uint8_t *row = m->bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_CERTIFICATE;

	m->size = load_u32(row);
	memset(row, 0, 8);
}

static void set_directory(struct made *m, uint32_t index, uint32_t rva, uint32_t size)
{
	store_u32(m->bytes + BUILT_DIRECTORIES + 8 * index, rva);
	store_u32(m->bytes + BUILT_DIRECTORIES + 8 * index + 4, size);
}

static void make_dotnet(struct made *m)
{
	set_directory(m, DIRECTORY_CLR, 0x2000, 72);
}

static void make_go(struct made *m)
{
	memcpy(m->bytes + full_offset(m->bytes, rva_of(TEXT)), "\xff Go build ID: \"", 16);
}

static void make_packed(struct made *m)
{
	store_u32(m->bytes + BUILT_SECTIONS + SECTION_CHARACTERISTICS,
		  BUILT_CODE | SECTION_WRITE);
}

/* The flag and the table contradict each other. */
static void make_stripped(struct made *m)
{
	uint8_t *flags = m->bytes + BUILT_FILE_HEADER + FILE_HEADER_CHARACTERISTICS;

	store_u16(flags, load_u16(flags) | FILE_RELOCS_STRIPPED);
}

static void make_fixed(struct made *m)
{
	make_stripped(m);
	set_directory(m, DIRECTORY_RELOCATION, 0, 0);
}

static void make_arm(struct made *m)
{
	store_u16(m->bytes + BUILT_FILE_HEADER, 0xaa64);
}

/* As a kernel-mode DLL, which may carry any subsystem. */
static void make_driver(struct made *m)
{
	memcpy(memmem(m->bytes, m->size, "kernel.dll", 10), "device.sys", 10);
}

static void make_native(struct made *m)
{
	store_u16(m->bytes + BUILT_OPTIONAL + OPTIONAL_SUBSYSTEM, 1);
}

static void make_boot(struct made *m)
{
	store_u16(m->bytes + BUILT_OPTIONAL + OPTIONAL_SUBSYSTEM, 16);
}

static void make_overlapping(struct made *m)
{
	store_u32(m->bytes + BUILT_SECTIONS + SECTION_VIRTUAL_SIZE, 0x1800);
}

static void make_cut(struct made *m)
{
	m->size /= 2;
}

/* Something stands where rows of the section table would go. */
static void make_crowded(struct made *m)
{
	uint32_t sections = load_u16(m->bytes + BUILT_FILE_HEADER + FILE_HEADER_SECTION_COUNT);

	memset(m->bytes + BUILT_SECTIONS + 40 * sections, 'x', 16);
}

/* Nothing leads into its code: no entry, no exports, one word to relocate. */
static void make_idle(struct made *m)
{
	struct image_builder b;
	struct rva data, table;

	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_put(&b, "\x31\xc0\xc3", 3);
	data = image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_va(&b, data);
	table = image_builder_section(&b, ".reloc", BUILT_CONST);
	image_builder_u32(&b, data.v);
	image_builder_u32(&b, 12);
	image_builder_u32(&b, RELOC_DIR64 << 12);
	image_builder_directory(&b, DIRECTORY_RELOCATION, table, 12);
	free(m->bytes);
	m->bytes = image_builder_finish(&b, &m->size);
	image_builder_release(&b);
}

/* Two bytes of no instruction in the padding behind a function. */
static void make_unclear(struct made *m)
{
	uint8_t *text = m->bytes + full_offset(m->bytes, rva_of(TEXT));
	uint8_t *island = memmem(text, 0x200, "\xb8\x77\0\0\0\xc3\xcc", 7);

	memcpy(island + 8, "\x06\x06", 2);
}

/* The signature is said to begin in a section's data. */
static void make_oversigned(struct made *m)
{
	uint32_t data = full_offset(m->bytes, rva_of(TEXT));

	set_directory(m, DIRECTORY_CERTIFICATE, data, (uint32_t)m->size - data);
}

/* The first relocated word, a pointer, leads to where a new section would stand. */
static void make_behind(struct made *m)
{
	uint32_t size_of_image = load_u32(m->bytes + BUILT_OPTIONAL + OPTIONAL_SIZE_OF_IMAGE);
	const uint8_t *row = m->bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_RELOCATION;
	const uint8_t *block = m->bytes + full_offset(m->bytes, rva_of(load_u32(row)));
	struct rva word = rva_of(load_u32(block) + (load_u16(block + 8) & 0xfff));

	store_u64(m->bytes + full_offset(m->bytes, word),
		  BUILT_IMAGE_BASE + size_of_image + 1);
}

static void make_plain(struct made *m)
{
	(void)m;
}

static const struct {
	const char *name;
	void (*make)(struct made *made);
} kinds[] = {
	{"plain", make_plain},     {"dotnet", make_dotnet},
	{"go", make_go},           {"packed", make_packed},
	{"stripped", make_stripped}, {"fixed", make_fixed},
	{"arm", make_arm},         {"driver", make_driver},
	{"overlapping", make_overlapping},
	{"native", make_native},   {"boot", make_boot},
	{"cut", make_cut},         {"crowded", make_crowded},
	{"idle", make_idle},       {"unclear", make_unclear},
	{"oversigned", make_oversigned}, {"behind", make_behind},
};

static void write_made(const struct made *made, const char *path)
{
	struct diag diag;

	if (file_write(path, made->bytes, made->size, true, &diag) != STATUS_OK) {
		fprintf(stderr, "made_image: %s\n", diag.message);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct full_image full;
	struct made made;

	full_image_make(&full);
	made = (struct made){full.bytes, full.size};
	if (argc == 3 && strcmp(argv[1], "signed") == 0) {
		write_made(&made, argv[2]);
		free(made.bytes);
		return 0;
	}
	remove_signature(&made);
	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		kinds[i].make(&made);
		write_made(&made, argv[2]);
		free(made.bytes);
		return 0;
	}
	fprintf(stderr, "made_image: wrong usage\n");
	free(made.bytes);
	return 2;
}
