/* Addresses of a PE image as types that do not mix.
 *
 * A relative virtual address (RVA), a virtual address (VA) and a file offset
 * are all plain numbers, and confusing two of them is the classic fault of
 * programs that edit images.  Each is a struct of one member here, so the
 * compiler refuses the confusion; arithmetic goes through the functions below.
 */
#ifndef APPULSE_BASE_ADDRESS_H
#define APPULSE_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes from the start of the loaded image (PE/COFF specification, "General
 * Concepts"). */
struct rva {
	uint32_t v;
};

/* An address in the process, valid when the image is at its preferred base. */
struct va {
	uint64_t v;
};

/* Bytes from the start of the file. */
struct file_off {
	uint32_t v;
};

static inline struct rva rva_of(uint32_t v)
{
	return (struct rva){v};
}

/* The address `n` bytes further; wraps modulo 2^32 as the loader's does. */
static inline struct rva rva_add(struct rva a, uint32_t n)
{
	return (struct rva){a.v + n};
}

/* Bytes from `from` to `to`; negative when `to` stands before `from`. */
static inline int64_t rva_diff(struct rva to, struct rva from)
{
	return (int64_t)to.v - (int64_t)from.v;
}

/* Whether `a` lies in the `size` bytes that begin at `begin`. */
static inline bool rva_in(struct rva a, struct rva begin, uint32_t size)
{
	return a.v - begin.v < size && a.v >= begin.v;
}

static inline struct va va_of(struct rva a, uint64_t image_base)
{
	return (struct va){image_base + a.v};
}

static inline struct file_off file_off_of(uint32_t v)
{
	return (struct file_off){v};
}

#endif
