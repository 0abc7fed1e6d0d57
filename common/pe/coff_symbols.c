/* The symbol table lies in the file behind the sections, not in memory.  Rows
 * have 18 bytes; a row may be followed by auxiliary rows, which are skipped.
 * Names of up to 8 bytes stand in the row, longer ones in the string table
 * behind the symbols.
 */
#include "pe/coff_symbols.h"

#include <stddef.h>
#include <string.h>

#include "base/key_sort.h"

enum {
	SYMBOL_VALUE = 8,
	SYMBOL_SECTION = 12,
	SYMBOL_TYPE = 14,
	SYMBOL_CLASS = 16,
	SYMBOL_AUX_COUNT = 17,
	SHORT_NAME_BYTES = 8,
	DERIVED_TYPE_MASK = 0x30,
	DERIVED_TYPE_FUNCTION = 0x20,
};

struct symbol_table {
	struct image *image;
	const uint8_t *rows;
	uint32_t count; /* rows */
	const uint8_t *strings;
	uint64_t string_size; /* bytes, with the 4 of the size field */
};

static const char *long_name(const struct symbol_table *table, uint32_t offset)
{
	uint64_t left;

	if (offset < 4 || offset >= table->string_size)
		return "?";
	left = table->string_size - offset;
	if (left > IMAGE_STRING_MAX)
		left = IMAGE_STRING_MAX;
	return memchr(table->strings + offset, '\0', left)
		       ? (const char *)table->strings + offset
		       : "?";
}

/* The name of a row, NULL when memory is out. */
static const char *symbol_name(const struct symbol_table *table, const uint8_t *row)
{
	if (load_u32(row) == 0)
		return long_name(table, load_u32(row + 4));
	if (memchr(row, '\0', SHORT_NAME_BYTES))
		return (const char *)row;
	return arena_strndup(&table->image->arena, (const char *)row, SHORT_NAME_BYTES);
}

/* The section of a row that defines an address, else NULL. */
static const struct section *symbol_section(const struct symbol_table *table,
					    const uint8_t *row)
{
	uint16_t number = load_u16(row + SYMBOL_SECTION);
	const struct section *section;

	if (number == 0 || number > table->image->section_count)
		return NULL;
	section = &table->image->sections[number - 1];
	return load_u32(row + SYMBOL_VALUE) <= section->virtual_size ? section : NULL;
}

bool coff_symbols_present(const struct image *image)
{
	uint32_t begin = image->headers.symbol_table.v;

	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (section->raw_size &&
		    begin < (uint64_t)section->raw.v + section->raw_size)
			return false;
	}
	return begin >= image->headers.size_of_headers && begin <= image->size;
}

static enum status find_table(struct symbol_table *table, struct diag *diag)
{
	const struct image *image = table->image;
	uint64_t begin = image->headers.symbol_table.v;
	uint64_t end = begin + (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;

	if (end > image->size)
		return diag_fail(diag, STATUS_MALFORMED,
				 "the symbol table of %u symbols leaves the file",
				 image->headers.symbol_count);
	if (!coff_symbols_present(image))
		return diag_fail(diag, STATUS_MALFORMED,
				 "the symbol table lies in the headers or in a section");
	table->rows = image->bytes + begin;
	table->count = image->headers.symbol_count;
	table->strings = image->bytes + end;
	if (image->size - end >= 4)
		table->string_size = load_u32(table->strings);
	if (table->string_size > image->size - end)
		table->string_size = image->size - end;
	return STATUS_OK;
}

static uint32_t count_symbols(const struct symbol_table *table)
{
	uint32_t count = 0;

	for (uint64_t i = 0; i < table->count; i++) {
		const uint8_t *row = table->rows + i * SYMBOL_BYTES;

		count += symbol_section(table, row) != NULL;
		i += row[SYMBOL_AUX_COUNT];
	}
	return count;
}

static enum status read_symbols(const struct symbol_table *table,
				struct coff_symbols *symbols, struct diag *diag)
{
	for (uint64_t i = 0; i < table->count; i++) {
		const uint8_t *row = table->rows + i * SYMBOL_BYTES;
		const struct section *section = symbol_section(table, row);

		i += row[SYMBOL_AUX_COUNT];
		if (section) {
			struct coff_symbol symbol = {
				.name = symbol_name(table, row),
				.rva = rva_add(section->rva, load_u32(row + SYMBOL_VALUE)),
				.value = file_off_of((uint32_t)(row - table->image->bytes) +
						     SYMBOL_VALUE),
				.section = load_u16(row + SYMBOL_SECTION),
				.storage_class = row[SYMBOL_CLASS],
				.is_function = (load_u16(row + SYMBOL_TYPE) &
						DERIVED_TYPE_MASK) == DERIVED_TYPE_FUNCTION,
			};

			if (!symbol.name)
				return diag_no_memory(diag);
			symbols->data[symbols->count++] = symbol;
		}
	}
	return STATUS_OK;
}

enum status coff_symbols_read(struct image *image, struct coff_symbols *ret_symbols,
			      struct diag *diag)
{
	struct symbol_table table = {.image = image};
	struct coff_symbols symbols = {0};
	enum status status;

	if (image->headers.symbol_table.v == 0 || image->headers.symbol_count == 0) {
		*ret_symbols = symbols;
		return STATUS_OK;
	}
	status = find_table(&table, diag);
	if (status != STATUS_OK)
		return status;
	symbols.data = arena_array(&image->arena, count_symbols(&table),
				   sizeof(*symbols.data));
	if (!symbols.data)
		return diag_no_memory(diag);
	status = read_symbols(&table, &symbols, diag);
	if (status != STATUS_OK)
		return status;
	/* By address; those of one address as the table has them. */
	if (!key_sort(symbols.data, symbols.count, sizeof(*symbols.data),
		      offsetof(struct coff_symbol, rva) + offsetof(struct rva, v)))
		return diag_no_memory(diag);
	*ret_symbols = symbols;
	return STATUS_OK;
}
