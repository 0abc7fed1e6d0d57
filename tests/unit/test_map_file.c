#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "layout/map_file.h"

static int enter_folder(void **state)
{
	char name[] = "/tmp/appulse-test-XXXXXX";

	if (!mkdtemp(name) || chdir(name) != 0)
		return -1;
	*state = strdup(name);
	return *state ? 0 : -1;
}

static int leave_folder(void **state)
{
	unlink("a.map");
	unlink("b.map");
	if (chdir("/") != 0 || rmdir(*state) != 0)
		return -1;
	free(*state);
	return 0;
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define HASHES "\"original\":\"" ZEROS "\",\"relinked\":\"" ZEROS "\""
#define HEAD "{\"format\":\"appulse-map\",\"schema\":1," HASHES ","

static enum status parse(const char *text, struct move_map *map, struct diag *diag)
{
	memset(map, 0, sizeof(*map));
	diag_init(diag);
	return move_map_parse(map, text, strlen(text), diag);
}

static void test_refuses_what_is_no_map(void **state)
{
	static const char *const texts[] = {
		"",
		"no JSON",
		"[]",
		"{}",
		"{\"format\":\"other\",\"schema\":1," HASHES ",\"moves\":[]}",
		"{\"format\":\"appulse-map\"," HASHES ",\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":2," HASHES ",\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":0," HASHES ",\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":\"1\"," HASHES ",\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":1,\"moves\":[]}",
		/* A hash that is cut off, one with another letter, one in capitals. */
		"{\"format\":\"appulse-map\",\"schema\":1,\"original\":\"00\",\"relinked\":"
		"\"" ZEROS "\",\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":1,\"original\":\"" ZEROS
		"\",\"relinked\":\""
		"g000000000000000000000000000000000000000000000000000000000000000\","
		"\"moves\":[]}",
		"{\"format\":\"appulse-map\",\"schema\":1,\"original\":\"" ZEROS
		"\",\"relinked\":\""
		"A000000000000000000000000000000000000000000000000000000000000000\","
		"\"moves\":[]}",
		HEAD "\"moves\":{}}",
		HEAD "\"moves\":[1]}",
		HEAD "\"moves\":[[1,2]]}",
		HEAD "\"moves\":[[1,2,3,4]]}",
		HEAD "\"moves\":[[1,2,\"3\"]]}",
		HEAD "\"moves\":[[1,2,3.0]]}",
		HEAD "\"moves\":[[1,2,null]]}",
		HEAD "\"moves\":[]} x",
		HEAD "\"moves\":[],\"moves\":[]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct move_map map;
		struct diag diag;

		assert_int_equal(parse(texts[i], &map, &diag), STATUS_BAD_MAP);
		assert_int_not_equal(diag.message[0], '\0');
	}
}

static void test_refuses_moves_that_contradict(void **state)
{
	static const char *const moves[] = {
		"[16,32,0]",   /* empty */
		"[-16,32,16]", /* negative */
		"[16,-32,16]",
		"[16,32,-16]",
		"[4294967296,32,16]", /* 2^32 */
		"[16,4294967296,16]",
		"[16,32,4294967296]",
		"[9999999999999999999999,32,16]", /* 2^64 and more */
		"[4294967280,32,16]",             /* ends at 2^32 */
		"[16,4294967281,16]",             /* ends behind 2^32 */
		"[16,32,16],[16,64,16]",          /* the same twice */
		"[16,32,16],[31,64,1]",           /* overlap in the original */
		"[31,64,1],[16,32,16]",
		"[16,32,16],[64,47,16]", /* overlap in the relinked image */
		"[16,47,16],[64,32,16]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		char text[512];
		struct move_map map;
		struct diag diag;

		snprintf(text, sizeof(text), HEAD "\"moves\":[%s]}", moves[i]);
		if (parse(text, &map, &diag) != STATUS_BAD_MAP)
			fail_msg("accepted: %s", moves[i]);
	}
}

static void test_accepts_the_limits(void **state)
{
	struct move_map map;
	struct diag diag;

	(void)state;
	assert_int_equal(parse(HEAD "\"moves\":[]}", &map, &diag), STATUS_OK);
	assert_int_equal(map.moves.len, 0);
	assert_int_equal(move_map_forward(&map, rva_of(5)).v, 5);
	move_map_release(&map);

	/* Neighbours, a swap, the last byte that a move can have; a key more. */
	assert_int_equal(parse(HEAD "\"later\":1,\"moves\":[[32,16,16],[16,32,16],"
				    "[0,4294967279,16]]}",
			       &map, &diag),
			 STATUS_OK);
	assert_int_equal(map.moves.len, 3);
	assert_int_equal(move_map_forward(&map, rva_of(15)).v, 4294967294u);
	assert_int_equal(move_map_forward(&map, rva_of(16)).v, 32);
	assert_int_equal(move_map_forward(&map, rva_of(47)).v, 31);
	assert_int_equal(move_map_forward(&map, rva_of(48)).v, 48);
	move_map_release(&map);
}

/* A generator of our own, so that a failing seed is the same everywhere. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Cuts `span` bytes into pieces and permutes some of them among equals, the naive
 * way: by a table of every byte. */
enum { SPAN = 4096 };
#define GONE UINT32_MAX

static void make_moves(uint32_t seed, struct move_map *map, uint32_t *forward,
		       uint32_t *backward)
{
	uint32_t begins[SPAN], sizes[SPAN], count = 0, random = seed;

	memset(map, 0, sizeof(*map));
	for (uint32_t at = 0; at < SPAN; count++) {
		begins[count] = at;
		sizes[count] = 1 + next_random(&random) % 40;
		if (sizes[count] > SPAN - at)
			sizes[count] = SPAN - at;
		at += sizes[count];
	}
	for (uint32_t i = 0; i < SPAN; i++)
		forward[i] = backward[i] = i;
	/* A piece goes into the place of a larger one, which goes out of the span. */
	for (uint32_t k = 0, out = SPAN; k < count / 4; k++) {
		uint32_t a = next_random(&random) % count, b = next_random(&random) % count;
		struct move in = {rva_of(begins[a]), rva_of(begins[b]), sizes[a]};
		struct move away = {rva_of(begins[b]), rva_of(out), sizes[b]};

		if (a == b || sizes[a] > sizes[b] || sizes[a] == 0)
			continue;
		assert_true(vec_push(&map->moves, away));
		assert_true(vec_push(&map->moves, in));
		for (uint32_t i = 0; i < sizes[b]; i++) {
			forward[begins[b] + i] = out + i;
			backward[begins[b] + i] = i < sizes[a] ? begins[a] + i : GONE;
		}
		for (uint32_t i = 0; i < sizes[a]; i++) {
			forward[begins[a] + i] = begins[b] + i;
			backward[begins[a] + i] = GONE;
		}
		out += sizes[b];
		sizes[a] = sizes[b] = 0;
	}
}

static void test_translates_like_a_table_of_bytes(void **state)
{
	static uint32_t forward[SPAN], backward[SPAN];

	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct move_map map;
		struct diag diag;

		make_moves(seed, &map, forward, backward);
		assert_int_equal(move_map_finish(&map, &diag), STATUS_OK);
		assert_true(map.moves.len > 10);
		for (uint32_t i = 0; i < SPAN; i++) {
			bool gone;
			struct rva there = move_map_forward(&map, rva_of(i)), back;

			assert_int_equal(there.v, forward[i]);
			back = move_map_backward(&map, there, &gone);
			assert_false(gone);
			assert_int_equal(back.v, i);
			back = move_map_backward(&map, rva_of(i), &gone);
			assert_int_equal(gone, backward[i] == GONE);
			if (!gone)
				assert_int_equal(back.v, backward[i]);
		}
		move_map_release(&map);
	}
}

