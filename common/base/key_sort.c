/* A radix sort: passes of 11 bits over 64-bit numbers, then one over the items.
 *
 * The large arrays (references, symbols, branches) have some 30,000 to a million items
 * with addresses for keys.  glibc's qsort compares each some 15 to 20 times through a
 * function pointer and moves items of 20 to 40 bytes as often; it took 7 % of a relink of
 * SQLite and 12 % of one of libstdc++.  This takes a tenth.  What is sorted already, as
 * tables of images usually are, is only looked at once.
 *
 * An item is sorted as a number of key and index, and is moved once, at the end.  What is
 * a number itself needs no index and no move.
 *
 * Cost: 16 bytes for each item while it sorts, then 8 and a copy of the items; 8 bytes
 * for each number.
 */
#include "base/key_sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
	NUMBER_BITS = 64,
	KEY_SHIFT = 32, /* of the key in a number; below is the index */
	FEW = 64, /* for so few the passes cost more than they save */
};

static uint32_t key_at(const char *items, size_t stride, size_t offset, uint32_t index)
{
	uint32_t key;

	memcpy(&key, items + stride * index + offset, sizeof(key));
	return key;
}

static bool is_sorted(const char *items, uint32_t count, size_t stride, size_t offset)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = key_at(items, stride, offset, i);

		if (key < last)
			return false;
		last = key;
	}
	return true;
}

/* One pass; false when all have the same digit, and nothing was done. */
static bool sort_digit(const uint64_t *from, uint64_t *to, uint32_t count, unsigned shift)
{
	uint32_t places[DIGITS] = {0}, at = 0;

	for (uint32_t i = 0; i < count; i++)
		places[from[i] >> shift & (DIGITS - 1)]++;
	if (places[from[0] >> shift & (DIGITS - 1)] == count)
		return false;
	for (uint32_t digit = 0; digit < DIGITS; digit++) {
		uint32_t size = places[digit];

		places[digit] = at;
		at += size;
	}
	for (uint32_t i = 0; i < count; i++)
		to[places[from[i] >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

static void insert_each(uint64_t *numbers, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		uint64_t number = numbers[i];
		uint32_t at = i;

		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

/* Sorts by the bits from `shift` on, of which those below ascend; returns where the
 * numbers are then, there or in `other`. */
static uint64_t *sort_bits(uint64_t *numbers, uint64_t *other, uint32_t count,
			   unsigned shift)
{
	if (count <= FEW) {
		insert_each(numbers, count);
		return numbers;
	}
	for (; shift < NUMBER_BITS; shift += DIGIT_BITS) {
		uint64_t *sorted = other;

		if (!sort_digit(numbers, other, count, shift))
			continue;
		other = numbers;
		numbers = sorted;
	}
	return numbers;
}

/* Memory that is written whole. */
static void *alloc_many(uint32_t count, size_t size)
{
	void *many = size && count > SIZE_MAX / size ? NULL : malloc(count * size);

	memory_prefer_huge(many, count * size);
	return many;
}

bool number_sort(uint64_t *numbers, uint32_t count)
{
	uint64_t *other = alloc_many(count, sizeof(*other)), *sorted;

	if (!other)
		return count == 0;
	sorted = sort_bits(numbers, other, count, 0);
	if (sorted != numbers)
		memcpy(numbers, sorted, count * sizeof(*numbers));
	free(other);
	return true;
}

/* Moves the items to their places. */
static inline void move_items(char *items, const char *copy, const uint64_t *sorted,
			      uint32_t count, size_t stride)
{
	for (uint32_t i = 0; i < count; i++)
		memcpy(items + stride * i, copy + stride * (uint32_t)sorted[i], stride);
}

/* A copy of a size that the compiler knows is no call. */
static void move_known_items(char *items, const char *copy, const uint64_t *sorted,
			     uint32_t count, size_t stride)
{
	switch (stride) {
	case 4:
		move_items(items, copy, sorted, count, 4);
		return;
	case 16:
		move_items(items, copy, sorted, count, 16);
		return;
	case 20:
		move_items(items, copy, sorted, count, 20);
		return;
	case 24:
		move_items(items, copy, sorted, count, 24);
		return;
	default:
		move_items(items, copy, sorted, count, stride);
	}
}

bool key_sort(void *items, uint32_t count, size_t stride, size_t offset)
{
	uint64_t *numbers, *other, *sorted = NULL;
	char *copy = NULL;
	bool done = false;

	if (is_sorted(items, count, stride, offset))
		return true;
	numbers = alloc_many(count, sizeof(*numbers));
	other = alloc_many(count, sizeof(*other));
	if (!numbers || !other)
		goto out;
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = (uint64_t)key_at(items, stride, offset, i) << KEY_SHIFT | i;
	sorted = sort_bits(numbers, other, count, KEY_SHIFT);
	/* The copy may take the other's place. */
	if (sorted == numbers) {
		free(other);
		other = NULL;
	} else {
		free(numbers);
		numbers = NULL;
	}
	copy = alloc_many(count, stride);
	if (!copy)
		goto out;
	memcpy(copy, items, count * stride);
	move_known_items(items, copy, sorted, count, stride);
	done = true;
out:
	free(copy);
	free(other);
	free(numbers);
	return done;
}

bool key_sort_by(void *items, uint32_t count, size_t stride, size_t offset,
		 int (*compare)(const void *a, const void *b))
{
	if (!key_sort(items, count, stride, offset))
		return false;
	for (uint32_t i = 0, end; i < count; i = end) {
		uint32_t key = key_at(items, stride, offset, i);

		for (end = i + 1; end < count && key_at(items, stride, offset, end) == key;)
			end++;
		if (end > i + 1)
			qsort((char *)items + stride * i, end - i, stride, compare);
	}
	return true;
}
