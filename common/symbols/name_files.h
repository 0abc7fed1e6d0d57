/* The files beside an image that name its functions, as the command line says them. */
#ifndef APPULSE_SYMBOLS_NAME_FILES_H
#define APPULSE_SYMBOLS_NAME_FILES_H

#include "symbols/symbol_set.h"

/* Paths, borrowed; NULL: there is none. */
struct name_files {
	const char *pdb;
	const char *linker_map;
};

enum { NAME_FILES = 2 };

/* What they gave. */
struct file_names {
	struct symbol_set set;           /* finished; that of the PDB comes first */
	struct diag refused[NAME_FILES]; /* why a file was not used: it belongs to another
					  * image, or cannot be used for this one */
	uint32_t refused_count;
	uint32_t used_count; /* files that were used */
};

/* Reads the files that there are.  One that belongs to another image is noted and no
 * failure.  BAD_SYMBOLS for a damaged one; IO, NO_MEMORY.  On failure nothing is owned. */
enum status file_names_read(struct file_names *names, const struct name_files *files,
			    struct image *image, struct diag *diag);

/* Fine for names of zero bytes. */
void file_names_release(struct file_names *names);

#endif
