/* Three arrays: addresses (one word for each ordinal from the base on), names,
 * and for each name the index of its address.  An address that leads into the
 * export directory itself is a forwarder: a string that names another DLL's
 * export.
 */
#include "pe/exports.h"

#include <string.h>

enum {
	EXPORT_DIRECTORY_BYTES = 40,
	EXPORT_DLL_NAME = 12,
	EXPORT_ORDINAL_BASE = 16,
	EXPORT_ADDRESS_COUNT = 20,
	EXPORT_NAME_COUNT = 24,
	EXPORT_ADDRESSES = 28,
	EXPORT_NAMES = 32,
	EXPORT_ORDINALS = 36,
};

struct export_table {
	struct image *image;
	struct diag *diag;
	uint32_t base, address_count, name_count;
	struct rva addresses_rva;
	const uint8_t *addresses, *names, *ordinals; /* NULL when of no entries */
};

static enum status leaves_data(struct diag *diag, struct rva rva, const char *what)
{
	return diag_fail_at(diag, STATUS_MALFORMED, rva,
			    "%s of the export table leaves the file's data", what);
}

/* An array of `count` elements of `size` bytes, whose RVA stands at `field`. */
static enum status find_array(struct export_table *table, const uint8_t *field,
			      uint32_t count, uint32_t size, const uint8_t **ret_array)
{
	struct rva rva = rva_of(load_u32(field));
	uint64_t bytes = (uint64_t)count * size;

	*ret_array = NULL;
	if (count == 0)
		return STATUS_OK;
	if (bytes <= UINT32_MAX)
		*ret_array = image_bytes(table->image, rva, (uint32_t)bytes);
	return *ret_array ? STATUS_OK : leaves_data(table->diag, rva, "an array");
}

static enum status find_arrays(struct export_table *table, const uint8_t *directory)
{
	enum status status;

	table->base = load_u32(directory + EXPORT_ORDINAL_BASE);
	table->address_count = load_u32(directory + EXPORT_ADDRESS_COUNT);
	table->name_count = load_u32(directory + EXPORT_NAME_COUNT);
	table->addresses_rva = rva_of(load_u32(directory + EXPORT_ADDRESSES));
	status = find_array(table, directory + EXPORT_ADDRESSES, table->address_count, 4,
			    &table->addresses);
	if (status == STATUS_OK)
		status = find_array(table, directory + EXPORT_NAMES, table->name_count, 4,
				    &table->names);
	if (status == STATUS_OK)
		status = find_array(table, directory + EXPORT_ORDINALS, table->name_count,
				    2, &table->ordinals);
	return status;
}

/* Gives each address its first name: names[i] belongs to address i.  Names that many
 * exports share would cost the square to read, and no linker shares any. */
static enum status read_names(struct export_table *table, const char **names)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < table->name_count; i++) {
		struct rva rva = rva_of(load_u32(table->names + (size_t)i * 4));
		uint16_t index = load_u16(table->ordinals + (size_t)i * 2);
		const char *name = image_string(table->image, rva);

		if (!name)
			return leaves_data(table->diag, rva, "a name");
		bytes += strlen(name) + 1;
		if (bytes > table->image->size)
			return diag_fail_at(table->diag, STATUS_MALFORMED, rva,
					    "the names of the export table have more bytes "
					    "than the file");
		if (index >= table->address_count)
			return diag_fail_at(table->diag, STATUS_MALFORMED, rva,
					    "export '%s' has index %u of %u", name, index,
					    table->address_count);
		if (!names[index])
			names[index] = name;
	}
	return STATUS_OK;
}

static enum status read_entries(struct export_table *table, const char *const *names,
				struct exports *exports)
{
	const struct data_directory *directory =
		&table->image->directories[DIRECTORY_EXPORT];

	for (uint32_t i = 0; i < table->address_count; i++) {
		struct rva target = rva_of(load_u32(table->addresses + (size_t)i * 4));
		struct export_entry *entry = &exports->data[exports->count];

		if (target.v == 0)
			continue;
		*entry = (struct export_entry){
			.ordinal = table->base + i,
			.name = names[i],
			.target = target,
			.site = rva_add(table->addresses_rva, i * 4),
		};
		exports->count++;
		if (!rva_in(target, directory->rva, directory->size))
			continue;
		entry->forwarder = image_string(table->image, target);
		if (!entry->forwarder)
			return leaves_data(table->diag, target, "a forwarder");
	}
	return STATUS_OK;
}

enum status exports_read(struct image *image, struct exports *ret_exports,
			 struct diag *diag)
{
	struct rva rva = image->directories[DIRECTORY_EXPORT].rva;
	uint32_t size = image->directories[DIRECTORY_EXPORT].size;
	const uint8_t *directory = image_bytes(image, rva, EXPORT_DIRECTORY_BYTES);
	struct export_table table = {.image = image, .diag = diag};
	struct exports exports = {0};
	const char **names;
	enum status status;

	if (rva.v == 0) {
		*ret_exports = exports;
		return STATUS_OK;
	}
	if (!directory || !image_bytes(image, rva, size))
		return leaves_data(diag, rva, "the directory");
	rva = rva_of(load_u32(directory + EXPORT_DLL_NAME));
	exports.dll_name = rva.v ? image_string(image, rva) : "";
	if (!exports.dll_name)
		return leaves_data(diag, rva, "the DLL name");
	status = find_arrays(&table, directory);
	if (status != STATUS_OK)
		return status;
	names = arena_array(&image->arena, table.address_count, sizeof(*names));
	exports.data = arena_array(&image->arena, table.address_count,
				   sizeof(*exports.data));
	if (!names || !exports.data)
		return diag_no_memory(diag);
	status = read_names(&table, names);
	if (status == STATUS_OK)
		status = read_entries(&table, names, &exports);
	if (status == STATUS_OK)
		*ret_exports = exports;
	return status;
}
