/* Makes PDBs in memory, for tests; it shares no code with the readers.
 *
 *     struct pdb_builder b;
 *     pdb_builder_init(&b, 512);
 *     pdb_builder_symbol(&b, ...);
 *     bytes = pdb_builder_finish(&b, &size);     free(bytes) later
 *     pdb_builder_release(&b);
 *
 * Blocks of streams stand in the file in falling order, and the blocks that Microsoft keeps
 * for its map of free blocks stay empty.  All functions end the test when memory is out.
 */
#ifndef APPULSE_TESTS_PDB_BUILDER_H
#define APPULSE_TESTS_PDB_BUILDER_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vec.h"

enum {
	BUILT_STREAMS = 9,
	BUILT_STREAM_INFO = 1, BUILT_STREAM_DBI = 3, BUILT_STREAM_PUBLICS = 5,
	BUILT_STREAM_RECORDS = 6, BUILT_STREAM_SECTIONS = 7, BUILT_STREAM_MODULE = 8,
	BUILT_PUB32 = 0x110e, BUILT_LPROC32 = 0x110f, BUILT_GPROC32 = 0x1110,
	BUILT_LABEL32 = 0x1105, BUILT_THUNK32 = 0x1102,
};

struct built_bytes {
	VEC(uint8_t) bytes;
};

struct pdb_builder {
	uint32_t block_size;
	struct built_bytes streams[BUILT_STREAMS];
	VEC(uint32_t) publics; /* places of records */
	struct built_bytes contributions;
	struct built_bytes old_lines, lines; /* they go behind the module's symbols */
	uint8_t guid[16];
	uint32_t age;
	uint16_t machine;
	uint16_t omap;         /* stream of a map of rearrangement, 0xffff: none */
};

static inline void built_put(struct built_bytes *to, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!vec_push(&to->bytes, ((const uint8_t *)data)[i]))
			abort();
}

static inline void built_u16(struct built_bytes *to, uint16_t v)
{
	uint8_t bytes[2];

	store_u16(bytes, v);
	built_put(to, bytes, 2);
}

static inline void built_u32(struct built_bytes *to, uint32_t v)
{
	uint8_t bytes[4];

	store_u32(bytes, v);
	built_put(to, bytes, 4);
}

static inline void pdb_builder_init(struct pdb_builder *b, uint32_t block_size)
{
	memset(b, 0, sizeof(*b));
	b->block_size = block_size;
	b->age = 1;
	b->machine = 0x8664;
	b->omap = 0xffff;
	for (int i = 0; i < 16; i++)
		b->guid[i] = (uint8_t)(0x10 + i);
	built_u32(&b->streams[BUILT_STREAM_MODULE], 4);
	built_u32(&b->contributions, 0xf12eba2d);
}

static inline void pdb_builder_release(struct pdb_builder *b)
{
	for (int i = 0; i < BUILT_STREAMS; i++)
		vec_release(&b->streams[i].bytes);
	vec_release(&b->publics);
	vec_release(&b->contributions.bytes);
	vec_release(&b->old_lines.bytes);
	vec_release(&b->lines.bytes);
}

/* A record of any kind, padded to 4 bytes as linkers do. */
static inline void built_record(struct built_bytes *to, uint16_t kind, const void *fields,
				size_t size, const char *name)
{
	size_t length = size + strlen(name) + 1, padding = (4 - (length + 4) % 4) % 4;

	built_u16(to, (uint16_t)(length + padding + 2));
	built_u16(to, kind);
	built_put(to, fields, size);
	built_put(to, name, strlen(name) + 1);
	built_put(to, "\0\0\0", padding);
}

static inline void pdb_builder_public(struct pdb_builder *b, const char *name,
				      uint16_t section, uint32_t offset, bool function)
{
	struct built_bytes *records = &b->streams[BUILT_STREAM_RECORDS];
	uint8_t fields[10];

	if (!vec_push(&b->publics, records->bytes.len))
		abort();
	store_u32(fields, function ? 2 : 0);
	store_u32(fields + 4, offset);
	store_u16(fields + 8, section);
	built_record(records, BUILT_PUB32, fields, sizeof(fields), name);
}

