/* Microsoft documents nothing of it.  Form and checksum as described by D. Pistelli,
 * "Microsoft's Rich Signature (undocumented)", and checked against images of VS 2005 to
 * 2022, whose checksums come out right:
 *
 *     "DanS" ^ key, key, key, key          at a multiple of 8
 *     { product << 16 | build } ^ key, count ^ key      for each tool
 *     "Rich", key
 *
 * key: offset of "DanS", plus each byte of what stands before, e_lfanew counted as 0,
 * rotated left by its offset, plus each row's first word rotated left by its count.
 *
 * Product numbers come in families, one for each generation of tools, always in the same
 * sequence (names: enum PRODID in msobj140-msvcrt.lib of Visual Studio 2015).  x86-64
 * programs begin with Visual Studio 2005.  Since 2015 the family is the same, and only
 * the build number tells the releases apart.
 */
#include "pe/rich_header.h"

#include <string.h>

enum {
	DANS = 0x536e6144,
	RICH = 0x68636952,
	DOS_LFANEW = 0x3c,
	DOS_HEADER_BYTES = 0x40,
	LIST_HEAD_BYTES = 16,
	ROW_BYTES = 8,
};

static uint32_t rotate_left(uint32_t v, unsigned by)
{
	by &= 31;
	return by ? v << by | v >> (32 - by) : v;
}

static uint32_t checksum(const uint8_t *bytes, uint32_t begin, uint32_t end, uint32_t key)
{
	uint32_t sum = begin;

	for (uint32_t i = 0; i < begin; i++)
		if (i < DOS_LFANEW || i >= DOS_HEADER_BYTES)
			sum += rotate_left(bytes[i], i);
	for (uint32_t i = begin + LIST_HEAD_BYTES; i < end; i += ROW_BYTES)
		sum += rotate_left(load_u32(bytes + i) ^ key,
				   load_u32(bytes + i + 4) ^ key);
	return sum;
}

/* Offsets of "DanS" and "Rich"; false when there is no such list. */
static bool find_list(const struct image *image, uint32_t *ret_begin, uint32_t *ret_end)
{
	const uint8_t *bytes = image->bytes;
	uint32_t limit = image->headers.pe.v;
	uint32_t begin, end, key;

	for (end = DOS_HEADER_BYTES; end + 8 <= limit; end += 4)
		if (load_u32(bytes + end) == RICH)
			break;
	if (end + 8 > limit)
		return false;
	key = load_u32(bytes + end + 4);
	for (begin = DOS_HEADER_BYTES; begin + LIST_HEAD_BYTES < end; begin += 4)
		if ((load_u32(bytes + begin) ^ key) == DANS)
			break;
	if (begin + LIST_HEAD_BYTES >= end || (end - begin) % ROW_BYTES != 0)
		return false;
	*ret_begin = begin;
	*ret_end = end;
	return true;
}

enum status rich_header_read(struct image *image, struct rich_header *ret_rich,
			     struct diag *diag)
{
	struct rich_header rich = {0};
	struct rich_entry *entries;
	uint32_t begin, end, key;

	if (!find_list(image, &begin, &end)) {
		*ret_rich = rich;
		return STATUS_OK;
	}
	key = load_u32(image->bytes + end + 4);
	rich.count = (end - begin - LIST_HEAD_BYTES) / ROW_BYTES;
	entries = arena_array(&image->arena, rich.count, sizeof(*entries));
	if (!entries)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < rich.count; i++) {
		const uint8_t *row = image->bytes + begin + LIST_HEAD_BYTES + i * ROW_BYTES;
		uint32_t tool = load_u32(row) ^ key;

		entries[i] = (struct rich_entry){(uint16_t)(tool >> 16), (uint16_t)tool,
						 load_u32(row + 4) ^ key};
	}
	rich.entries = entries;
	rich.intact = checksum(image->bytes, begin, end, key) == key;
	*ret_rich = rich;
	return STATUS_OK;
}

/* The families from Visual Studio 2010 SP1 (product 181) on: 18 products each. */
static enum rich_tool tool_of_family(unsigned index)
{
	static const uint8_t tools[] = {
		RICH_OTHER,     RICH_OTHER,    RICH_RESOURCES, RICH_OTHER,    RICH_OTHER,
		RICH_LINKER,    RICH_ASSEMBLER, RICH_C,        RICH_CPP,      RICH_C,
		RICH_CPP,       RICH_LTCG_C,   RICH_LTCG_CPP,  RICH_OTHER,    RICH_POGO_C,
		RICH_POGO_CPP,  RICH_POGO_C,   RICH_POGO_CPP,
	};

	return (enum rich_tool)tools[index % sizeof(tools)];
}

/* Those of Visual Studio 2005 to 2010, which are in no order. */
static enum rich_tool tool_of_old(uint16_t product)
{
	switch (product) {
	case 109: case 111: case 128: case 131: case 133: case 135: case 170: case 172:
		return RICH_C;
	case 110: case 112: case 129: case 132: case 134: case 136: case 171: case 173:
		return RICH_CPP;
	case 113: case 137: case 174:
		return RICH_LTCG_C;
	case 114: case 138: case 175:
		return RICH_LTCG_CPP;
	case 115: case 117: case 140: case 142: case 177: case 179:
		return RICH_POGO_C;
	case 116: case 118: case 141: case 143: case 178: case 180:
		return RICH_POGO_CPP;
	case 125: case 149: case 158:
		return RICH_ASSEMBLER;
	case 120: case 145: case 157:
		return RICH_LINKER;
	case 124: case 148: case 151: case 154:
		return RICH_RESOURCES;
	default:
		return RICH_OTHER;
	}
}

enum rich_tool rich_tool_of(uint16_t product)
{
	enum { FIRST_FAMILY = 181, LAST_KNOWN = 270 };

	if (product == 0)
		return RICH_UNMARKED;
	if (product == 1)
		return RICH_IMPORTS;
	if (product < FIRST_FAMILY)
		return tool_of_old(product);
	return product <= LAST_KNOWN ? tool_of_family(product - FIRST_FAMILY) : RICH_OTHER;
}
