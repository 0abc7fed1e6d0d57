/* What of a file is in memory, and putting it out of it. */
#ifndef APPULSE_PROFILE_PAGE_CACHE_H
#define APPULSE_PROFILE_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

/* Whether mincore tells the truth of the file: Linux tells only its owner and those
 * who may write to it (mincore(2)), and calls all pages resident for others. */
bool page_cache_can_look(int fd);

/* Sets one byte of `ret_resident` for each of the `count` first pages of the file, 1
 * when it is in memory.  IO, NO_MEMORY. */
enum status page_cache_look(int fd, uint32_t count, uint8_t *ret_resident,
			    struct diag *diag);

/* Writes what is dirty and drops all pages; `path` is for messages.  COMMAND when
 * pages stay, as they do while another program has them mapped or on a file system
 * that lives in memory; IO. */
enum status page_cache_evict(int fd, const char *path, uint32_t count, struct diag *diag);

#endif
