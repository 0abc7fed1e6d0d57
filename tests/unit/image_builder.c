#include "image_builder.h"

#include <stdlib.h>
#include <string.h>

enum { MACHINE_X64 = 0x8664, DLL_CHARACTERISTICS = 0x2022, SYMBOL_SIZE = 18 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static uint32_t align_up(uint32_t v, uint32_t alignment)
{
	return (v + alignment - 1) / alignment * alignment;
}

static struct built_section *last_section(struct image_builder *b)
{
	require(b->section_count > 0);
	return &b->sections[b->section_count - 1];
}

static uint32_t memory_size(const struct built_section *section)
{
	if (section->virtual_size)
		return section->virtual_size;
	return section->bytes.len ? section->bytes.len : 1;
}

void image_builder_init(struct image_builder *b)
{
	memset(b, 0, sizeof(*b));
	b->image_base = BUILT_IMAGE_BASE;
	b->section_alignment = 0x1000;
	b->file_alignment = 0x200;
	b->header_rows = BUILT_HEADER_ROWS;
	b->machine = MACHINE_X64;
	b->characteristics = DLL_CHARACTERISTICS;
}

void image_builder_release(struct image_builder *b)
{
	for (uint32_t i = 0; i < b->section_count; i++)
		vec_release(&b->sections[i].bytes);
	vec_release(&b->symbols);
}

static uint32_t headers_size(const struct image_builder *b)
{
	/* Room for all rows, so that the first section's RVA is known at once. */
	return align_up(BUILT_SECTIONS + b->header_rows * 40, b->file_alignment);
}

static uint32_t memory_end(const struct image_builder *b)
{
	const struct built_section *last;

	if (b->section_count == 0)
		return align_up(headers_size(b), b->section_alignment);
	last = &b->sections[b->section_count - 1];
	return align_up(last->rva.v + memory_size(last), b->section_alignment);
}

struct rva image_builder_section(struct image_builder *b, const char *name,
				 uint32_t characteristics)
{
	struct built_section section = {.rva = rva_of(memory_end(b)),
					.characteristics = characteristics};

	require(b->section_count < b->header_rows && b->header_rows <= BUILT_SECTION_MAX &&
		strlen(name) <= 8);
	memcpy(section.name, name, strlen(name));
	b->sections[b->section_count++] = section;
	return section.rva;
}

struct rva image_builder_here(const struct image_builder *b)
{
	const struct built_section *last = &b->sections[b->section_count - 1];

	return rva_add(last->rva, last->bytes.len);
}

struct rva image_builder_put(struct image_builder *b, const void *data, size_t size)
{
	struct built_section *section = last_section(b);
	struct rva rva = image_builder_here(b);

	if (size == 0)
		return rva;
	require(vec_reserve(&section->bytes, section->bytes.len + size));
	memcpy(section->bytes.data + section->bytes.len, data, size);
	section->bytes.len += (uint32_t)size;
	return rva;
}

struct rva image_builder_fill(struct image_builder *b, uint8_t byte, size_t count)
{
	struct rva rva = image_builder_here(b);

	while (count--)
		require(vec_push(&last_section(b)->bytes, byte));
	return rva;
}

struct rva image_builder_u16(struct image_builder *b, uint16_t v)
{
	uint8_t bytes[] = {(uint8_t)v, (uint8_t)(v >> 8)};

	return image_builder_put(b, bytes, sizeof(bytes));
}

struct rva image_builder_u32(struct image_builder *b, uint32_t v)
{
	struct rva rva = image_builder_u16(b, (uint16_t)v);

	image_builder_u16(b, (uint16_t)(v >> 16));
	return rva;
}

struct rva image_builder_u64(struct image_builder *b, uint64_t v)
{
	struct rva rva = image_builder_u32(b, (uint32_t)v);

