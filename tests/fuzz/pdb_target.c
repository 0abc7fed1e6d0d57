/* A PDB through all that reads PDBs, beside an image of one page of code.
 *
 * Promises: it is refused with a status and a message, or it is read; every symbol then
 * has a name and lies in the image's code, they ascend, and the names have no more bytes
 * than the file.  The same holds when it is written for an image of which two pieces have
 * changed places.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "one_page.h"
#include "layout/pdb_rewrite.h"
#include "symbols/pdb_symbols.h"

static void rewrite(const struct pdb *pdb, struct image *image)
{
	struct move moves[] = {{rva_of(0x1000), rva_of(0x1040), 0x28},
			       {rva_of(0x1040), rva_of(0x1000), 0x30}};
	struct output_file out = {.fd = open("/dev/null", O_WRONLY), .path = "null"};
	struct move_map map = {.moves = {moves, 2, 2}};
	struct pdb_report report;
	struct diag diag;
	enum status status;

	diag_init(&diag);
	one_page_holds(move_map_finish(&map, &diag) == STATUS_OK, "the map is one");
	status = pdb_rewrite(pdb, image, image, &map, &out, &report, &diag);
	if (status != STATUS_OK)
		fuzz_check_failure(status, &diag);
	close(out.fd);
	free(map.by_target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image = one_page_image();
	struct symbol_set set = {0};
	struct pdb pdb;
	struct diag diag;
	enum status status;

	diag_init(&diag);
	status = pdb_open_bytes(&pdb, data, size, &diag);
	if (status == STATUS_OK) {
		(void)pdb_check_image(&pdb, image, NULL);
		status = pdb_symbols_add(&pdb, image, &set, &diag);
		rewrite(&pdb, image);
		pdb_close(&pdb);
	}
	if (status != STATUS_OK)
		fuzz_check_failure(status, &diag);
	else
		one_page_check_set(&set, image, size);
	symbol_set_release(&set);
	return 0;
}
