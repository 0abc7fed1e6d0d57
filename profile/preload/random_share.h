/* What the preloaded library and the collector share: some pages of memory.
 *
 * The collector writes which files are meant before it starts the command; the
 * library, in each of the command's processes, counts how often it saw one mapped and
 * writes which of its pages were touched.  The environment variable names the file
 * behind the memory, whose size is all that is shared. */
#ifndef APPULSE_PROFILE_RANDOM_SHARE_H
#define APPULSE_PROFILE_RANDOM_SHARE_H

#include <stdatomic.h>
#include <stdint.h>

#define RANDOM_SHARE_VARIABLE "APPULSE_RANDOM_SHARE"
#define RANDOM_SHARE_MAGIC 0x52534150u /* "PASR" */

enum { RANDOM_SHARE_FILES = 64 };

struct random_file {
	uint64_t device, inode;    /* as fstat shows them */
	uint32_t pages;            /* of the file, that count */
	uint32_t touched_at;       /* where the bits of touched pages are, one for each,
				    * in bytes from the start of what is shared */
	_Atomic uint32_t evicted;  /* 1 once a process has begun to evict it */
	_Atomic uint32_t mappings; /* that are marked by now */
};

struct random_share {
	uint32_t magic;
	uint32_t count;
	uint32_t evict;           /* whether the first mapping evicts what was read before */
	_Atomic uint32_t tracked; /* mappings whose touched pages are to come */
	_Atomic uint32_t missed;  /* mappings whose touched pages cannot be told */
	uint32_t unused;
	struct random_file files[RANDOM_SHARE_FILES];
};

#endif
