/* The debug directory (PE/COFF specification, "The .debug Section"). */
#ifndef APPULSE_PE_DEBUG_DIRECTORY_H
#define APPULSE_PE_DEBUG_DIRECTORY_H

#include "pe/image.h"

enum { DEBUG_TYPE_CODEVIEW = 2, DEBUG_TYPE_POGO = 13, DEBUG_TYPE_REPRO = 16 };

struct debug_entry {
	uint32_t type;
	uint32_t size;              /* bytes of its data */
	struct rva data;            /* 0 when the data is not mapped */
	struct file_off data_off;   /* PointerToRawData */
	struct file_off header;     /* of this entry in the file */
	struct rva guid;            /* CodeView RSDS only: of the 16-byte GUID; else 0 */
};

struct debug_directory {
	struct debug_entry *data; /* in the image's arena */
	uint32_t count;
};

/* MALFORMED when the directory or an entry's data leaves the file. */
enum status debug_directory_read(struct image *image, struct debug_directory *ret_debug,
				 struct diag *diag);

/* Whether the RVA and the file offset of the entry's data lead to the same bytes. */
bool debug_entry_agrees(const struct image *image, const struct debug_entry *entry);

#endif