static bool move_begins_or_ends(const struct move_map *map, uint32_t rva)
{
	for (uint32_t i = 0; i < map->moves.len; i++)
		if (map->moves.data[i].from.v == rva ||
		    map->moves.data[i].from.v + map->moves.data[i].size == rva)
			return true;
	return false;
}

/* A stretch goes to the begin or end of the next move, and no further than asked for. */
static void test_stretches_are_whole(void **state)
{
	static uint32_t forward[SPAN], backward[SPAN];
	struct move_map map, none = {0};
	struct diag diag;
	struct rva to;

	(void)state;
	make_moves(3, &map, forward, backward);
	assert_int_equal(move_map_finish(&map, &diag), STATUS_OK);
	for (uint32_t i = 0; i < SPAN; i++) {
		uint32_t all = move_map_stretch(&map, rva_of(i), SPAN - i, &to);

		assert_true(all >= 1 && all <= SPAN - i);
		assert_int_equal(to.v, forward[i]);
		for (uint32_t k = 1; k < all; k++) {
			assert_int_equal(forward[i + k], to.v + k);
			assert_false(move_begins_or_ends(&map, i + k));
		}
		assert_true(all == SPAN - i || move_begins_or_ends(&map, i + all));
		assert_int_equal(move_map_stretch(&map, rva_of(i), 1, &to), 1);
		assert_int_equal(move_map_stretch(&map, rva_of(i), 0, &to), 0);
	}
	move_map_release(&map);
	assert_int_equal(move_map_stretch(&none, rva_of(77), 1000, &to), 1000);
	assert_int_equal(to.v, 77);
}

