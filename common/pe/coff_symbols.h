/* The COFF symbol table of mingw images (PE/COFF specification, "COFF Symbol
 * Table"). */
#ifndef APPULSE_PE_COFF_SYMBOLS_H
#define APPULSE_PE_COFF_SYMBOLS_H

#include "pe/image.h"

/* A symbol defined in a section. */
struct coff_symbol {
	const char *name;      /* in the image's bytes or its arena */
	struct rva rva;
	struct file_off value; /* of its Value field: bytes from its section's start */
	uint16_t section;      /* 1-based */
	uint8_t storage_class; /* IMAGE_SYM_CLASS_*: 2 external, 3 static, 6 label */
	bool is_function;      /* its type says function */
};

struct coff_symbols {
	struct coff_symbol *data; /* in the image's arena, ascending by RVA, then file order */
	uint32_t count;
};

/* Symbols of no section (absolute, debug, undefined) and those beyond their
 * section's end are left out.  MALFORMED when the table leaves the file or does
 * not stand behind all sections; a
 * single bad name is "?" instead. */
enum status coff_symbols_read(struct image *image, struct coff_symbols *ret_symbols,
			      struct diag *diag);

/* Whether PointerToSymbolTable leads behind the headers and all sections, where a
 * symbol table stands or, when it has no symbols, the names of sections. */
bool coff_symbols_present(const struct image *image);

#endif
