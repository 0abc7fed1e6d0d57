/* Thread local storage: the callbacks (PE/COFF specification, "The .tls Section"). */
#ifndef APPULSE_PE_TLS_H
#define APPULSE_PE_TLS_H

#include "pe/image.h"

struct tls_callback {
	struct rva target; /* the function */
	struct rva site;   /* of the 64-bit word that holds its VA */
};

struct tls {
	struct tls_callback *callbacks; /* in the image's arena */
	uint32_t count;
	struct rva data_begin, data_end; /* the template; both 0 when there is none */
};

/* MALFORMED when the directory or its callback array leaves the file's data. */
enum status tls_read(struct image *image, struct tls *ret_tls, struct diag *diag);

#endif
