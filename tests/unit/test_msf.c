#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "pdb_builder.h"
#include "symbols/msf_write.h"

enum { BLOCK = 512, STREAMS = 3, LONG = 70000 };

struct made {
	uint8_t *bytes;
	size_t size;
	struct msf msf;
	struct diag diag;
};

/* Streams of 0, 5 and LONG bytes; the last one's directory needs several blocks. */
static void make_of(struct made *m, uint32_t block_size)
{
	struct built_bytes streams[STREAMS] = {0};

	built_put(&streams[1], "hello", 5);
	for (uint32_t i = 0; i < LONG; i++)
		built_put(&streams[2], &(uint8_t){(uint8_t)(i * 7 + i / BLOCK)}, 1);
	m->bytes = built_file(streams, STREAMS, block_size, &m->size);
	diag_init(&m->diag);
	for (int i = 0; i < STREAMS; i++)
		vec_release(&streams[i].bytes);
}

static void make(struct made *m)
{
	make_of(m, BLOCK);
}

static enum status open_made(struct made *m)
{
	return msf_open_bytes(&m->msf, m->bytes, m->size, &m->diag);
}

static void streams_are_read_block_by_block(void **state)
{
	struct made m;
	struct msf_reader r;
	uint8_t part[1000];
	uint32_t at = 0;

	(void)state;
	make(&m);
	assert_int_equal(open_made(&m), STATUS_OK);
	assert_int_equal(m.msf.stream_count, STREAMS);
	assert_int_equal(m.msf.streams[0].size, 0);
	r = msf_reader_of(&m.msf, 2);
	while (msf_left(&r) > 0) {
		uint32_t size = at % 999 + 1 < LONG - at ? at % 999 + 1 : LONG - at;

		msf_read(&r, part, size);
		for (uint32_t i = 0; i < size; i++)
			assert_int_equal(part[i], (uint8_t)((at + i) * 7 + (at + i) / BLOCK));
		at += size;
	}
	assert_int_equal(at, LONG);
	assert_false(r.failed);
	msf_seek(&r, 512);
	assert_int_equal(msf_read_u32(&r) & 0xff, (uint8_t)(512 * 7 + 1));
	msf_close(&m.msf);
	free(m.bytes);
}

static void the_end_of_a_stream_is_an_error_that_stays(void **state)
{
	struct made m;
	struct msf_reader r;
	uint8_t part[6] = "xxxxxx";

	(void)state;
	make(&m);
	assert_int_equal(open_made(&m), STATUS_OK);
	r = msf_reader_of(&m.msf, 1);
	assert_int_equal(msf_read_u32(&r), 0x6c6c6568);
	msf_read(&r, part, 2);
	assert_true(r.failed);
	assert_int_equal(part[0], 0);
	msf_read(&r, part, 1);
	assert_int_equal(part[0], 0);
	assert_int_equal(msf_left(&r), 0);
	r = msf_reader_of(&m.msf, STREAMS);
	assert_int_equal(msf_read_u16(&r), 0);
	assert_true(r.failed);
	r = msf_reader_of(&m.msf, 1);
	msf_seek(&r, 6);
	assert_true(r.failed);
	msf_close(&m.msf);
	free(m.bytes);
}

/* More directory blocks than one block can list. */
static void the_directory_may_need_several_maps(void **state)
{
	enum { BIG = 129 * 128 * BLOCK };
	struct built_bytes streams[2] = {0}, *stream = &streams[1];
	struct msf_reader r;
	struct made m;

	(void)state;
	assert_true(vec_reserve(&stream->bytes, BIG));
	for (uint32_t i = 0; i < BIG; i++)
		stream->bytes.data[i] = (uint8_t)(i / BLOCK);
	stream->bytes.len = BIG;
	m.bytes = built_file(streams, 2, BLOCK, &m.size);
	assert_int_not_equal(load_u32(m.bytes + 56), 0);
	assert_int_equal(open_made(&m), STATUS_OK);
	r = msf_reader_of(&m.msf, 1);
	for (uint32_t i = 0; i < BIG; i += BLOCK) {
		msf_seek(&r, i);
		assert_int_equal(msf_read_u16(&r) & 0xff, (uint8_t)(i / BLOCK));
	}
	msf_close(&m.msf);
	free(m.bytes);
	vec_release(&stream->bytes);
}

static void assert_bad(struct made *m, const char *part)
{
	diag_init(&m->diag);
	assert_int_equal(open_made(m), STATUS_BAD_SYMBOLS);
	if (!strstr(m->diag.message, part))
		fail_msg("'%s' is not in '%s'", part, m->diag.message);
	free(m->bytes);
}

static uint8_t *directory_of(struct made *m)
{
	uint32_t map = load_u32(m->bytes + 52);

	return m->bytes + (size_t)load_u32(m->bytes + (size_t)map * BLOCK) * BLOCK;
}

