/* The map that MSVC's linker and lld write with /MAP (Microsoft Learn, "/MAP (Generate
 * mapfile)"; observed: lld 14.0.6). */
#ifndef APPULSE_SYMBOLS_LINKER_MAP_H
#define APPULSE_SYMBOLS_LINKER_MAP_H

#include "symbols/symbol_set.h"

/* Adds the symbols in code that a map of `size` bytes lists.  BAD_SYMBOLS when it is no
 * such map or a line of it is damaged; OTHER_IMAGE when it has another time stamp than the
 * image, or sections at other places; NO_MEMORY.  On failure some may have been added. */
enum status linker_map_add(const void *text, size_t size, const struct image *image,
			   struct symbol_set *set, struct diag *diag);

#endif
