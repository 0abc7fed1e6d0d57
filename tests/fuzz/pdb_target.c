/* A PDB through all that reads PDBs, beside an image of one page of code.
 *
 * Promises: it is refused with a status and a message, or it is read; every symbol then
 * has a name and lies in the image's code, they ascend, and the names have no more bytes
 * than the file.
 */
#include "fuzz_target.h"
#include "one_page.h"
#include "symbols/pdb_symbols.h"

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
		pdb_close(&pdb);
	}
	if (status != STATUS_OK)
		fuzz_check_failure(status, &diag);
	else
		one_page_check_set(&set, image, size);
	symbol_set_release(&set);
	return 0;
}