static void test_reads_what_it_writes(void **state)
{
	static uint32_t forward[SPAN], backward[SPAN];
	struct mapped_file a, b;
	struct move_map map, again;
	struct diag diag;

	(void)state;
	make_moves(7, &map, forward, backward);
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		map.original.bytes[i] = (uint8_t)(i * 9);
		map.relinked.bytes[i] = (uint8_t)(255 - i);
	}
	assert_int_equal(move_map_finish(&map, &diag), STATUS_OK);
	assert_int_equal(move_map_write(&map, "a.map", false, &diag), STATUS_OK);
	assert_int_equal(move_map_write(&map, "a.map", false, &diag), STATUS_EXISTS);
	assert_int_equal(move_map_write(&map, "a.map", true, &diag), STATUS_OK);

	assert_int_equal(move_map_read(&again, "a.map", &diag), STATUS_OK);
	assert_memory_equal(&again.original, &map.original, sizeof(map.original));
	assert_memory_equal(&again.relinked, &map.relinked, sizeof(map.relinked));
	assert_int_equal(again.moves.len, map.moves.len);
	assert_memory_equal(again.moves.data, map.moves.data,
			    map.moves.len * sizeof(*map.moves.data));

	/* The same map gives the same bytes, whatever the sequence was. */
	for (uint32_t i = 0; i < again.moves.len / 2; i++) {
		struct move *x = &again.moves.data[i];
		struct move *y = &again.moves.data[again.moves.len - 1 - i], swap = *x;

		*x = *y;
		*y = swap;
	}
	assert_int_equal(move_map_finish(&again, &diag), STATUS_OK);
	assert_int_equal(move_map_write(&again, "b.map", false, &diag), STATUS_OK);
	assert_int_equal(mapped_file_open(&a, "a.map", &diag), STATUS_OK);
	assert_int_equal(mapped_file_open(&b, "b.map", &diag), STATUS_OK);
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.data, b.data, a.size);
	mapped_file_close(&a);
	mapped_file_close(&b);
	move_map_release(&map);
	move_map_release(&again);
}

static void test_names_the_file(void **state)
{
	struct move_map map;
	struct diag diag;

	(void)state;
	diag_init(&diag);
	assert_int_equal(move_map_read(&map, "none.map", &diag), STATUS_IO);
	assert_int_equal(file_write("a.map", "{", 1, false, &diag), STATUS_OK);
	assert_int_equal(move_map_read(&map, "a.map", &diag), STATUS_BAD_MAP);
	assert_string_equal(diag.file, "a.map");
}

/* Every cut of a good map is refused or, were it whole, the same: never a crash. */
static void test_survives_cuts(void **state)
{
	static const char text[] = HEAD "\"moves\":[[32,16,16],[16,32,16]]}";

	(void)state;
	for (size_t size = 0; size + 1 < sizeof(text); size++) {
		char *copy = malloc(size ? size : 1);
		struct move_map map;
		struct diag diag;

		assert_non_null(copy);
		memcpy(copy, text, size);
		assert_int_equal(move_map_parse(&map, copy, size, &diag), STATUS_BAD_MAP);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_is_no_map),
		cmocka_unit_test(test_refuses_moves_that_contradict),
		cmocka_unit_test(test_accepts_the_limits),
		cmocka_unit_test(test_translates_like_a_table_of_bytes),
		cmocka_unit_test(test_stretches_are_whole),
		cmocka_unit_test_setup_teardown(test_reads_what_it_writes, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(test_names_the_file, enter_folder,
						leave_folder),
		cmocka_unit_test(test_survives_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
