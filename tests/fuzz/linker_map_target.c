/* A linker map through its reader, beside an image of one page of code.
 *
 * Promises: it is refused with a status and a message, or it is read; every symbol then
 * has a name and lies in the image's code, and the names have no more bytes than the
 * file.
 */
#include <string.h>

#include "fuzz_target.h"
#include "one_page.h"
#include "symbols/linker_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image = one_page_image();
	struct symbol_set set = {0};
	struct diag diag;
	enum status status;

	diag_init(&diag);
	status = linker_map_add(data, size, image, &set, &diag);
	if (status != STATUS_OK)
		fuzz_check_failure(status, &diag);
	else
		one_page_check_set(&set, image, size);
	symbol_set_release(&set);
	return 0;
}
