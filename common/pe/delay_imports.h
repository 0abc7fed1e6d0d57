/* Delay-load descriptors (PE/COFF specification, "Delay-Load Import Tables"). */
#ifndef APPULSE_PE_DELAY_IMPORTS_H
#define APPULSE_PE_DELAY_IMPORTS_H

#include "pe/image.h"

struct delay_import {
	const char *dll;      /* in the image's bytes */
	struct rva site;      /* of the descriptor */
	struct rva address_table, name_table; /* arrays of 64-bit words */
	struct rva bound_table, unload_table; /* 0 when absent */
	uint32_t count;       /* words in name_table before its zero, and in address_table */
};

struct delay_imports {
	struct delay_import *data; /* in the image's arena */
	uint32_t count;
};

/* MALFORMED when a table leaves the file's data; UNSUPPORTED for descriptors
 * with VAs instead of RVAs. */
enum status delay_imports_read(struct image *image, struct delay_imports *ret_imports,
			       struct diag *diag);

#endif
