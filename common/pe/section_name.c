#include "pe/section_name.h"

#include <ctype.h>
#include <string.h>

enum { STRING_TABLE_SIZE_BYTES = 4, NAME_DIGITS = 7 };

/* The decimal number behind '/'; 0 when there is none. */
static uint64_t string_offset(const char *name)
{
	uint64_t offset = 0;

	for (unsigned i = 1; name[0] == '/' && i <= NAME_DIGITS && name[i]; i++) {
		if (!isdigit((unsigned char)name[i]))
			return 0;
		offset = offset * 10 + (unsigned)(name[i] - '0');
	}
	return offset;
}

const char *section_name(const struct image *image, const struct section *section)
{
	uint64_t offset = string_offset(section->name);
	uint64_t table = image->headers.symbol_table.v +
			 (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;
	uint64_t at = table + offset;

	if (offset < STRING_TABLE_SIZE_BYTES || image->headers.symbol_table.v == 0 ||
	    at >= image->size || !memchr(image->bytes + at, 0, image->size - at))
		return section->name;
	return (const char *)image->bytes + at;
}

bool section_is_dwarf(const struct image *image, const struct section *section)
{
	static const char prefix[] = ".debug_";

	return (section->characteristics & SECTION_DISCARDABLE) &&
	       strncmp(section_name(image, section), prefix, sizeof(prefix) - 1) == 0;
}

/* Observed: UPX 3.96; the others as their makers and tools that detect them have it. */
const char *section_packer(const struct section *section)
{
	static const struct {
		const char *section, *name;
	} packers[] = {
		{"UPX0", "UPX"},           {"UPX1", "UPX"},
		{".aspack", "ASPack"},     {"MPRESS1", "MPRESS"},
		{".petite", "Petite"},     {".vmp0", "VMProtect"},
		{".vmp1", "VMProtect"},    {".themida", "Themida"},
		{".winlice", "WinLicense"}, {".enigma1", "Enigma"},
	};

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++)
		if (strcmp(section->name, packers[i].section) == 0)
			return packers[i].name;
	return NULL;
}
