/* Export tables that nothing points at. */
#ifndef APPULSE_PE_SPARE_EXPORTS_H
#define APPULSE_PE_SPARE_EXPORTS_H

#include "pe/image.h"

struct spare_exports {
	struct rva begin;     /* of its directory */
	uint32_t size;        /* bytes, up to the end of its last name */
	struct rva addresses; /* RVAs, `count` of them */
	uint32_t count;
};

/* The first such table at or behind `from`; false when there is none.  `from` is moved
 * behind it.  Linear in what is passed over. */
bool spare_exports_next(const struct image *image, struct rva *from,
			struct spare_exports *ret_exports);

#endif
