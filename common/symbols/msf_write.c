/* All blocks are planned first, then written in the file's order: the superblock, the maps
 * of free blocks where they must stand, the streams one behind the other, the directory,
 * and the list of its blocks.
 *
 * Each run of `block_size` blocks begins with a block of its own and two for maps of free
 * blocks, of which the first is the one in use ("The MSF File Format", "The Free Block
 * Map").  A bit is set for a free block; there are none but behind the end.
 */
#include "symbols/msf_write.h"

#include <stdlib.h>

enum {
	SUPERBLOCK_FIELDS = 32,
	SUPERBLOCK_MAPS = 52,
	FREE_MAP = 1,
	FORGET_BYTES =
		1 << 20, /* of a stream; then they are given back to the page cache */
};

struct msf_writer {
	const struct msf *msf;
	const struct msf_replacement *replacements;
	struct output_file *out;
	struct diag *diag;
	uint32_t size; /* of a block */
	uint64_t next; /* block to plan; then block to write */
	uint64_t block_count;
	uint8_t *directory;         /* owned */
	uint32_t directory_size;    /* bytes */
	uint32_t *directory_blocks; /* owned: their numbers */
	uint32_t directory_block_count;
	uint32_t lists[128]; /* blocks that list them */
	uint32_t list_count;
	uint8_t *block; /* owned: one block's bytes */
};

static bool is_free_map(const struct msf_writer *w, uint64_t block)
{
	return block % w->size == 1 || block % w->size == 2;
}

static uint32_t plan_block(struct msf_writer *w)
{
	while (is_free_map(w, w->next))
		w->next++;
	return (uint32_t)w->next++;
}

static uint32_t size_of(const struct msf_writer *w, uint32_t stream)
{
	return w->replacements[stream].bytes ? w->replacements[stream].size
					     : w->msf->streams[stream].size;
}

static uint32_t blocks_of(const struct msf_writer *w, uint64_t bytes)
{
	return (uint32_t)((bytes + w->size - 1) / w->size);
}

/* Places of all streams, and of the directory that says so. */
static enum status plan(struct msf_writer *w)
{
	uint32_t count = w->msf->stream_count;
	uint64_t numbers = 1 + count;
	uint8_t *at;

	for (uint32_t i = 0; i < count; i++)
		numbers += blocks_of(w, size_of(w, i));
	if (numbers > UINT32_MAX / 4)
		return diag_fail(w->diag, STATUS_NO_ROOM, "the PDB would be too large");
	w->directory_size = (uint32_t)numbers * 4;
	w->directory_block_count = blocks_of(w, w->directory_size);
	w->list_count = blocks_of(w, (uint64_t)w->directory_block_count * 4);
	if (w->list_count > (w->size - SUPERBLOCK_MAPS) / 4 ||
	    w->list_count > sizeof(w->lists) / sizeof(w->lists[0]))
		return diag_fail(w->diag, STATUS_NO_ROOM, "the PDB would be too large");
	w->directory = malloc(w->directory_size);
	w->directory_blocks =
		calloc(w->directory_block_count, sizeof(*w->directory_blocks));
	w->block = malloc(w->size);
	if (!w->directory || !w->directory_blocks || !w->block)
		return diag_no_memory(w->diag);
	w->next = 3;
	store_u32(w->directory, count);
	at = w->directory + 4 + (size_t)4 * count;
	for (uint32_t i = 0; i < count; i++) {
		/* A stream that there is not is one without blocks. */
		store_u32(w->directory + 4 + (size_t)4 * i, size_of(w, i));
		for (uint32_t b = 0; b < blocks_of(w, size_of(w, i)); b++, at += 4)
			store_u32(at, plan_block(w));
	}
	for (uint32_t i = 0; i < w->directory_block_count; i++)
		w->directory_blocks[i] = plan_block(w);
	for (uint32_t i = 0; i < w->list_count; i++)
		w->lists[i] = plan_block(w);
	w->block_count = w->next;
	return w->block_count > UINT32_MAX
		       ? diag_fail(w->diag, STATUS_NO_ROOM, "the PDB would be too large")
		       : STATUS_OK;
}

static enum status put_block(struct msf_writer *w)
{
	w->next++;
	return output_file_write(w->out, w->block, w->size, w->diag);
}

/* Bit i of map m stands for block m * 8 * size + i, whichever run the map stands in. */
static enum status put_free_map(struct msf_writer *w)
{
	uint64_t first = w->next / w->size * w->size * 8;

