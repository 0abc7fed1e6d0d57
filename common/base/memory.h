/* How memory comes from the system.  A page fault costs a microsecond, ten in some virtual
 * machines, and discovery fills arrays of many thousand pages. */
#ifndef APPULSE_BASE_MEMORY_H
#define APPULSE_BASE_MEMORY_H

#include <stddef.h>

/* For a tool's start: what is freed is kept for what is allocated next, in all threads. */
void memory_keep_freed(void);

/* Says that `size` bytes at `data`, not yet written, will be: large ones then come in
 * huge pages.  Changes nothing else; NULL and small sizes are fine. */
void memory_prefer_huge(void *data, size_t size);

/* Zeros, `size` bytes of which few will be written: what is not touched costs nothing.  NULL
 * when memory is out.  Given back by memory_sparse_free with the same size; NULL is fine. */
void *memory_sparse(size_t size);
void memory_sparse_free(void *data, size_t size);

#endif
