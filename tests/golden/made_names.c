/* Makes files that name functions of the image that `made_image plain` makes.
 *
 *     made_names KIND FILE
 *
 * A PDB of kind `pdb`; the same for another build (`other-pdb`), cut off (`cut-pdb`), with
 * places where no function begins (`wrong-pdb`), and with lines of the old form
 * (`lines-pdb`).  A linker map of kind `map`, and of
 * another build (`other-map`). */
#include <stdio.h>

#include "../unit/full_image.h"
#include "../unit/pdb_builder.h"
#include "base/file.h"

static void add_sections(struct pdb_builder *b, const struct full_image *f)
{
	uint32_t count = load_u16(f->bytes + BUILT_FILE_HEADER + FILE_HEADER_SECTION_COUNT);

	for (uint32_t i = 0; i < count; i++)
		pdb_builder_section(b, load_u32(f->bytes + BUILT_SECTIONS + 40 * i + 12));
}

/* Functions of the text, which is the first section. */
static uint8_t *make_pdb(const struct full_image *f, const char *kind, size_t *ret_size)
{
	uint32_t text = f->text.v;
	struct pdb_builder b;
	uint8_t *bytes;

	pdb_builder_init(&b, 512);
	memcpy(b.guid, "0123456789abcdef", 16);
	b.age = kind[0] == 'o' ? 2 : 1;
	add_sections(&b, f);
	pdb_builder_public(&b, "?entry@@YAHXZ", 1, f->entry.v - text, true);
	pdb_builder_procedure(&b, BUILT_GPROC32, "entry", 1, f->entry.v - text, 0x21);
	pdb_builder_procedure(&b, BUILT_LPROC32, "switches", 1, f->switches.v - text, 0x2c);
	pdb_builder_procedure(&b, BUILT_LPROC32, "by_another_name", 1, f->exported.v - text, 4);
	pdb_builder_procedure(&b, BUILT_LPROC32, "island", 1, f->island.v - text, 6);
	if (kind[0] == 'w') {
		pdb_builder_procedure(&b, BUILT_LPROC32, "in_an_instruction", 1,
				      f->entry.v - text + 1, 4);
		pdb_builder_procedure(&b, BUILT_LPROC32, "inside", 1, f->entry.v - text + 4, 4);
		pdb_builder_procedure(&b, BUILT_LPROC32, "too_short", 1,
				      f->switches.v - text, 1);
	}
	if (kind[0] == 'l')
		built_u32(&b.old_lines, 0);
	bytes = pdb_builder_finish(&b, ret_size);
	pdb_builder_release(&b);
	if (kind[0] == 'c')
		*ret_size /= 2;
	return bytes;
}

static uint8_t *make_map(const struct full_image *f, const char *kind, size_t *ret_size)
{
	uint32_t stamp = load_u32(f->bytes + BUILT_FILE_HEADER + 4) + (kind[0] == 'o');
	uint32_t entry = f->entry.v - f->text.v, tail = f->tail.v - f->text.v;
	char *text = NULL;

	*ret_size = (size_t)asprintf(
		&text,
		" full\n\n Timestamp is %08x (Thu Jan  1 00:00:00 1970)\n\n"
		" Preferred load address is %016llx\n\n"
		" Start         Length     Name                   Class\n"
		" 0001:00000000 00000100H .text                   CODE\n\n"
		"  Address         Publics by Value              Rva+Base     Lib:Object\n\n"
		" 0001:%08x       ?entry@@YAHXZ    %016llx f   full.obj\n\n"
		" entry point at        0001:%08x\n\n Static symbols\n\n"
		" 0001:%08x       ?tail@@YAHXZ     %016llx f   full.obj\n",
		stamp, (unsigned long long)BUILT_IMAGE_BASE, entry,
		(unsigned long long)BUILT_IMAGE_BASE + f->entry.v, entry, tail,
		(unsigned long long)BUILT_IMAGE_BASE + f->tail.v);
	return (uint8_t *)text;
}

int main(int argc, char **argv)
{
	struct full_image full;
	struct diag diag;
	uint8_t *bytes;
	size_t size;
	bool map;

	if (argc != 3)
		return 2;
	full_image_make(&full);
	map = strstr(argv[1], "map") != NULL;
	bytes = map ? make_map(&full, argv[1], &size) : make_pdb(&full, argv[1], &size);
	full_image_release(&full);
	diag_init(&diag);
	if (file_write(argv[2], bytes, size, true, &diag) != STATUS_OK) {
		fprintf(stderr, "made_names: %s\n", diag.message);
		return 1;
	}
	free(bytes);
	return 0;
}