	memset(w->block, w->next % w->size == FREE_MAP ? 0 : 0xff, w->size);
	for (uint64_t i = 0; i < (uint64_t)w->size * 8 && w->next % w->size == FREE_MAP;
	     i++)
		if (first + i >= w->block_count)
			w->block[i / 8] |= (uint8_t)(1 << i % 8);
	return put_block(w);
}

/* The next block of content, which stands in w->block. */
static enum status put_content(struct msf_writer *w)
{
	enum status status = STATUS_OK;
	uint8_t *content = w->block, *map = malloc(w->size);

	if (!map)
		return diag_no_memory(w->diag);
	w->block = map;
	while (status == STATUS_OK && is_free_map(w, w->next))
		status = put_free_map(w);
	w->block = content;
	free(map);
	return status == STATUS_OK ? put_block(w) : status;
}

static enum status put_superblock(struct msf_writer *w)
{
	memset(w->block, 0, w->size);
	memcpy(w->block, w->msf->bytes, SUPERBLOCK_FIELDS);
	store_u32(w->block + 32, w->size);
	store_u32(w->block + 36, FREE_MAP);
	store_u32(w->block + 40, (uint32_t)w->block_count);
	store_u32(w->block + 44, w->directory_size);
	for (uint32_t i = 0; i < w->list_count; i++)
		store_u32(w->block + SUPERBLOCK_MAPS + 4 * i, w->lists[i]);
	return put_block(w);
}

static enum status put_stream(struct msf_writer *w, uint32_t stream)
{
	const struct msf_replacement *new = &w->replacements[stream];
	struct msf_reader r = msf_reader_of(w->msf, stream);
	uint32_t size = size_of(w, stream);
	enum status status = STATUS_OK;

	/* Of 64 bits: the last block may end behind 2^32. */
	for (uint64_t at = 0; at < size && status == STATUS_OK; at += w->size) {
		uint32_t part = size - at < w->size ? (uint32_t)(size - at) : w->size;

		memset(w->block, 0, w->size);
		if (new->bytes)
			memcpy(w->block, new->bytes + at, part);
		else
			msf_read(&r, w->block, part);
		status = r.failed ? diag_fail(w->diag, STATUS_BAD_SYMBOLS,
					      "a damaged PDB: stream %u ends too early",
					      stream)
				  : put_content(w);
	}
	if (size >= FORGET_BYTES)
		msf_forget(w->msf);
	return status;
}

static enum status put_directory(struct msf_writer *w)
{
	enum status status = STATUS_OK;

	for (uint64_t at = 0; at < w->directory_size && status == STATUS_OK;
	     at += w->size) {
		uint64_t left = w->directory_size - at;

		memset(w->block, 0, w->size);
		memcpy(w->block, w->directory + at, left < w->size ? left : w->size);
		status = put_content(w);
	}
	for (uint32_t i = 0; i < w->list_count && status == STATUS_OK; i++) {
		memset(w->block, 0, w->size);
		for (uint32_t b = 0; b < w->size / 4; b++) {
			uint32_t index = i * (w->size / 4) + b;

			if (index < w->directory_block_count)
				store_u32(w->block + 4 * b, w->directory_blocks[index]);
		}
		status = put_content(w);
	}
	return status;
}

static enum status put_file(struct msf_writer *w)
{
	enum status status;

	w->next = 0;
	status = put_superblock(w);
	for (uint32_t i = 0; i < w->msf->stream_count && status == STATUS_OK; i++)
		status = put_stream(w, i);
	return status == STATUS_OK ? put_directory(w) : status;
}

enum status msf_write(const struct msf *msf, const struct msf_replacement *replacements,
		      struct output_file *out, struct diag *diag)
{
	struct msf_writer w = {.msf = msf,
			       .replacements = replacements,
			       .out = out,
			       .diag = diag,
			       .size = msf->block_size};
	enum status status = plan(&w);

	if (status == STATUS_OK)
		status = put_file(&w);
	free(w.directory);
	free(w.directory_blocks);
	free(w.block);
	return status;
}

uint8_t *msf_stream_copy(const struct msf *msf, uint32_t stream)
{
	struct msf_reader r = msf_reader_of(msf, stream);
	uint8_t *bytes = malloc((size_t)r.end + 1);

	if (bytes)
		msf_read(&r, bytes, r.end);
	return bytes;
}
