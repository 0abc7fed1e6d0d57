#include "pe/throw_info.h"

enum {
	KNOWN_BITS = 0x1f,     /* of attributes and of properties */
	DESCRIPTOR_BYTES = 16, /* up to the name */
	NO_VIRTUAL_BASE = -1,
	WORD_BYTES = 4,
};

/* A code address, or none. */
static bool is_code_or_none(const struct image *image, struct rva rva)
{
	return rva.v == 0 || image_is_code(image, rva);
}

static bool is_descriptor(const struct image *image, struct rva rva)
{
	const uint8_t *p = image_bytes(image, rva, DESCRIPTOR_BYTES);
	const char *name = image_string(image, rva_add(rva, DESCRIPTOR_BYTES));
	uint64_t table = p ? load_u64(p) - image->headers.image_base : UINT64_MAX;

	if (!p || !name || name[0] != '.' || name[1] == '\0' || load_u64(p + 8) != 0 ||
	    table > UINT32_MAX || !image_section_at(image, rva_of((uint32_t)table)))
		return false;
	for (; *name; name++)
		if (*name < '!' || *name > '~')
			return false;
	return true;
}

bool throw_info_read(const struct image *image, struct rva rva, struct throw_info *ret_info)
{
	const uint8_t *p = image_bytes(image, rva, THROW_INFO_BYTES), *array;
	struct throw_info info = {.rva = rva};

	if (!p || load_u32(p) & ~(uint32_t)KNOWN_BITS || load_u32(p + 8) != 0)
		return false;
	info.destructor = rva_of(load_u32(p + THROW_INFO_DESTRUCTOR));
	info.array = rva_of(load_u32(p + 12));
	if (!is_code_or_none(image, info.destructor) ||
	    !image_section_at(image, info.array))
		return false;
	array = image_bytes(image, info.array, WORD_BYTES);
	info.count = array ? load_u32(array) : 0;
	if (info.count == 0 || info.count >= UINT32_MAX / WORD_BYTES ||
	    !image_bytes(image, info.array, (info.count + 1) * WORD_BYTES))
		return false;
	*ret_info = info;
	return true;
}

bool catchable_type_read(const struct image *image, const struct throw_info *info,
			 uint32_t index, struct catchable_type *ret_type)
{
	struct rva entry = rva_add(info->array, (index + 1) * WORD_BYTES);
	const uint8_t *p = image_bytes(image, entry, WORD_BYTES);
	struct catchable_type type;

	if (!p)
		return false;
	type.rva = rva_of(load_u32(p));
	p = image_bytes(image, type.rva, CATCHABLE_TYPE_BYTES);
	if (!image_section_at(image, type.rva) || !p ||
	    load_u32(p) & ~(uint32_t)KNOWN_BITS ||
	    (int32_t)load_u32(p + 12) < NO_VIRTUAL_BASE || (int32_t)load_u32(p + 20) <= 0)
		return false;
	type.copy = rva_of(load_u32(p + CATCHABLE_TYPE_COPY));
	if (!is_code_or_none(image, type.copy) ||
	    !is_descriptor(image, rva_of(load_u32(p + 4))))
		return false;
	*ret_type = type;
	return true;
}
