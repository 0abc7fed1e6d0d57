/* The export table (PE/COFF specification, "The .edata Section"). */
#ifndef APPULSE_PE_EXPORTS_H
#define APPULSE_PE_EXPORTS_H

#include "pe/image.h"

struct export_entry {
	uint32_t ordinal;      /* biased: as callers use it */
	const char *name;      /* the first name, in the image's bytes; NULL without one */
	struct rva target;     /* where it leads; of the string when a forwarder */
	struct rva site;       /* of its word in the export address table */
	const char *forwarder; /* "DLL.Name", or NULL */
};

struct exports {
	const char *dll_name;      /* NULL when there is no table */
	struct export_entry *data; /* in the image's arena, in table order, empty slots left out */
	uint32_t count;
};

/* MALFORMED when a table or a string leaves the file's data. */
enum status exports_read(struct image *image, struct exports *ret_exports, struct diag *diag);

#endif
