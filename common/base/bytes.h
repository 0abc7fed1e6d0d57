/* Little-endian reads that cannot leave their buffer, and writes.
 *
 * A reader has a sticky error: the first read past the end sets `failed`, and
 * that read and all after it give 0.  So a parser reads straight through a
 * structure and tests once at its end.
 */
#ifndef APPULSE_BASE_BYTES_H
#define APPULSE_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *data; /* borrowed */
	size_t size;         /* bytes */
	size_t pos;          /* bytes read so far, at most `size` */
	bool failed;         /* sticky */
};

static inline struct reader reader_of(const void *data, size_t size)
{
	return (struct reader){.data = data, .size = size};
}

/* The next `n` bytes, or NULL (and failed) when there are fewer. */
static inline const uint8_t *read_bytes(struct reader *r, size_t n)
{
	if (r->failed || r->size - r->pos < n) {
		r->failed = true;
		return NULL;
	}
	r->pos += n;
	return r->data + r->pos - n;
}

static inline void read_skip(struct reader *r, size_t n)
{
	(void)read_bytes(r, n);
}

static inline size_t reader_left(const struct reader *r)
{
	return r->failed ? 0 : r->size - r->pos;
}

/* Unchecked loads and stores, for places whose bounds are already proven. */
static inline uint16_t load_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t load_u64(const uint8_t *p)
{
	return load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static inline void store_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void store_u32(uint8_t *p, uint32_t v)
{
	store_u16(p, (uint16_t)v);
	store_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void store_u64(uint8_t *p, uint64_t v)
{
	store_u32(p, (uint32_t)v);
	store_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint8_t read_u8(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 1);

	return p ? *p : 0;
}

static inline uint16_t read_u16(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 2);

	return p ? load_u16(p) : 0;
}

static inline uint32_t read_u32(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 4);

	return p ? load_u32(p) : 0;
}

static inline uint64_t read_u64(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 8);

	return p ? load_u64(p) : 0;
}

/* DWARF's variable-length integers (DWARF 5, section 7.6); fails when they do
 * not fit 64 bits. */
uint64_t read_uleb128(struct reader *r);
int64_t read_sleb128(struct reader *r);

#endif
