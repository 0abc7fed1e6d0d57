/* Opening is where all doubt is settled: each block number is looked at once, and a bit
 * for each block tells whether it is taken.  Readers need no more checks than the
 * stream's size, and all streams together have no more bytes than the file.
 *
 * Stream 0 is the directory as it was before.  Its blocks may have got another use, and
 * nobody reads it, so it counts as empty.
 *
 * The superblock (block 0) leads to the blocks of the directory over one step more: it
 * holds numbers of blocks, and those blocks hold the numbers of the directory's.  LLVM
 * reads one number and expects the others right behind it; Microsoft's library takes as
 * many numbers as are needed, and that is what is done here.
 */
#include "symbols/msf.h"

#include <stdlib.h>

static const char magic[] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
			    "DS\0\0";

enum {
	MAGIC_BYTES = 32, /* with the NULs */
	SUPERBLOCK_BLOCK_SIZE = 32,
	SUPERBLOCK_BLOCK_COUNT = 40,
	SUPERBLOCK_DIRECTORY_SIZE = 44,
	SUPERBLOCK_MAP = 52, /* numbers of the blocks that list the directory's */
	/* Beyond 4096 since Visual Studio 2019 (/PDBPAGESIZE). */
	BLOCK_SIZE_MIN = 512,
	BLOCK_SIZE_MAX = 32768,
	NO_STREAM_SIZE = -1,
	STREAM_OLD_DIRECTORY = 0,
};

static enum status bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, STATUS_BAD_SYMBOLS, "a damaged PDB: %s", what);
}

static uint64_t blocks_of(const struct msf *msf, uint32_t size)
{
	return ((uint64_t)size + msf->block_size - 1) / msf->block_size;
}

static const uint8_t *block_at(const struct msf *msf, uint32_t number)
{
	return msf->bytes + (uint64_t)number * msf->block_size;
}

static enum status read_superblock(struct msf *msf, struct diag *diag)
{
	const uint8_t *b = msf->bytes;

	if (msf->size < BLOCK_SIZE_MIN || memcmp(b, magic, MAGIC_BYTES) != 0)
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "no PDB: it does not begin as an MSF 7.00 file does");
	msf->block_size = load_u32(b + SUPERBLOCK_BLOCK_SIZE);
	msf->block_count = load_u32(b + SUPERBLOCK_BLOCK_COUNT);
	msf->directory_size = load_u32(b + SUPERBLOCK_DIRECTORY_SIZE);
	if (msf->block_size < BLOCK_SIZE_MIN || msf->block_size > BLOCK_SIZE_MAX ||
	    (msf->block_size & (msf->block_size - 1)))
		return bad(diag, "its block size is none");
	if ((uint64_t)msf->block_count * msf->block_size > msf->size)
		return bad(diag, "its end is missing");
	if (msf->block_count == 0)
		return bad(diag, "it has no blocks");
	return STATUS_OK;
}

/* Takes a block for one use; false when it is outside of the file or in use. */
static bool take_block(const struct msf *msf, uint8_t *taken, uint32_t number)
{
	uint8_t bit = (uint8_t)(1 << number % 8);

	if (number == 0 || number >= msf->block_count || (taken[number / 8] & bit))
		return false;
	taken[number / 8] |= bit;
	return true;
}

static enum status read_directory(struct msf *msf, uint8_t *taken, struct diag *diag)
{
	uint64_t blocks = blocks_of(msf, msf->directory_size);
	uint32_t per_block = msf->block_size / 4;
	uint32_t left = msf->directory_size;
	uint32_t map = 0;

	/* Each directory block holds something else, so it cannot exceed the file. */
	if (msf->directory_size < 4 || blocks >= msf->block_count ||
	    (blocks + per_block - 1) / per_block > (msf->block_size - SUPERBLOCK_MAP) / 4)
		return bad(diag, "the size of its directory is none");
	msf->directory = malloc(msf->directory_size);
	if (!msf->directory)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t number, size = left < msf->block_size ? left : msf->block_size;

		if (i % per_block == 0) {
			map = load_u32(msf->bytes + SUPERBLOCK_MAP + 4 * (i / per_block));
			if (!take_block(msf, taken, map))
				return bad(diag, "a block that lists its directory's is in "
						 "use twice or outside of the file");
		}
		number = load_u32(block_at(msf, map) + 4 * (i % per_block));
		if (!take_block(msf, taken, number))
			return bad(diag, "a block of its directory is in use twice or "
					 "outside of the file");
		memcpy(msf->directory + (msf->directory_size - left), block_at(msf, number),
		       size);
		left -= size;
	}
	return STATUS_OK;
}