	image_builder_u32(b, (uint32_t)(v >> 32));
	return rva;
}

struct rva image_builder_va(struct image_builder *b, struct rva rva)
{
	return image_builder_u64(b, b->image_base + rva.v);
}

struct rva image_builder_string(struct image_builder *b, const char *text)
{
	return image_builder_put(b, text, strlen(text) + 1);
}

struct rva image_builder_align(struct image_builder *b, uint32_t alignment)
{
	while (image_builder_here(b).v % alignment)
		image_builder_fill(b, 0, 1);
	return image_builder_here(b);
}

uint8_t *image_builder_at(struct image_builder *b, struct rva rva)
{
	for (uint32_t i = 0; i < b->section_count; i++) {
		struct built_section *section = &b->sections[i];

		if (rva_in(rva, section->rva, section->bytes.len))
			return section->bytes.data + (rva.v - section->rva.v);
	}
	abort();
}

void image_builder_virtual_size(struct image_builder *b, uint32_t size)
{
	last_section(b)->virtual_size = size;
}

void image_builder_directory(struct image_builder *b, uint32_t index, struct rva rva,
			     uint32_t size)
{
	b->directories[index] = (struct data_directory){rva, size};
}

void image_builder_symbol(struct image_builder *b, const char *name, uint32_t value,
			  uint16_t section, uint16_t type, uint8_t storage_class,
			  uint8_t aux_count)
{
	uint8_t row[SYMBOL_SIZE] = {0};

	require(strlen(name) <= 8);
	memcpy(row, name, strlen(name));
	store_u32(row + 8, value);
	store_u16(row + 12, section);
	store_u16(row + 14, type);
	row[16] = storage_class;
	row[17] = aux_count;
	for (size_t i = 0; i < sizeof(row); i++)
		require(vec_push(&b->symbols, row[i]));
	b->symbol_count++;
}

static void write_headers(const struct image_builder *b, uint8_t *file, uint32_t symbols)
{
	uint8_t *header = file + BUILT_FILE_HEADER, *optional = file + BUILT_OPTIONAL;

	memcpy(file, "MZ", 2);
	store_u32(file + 0x3c, BUILT_PE);
	memcpy(file + BUILT_PE, "PE\0\0", 4);
	store_u16(header, b->machine);
	store_u16(header + 2, (uint16_t)b->section_count);
	store_u32(header + 4, 0x5eaf00d5); /* time stamp */
	store_u32(header + 8, b->symbols.len ? symbols : 0);
	store_u32(header + 12, b->symbol_count);
	store_u16(header + 16, 240);
	store_u16(header + 18, b->characteristics);
	store_u16(optional, 0x20b);
	store_u32(optional + 16, b->entry.v);
	store_u64(optional + 24, b->image_base);
	store_u32(optional + 32, b->section_alignment);
	store_u32(optional + 36, b->file_alignment);
	store_u16(optional + 48, 6); /* subsystem version */
	store_u32(optional + 56, memory_end(b));
	store_u32(optional + 60, headers_size(b));
	store_u32(optional + 64, 0x12345678); /* checksum */
	store_u16(optional + 68, 3);          /* console */
	store_u16(optional + 70, 0x160);
	store_u32(optional + 108, DIRECTORY_COUNT);
	for (uint32_t i = 0; i < DIRECTORY_COUNT; i++) {
		store_u32(optional + 112 + (size_t)i * 8, b->directories[i].rva.v);
		store_u32(optional + 116 + (size_t)i * 8, b->directories[i].size);
	}
}

static void write_section(const struct built_section *section, uint8_t *row, uint8_t *data,
			  uint32_t raw, uint32_t raw_size)
{
	memcpy(row, section->name, 8);
	store_u32(row + 8, memory_size(section));
	store_u32(row + 12, section->rva.v);
	store_u32(row + 16, raw_size);
	store_u32(row + 20, raw_size ? raw : 0);
	store_u32(row + 36, section->characteristics);
	if (raw_size)
		memcpy(data, section->bytes.data, section->bytes.len);
}

uint8_t *image_builder_finish(const struct image_builder *b, size_t *ret_size)
{
	uint32_t raw = headers_size(b), symbols = raw;
	uint8_t *file;

	for (uint32_t i = 0; i < b->section_count; i++)
		symbols += align_up(b->sections[i].bytes.len, b->file_alignment);
	*ret_size = (size_t)symbols + b->symbols.len;
	file = calloc(*ret_size, 1);
	require(file != NULL);
	write_headers(b, file, symbols);
	for (uint32_t i = 0; i < b->section_count; i++) {
		uint32_t raw_size = align_up(b->sections[i].bytes.len, b->file_alignment);

		write_section(&b->sections[i], file + BUILT_SECTIONS + (size_t)i * 40,
			      file + raw, raw, raw_size);
		raw += raw_size;
	}
	if (b->symbols.len)
		memcpy(file + symbols, b->symbols.data, b->symbols.len);
	return file;
}

void built_image_open(struct built_image *built, const struct image_builder *b)
{
	built->bytes = image_builder_finish(b, &built->size);
	diag_init(&built->diag);
	built->status = image_open_bytes(&built->image, built->bytes, built->size, "built",
					 &built->diag);
}

void built_image_close(struct built_image *built)
{
	image_release(&built->image);
	free(built->bytes);
}
