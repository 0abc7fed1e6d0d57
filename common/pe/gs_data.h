/* What __GSHandlerCheck and its kin find behind their other data: where the frame
 * keeps its security cookie.  One word, its low three bits flags (1 and 2: for which
 * phases the other data is, 4: the frame is aligned), the others an offset from the
 * establisher frame; with the third flag two words more (observed: MSVC 2015 to 2022).
 * Nothing in it is an address. */
#ifndef APPULSE_PE_GS_DATA_H
#define APPULSE_PE_GS_DATA_H

#include "pe/image.h"

struct gs_data {
	uint32_t offset; /* of the cookie, bytes */
	uint32_t size;   /* bytes of the data */
	bool aligned;
};

/* MALFORMED when it is cut off, or its alignment is no power of two. */
enum status gs_data_read(const struct image *image, struct rva data,
			 struct gs_data *ret_data, struct diag *diag);

#endif
