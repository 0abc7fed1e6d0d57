/* The layout of a trace file, for the agent that writes it inside the traced
 * process and for the host that reads it.
 *
 * One file holds the first touches of one image in one process.  The agent
 * makes it at its full size, maps it shared and stores straight into the map,
 * so whatever moment the process is killed at, all that was stored is in the
 * file.  All fields are little-endian.  The parts follow each other:
 *
 *     0                                   struct trace_header
 *     sizeof(struct trace_header)         the executable's path, then zeros
 *     header_size                         struct trace_record[capacity]
 *     header_size + capacity * 24         uint8_t[capacity], a claim for each probe
 *
 * Nothing follows: the file's size is trace_file_size().
 *
 * What a kill can leave behind, and how it is told from damage:
 * - no bytes, or a magic of 0 with the rest in any state: the process ended
 *   before the header was done.  An empty trace, nothing was recorded.
 * - a record below `next` with an RVA of 0: claimed and not stored.
 * - a claim without a record: the process ended before it took its record.
 *
 * This header is compiled for the host and for Windows and includes nothing but
 * stdint.h.
 */
#ifndef APPULSE_TRACE_FORMAT_H
#define APPULSE_TRACE_FORMAT_H

#include <stdint.h>

#define TRACE_MAGIC 0x3145434152545041ull /* the bytes "APTRACE1" */

/* What the names of trace files end in; a folder may hold other files. */
#define TRACE_FILE_SUFFIX ".aptrace"

enum {
	TRACE_VERSION = 1,
	TRACE_HASH_BYTES = 32,
	TRACE_NAME_BYTES = 64,
	TRACE_ALIGNMENT = 64,          /* of header_size */
	TRACE_MAX_PATH_BYTES = 98304,  /* of the executable's path: 32,767 UTF-16 units */
	TRACE_MAX_PROBES = 1 << 24,    /* above any real image; bounds a reader */
};

struct trace_header {
	uint64_t magic;         /* TRACE_MAGIC; stored last, 0 until then */
	uint32_t version;       /* TRACE_VERSION */
	uint32_t header_size;   /* file offset of the first record; a multiple of 64 */
	uint32_t record_size;   /* sizeof(struct trace_record) */
	uint32_t capacity;      /* the image's probes: 1 to TRACE_MAX_PROBES */
	uint32_t next;          /* records claimed, at most capacity; grows atomically */
	uint32_t process;       /* the process's id */
	uint32_t parent;        /* its parent's id; 0: unknown */
	uint32_t path_size;     /* bytes of the executable's path, without NUL */
	uint64_t process_start; /* FILETIME: 100 ns since 1601-01-01 UTC */
	uint64_t opened;        /* FILETIME at which the file was made ... */
	uint64_t opened_ticks;  /* ... and the performance counter at that moment */
	uint64_t frequency;     /* performance counter ticks a second */
	uint8_t image_hash[TRACE_HASH_BYTES]; /* SHA-256 of the original image file */
	char image_name[TRACE_NAME_BYTES];    /* its file name, UTF-8, NUL-terminated */
	uint8_t reserved[88];   /* 0 */
};

/* One first touch.  `rva` is stored last, in release order. */
struct trace_record {
	uint32_t rva;    /* the function's, in the original image; 0: not complete */
	uint32_t thread; /* the id of the thread that touched it */
	uint64_t seq;    /* counts the touches of all images of the process from 1 */
	uint64_t ticks;  /* the performance counter */
};

_Static_assert(sizeof(struct trace_header) == 256, "the header's size is in every file");
_Static_assert(sizeof(struct trace_record) == 24, "the record's size is in every file");

/* File offset of the first record for an executable's path of `path_size`
 * bytes, which is at most TRACE_MAX_PATH_BYTES. */
static inline uint32_t trace_header_size(uint32_t path_size)
{
	uint32_t size = (uint32_t)sizeof(struct trace_header) + path_size;

	return (size + TRACE_ALIGNMENT - 1) & ~(uint32_t)(TRACE_ALIGNMENT - 1);
}

/* Bytes of the whole file. */
static inline uint64_t trace_file_size(uint32_t header_size, uint32_t capacity)
{
	return header_size + (uint64_t)capacity * (sizeof(struct trace_record) + 1);
}

#endif
