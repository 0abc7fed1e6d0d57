#include "symbols/symbol_set.h"

#include <stddef.h>

#include "base/key_sort.h"

void symbol_set_release(struct symbol_set *set)
{
	arena_release(&set->arena);
	vec_release(&set->symbols);
	set->outside = 0;
}

bool symbol_set_add(struct symbol_set *set, const struct image *image,
		    const struct symbol *symbol, size_t name_length)
{
	struct symbol copy = *symbol;

	if (name_length == 0)
		return true;
	if (!image_is_code(image, symbol->rva)) {
		set->outside++;
		return true;
	}
	copy.name = arena_strndup(&set->arena, symbol->name, name_length);
	return copy.name && vec_push(&set->symbols, copy);
}

bool symbol_address(const struct image *image, uint32_t section, uint32_t offset,
		    struct rva *ret_rva)
{
	if (section == 0 || section > image->section_count ||
	    offset >= image->sections[section - 1].virtual_size)
		return false;
	*ret_rva = rva_add(image->sections[section - 1].rva, offset);
	return true;
}

static bool sort(struct symbol_set *set, size_t key)
{
	return key_sort(set->symbols.data, set->symbols.len, sizeof(*set->symbols.data),
			key);
}

/* Equal ones keep their sequence, so the last sort is the first criterion. */
bool symbol_set_finish(struct symbol_set *set)
{
	return sort(set, offsetof(struct symbol, kind)) &&
	       sort(set, offsetof(struct symbol, rva) + offsetof(struct rva, v));
}