static inline void pdb_builder_procedure(struct pdb_builder *b, uint16_t kind,
					 const char *name, uint16_t section,
					 uint32_t offset, uint32_t size)
{
	uint8_t fields[35] = {0};

	store_u32(fields + 12, size);
	store_u32(fields + 28, offset);
	store_u16(fields + 32, section);
	built_record(&b->streams[BUILT_STREAM_MODULE], kind, fields, sizeof(fields), name);
	built_record(&b->streams[BUILT_STREAM_MODULE], 6 /* S_END */, "", 0, "\0\0");
}

/* A section header as the image has it: its RVA, and nothing else that is read. */
static inline void pdb_builder_section(struct pdb_builder *b, uint32_t rva)
{
	uint8_t header[40] = {0};

	store_u32(header + 12, rva);
	built_put(&b->streams[BUILT_STREAM_SECTIONS], header, sizeof(header));
}

/* What the module gave to a section. */
static inline void pdb_builder_contribution(struct pdb_builder *b, uint16_t section,
					    uint32_t offset, uint32_t size)
{
	uint8_t row[28] = {0};

	store_u16(row, section);
	store_u32(row + 4, offset);
	store_u32(row + 8, size);
	store_u16(row + 16, 1);
	built_put(&b->contributions, row, sizeof(row));
}

/* Lines of one source file, of one contribution: pairs of an offset and a line. */
static inline void pdb_builder_lines(struct pdb_builder *b, uint16_t section, uint32_t offset,
				     uint32_t size, const uint32_t (*lines)[2], uint32_t count)
{
	struct built_bytes *to = &b->lines;

	built_u32(to, 0xf2);
	built_u32(to, 12 + 12 + 8 * count);
	built_u32(to, offset);
	built_u16(to, section);
	built_u16(to, 0);
	built_u32(to, size);
	built_u32(to, 0); /* the file */
	built_u32(to, count);
	built_u32(to, 12 + 8 * count);
	for (uint32_t i = 0; i < count; i++) {
		built_u32(to, lines[i][0]);
		built_u32(to, lines[i][1]);
	}
}

static inline void built_info(struct pdb_builder *b)
{
	struct built_bytes *info = &b->streams[BUILT_STREAM_INFO];

	built_u32(info, 20000404);
	built_u32(info, 0x5f5f5f5f);
	built_u32(info, b->age + 7);
	built_put(info, b->guid, 16);
	built_u32(info, 0);
}

static inline void built_publics(struct pdb_builder *b)
{
	struct built_bytes *publics = &b->streams[BUILT_STREAM_PUBLICS];
	uint8_t rest[20] = {0};

	built_u32(publics, 8);
	built_u32(publics, b->publics.len * 4);
	built_put(publics, rest, sizeof(rest));
	built_put(publics, "the hash", 8);
	for (uint32_t i = 0; i < b->publics.len; i++)
		built_u32(publics, b->publics.data[i]);
}

static inline void built_module(struct pdb_builder *b, struct built_bytes *list,
				uint16_t stream, uint32_t symbol_bytes)
{
	uint8_t row[64] = {0};

	store_u16(row + 34, stream);
	store_u32(row + 36, symbol_bytes);
	store_u32(row + 40, symbol_bytes ? b->old_lines.bytes.len : 0);
	store_u32(row + 44, symbol_bytes ? b->lines.bytes.len : 0);
	built_put(list, row, sizeof(row));
	built_put(list, "module\0object.obj\0\0\0\0", 20);
}

