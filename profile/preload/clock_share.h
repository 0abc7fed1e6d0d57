/* What the preloaded clock and the collector share: some memory.
 *
 * The collector writes which file is meant before it starts the command; the library, in
 * each of the command's processes, writes when it mapped that file and when it ended.
 * The environment variable names the file behind the memory. */
#ifndef APPULSE_PROFILE_CLOCK_SHARE_H
#define APPULSE_PROFILE_CLOCK_SHARE_H

#include <stdatomic.h>
#include <stdint.h>

#define CLOCK_SHARE_VARIABLE "APPULSE_CLOCK_SHARE"
#define CLOCK_SHARE_MAGIC 0x4b434c43u /* "CLCK" */

enum { CLOCK_PROCESSES = 64 };

/* A process that mapped the file, or read much of it. */
struct clock_process {
	uint32_t pid;
	_Atomic uint32_t whole;     /* 1: the whole file was in memory when it was mapped */
	_Atomic int64_t mapped_ns;  /* CLOCK_MONOTONIC, before the first mapping; 0: none */
	_Atomic int64_t ended_ns;   /* when the C library ended the process; 0: it did not */
	_Atomic uint64_t peak;      /* bytes resident at most, known at the end */
	_Atomic uint64_t read;      /* bytes of the file that came by read(2) and its like */
};

struct clock_share {
	uint32_t magic;
	uint32_t look;          /* whether to look what is in memory at a mapping */
	uint64_t device, inode; /* of the file, as fstat shows them */
	uint64_t size;          /* of the file, bytes */
	_Atomic uint32_t used;  /* processes; those beyond CLOCK_PROCESSES are not written */
	uint32_t unused;
	struct clock_process processes[CLOCK_PROCESSES];
};

#endif
