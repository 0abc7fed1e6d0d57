/* A program database: what Microsoft's linker and lld write beside an image (LLVM's PDB
 * documentation; Microsoft's published sources, pdb.h, dbi.h, cvinfo.h).
 *
 * Opening reads two streams: which image the file belongs to, and what it has.  Symbols
 * are read by pdb_symbols.h.
 */
#ifndef APPULSE_SYMBOLS_PDB_H
#define APPULSE_SYMBOLS_PDB_H

#include "base/vec.h"
#include "pe/codeview.h"
#include "symbols/msf.h"

enum { PDB_NO_STREAM = 0xffff };

/* An object file that was linked, in the DBI stream. */
struct pdb_module {
	uint16_t stream;       /* of its symbols and lines, or PDB_NO_STREAM */
	uint32_t symbol_bytes; /* at the stream's begin, with the signature */
	uint32_t c11_bytes;    /* behind them: lines of an old form */
	uint32_t c13_bytes;    /* behind these: lines */
	uint32_t place;        /* of its row: bytes from the DBI stream's begin */
};

struct pdb {
	struct msf msf;
	char guid[CODEVIEW_GUID_TEXT];
	uint32_t age; /* of the DBI stream, which is what the image's age is compared to */
	VEC(struct pdb_module) modules;
	uint16_t publics, records; /* streams: the index of public symbols, and all records
				    * of global symbols; or PDB_NO_STREAM */
	uint16_t sections; /* stream: section headers of the image, or PDB_NO_STREAM */
	bool translated;   /* addresses are those of before a rearrangement (OMAP) */
};

/* Opens the file at `path`.  BAD_SYMBOLS when it is no PDB, damaged, or for another machine
 * than x86-64; IO, NO_MEMORY.  On failure nothing is owned. */
enum status pdb_open(struct pdb *pdb, const char *path, struct diag *diag);

/* As pdb_open for bytes in memory, which must outlive it. */
enum status pdb_open_bytes(struct pdb *pdb, const void *bytes, uint64_t size,
			   struct diag *diag);
void pdb_close(struct pdb *pdb);

/* OTHER_IMAGE when the PDB does not belong to the image: other GUID or age, or other
 * sections; UNSUPPORTED when it belongs, and its addresses are those of before a
 * rearrangement. */
enum status pdb_check_image(const struct pdb *pdb, struct image *image, struct diag *diag);

#endif
