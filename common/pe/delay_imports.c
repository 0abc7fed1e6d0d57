/* Delay-load descriptors: an array that ends with one of zeros.  Each leads to
 * an address table in writable data, whose words lead at first to a stub in the
 * image, and to a name table of the same form as that of ordinary imports.
 *
 * The count of symbols comes from the name table, which the helper that loads
 * the DLL and the Windows loader both go by; the address table must have as
 * many words.
 */
#include "pe/delay_imports.h"

#include "base/vec.h"

enum {
	DESCRIPTOR_BYTES = 32,
	DELAY_ATTRIBUTES = 0,
	DELAY_NAME = 4,
	DELAY_ADDRESS_TABLE = 12,
	DELAY_NAME_TABLE = 16,
	DELAY_BOUND_TABLE = 20,
	DELAY_UNLOAD_TABLE = 24,
	ATTRIBUTE_RVA = 1, /* the fields are RVAs, not VAs */
	WORD_BYTES = 8,
};

static enum status leaves_data(struct diag *diag, struct rva rva, const char *what)
{
	return diag_fail_at(diag, STATUS_MALFORMED, rva,
			    "%s of the delay imports leaves the file's data", what);
}

static enum status count_names(const struct image *image, struct rva table,
			       uint32_t *ret_count, struct diag *diag)
{
	struct reader r = image_reader(image, table);
	uint32_t count = 0;

	while (read_u64(&r) != 0)
		count++;
	if (r.failed)
		return leaves_data(diag, table, "a name table");
	*ret_count = count;
	return STATUS_OK;
}

static enum status read_descriptor(const struct image *image, struct rva site,
				   const uint8_t *p, struct delay_import *ret_import,
				   struct diag *diag)
{
	struct delay_import import = {
		.dll = image_string(image, rva_of(load_u32(p + DELAY_NAME))),
		.site = site,
		.address_table = rva_of(load_u32(p + DELAY_ADDRESS_TABLE)),
		.name_table = rva_of(load_u32(p + DELAY_NAME_TABLE)),
		.bound_table = rva_of(load_u32(p + DELAY_BOUND_TABLE)),
		.unload_table = rva_of(load_u32(p + DELAY_UNLOAD_TABLE)),
	};
	enum status status;

	if (!(load_u32(p + DELAY_ATTRIBUTES) & ATTRIBUTE_RVA))
		return diag_fail_at(diag, STATUS_UNSUPPORTED, site,
				    "a delay-load descriptor with addresses in place of "
				    "RVAs");
	if (!import.dll)
		return leaves_data(diag, site, "a DLL name");
	if (import.name_table.v == 0 || import.address_table.v == 0)
		return diag_fail_at(diag, STATUS_MALFORMED, site,
				    "a delay-load descriptor without tables");
	status = count_names(image, import.name_table, &import.count, diag);
	if (status != STATUS_OK)
		return status;
	/* A name table of N words fits the file, so N * 8 fits 32 bits. */
	if (import.count &&
	    !image_bytes(image, import.address_table, import.count * WORD_BYTES))
		return leaves_data(diag, import.address_table, "an address table");
	*ret_import = import;
	return STATUS_OK;
}

/* How many descriptors stand before the one that ends the array. */
static enum status count_descriptors(const struct image *image, struct rva array,
				     uint32_t *ret_count, struct diag *diag)
{
	struct reader r = image_reader(image, array);
	uint32_t count = 0;

	for (;;) {
		const uint8_t *p = read_bytes(&r, DESCRIPTOR_BYTES);

		if (!p)
			return leaves_data(diag, array, "a descriptor");
		if (load_u32(p + DELAY_NAME) == 0)
			break;
		count++;
	}
	*ret_count = count;
	return STATUS_OK;
}

enum status delay_imports_read(struct image *image, struct delay_imports *ret_imports,
			       struct diag *diag)
{
	struct rva array = image->directories[DIRECTORY_DELAY_IMPORT].rva;
	struct delay_imports imports = {0};
	uint64_t words = 0;
	enum status status;

	if (array.v == 0) {
		*ret_imports = imports;
		return STATUS_OK;
	}
	status = count_descriptors(image, array, &imports.count, diag);
	if (status != STATUS_OK)
		return status;
	imports.data = arena_array(&image->arena, imports.count, sizeof(*imports.data));
	if (!imports.data)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < imports.count; i++) {
		struct rva site = rva_add(array, i * DESCRIPTOR_BYTES);
		const uint8_t *p = image_bytes(image, site, DESCRIPTOR_BYTES);

		status = read_descriptor(image, site, p, &imports.data[i], diag);
		if (status != STATUS_OK)
			return status;
		/* Many descriptors that share one long table would cost the square. */
		words += imports.data[i].count;
		if (words > image->size / WORD_BYTES)
			return diag_fail_at(diag, STATUS_MALFORMED, site,
					    "more delay imports than the file has "
					    "room for");
	}
	*ret_imports = imports;
	return STATUS_OK;
}
