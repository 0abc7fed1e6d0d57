/* Growing arrays, typed.
 *
 *     VEC(struct ref) refs = {0};
 *     if (!vec_push(&refs, ref)) return diag_no_memory(diag);
 *     for (uint32_t i = 0; i < refs.len; i++) use(refs.data[i]);
 *     vec_release(&refs);
 *
 * Elements are counted in 32 bits, as block and function ids are.  A vector of
 * zero bytes is valid and empty.  The element type must be plain data.
 */
#ifndef APPULSE_BASE_VEC_H
#define APPULSE_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define VEC(type)             \
	struct {              \
		type *data;   \
		uint32_t len; \
		uint32_t cap; \
	}

/* Appends a copy of `item`; false, with the vector as it was, when memory is
 * out. */
#define vec_push(vec, item)                                          \
	(vec_reserve(vec, (size_t)(vec)->len + 1) &&                 \
	 ((vec)->data[(vec)->len++] = (item), true))

/* Makes room for `count` elements in all; false when memory is out. */
#define vec_reserve(vec, count)             \
	((count) <= (vec)->cap ||           \
	 vec_grow((void **)&(vec)->data, &(vec)->cap, (count), sizeof(*(vec)->data)))

/* Frees the elements; the vector is empty and usable again. */
#define vec_release(vec) \
	(free((vec)->data), (vec)->data = NULL, (vec)->len = (vec)->cap = 0)

/* Behind vec_reserve: room for at least `need` elements of `size` bytes. */
bool vec_grow(void **data, uint32_t *cap, size_t need, size_t size);

#endif
