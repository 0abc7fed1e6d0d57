/* The COFF symbol table (PE/COFF specification, "COFF Symbol Table").
 *
 * Records are compared in the file's sequence.  Of a symbol that a section
 * defines, section number and value together must name the mapped address; the
 * number may differ, since a block may have gone to another section.  All other
 * bytes, auxiliary records and the string table are as they were.
 */
#include "layout/verify_state.h"

#include <string.h>

enum {
	SYMBOL_VALUE = 8,
	SYMBOL_SECTION = 12,
	SYMBOL_TYPE = 14,
	SYMBOL_AUX_COUNT = 17,
};

/* The address that a record means; false when no section defines it. */
static bool symbol_rva(const struct image *image, const uint8_t *record,
		       struct rva *ret_rva)
{
	uint16_t section = load_u16(record + SYMBOL_SECTION);

	if (section == 0 || section > image->section_count)
		return false;
	*ret_rva =
		rva_add(image->sections[section - 1].rva, load_u32(record + SYMBOL_VALUE));
	return true;
}

static enum status compare_symbol(struct verifier *v, const uint8_t *was, const uint8_t *is,
				  uint32_t index)
{
	struct rva old_rva = {0}, new_rva = {0}, expected;
	bool defined = symbol_rva(v->old_image, was, &old_rva);

	if (memcmp(was, is, SYMBOL_VALUE) != 0 ||
	    memcmp(was + SYMBOL_TYPE, is + SYMBOL_TYPE, SYMBOL_BYTES - SYMBOL_TYPE) != 0)
		return verify_fail(v, verify_map(v, old_rva),
				   "the name or type of symbol %u has changed", index);
	if (!defined) {
		if (memcmp(was, is, SYMBOL_BYTES) != 0)
			return verify_fail(v, rva_of(0), "symbol %u has changed", index);
		return STATUS_OK;
	}
	expected = verify_map(v, old_rva);
	if (!symbol_rva(v->new_image, is, &new_rva) || new_rva.v != expected.v)
		return verify_differs(v, expected, expected.v, new_rva.v,
				      "the address of symbol %u", index);
	v->report->table_entries++;
	return STATUS_OK;
}

/* The tables' bytes with the string table, or NULL when they leave the file. */
static const uint8_t *symbol_bytes(const struct image *image, uint64_t *ret_size)
{
	uint64_t begin = image->headers.symbol_table.v;
	uint64_t size = (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;

	if (begin > image->size || size > image->size - begin)
		return NULL;
	if (image->size - begin - size >= 4) {
		uint32_t strings = load_u32(image->bytes + begin + size);

		if (strings > image->size - begin - size)
			return NULL;
		size += strings;
	}
	*ret_size = size;
	return image->bytes + begin;
}

enum status verify_symbols(struct verifier *v)
{
	uint32_t count = v->old_image->headers.symbol_count;
	uint64_t records = (uint64_t)count * SYMBOL_BYTES, old_size, new_size;
	const uint8_t *was, *is;

	if (!coff_symbols_present(v->old_image))
		return STATUS_OK;
	was = symbol_bytes(v->old_image, &old_size);
	is = symbol_bytes(v->new_image, &new_size);
	if (!was)
		return STATUS_OK; /* broken in the original: no step knows it */
	if (!is || new_size != old_size ||
	    memcmp(was + records, is + records, old_size - records) != 0)
		return verify_fail(v, rva_of(0), "the table of symbol names has changed");
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *record = was + (size_t)i * SYMBOL_BYTES;
		uint32_t aux = record[SYMBOL_AUX_COUNT];
		enum status status = compare_symbol(v, record, is + (record - was), i);

		if (status != STATUS_OK)
			return status;
		if (aux > count - i - 1)
			aux = count - i - 1;
		if (memcmp(record + SYMBOL_BYTES, is + (record - was) + SYMBOL_BYTES,
			   (size_t)aux * SYMBOL_BYTES) != 0)
			return verify_fail(v, rva_of(0),
					   "an auxiliary record of symbol %u has changed",
					   i);
		i += aux;
	}
	return STATUS_OK;
}