static void what_is_damaged_is_refused(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	m.bytes[3] ^= 1;
	assert_bad(&m, "no PDB");
	make(&m);
	m.size = 500;
	assert_bad(&m, "no PDB");
	make(&m);
	m.size -= 1;
	assert_bad(&m, "its end is missing");
	make(&m);
	store_u32(m.bytes + 32, 768);
	assert_bad(&m, "block size");
	make(&m);
	store_u32(m.bytes + 32, 0);
	assert_bad(&m, "block size");
	make(&m);
	store_u32(m.bytes + 40, 0);
	assert_bad(&m, "no blocks");
	make(&m);
	store_u32(m.bytes + 40, UINT32_MAX);
	assert_bad(&m, "its end is missing");
	make(&m);
	store_u32(m.bytes + 44, UINT32_MAX);
	assert_bad(&m, "size of its directory");
	make(&m);
	store_u32(m.bytes + 44, 3);
	assert_bad(&m, "size of its directory");
	make(&m);
	store_u32(m.bytes + 52, 0);
	assert_bad(&m, "lists its directory's");
	make(&m);
	store_u32(m.bytes + 52, UINT32_MAX);
	assert_bad(&m, "lists its directory's");
}

static void directories_that_lie_are_refused(void **state)
{
	struct made m;

	(void)state;
	/* The block of a list in place of the directory's. */
	make(&m);
	store_u32(m.bytes + (size_t)load_u32(m.bytes + 52) * BLOCK, load_u32(m.bytes + 52));
	assert_bad(&m, "a block of its directory");
	make(&m);
	store_u32(directory_of(&m), 0x40000000);
	assert_bad(&m, "more streams");
	make(&m);
	store_u32(directory_of(&m) + 8, UINT32_MAX - 1);
	assert_bad(&m, "ends too early");
	/* Stream 1's block for one of stream 2's. */
	make(&m);
	store_u32(directory_of(&m) + 20, load_u32(directory_of(&m) + 16));
	assert_bad(&m, "of stream 2");
	make(&m);
	store_u32(directory_of(&m) + 16, (uint32_t)(m.size / BLOCK));
	assert_bad(&m, "of stream 1");
	make(&m);
	store_u32(directory_of(&m) + 16, 0);
	assert_bad(&m, "of stream 1");
}

static void a_stream_that_there_is_not_is_empty(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	store_u32(directory_of(&m) + 4, UINT32_MAX);
	assert_int_equal(open_made(&m), STATUS_OK);
	assert_int_equal(m.msf.streams[0].size, 0);
	assert_int_equal(m.msf.streams[1].size, 5);
	msf_close(&m.msf);
	free(m.bytes);
}

/* Its blocks may repeat, and have another use: it has no bytes that anybody could read. */
static void the_old_directory_is_empty(void **state)
{
	enum { REPEATED = 1000 };
	struct built_bytes streams[2] = {0};
	struct made m;
	uint8_t *numbers;

	(void)state;
	for (uint32_t i = 0; i < REPEATED * BLOCK; i++)
		built_put(&streams[0], "x", 1);
	built_put(&streams[1], "hello", 5);
	m.bytes = built_file(streams, 2, BLOCK, &m.size);
	numbers = directory_of(&m) + 12;
	for (uint32_t i = 0; i < 16; i++)
		store_u32(numbers + 4 * i, load_u32(numbers));
	diag_init(&m.diag);
	assert_int_equal(open_made(&m), STATUS_OK);
	assert_int_equal(m.msf.streams[0].size, 0);
	assert_int_equal(m.msf.streams[1].size, 5);
	msf_close(&m.msf);
	free(m.bytes);
	vec_release(&streams[0].bytes);
	vec_release(&streams[1].bytes);
}

/* Nearly 2^32 bytes, whose last block ends behind them: the writer comes to an end.  No
 * file says so in fewer bytes, so the stream is made by hand, of one block repeated. */
static void the_longest_stream_ends(void **state)
{
	enum { WIDE = 32768, BLOCKS = 131072 };
	struct msf_replacement none[STREAMS] = {0};
	struct output_file out = {.fd = open("/dev/null", O_WRONLY), .path = "null"};
	uint8_t *numbers = malloc((size_t)4 * BLOCKS);
	struct made m;

	(void)state;
	assert_non_null(numbers);
	make_of(&m, WIDE);
	assert_int_equal(open_made(&m), STATUS_OK);
	for (uint32_t i = 0; i < BLOCKS; i++)
		memcpy(numbers + (size_t)4 * i, m.msf.streams[1].blocks, 4);
	m.msf.streams[1] = (struct msf_stream){UINT32_MAX - 1, numbers};
	assert_int_equal(msf_write(&m.msf, none, &out, &m.diag), STATUS_OK);
	close(out.fd);
	msf_close(&m.msf);
	free(m.bytes);
	free(numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_read_block_by_block),
		cmocka_unit_test(the_end_of_a_stream_is_an_error_that_stays),
		cmocka_unit_test(the_directory_may_need_several_maps),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(directories_that_lie_are_refused),
		cmocka_unit_test(a_stream_that_there_is_not_is_empty),
		cmocka_unit_test(the_old_directory_is_empty),
		cmocka_unit_test(the_longest_stream_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
