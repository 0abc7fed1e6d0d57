/* A bump allocator: everything in it lives until the arena is released.
 *
 * One arena belongs to one image, so the hundred thousand small facts about it
 * need no single frees and can point at each other.
 */
#ifndef APPULSE_BASE_ARENA_H
#define APPULSE_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used, capacity;      /* bytes of the newest chunk */
	size_t next_capacity;       /* bytes of the next one; 0 for the first */
};

/* An arena of zero bytes is a valid, empty arena. */
void arena_init(struct arena *arena);

/* Frees all that was allocated; the arena is empty and usable again. */
void arena_release(struct arena *arena);

/* Makes all that was allocated free for new allocations; the arena keeps some memory, so
 * that one which is filled again and again costs little. */
void arena_reset(struct arena *arena);

/* `size` zeroed bytes aligned to 16, or NULL when memory is out.  A size of 0
 * gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc for `count` elements; NULL also when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of `length` bytes, or NULL when memory is out. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);

#endif
