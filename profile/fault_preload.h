/* The library that marks images as read at random in a command's processes. */
#ifndef APPULSE_PROFILE_FAULT_PRELOAD_H
#define APPULSE_PROFILE_FAULT_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "preload_library.h"

struct random_share;

struct fault_preload {
	struct preload_library library;
	struct random_share *share; /* the library's memory */
};

enum { FAULT_PRELOAD_FILES = 64 };

/* What of it works on this kernel. */
struct fault_preload_powers {
	bool tracks;  /* touched pages can be told */
	bool random;  /* code is read without read-ahead */
	char why[160]; /* why it does not track; "" when it does */
};

/* Tries both, the second with `fd`, a file of `pages` pages that is in place and may be
 * evicted. */
void fault_preload_try(int fd, uint32_t pages, struct fault_preload_powers *ret_powers);

/* Finds the library and makes the memory, for files of together so many pages.
 * NOT_FOUND, IO, NO_MEMORY.  Fine to close one that was not opened, if it is
 * FAULT_PRELOAD_NONE. */
enum status fault_preload_open(struct fault_preload *preload, uint64_t pages,
			       struct diag *diag);
void fault_preload_close(struct fault_preload *preload);

#define FAULT_PRELOAD_NONE ((struct fault_preload){.library = {.fd = -1}})

/* A file that is meant. */
struct fault_preload_file {
	int fd;         /* borrowed */
	uint32_t pages; /* of the file, that count */
};

/* From now on these files are meant, at most FAULT_PRELOAD_FILES; `evict`: the first
 * mapping of each puts what was read before it out of memory.  IO. */
enum status fault_preload_set(struct fault_preload *preload,
			      const struct fault_preload_file *files, uint32_t count,
			      bool evict, struct diag *diag);

/* Adds what the command's environment needs to its variables. */
void fault_preload_join(const struct fault_preload *preload, struct child *child);

/* How often the file was mapped since fault_preload_set; counts on. */
const _Atomic uint32_t *fault_preload_mappings(const struct fault_preload *preload,
					       uint32_t file);

/* Whether a page of the file was touched, as far as processes have told. */
bool fault_preload_touched(const struct fault_preload *preload, uint32_t file,
			   uint32_t page);

/* Mappings whose touched pages were not told: of processes that were killed. */
uint64_t fault_preload_untold(const struct fault_preload *preload);

#endif
