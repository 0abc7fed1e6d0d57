/* What a `throw` of the MSVC ABI hands to the runtime: in 32-bit words,
 *
 *     ThrowInfo           attributes, rva destructor or 0, 0, rva of the array
 *     CatchableTypeArray  count, rvas of the catchable types
 *     CatchableType       properties, rva type descriptor, three displacements, size,
 *                         rva copy constructor or 0
 *     type descriptor     va of type_info's virtual functions, 64-bit 0, name
 *
 * (observed: MSVC 2005 to 2022, clang 14).  No table lists them; code takes a
 * ThrowInfo's address.  They are known by their structure. */
#ifndef APPULSE_PE_THROW_INFO_H
#define APPULSE_PE_THROW_INFO_H

#include "pe/image.h"

enum {
	THROW_INFO_BYTES = 16,
	THROW_INFO_DESTRUCTOR = 4, /* offset of that field */
	CATCHABLE_TYPE_BYTES = 28,
	CATCHABLE_TYPE_COPY = 24,
};

struct throw_info {
	struct rva rva;
	struct rva destructor; /* 0: none */
	struct rva array;
	uint32_t count; /* catchable types, at least 1 */
};

struct catchable_type {
	struct rva rva;
	struct rva copy; /* 0: none */
};

/* Whether a ThrowInfo stands at `rva`, with an array in the file's data.  Its catchable
 * types are still to be looked at. */
bool throw_info_read(const struct image *image, struct rva rva,
		     struct throw_info *ret_info);

/* Whether entry `index` of the array leads to a catchable type of a type descriptor. */
bool catchable_type_read(const struct image *image, const struct throw_info *info,
			 uint32_t index, struct catchable_type *ret_type);

#endif
