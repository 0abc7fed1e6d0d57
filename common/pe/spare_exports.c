/* GNU ld makes an export table for a DLL that has none.  When a tool has made one
 * before it, the image gets both: the sections are put together, and the directory
 * entry names the first and covers the second.  Observed: 573 DLLs of Debian's Wine
 * 8.0 (binutils 2.40), each with a table by winebuild and one by ld that lists every
 * global symbol.
 *
 * Nothing refers to the second table, but its words are RVAs of functions, and a net
 * for RVAs that nobody explains would catch a third of all functions there.  What
 * explains them is this form, which ld writes in one piece: the directory, addresses,
 * name pointers, ordinals, the DLL's name, and the names one behind the other, in the
 * order of their bytes.  The RVAs inside of it are as if it stood at the begin of the
 * section; all are wrong by the same number, while the addresses are right.
 *
 * A table is taken for one only when all of that holds, to the last name, and only
 * in the bytes that the image's directory entry calls exports (PE/COFF specification,
 * "The .edata Section").
 */
#include "pe/spare_exports.h"

#include <string.h>

enum {
	DIRECTORY_BYTES = 40,
	DLL_NAME = 12,
	ADDRESS_COUNT = 20,
	NAME_COUNT = 24,
	ADDRESSES = 28,
	NAMES = 32,
	ORDINALS = 36,
	ALIGNMENT = 4,
	NAME_MIN = 2,       /* fewer names prove little */
	COUNT_MAX = 0x10000, /* ordinals have 16 bits */
};

/* A directory under test. */
struct candidate {
	const struct image *image;
	struct rva begin, stop; /* the exports end at `stop` */
	const uint8_t *directory;
	uint32_t shift; /* what is missing in each RVA */
	uint32_t addresses, names;
};

static struct rva field(const struct candidate *c, uint32_t offset)
{
	return rva_of(load_u32(c->directory + offset) + c->shift);
}

/* Whether the arrays stand side by side behind the directory. */
static bool arrays_fit(struct candidate *c)
{
	uint64_t end;

	c->addresses = load_u32(c->directory + ADDRESS_COUNT);
	c->names = load_u32(c->directory + NAME_COUNT);
	c->shift = c->begin.v + DIRECTORY_BYTES - load_u32(c->directory + ADDRESSES);
	if (load_u32(c->directory) != 0 || c->addresses > COUNT_MAX ||
	    c->names > c->addresses || c->names < NAME_MIN)
		return false;
	end = (uint64_t)c->begin.v + DIRECTORY_BYTES + 4 * c->addresses;
	if (field(c, NAMES).v != end)
		return false;
	end += 4 * c->names;
	if (field(c, ORDINALS).v != end)
		return false;
	end += 2 * c->names;
	return field(c, DLL_NAME).v == end && end < c->stop.v;
}

/* The string at `rva`, which ends before the exports do; its size with the zero in
 * *ret_size. */
static const char *string_at(const struct candidate *c, struct rva rva, uint32_t *ret_size)
{
	const char *string = rva.v < c->stop.v ? image_string(c->image, rva) : NULL;

	if (!string)
		return NULL;
	*ret_size = (uint32_t)strlen(string) + 1;
	return *ret_size > 1 && *ret_size <= c->stop.v - rva.v ? string : NULL;
}

/* Whether each name stands behind the one before it, in ascending order, and is one of
 * the addresses'.  Gives the end of the last. */
static bool names_fit(const struct candidate *c, struct rva *ret_end)
{
	struct reader pointers = image_reader(c->image, field(c, NAMES));
	struct reader ordinals = image_reader(c->image, field(c, ORDINALS));
	struct rva at = field(c, DLL_NAME);
	uint32_t size;
	const char *last = string_at(c, at, &size);

	for (uint32_t i = 0; last && i < c->names; i++) {
		const char *name;

		at = rva_add(at, size);
		if (read_u32(&pointers) + c->shift != at.v ||
		    read_u16(&ordinals) >= c->addresses || pointers.failed ||
		    ordinals.failed)
			return false;
		name = string_at(c, at, &size);
		if (!name || (i > 0 && strcmp(last, name) >= 0))
			return false;
		last = name;
	}
	*ret_end = rva_add(at, size);
	return last != NULL;
}

bool spare_exports_next(const struct image *image, struct rva *from,
			struct spare_exports *ret_exports)
{
	struct data_directory exports = image->directories[DIRECTORY_EXPORT];
	struct candidate c = {.image = image, .stop = rva_add(exports.rva, exports.size)};

	c.begin = rva_of((from->v + ALIGNMENT - 1) & ~(ALIGNMENT - 1u));
	for (; c.begin.v < c.stop.v; c.begin.v += ALIGNMENT) {
		struct rva end;

		c.directory = image_bytes(image, c.begin, DIRECTORY_BYTES);
		if (!c.directory)
			return false;
		if (!arrays_fit(&c))
			continue;
		*from = field(&c, NAMES);
		if (!names_fit(&c, &end)) {
			/* Not to be read again for others that begin inside of it. */
			c.begin.v = (from->v & ~(ALIGNMENT - 1u)) - ALIGNMENT;
			continue;
		}
		*ret_exports = (struct spare_exports){
			c.begin, end.v - c.begin.v, rva_add(c.begin, DIRECTORY_BYTES),
			c.addresses};
		*from = end;
		return true;
	}
	return false;
}
