/* The structure grew with every version of Windows, and its first field says
 * how long this one is; fields beyond it count as 0.  The size in the data
 * directory is no help: old linkers always wrote 64 there.
 *
 * Offsets are those of IMAGE_LOAD_CONFIG_DIRECTORY64 (winnt.h of the Windows
 * 11 SDK).  The stride of the guard tables follows from the upper four bits of the
 * guard flags (Microsoft Learn, "PE Metadata", Control Flow Guard; llvm-readobj
 * reads all four tables so).  lld writes rows of 4 bytes and leaves these bits 0, but
 * the table of EH continuation targets has rows of 5 all the same (observed: lld 14; its
 * source, COFF/Chunks.h, RVAFlagTableChunk).  So where the bits are 0 that table is read
 * both ways: in one of them it ascends, leads to code and has no flags; when it does in
 * both, which takes two rows in a large image and chance, it is refused.
 */
#include "pe/load_config.h"

#include <string.h>

enum {
	LOCK_PREFIXES = 0x20,
	SECURITY_COOKIE = 0x58,
	GUARD_CHECK = 0x70,
	GUARD_DISPATCH = 0x78,
	GUARD_FUNCTIONS = 0x80,
	GUARD_FLAGS = 0x90,
	GUARD_ADDRESS_TAKEN_IAT = 0xa0,
	GUARD_LONG_JUMPS = 0xb0,
	DYNAMIC_RELOCATION_TABLE = 0xc0,
	CHPE_METADATA = 0xc8,
	DYNAMIC_RELOCATION_OFFSET = 0xe0,
	DYNAMIC_RELOCATION_SECTION = 0xe4,
	HOT_PATCHES = 0xf0,
	VOLATILE_METADATA = 0x100,
	GUARD_EH_CONTINUATIONS = 0x108,
	KNOWN_BYTES = 0x148, /* up to UmaFunctionPointers */
	GUARD_STRIDE_SHIFT = 28, /* IMAGE_GUARD_CF_FUNCTION_TABLE_SIZE_SHIFT */
};

struct config_reader {
	const struct image *image;
	struct rva rva;
	uint8_t bytes[KNOWN_BYTES]; /* zero where the file's structure has ended */
	uint32_t extra;             /* metadata bytes of guard table entries */
	struct diag *diag;
	enum status status; /* sticky */
};

/* The pointer at `offset` as an RVA, 0 when it is null. */
static struct rva pointer_at(struct config_reader *r, uint32_t offset)
{
	uint64_t va = load_u64(r->bytes + offset);
	const struct pe_headers *h = &r->image->headers;

	if (va == 0 || r->status != STATUS_OK)
		return rva_of(0);
	if (va < h->image_base || va - h->image_base >= h->size_of_image) {
		r->status = diag_fail_at(r->diag, STATUS_MALFORMED, rva_add(r->rva, offset),
					 "a pointer of the load configuration leads "
					 "outside the image");
		return rva_of(0);
	}
	return rva_of((uint32_t)(va - h->image_base));
}

/* The rows of a table, NULL when they leave the file's data. */
static const uint8_t *rows_of(const struct config_reader *r,
			      const struct guard_table *table)
{
	uint64_t size = (uint64_t)table->count * (4 + table->extra);

	if (size > UINT32_MAX)
		return NULL;
	return image_bytes(r->image, table->rva, (uint32_t)size);
}

/* The system searches guard tables by bisection. */
static bool ascends(const struct config_reader *r, const struct guard_table *table)
{
	uint32_t stride = 4 + table->extra;
	const uint8_t *row = rows_of(r, table);

	for (uint32_t i = 1; row && i < table->count; i++, row += stride)
		if (load_u32(row) > load_u32(row + stride))
			return false;
	return row != NULL;
}

/* The pointer and the count at `offset` and behind it. */
static struct guard_table find_table(struct config_reader *r, uint32_t offset)
{
	struct guard_table table = {.rva = pointer_at(r, offset), .extra = r->extra};
	uint64_t count = load_u64(r->bytes + offset + 8);

	if (table.rva.v == 0 || count == 0)
		return table;
	/* Beyond 32 bits no data are that long. */
	table.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	if (!rows_of(r, &table))
		r->status = diag_fail_at(r->diag, STATUS_MALFORMED, table.rva,
					 "a guard table of %llu entries leaves the file's "
					 "data", (unsigned long long)count);
	return table;
}

