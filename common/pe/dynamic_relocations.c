/* The table begins with a version and the size of what follows.  It has a group for
 * each symbol: a header and blocks like those of base relocations, a page's RVA, the
 * block's size, and entries with an offset in the page in the lower twelve bits.
 *
 *   version 1   symbol 8 bytes, size of the blocks 4
 *   version 2   size of the header 4, of the blocks 4, symbol 8, group 4, flags 4
 *
 *   symbol 3    entries of 4 bytes: 1 bit "call", 19 bits index into the IAT
 *   symbol 4    entries of 2 bytes: 1 bit "call", REX.W prefix, CFG check, reserved
 *   symbol 5    entries of 2 bytes: 4 bits register
 *   an address  entries of 2 bytes as of base relocations: 4 bits type
 *
 * (winnt.h of the Windows 11 SDK: IMAGE_DYNAMIC_RELOCATION64 and _V2,
 * IMAGE_IMPORT_CONTROL_TRANSFER_DYNAMIC_RELOCATION, IMAGE_INDIR_CONTROL_... and
 * IMAGE_SWITCHTABLE_BRANCH_...; Ghidra's and LIEF's readers agree.)  Entries of 2 bytes
 * are padded to 4 with one of zeros, which is no entry when another stands before it:
 * offsets ascend.
 *
 * Refused, because what they hold is not only places: return flow guard (1 and 2: bytes
 * of prologues), ARM64X (6), function overrides (7: RVAs of functions and decision
 * trees), and all symbols to come.
 */
#include "pe/dynamic_relocations.h"

#include <stdlib.h>

enum {
	TABLE_HEADER_BYTES = 8,
	GROUP_BYTES_1 = 12,
	GROUP_BYTES_2 = 24,
	BLOCK_HEADER_BYTES = 8,
	PAGE_BITS = 12,
	PAGE_MASK = (1 << PAGE_BITS) - 1,
	OFFSET_FIELD = 0xe0, /* DynamicValueRelocTableOffset */
	SECTION_FIELD = 0xe4, /* DynamicValueRelocTableSection */
};

struct table_reader {
	const struct image *image;
	struct dynamic_relocations *table;
	struct diag *diag;
	uint32_t fixup_room; /* no more fit the file */
};

static enum status malformed(const struct table_reader *t, const char *what)
{
	return diag_fail_at(t->diag, STATUS_MALFORMED, t->table->rva,
			    "dynamic value relocations: %s", what);
}

bool dynamic_symbol_names_instructions(uint64_t symbol)
{
	return symbol <= DYNAMIC_SYMBOL_LAST;
}

static uint32_t entry_bytes(uint64_t symbol)
{
	return symbol == DYNAMIC_GUARD_IMPORT_CONTROL_TRANSFER ? 4 : 2;
}

static enum status check_symbol(const struct table_reader *t, uint64_t symbol)
{
	static const char *const refused[] = {
		[DYNAMIC_GUARD_RF_PROLOGUE] = "return flow guard",
		[DYNAMIC_GUARD_RF_EPILOGUE] = "return flow guard",
		[DYNAMIC_ARM64X] = "code of ARM64X",
		[DYNAMIC_FUNCTION_OVERRIDE] = "functions that the system may replace",
		[DYNAMIC_ARM64_KERNEL_IMPORT_CALL] = "calls of the ARM64 kernel",
	};
	const char *what = symbol < sizeof(refused) / sizeof(refused[0]) ? refused[symbol]
									 : NULL;

	if (symbol > DYNAMIC_SYMBOL_LAST ||
	    symbol == DYNAMIC_GUARD_IMPORT_CONTROL_TRANSFER ||
	    symbol == DYNAMIC_GUARD_INDIR_CONTROL_TRANSFER ||
	    symbol == DYNAMIC_GUARD_SWITCHTABLE_BRANCH)
		return STATUS_OK;
	return diag_fail_at(t->diag, STATUS_UNSUPPORTED, t->table->rva,
			    "dynamic value relocations for %s (symbol %llu)",
			    what ? what : "something unknown", (unsigned long long)symbol);
}

