/* The container of a PDB: a file of blocks that holds numbered streams (LLVM's PDB
 * documentation, "The MSF File Format"; Microsoft's published sources, msf.cpp).
 *
 * A stream's blocks stand anywhere in the file, so a stream is read through a reader that
 * goes from block to block.  Nothing is copied but the directory, of 4 bytes a block.
 *
 * Invariants of an open file: every block of every stream lies in the file, and no block
 * belongs to two streams.  Stream 0, the directory of an earlier time, is empty.
 */
#ifndef APPULSE_SYMBOLS_MSF_H
#define APPULSE_SYMBOLS_MSF_H

#include "base/bytes.h"
#include "base/file.h"

/* A stream that there is not: of size 0 here, 0xffffffff in the file. */
struct msf_stream {
	uint32_t size;         /* bytes */
	const uint8_t *blocks; /* numbers of its blocks, 4 bytes each, in the directory */
};

struct msf {
	struct mapped_file file; /* owned when opened by path */
	const uint8_t *bytes;    /* borrowed from `file` or the caller */
	uint64_t size;           /* bytes of the file */
	uint32_t block_size;     /* bytes, a power of two */
	uint32_t block_count;
	uint8_t *directory;         /* owned: the directory's bytes in one piece */
	uint32_t directory_size;    /* bytes */
	struct msf_stream *streams; /* owned */
	uint32_t stream_count;
};

/* Opens the file at `path`.  BAD_SYMBOLS when it is no MSF file of version 7.00 or is
 * damaged; IO, NO_MEMORY.  On failure nothing is owned. */
enum status msf_open(struct msf *msf, const char *path, struct diag *diag);

/* As msf_open for bytes in memory, which must outlive it. */
enum status msf_open_bytes(struct msf *msf, const void *bytes, uint64_t size,
			   struct diag *diag);
void msf_close(struct msf *msf);

/* Reads a stream from begin to end, or from any place, with a sticky error as struct
 * reader has. */
struct msf_reader {
	const struct msf *msf;
	struct msf_stream stream;
	uint32_t pos; /* bytes from the stream's begin, at most its size */
	uint32_t end; /* where reading ends, at most the stream's size */
	bool failed;  /* sticky: more was asked for than there is */
};

/* Of a stream that there is not: an empty one. */
struct msf_reader msf_reader_of(const struct msf *msf, uint32_t stream);

/* Copies the next `size` bytes to `to`; zeros, and failed, when there are fewer. */
void msf_read(struct msf_reader *r, void *to, uint32_t size);
void msf_skip(struct msf_reader *r, uint32_t size);

/* Goes to a place of the stream. */
void msf_seek(struct msf_reader *r, uint32_t pos);

/* Gives what was read of a mapped file back to the page cache: a big file that is read once
 * from begin to end need not be in memory as a whole. */
void msf_forget(const struct msf *msf);

uint16_t msf_read_u16(struct msf_reader *r);
uint32_t msf_read_u32(struct msf_reader *r);

static inline uint32_t msf_left(const struct msf_reader *r)
{
	return r->failed ? 0 : r->end - r->pos;
}

#endif
