#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Chunks double, so that an arena for a few small things costs no more than these. */
enum { FIRST_CHUNK_BYTES = 2048, CHUNK_BYTES = 256 * 1024, ALIGNMENT = 16 };

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

void arena_init(struct arena *arena)
{
	memset(arena, 0, sizeof(*arena));
}

void arena_release(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	arena_init(arena);
}

void arena_reset(struct arena *arena)
{
	struct arena_chunk *kept = arena->chunks;
	struct arena was = *arena;

	if (!kept || was.capacity > CHUNK_BYTES) {
		arena_release(arena);
		return;
	}
	arena->chunks = kept->next;
	arena_release(arena);
	memset(kept->bytes, 0, was.used);
	kept->next = NULL;
	*arena = (struct arena){kept, 0, was.capacity, was.next_capacity};
}

static void *add_chunk(struct arena *arena, size_t bytes)
{
	size_t capacity = arena->next_capacity ? arena->next_capacity : FIRST_CHUNK_BYTES;
	struct arena_chunk *chunk;

	arena->next_capacity = capacity < CHUNK_BYTES ? 2 * capacity : CHUNK_BYTES;
	if (bytes > capacity)
		capacity = bytes;
	if (capacity > SIZE_MAX - sizeof(*chunk))
		return NULL;
	/* calloc gives fresh pages without touching them. */
	chunk = calloc(1, sizeof(*chunk) + capacity);
	if (!chunk)
		return NULL;
	memory_prefer_huge(chunk, sizeof(*chunk) + capacity);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->used = bytes;
	arena->capacity = capacity;
	return chunk->bytes;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	size_t bytes;

	if (size > SIZE_MAX - ALIGNMENT)
		return NULL;
	bytes = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!arena->chunks || arena->capacity - arena->used < bytes)
		return add_chunk(arena, bytes);
	arena->used += bytes;
	return arena->chunks->bytes + arena->used - bytes;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		return NULL;
	return arena_alloc(arena, count * size);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

	if (copy)
		memcpy(copy, text, length);
	return copy;
}