static struct guard_table table_at(struct config_reader *r, uint32_t offset)
{
	struct guard_table table = find_table(r, offset);

	if (r->status == STATUS_OK && table.count && !ascends(r, &table))
		r->status = diag_fail_at(r->diag, STATUS_MALFORMED, table.rva,
					 "a guard table that does not ascend");
	return table;
}

/* Whether rows of 4 + `extra` bytes lead to code, each behind the last, without flags. */
static bool leads_to_code(const struct config_reader *r, struct guard_table table,
			  uint32_t extra)
{
	const uint8_t *row;

	table.extra = extra;
	row = ascends(r, &table) ? rows_of(r, &table) : NULL;
	for (uint32_t i = 0; row && i < table.count; i++, row += 4 + extra)
		if (!image_is_code(r->image, rva_of(load_u32(row))) || (extra && row[4]))
			return false;
	return row != NULL;
}

/* In one row alone both ways are the same. */
static struct guard_table continuations_at(struct config_reader *r, uint32_t offset)
{
	struct guard_table table = find_table(r, offset);

	if (r->extra || table.count < 2 || r->status != STATUS_OK ||
	    !leads_to_code(r, table, 1))
		return table_at(r, offset);
	if (leads_to_code(r, table, 0))
		r->status = diag_fail_at(r->diag, STATUS_UNSUPPORTED, table.rva,
					 "EH continuation targets in rows of 4 bytes or "
					 "of 5");
	table.extra = 1;
	return table;
}

static void read_fields(struct config_reader *r, struct load_config *config)
{
	config->guard_flags = load_u32(r->bytes + GUARD_FLAGS);
	r->extra = config->guard_flags >> GUARD_STRIDE_SHIFT;
	config->lock_prefixes = pointer_at(r, LOCK_PREFIXES);
	config->hot_patches = load_u32(r->bytes + HOT_PATCHES);
	config->security_cookie = pointer_at(r, SECURITY_COOKIE);
	config->guard_check_pointer = pointer_at(r, GUARD_CHECK);
	config->guard_dispatch_pointer = pointer_at(r, GUARD_DISPATCH);
	config->functions = table_at(r, GUARD_FUNCTIONS);
	config->address_taken_iat = table_at(r, GUARD_ADDRESS_TAKEN_IAT);
	config->long_jumps = table_at(r, GUARD_LONG_JUMPS);
	config->eh_continuations = continuations_at(r, GUARD_EH_CONTINUATIONS);
	config->chpe_metadata = pointer_at(r, CHPE_METADATA);
	config->volatile_metadata = pointer_at(r, VOLATILE_METADATA);
	config->dynamic_relocation_table = pointer_at(r, DYNAMIC_RELOCATION_TABLE);
	config->dynamic_relocation_offset = load_u32(r->bytes + DYNAMIC_RELOCATION_OFFSET);
	config->dynamic_relocation_section =
		load_u16(r->bytes + DYNAMIC_RELOCATION_SECTION);
}

/* The first byte that says something in a field that we do not know, or 0. */
static struct rva find_unknown(const struct load_config *config, const uint8_t *bytes)
{
	for (uint32_t i = KNOWN_BYTES; i < config->size; i++)
		if (bytes[i])
			return rva_add(config->rva, i);
	return rva_of(0);
}

enum status load_config_read(const struct image *image, struct load_config *ret_config,
			     struct diag *diag)
{
	struct config_reader r = {.image = image, .diag = diag,
				  .rva = image->directories[DIRECTORY_LOAD_CONFIG].rva};
	struct load_config config = {.rva = r.rva};
	const uint8_t *bytes;

	if (r.rva.v == 0) {
		*ret_config = config;
		return STATUS_OK;
	}
	bytes = image_bytes(image, r.rva, 4);
	config.size = bytes ? load_u32(bytes) : 0;
	bytes = image_bytes(image, r.rva, config.size);
	if (config.size < 4 || !bytes)
		return diag_fail_at(diag, STATUS_MALFORMED, r.rva,
				    "a load configuration of %u bytes", config.size);
	memcpy(r.bytes, bytes, config.size < KNOWN_BYTES ? config.size : KNOWN_BYTES);
	config.unknown = find_unknown(&config, bytes);
	read_fields(&r, &config);
	if (r.status == STATUS_OK)
		*ret_config = config;
	return r.status;
}
