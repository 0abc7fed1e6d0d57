/* A PDB through all that reads PDBs, beside an image of one page of code.
 *
 * Promises: it is refused with a status and a message, or it is read; every symbol then
 * has a name and lies in the image's code, they ascend, and the names have no more bytes
 * than the file.
 */
#include <string.h>

#include "fuzz_target.h"
#include "image_builder.h"
#include "symbols/pdb_symbols.h"

static void check(bool holds, const char *promise)
{
	if (!holds)
		fuzz_fail(promise, NULL);
}

/* One image for all inputs. */
static struct image *image_of_one_page(void)
{
	static struct built_image built;
	struct image_builder b;

	if (built.bytes)
		return &built.image;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x1000);
	built_image_open(&built, &b);
	image_builder_release(&b);
	check(built.status == STATUS_OK, "the image is read");
	return &built.image;
}

static void check_set(const struct symbol_set *set, const struct image *image, size_t size)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < set->symbols.len; i++) {
		const struct symbol *s = &set->symbols.data[i];

		bytes += strlen(s->name);
		check(s->name[0] != '\0', "a symbol has a name");
		check(image_is_code(image, s->rva), "a symbol lies in code");
		check(i == 0 || s[-1].rva.v <= s->rva.v, "symbols ascend");
	}
	check(bytes <= size, "names come from the file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image = image_of_one_page();
	struct symbol_set set = {0};
	struct pdb pdb;
	struct diag diag;
	enum status status;

	diag_init(&diag);
	status = pdb_open_bytes(&pdb, data, size, &diag);
	if (status == STATUS_OK) {
		(void)pdb_check_image(&pdb, image, NULL);
		status = pdb_symbols_add(&pdb, image, &set, &diag);
		pdb_close(&pdb);
	}
	if (status != STATUS_OK) {
		fuzz_check_failure(status, &diag);
	} else {
		check(symbol_set_finish(&set), "there is memory");
		check_set(&set, image, size);
	}
	symbol_set_release(&set);
	return 0;
}