static inline void built_dbi(struct pdb_builder *b)
{
	struct built_bytes *dbi = &b->streams[BUILT_STREAM_DBI], modules = {0};
	uint8_t header[64] = {0};

	built_module(b, &modules, 0xffff, 0);
	built_module(b, &modules, BUILT_STREAM_MODULE,
		     b->streams[BUILT_STREAM_MODULE].bytes.len);
	built_put(&b->streams[BUILT_STREAM_MODULE], b->old_lines.bytes.data,
		  b->old_lines.bytes.len);
	built_put(&b->streams[BUILT_STREAM_MODULE], b->lines.bytes.data, b->lines.bytes.len);
	built_u32(&b->streams[BUILT_STREAM_MODULE], 0); /* no references to global symbols */
	store_u32(header, UINT32_MAX);
	store_u32(header + 4, 19990903);
	store_u32(header + 8, b->age);
	store_u16(header + 12, 0xffff);
	store_u16(header + 16, BUILT_STREAM_PUBLICS);
	store_u16(header + 20, BUILT_STREAM_RECORDS);
	store_u32(header + 24, modules.bytes.len);
	store_u32(header + 28, b->contributions.bytes.len);
	store_u32(header + 48, 22);
	store_u32(header + 52, 8); /* edit and continue */
	store_u16(header + 58, b->machine);
	built_put(dbi, header, sizeof(header));
	built_put(dbi, modules.bytes.data, modules.bytes.len);
	built_put(dbi, b->contributions.bytes.data, b->contributions.bytes.len);
	built_put(dbi, "names---", 8);
	for (int i = 0; i < 11; i++)
		built_u16(dbi, i == 5 ? BUILT_STREAM_SECTIONS : i == 4 ? b->omap : 0xffff);
	vec_release(&modules.bytes);
}

/* The next block from `*next` upwards that is not Microsoft's map of free blocks. */
static inline uint32_t built_block(uint32_t *next, uint32_t block_size)
{
	while (*next % block_size == 1 || *next % block_size == 2)
		++*next;
	return (*next)++;
}

/* The file of the streams, on the heap, owned by the caller. */
static inline uint8_t *built_file(const struct built_bytes *streams, uint32_t count,
				  uint32_t size, size_t *ret_size)
{
	struct built_bytes directory = {0};
	uint32_t next = 3, total = 0, used = 0, blocks, maps, *numbers;
	uint8_t *file;

	for (uint32_t i = 0; i < count; i++)
		total += (streams[i].bytes.len + size - 1) / size;
	blocks = ((1 + count + total) * 4 + size - 1) / size;
	maps = (blocks * 4 + size - 1) / size;
	numbers = calloc(total + blocks + maps, sizeof(*numbers));
	if (!numbers)
		abort();
	for (uint32_t i = total + blocks + maps; i > 0; i--)
		numbers[i - 1] = built_block(&next, size);
	file = calloc(next, size);
	if (!file)
		abort();
	built_u32(&directory, count);
	for (uint32_t i = 0; i < count; i++)
		built_u32(&directory, streams[i].bytes.len);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t at = 0; at < streams[i].bytes.len; at += size) {
			uint32_t left = streams[i].bytes.len - at;

			built_u32(&directory, numbers[used]);
			memcpy(file + (size_t)numbers[used++] * size,
			       streams[i].bytes.data + at, left < size ? left : size);
		}
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t left = directory.bytes.len - i * size;

		memcpy(file + (size_t)numbers[total + i] * size,
		       directory.bytes.data + i * size, left < size ? left : size);
		store_u32(file + (size_t)numbers[total + blocks + i * 4 / size] * size +
				  i * 4 % size, numbers[total + i]);
	}
	memcpy(file, "Microsoft C/C++ MSF 7.00\r\n\x1a" "DS\0\0", 32);
	store_u32(file + 32, size);
	store_u32(file + 36, 1);
	store_u32(file + 40, next);
	store_u32(file + 44, directory.bytes.len);
	for (uint32_t i = 0; i < maps; i++)
		store_u32(file + 52 + 4 * i, numbers[total + blocks + i]);
	*ret_size = (size_t)next * size;
	vec_release(&directory.bytes);
	free(numbers);
	return file;
}

/* Makes the streams that tell of the others, and the file. */
static inline uint8_t *pdb_builder_finish(struct pdb_builder *b, size_t *ret_size)
{
	built_info(b);
	built_publics(b);
	built_dbi(b);
	return built_file(b->streams, BUILT_STREAMS, b->block_size, ret_size);
}

#endif
