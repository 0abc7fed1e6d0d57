/* A library of ours that is loaded into a command's processes, and the memory that it
 * shares with us.
 *
 * It finds the memory by a path into our own descriptors: nothing has to be made in the
 * file tree, and nothing is left when we are gone. */
#ifndef APPULSE_PROFILE_PRELOAD_LIBRARY_H
#define APPULSE_PROFILE_PRELOAD_LIBRARY_H

#include <stddef.h>

#include "base/diag.h"
#include "child.h"
#include "cli/companion.h"

struct preload_library {
	int fd;        /* of the memory, -1: none */
	void *share;   /* mapped, zero at first; NULL: none */
	size_t size;   /* bytes of it */
	char *words;   /* owned: what LD_PRELOAD becomes */
	char path[64]; /* of the memory, for the library */
};

#define PRELOAD_LIBRARY_NONE ((struct preload_library){.fd = -1})

/* Finds the library and makes `size` bytes of memory.  NOT_FOUND, IO, NO_MEMORY. */
enum status preload_library_open(const struct companion *companion, size_t size,
				 struct preload_library *ret_library, struct diag *diag);

/* Fine for one that was not opened, if it is PRELOAD_LIBRARY_NONE. */
void preload_library_close(struct preload_library *library);

/* Adds what the command's environment needs to its variables: LD_PRELOAD, and `variable`
 * with the path of the memory. */
void preload_library_join(const struct preload_library *library, const char *variable,
			  struct child *child);

#endif
