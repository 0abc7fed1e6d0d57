/* Writes an MSF file with the streams of another, some of them replaced. */
#ifndef APPULSE_SYMBOLS_MSF_WRITE_H
#define APPULSE_SYMBOLS_MSF_WRITE_H

#include "symbols/msf.h"

/* What takes a stream's place. */
struct msf_replacement {
	uint8_t *bytes; /* heap; NULL: the stream stays as it is */
	uint32_t size;  /* bytes */
};

/* A stream's bytes in one piece, on the heap, owned by the caller; of an empty stream one
 * byte that does not count.  NULL when memory is out. */
uint8_t *msf_stream_copy(const struct msf *msf, uint32_t stream);

/* Appends the file to `out`.  `replacements` has one for each stream of `msf`; streams that
 * there are not stay so, and stream 0 is empty.  The same input gives the same bytes.  IO,
 * NO_MEMORY; BAD_SYMBOLS when a stream has no bytes for its size, NO_ROOM when the file would
 * get more blocks than it can count. */
enum status msf_write(const struct msf *msf, const struct msf_replacement *replacements,
		      struct output_file *out, struct diag *diag);

#endif