/* Bytes of the word under a base relocation of `type`; 0 for others. */
static uint32_t word_bytes(uint32_t type)
{
	return type == RELOC_DIR64 ? 8 : type == RELOC_HIGHLOW ? 4 : 0;
}

static enum status add_fixup(struct table_reader *t, const struct dynamic_group *group,
			     struct dynamic_fixup fixup)
{
	bool word = !dynamic_symbol_names_instructions(group->symbol);
	uint32_t size = word ? word_bytes(fixup.rest) : 1;

	if (size == 0 || !image_section_at(t->image, fixup.site) ||
	    !image_bytes(t->image, fixup.site, size))
		return malformed(t, "a place that is none");
	if (t->table->fixup_count == t->fixup_room)
		return malformed(t, "more than the table has room for");
	t->table->fixups[t->table->fixup_count++] = fixup;
	return STATUS_OK;
}

static enum status read_block(struct table_reader *t, const struct dynamic_group *group,
			      struct rva page, struct reader entries)
{
	bool word = !dynamic_symbol_names_instructions(group->symbol);
	uint32_t width = entry_bytes(group->symbol);
	enum status status = STATUS_OK;

	if (entries.size % width)
		return malformed(t, "a block that ends within an entry");
	for (uint32_t i = 0; reader_left(&entries) && status == STATUS_OK; i++) {
		uint32_t entry = width == 4 ? read_u32(&entries) : read_u16(&entries);
		struct dynamic_fixup fixup = {rva_add(page, entry & PAGE_MASK),
					      entry >> PAGE_BITS};

		if (entry == 0 && width == 2 && reader_left(&entries) == 0 &&
		    (word || i > 0))
			break; /* padding */
		status = add_fixup(t, group, fixup);
	}
	return status;
}

static int compare_fixups(const void *a, const void *b)
{
	const struct dynamic_fixup *x = a, *y = b;

	return (x->site.v > y->site.v) - (x->site.v < y->site.v);
}

static void sort_fixups(struct dynamic_fixup *fixups, uint32_t count)
{
	if (count)
		qsort(fixups, count, sizeof(*fixups), compare_fixups);
}

static enum status read_blocks(struct table_reader *t, struct dynamic_group *group,
			       struct reader blocks)
{
	struct dynamic_fixup *fixups = t->table->fixups + t->table->fixup_count;
	enum status status = STATUS_OK;

	group->first = t->table->fixup_count;
	while (reader_left(&blocks) && status == STATUS_OK) {
		struct rva page = rva_of(read_u32(&blocks));
		uint32_t size = read_u32(&blocks);
		const uint8_t *entries;

		if (size < BLOCK_HEADER_BYTES)
			return malformed(t, "a block without a header");
		entries = read_bytes(&blocks, size - BLOCK_HEADER_BYTES);
		if (!entries)
			return malformed(t, "a block leaves the table");
		status = read_block(t, group, page,
				    reader_of(entries, size - BLOCK_HEADER_BYTES));
	}
	if (status != STATUS_OK)
		return status;
	group->count = t->table->fixup_count - group->first;
	sort_fixups(fixups, group->count);
	for (uint32_t i = 1; i < group->count; i++)
		if (fixups[i].site.v == fixups[i - 1].site.v)
			return malformed(t, "a place that is named twice");
	return STATUS_OK;
}

/* The next group: its header, and a reader over its blocks. */
static enum status read_group(struct table_reader *t, struct reader *r,
			      struct dynamic_group *ret_group, struct reader *ret_blocks)
{
	struct dynamic_group group = {0};
	const uint8_t *blocks;
	uint32_t header = GROUP_BYTES_2, size;

	if (t->table->version == 2) {
		header = read_u32(r);
		size = read_u32(r);
		group.symbol = read_u64(r);
		group.symbol_group = read_u32(r);
		group.flags = read_u32(r);
	} else {
		group.symbol = read_u64(r);
		size = read_u32(r);
	}
	if (!r->failed && header != GROUP_BYTES_2)
		return diag_fail_at(t->diag, STATUS_UNSUPPORTED, t->table->rva,
				    "dynamic value relocations with a header of %u bytes",
				    header);
	blocks = read_bytes(r, size);
	if (!blocks)
		return malformed(t, "a group leaves the table");
	*ret_blocks = reader_of(blocks, size);
	*ret_group = group;
	return check_symbol(t, group.symbol);
}

