/* Text with addresses in it, such as a stack of a crash report: rewrites module+0xRVA. */
#ifndef APPULSE_REORDER_ADDRESS_FILTER_H
#define APPULSE_REORDER_ADDRESS_FILTER_H

#include <stdio.h>

#include "layout/map_file.h"

struct address_filter {
	const struct move_map *map; /* borrowed */
	const char *module;         /* borrowed; "app.dll": text says app or app.dll, in
				     * whatever case */
	bool back;                  /* from the relinked image to the original */

	/* Counts, of addresses of the module. */
	uint64_t translated; /* they may be what they were */
	uint64_t gone;       /* where code has moved away and none has come; and what is no
			      * RVA of 32 bits: both are left as they are */
};

/* Writes the `size` bytes of a line to `out`, with its addresses translated.  An address is
 * the module's name, with or without its extension, with no letter, digit, '_', '-' or '.'
 * before it, and "+0x" and hexadecimal digits behind; as many digits are written as there
 * were, more if it needs more.  All other bytes stay.  Errors are left in `out`. */
void address_filter_line(struct address_filter *filter, const char *line, size_t size,
			 FILE *out);

#endif
