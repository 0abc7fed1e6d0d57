/* Sorting large arrays by a 32-bit key, or of 64-bit numbers. */
#ifndef APPULSE_BASE_KEY_SORT_H
#define APPULSE_BASE_KEY_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorts `count` items of `stride` bytes by the 32-bit number, in the machine's byte
 * order, that stands `offset` bytes from the begin of each.  Items with equal keys keep
 * their sequence.  False, with the items as they were, when memory is out. */
bool key_sort(void *items, uint32_t count, size_t stride, size_t offset);

/* The same, but items with equal keys, of which there should be few, in the sequence that
 * `compare` says, which is qsort's. */
bool key_sort_by(void *items, uint32_t count, size_t stride, size_t offset,
		 int (*compare)(const void *a, const void *b));

/* Sorts `count` numbers; false, with the numbers as they were, when memory is out. */
bool number_sort(uint64_t *numbers, uint32_t count);

#endif