static enum status read_groups(struct table_reader *t, struct reader r)
{
	uint32_t header = t->table->version == 2 ? GROUP_BYTES_2 : GROUP_BYTES_1;
	uint32_t room = r.size / header;

	while (reader_left(&r)) {
		struct dynamic_group *group = &t->table->groups[t->table->group_count];
		struct reader blocks;
		enum status status;

		if (t->table->group_count == room)
			return malformed(t, "a group leaves the table");
		status = read_group(t, &r, group, &blocks);
		if (status == STATUS_OK)
			status = read_blocks(t, group, blocks);
		if (status != STATUS_OK)
			return status;
		t->table->group_count++;
	}
	return STATUS_OK;
}

/* Where the load configuration says that the table is. */
static enum status find_table(struct table_reader *t, const struct load_config *config,
			      const uint8_t **ret_bytes)
{
	struct dynamic_relocations *table = t->table;
	uint32_t index = config->dynamic_relocation_section - 1u;
	const struct section *section;
	const uint8_t *bytes;

	if (index >= t->image->section_count)
		return diag_fail_at(t->diag, STATUS_MALFORMED, config->rva,
				    "dynamic value relocations in section %u of %u",
				    index + 1, t->image->section_count);
	section = &t->image->sections[index];
	table->rva = rva_add(section->rva, config->dynamic_relocation_offset);
	bytes = config->dynamic_relocation_offset < section->virtual_size
			? image_bytes(t->image, table->rva, TABLE_HEADER_BYTES)
			: NULL;
	if (!bytes)
		return malformed(t, "the table leaves its section");
	table->version = load_u32(bytes);
	if (load_u32(bytes + 4) > UINT32_MAX - TABLE_HEADER_BYTES)
		return malformed(t, "the table leaves its section");
	table->size = TABLE_HEADER_BYTES + load_u32(bytes + 4);
	if (!image_bytes(t->image, table->rva, table->size))
		return malformed(t, "the table leaves its section");
	if (table->version != 1 && table->version != 2)
		return diag_fail_at(t->diag, STATUS_UNSUPPORTED, table->rva,
				    "dynamic value relocations of version %u",
				    table->version);
	*ret_bytes = bytes;
	return STATUS_OK;
}

enum status dynamic_relocations_read(struct image *image, const struct load_config *config,
				     struct dynamic_relocations *ret_relocations,
				     struct diag *diag)
{
	struct dynamic_relocations table = {0};
	struct table_reader t = {.image = image, .table = &table, .diag = diag};
	const uint8_t *bytes = NULL;
	enum status status;

	if (config->dynamic_relocation_table.v)
		return diag_fail_at(diag, STATUS_UNSUPPORTED,
				    config->dynamic_relocation_table,
				    "dynamic value relocations that are named by address");
	if (config->dynamic_relocation_section == 0) {
		*ret_relocations = table;
		return STATUS_OK;
	}
	table.offset_field = rva_add(config->rva, OFFSET_FIELD);
	table.section_field = rva_add(config->rva, SECTION_FIELD);
	status = find_table(&t, config, &bytes);
	if (status != STATUS_OK)
		return status;
	t.fixup_room = table.size / 2;
	table.groups = arena_array(&image->arena, table.size / GROUP_BYTES_1 + 1,
				   sizeof(*table.groups));
	table.fixups = arena_array(&image->arena, t.fixup_room, sizeof(*table.fixups));
	if (!table.groups || !table.fixups)
		return diag_no_memory(diag);
	status = read_groups(&t, reader_of(bytes + TABLE_HEADER_BYTES,
					   table.size - TABLE_HEADER_BYTES));
	if (status == STATUS_OK)
		*ret_relocations = table;
	return status;
}

static uint32_t page_run(const struct dynamic_fixup *fixups, uint32_t count)
{
	uint32_t run = 1;

	while (run < count &&
	       fixups[run].site.v >> PAGE_BITS == fixups->site.v >> PAGE_BITS)
		run++;
	return run;
}