static enum status take_stream(const struct msf *msf, uint8_t *taken, uint32_t stream,
			       struct diag *diag)
{
	const struct msf_stream *s = &msf->streams[stream];
	uint64_t blocks = blocks_of(msf, s->size);

	for (uint64_t i = 0; i < blocks; i++) {
		uint32_t number = load_u32(s->blocks + 4 * i);

		if (!take_block(msf, taken, number))
			return diag_fail(diag, STATUS_BAD_SYMBOLS,
					 "a damaged PDB: block %u of stream %u is in use "
					 "twice or outside of the file",
					 number, stream);
	}
	return STATUS_OK;
}

static enum status read_streams(struct msf *msf, uint8_t *taken, struct diag *diag)
{
	struct reader r = reader_of(msf->directory, msf->directory_size);
	struct reader lists;
	uint32_t count = read_u32(&r);
	enum status status = STATUS_OK;

	if (count > reader_left(&r) / 4)
		return bad(diag, "it has more streams than its directory has room for");
	msf->streams = calloc((size_t)count + 1, sizeof(*msf->streams));
	if (!msf->streams)
		return diag_no_memory(diag);
	msf->stream_count = count;
	lists = r;
	read_skip(&lists, (size_t)count * 4);
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
		uint32_t size = read_u32(&r);

		msf->streams[i].size = size == (uint32_t)NO_STREAM_SIZE ? 0 : size;
		msf->streams[i].blocks =
			read_bytes(&lists, blocks_of(msf, msf->streams[i].size) * 4);
		if (lists.failed)
			return bad(diag, "its directory ends too early");
		if (i == STREAM_OLD_DIRECTORY)
			msf->streams[i].size = 0;
		else
			status = take_stream(msf, taken, i, diag);
	}
	return status;
}

enum status msf_open_bytes(struct msf *msf, const void *bytes, uint64_t size,
			   struct diag *diag)
{
	uint8_t *taken = NULL;
	enum status status;

	memset(msf, 0, sizeof(*msf));
	msf->bytes = bytes;
	msf->size = size;
	status = read_superblock(msf, diag);
	if (status != STATUS_OK)
		return status;
	taken = calloc((size_t)msf->block_count / 8 + 1, 1);
	status = taken ? read_directory(msf, taken, diag) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = read_streams(msf, taken, diag);
	free(taken);
	if (status != STATUS_OK)
		msf_close(msf);
	return status;
}

enum status msf_open(struct msf *msf, const char *path, struct diag *diag)
{
	struct mapped_file file;
	enum status status = mapped_file_open(&file, path, diag);

	if (status != STATUS_OK)
		return status;
	status = msf_open_bytes(msf, file.data, file.size, diag);
	if (status == STATUS_OK)
		msf->file = file;
	else
		mapped_file_close(&file);
	diag_set_file(diag, path);
	return status;
}

void msf_close(struct msf *msf)
{
	free(msf->directory);
	free(msf->streams);
	mapped_file_close(&msf->file);
	memset(msf, 0, sizeof(*msf));
}

struct msf_reader msf_reader_of(const struct msf *msf, uint32_t stream)
{
	struct msf_reader r = {.msf = msf};

	if (stream < msf->stream_count) {
		r.stream = msf->streams[stream];
		r.end = r.stream.size;
	}
	return r;
}

void msf_read(struct msf_reader *r, void *to, uint32_t size)
{
	uint32_t block_size = r->msf->block_size;
	uint8_t *out = to;

	if (size > msf_left(r)) {
		r->failed = true;
		memset(to, 0, size);
		return;
	}
	while (size > 0) {
		uint32_t at = r->pos % block_size;
		uint32_t part = size < block_size - at ? size : block_size - at;
		uint32_t number =
			load_u32(r->stream.blocks + (size_t)4 * (r->pos / block_size));

		memcpy(out, block_at(r->msf, number) + at, part);
		out += part;
		r->pos += part;
		size -= part;
	}
}

void msf_skip(struct msf_reader *r, uint32_t size)
{
	if (size > msf_left(r))
		r->failed = true;
	else
		r->pos += size;
}

void msf_seek(struct msf_reader *r, uint32_t pos)
{
	if (pos > r->end)
		r->failed = true;
	else
		r->pos = pos;
}

void msf_forget(const struct msf *msf)
{
	mapped_file_forget(&msf->file, 0, msf->file.size);
}

uint16_t msf_read_u16(struct msf_reader *r)
{
	uint8_t bytes[2];

	msf_read(r, bytes, sizeof(bytes));
	return load_u16(bytes);
}

uint32_t msf_read_u32(struct msf_reader *r)
{
	uint8_t bytes[4];

	msf_read(r, bytes, sizeof(bytes));
	return load_u32(bytes);
}
