/* The list of tools that Microsoft's linker leaves between the DOS stub and the PE
 * signature, the "Rich header". */
#ifndef APPULSE_PE_RICH_HEADER_H
#define APPULSE_PE_RICH_HEADER_H

#include "pe/image.h"

/* One row: so many objects were made by this tool. */
struct rich_entry {
	uint16_t product; /* what kind of tool, of which generation */
	uint16_t build;   /* the tool's build number */
	uint32_t count;   /* objects, or imported symbols of RICH_IMPORTS */
};

struct rich_header {
	const struct rich_entry *entries; /* in the image's arena, in file order */
	uint32_t count;                   /* 0: there is none */
	bool intact; /* the checksum over the DOS header and the rows is right */
};

/* What made the objects of a row. */
enum rich_tool {
	RICH_UNMARKED, /* an object of a tool that leaves no mark: any other compiler */
	RICH_IMPORTS,  /* imported symbols */
	RICH_C,
	RICH_CPP,
	RICH_LTCG_C, /* compiled at link time */
	RICH_LTCG_CPP,
	RICH_POGO_C, /* compiled at link time with a profile, or for one */
	RICH_POGO_CPP,
	RICH_ASSEMBLER,
	RICH_LINKER,
	RICH_RESOURCES,
	RICH_OTHER,
	RICH_TOOL_COUNT,
};

/* An image without the list, or with something else in its place, has count 0.
 * NO_MEMORY. */
enum status rich_header_read(struct image *image, struct rich_header *ret_rich,
			     struct diag *diag);

enum rich_tool rich_tool_of(uint16_t product);

#endif