static uint32_t block_bytes(uint32_t count, uint32_t width)
{
	return BLOCK_HEADER_BYTES + ((count * width + 3) & ~3u);
}

/* Bytes of the blocks for fixups that ascend; written to `p` unless that is NULL. */
static uint64_t write_blocks(const struct dynamic_fixup *fixups, uint32_t count,
			     uint32_t width, uint8_t *p)
{
	uint64_t size = 0;

	for (uint32_t i = 0, run; i < count; i += run) {
		run = page_run(fixups + i, count - i);
		for (uint32_t k = 0; p && k < run; k++) {
			uint32_t entry = (fixups[i + k].site.v & PAGE_MASK) |
					 fixups[i + k].rest << PAGE_BITS;
			uint8_t *to = p + size + BLOCK_HEADER_BYTES + (size_t)k * width;

			if (width == 4)
				store_u32(to, entry);
			else
				store_u16(to, (uint16_t)entry);
		}
		if (p) {
			store_u32(p + size, fixups[i].site.v & ~(uint32_t)PAGE_MASK);
			store_u32(p + size + 4, block_bytes(run, width));
		}
		size += block_bytes(run, width);
	}
	return size;
}

static uint8_t *write_group(const struct dynamic_relocations *was,
			    const struct dynamic_group *group,
			    const struct dynamic_fixup *fixups, uint8_t *p)
{
	uint32_t width = entry_bytes(group->symbol);
	uint32_t size = (uint32_t)write_blocks(fixups, group->count, width, NULL);

	if (was->version == 2) {
		store_u32(p, GROUP_BYTES_2);
		store_u32(p + 4, size);
		store_u64(p + 8, group->symbol);
		store_u32(p + 16, group->symbol_group);
		store_u32(p + 20, group->flags);
		p += GROUP_BYTES_2;
	} else {
		store_u64(p, group->symbol);
		store_u32(p + 8, size);
		p += GROUP_BYTES_1;
	}
	write_blocks(fixups, group->count, width, p);
	return p + size;
}

static enum status write_table(const struct dynamic_relocations *was,
			       const struct dynamic_fixup *fixups, uint8_t **ret_bytes,
			       uint32_t *ret_size, struct diag *diag)
{
	uint64_t size = TABLE_HEADER_BYTES;
	uint8_t *bytes, *p;

	for (uint32_t i = 0; i < was->group_count; i++) {
		const struct dynamic_group *group = &was->groups[i];

		size += was->version == 2 ? GROUP_BYTES_2 : GROUP_BYTES_1;
		size += write_blocks(fixups + group->first, group->count,
				     entry_bytes(group->symbol), NULL);
	}
	if (size > INT32_MAX)
		return diag_fail(diag, STATUS_NO_ROOM,
				 "too many dynamic value relocations");
	bytes = calloc(1, size);
	if (!bytes)
		return diag_no_memory(diag);
	store_u32(bytes, was->version);
	store_u32(bytes + 4, (uint32_t)size - TABLE_HEADER_BYTES);
	p = bytes + TABLE_HEADER_BYTES;
	for (uint32_t i = 0; i < was->group_count; i++)
		p = write_group(was, &was->groups[i], fixups + was->groups[i].first, p);
	*ret_bytes = bytes;
	*ret_size = (uint32_t)size;
	return STATUS_OK;
}

enum status dynamic_relocations_encode(const struct dynamic_relocations *was,
				       const struct dynamic_fixup *fixups,
				       uint8_t **ret_bytes, uint32_t *ret_size,
				       struct diag *diag)
{
	struct dynamic_fixup *sorted =
		calloc((size_t)was->fixup_count + 1, sizeof(*sorted));
	enum status status;

	if (!sorted)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < was->fixup_count; i++)
		sorted[i] = fixups[i];
	for (uint32_t i = 0; i < was->group_count; i++)
		sort_fixups(sorted + was->groups[i].first, was->groups[i].count);
	status = write_table(was, sorted, ret_bytes, ret_size, diag);
	free(sorted);
	return status;
}
