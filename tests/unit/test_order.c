#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "layout/order.h"
#include "made_graph.h"

/* Blocks of 32 bytes at 0x1000, 0x1040, 0x1080, ...; the third has two functions,
 * so that functions and blocks are numbered apart from there. */
static void make_graph(struct made_graph *made, uint32_t blocks)
{
	made_graph_init(made);
	made_graph_section(made, 0x1000, blocks * 64);
	for (uint32_t i = 0; i < blocks; i++) {
		made_graph_block(made, 0x1000 + i * 64, 32, i % 7 == 6, NULL);
		if (i == 2)
			made_graph_split(made, 16, "second");
	}
}

static struct rva block_begin(uint32_t block)
{
	return rva_of(0x1000 + block * 64);
}

static void assert_blocks(const struct order *order, const uint32_t *blocks, uint32_t count)
{
	assert_int_equal(order->blocks.len, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(order->blocks.data[i], blocks[i]);
}

#define ASSERT_BLOCKS(order, ...)                                                          \
	assert_blocks(order, (const uint32_t[]){__VA_ARGS__},                              \
		      sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void original_moves_nothing(void **state)
{
	struct made_graph made;
	struct order order;

	(void)state;
	make_graph(&made, 5);
	assert_int_equal(order_original(&made.graph, &order, NULL), STATUS_OK);
	assert_int_equal(order.blocks.len, 0);
	order_release(&order);
	made_graph_release(&made);
}

static void random_permutes_what_may_move(void **state)
{
	struct made_graph made;
	struct order order;
	uint32_t seen[100] = {0}, movable = 0, in_place = 0;

	(void)state;
	make_graph(&made, 100);
	for (uint32_t id = 0; id < 100; id++)
		movable += made.graph.blocks.data[id].pins == 0;
	assert_int_equal(order_random(&made.graph, 5, &order, NULL), STATUS_OK);
	assert_int_equal(order.blocks.len, movable);
	for (uint32_t i = 0; i < order.blocks.len; i++) {
		uint32_t id = order.blocks.data[i];

		assert_true(id < 100 && made.graph.blocks.data[id].pins == 0);
		assert_int_equal(seen[id]++, 0);
		in_place += i > 0 && order.blocks.data[i - 1] + 1 == id;
	}
	assert_true(in_place < movable / 4);
	order_release(&order);
	made_graph_release(&made);
}

static void random_depends_on_seed_alone(void **state)
{
	struct made_graph made;
	struct order first, second, other;

	(void)state;
	make_graph(&made, 50);
	assert_int_equal(order_random(&made.graph, 7, &first, NULL), STATUS_OK);
	assert_int_equal(order_random(&made.graph, 7, &second, NULL), STATUS_OK);
	assert_int_equal(order_random(&made.graph, 8, &other, NULL), STATUS_OK);
	assert_int_equal(first.blocks.len, other.blocks.len);
	assert_memory_equal(first.blocks.data, second.blocks.data,
			    first.blocks.len * sizeof(uint32_t));
	assert_memory_not_equal(first.blocks.data, other.blocks.data,
				first.blocks.len * sizeof(uint32_t));
	order_release(&first);
	order_release(&second);
	order_release(&other);
	made_graph_release(&made);
}

/* Each of three blocks comes to each place about as often as to any other. */
static void random_is_even(void **state)
{
	struct made_graph made;
	uint32_t counts[3][3] = {{0}};

	(void)state;
	make_graph(&made, 3);
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct order order;

		assert_int_equal(order_random(&made.graph, seed, &order, NULL), STATUS_OK);
		for (uint32_t i = 0; i < 3; i++)
			counts[order.blocks.data[i]][i]++;
		order_release(&order);
	}
	for (uint32_t i = 0; i < 9; i++)
		assert_in_range(counts[i / 3][i % 3], 900, 1100);
	made_graph_release(&made);
}

static void first_touch_of_one_run(void **state)
{
	struct made_graph made;
	struct rva touched[] = {block_begin(6), block_begin(4), {0x1090}, block_begin(0)};
	struct profile_run run = {1, touched, 4};
	struct profile profile = {&run, 1};
	struct order order;

	(void)state;
	make_graph(&made, 8);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	ASSERT_BLOCKS(&order, 6, 4, 2,
		      0); /* block 6 is pinned and in the order all the same */
	assert_int_equal(order.unmatched, 0);
	order_release(&order);
	made_graph_release(&made);
}

static void first_touch_prefers_weight_then_rank(void **state)
{
	struct made_graph made;
	struct rva heavy[] = {block_begin(5), block_begin(1), block_begin(3)};
	struct rva light[] = {block_begin(0), block_begin(3), block_begin(1)};
	struct profile_run runs[] = {{2, heavy, 3}, {1, light, 3}};
	struct profile profile = {runs, 2};
	struct order order;

	(void)state;
	make_graph(&made, 6);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	/* 1: ranks 1/2 and 1, mean 2/3.  3: ranks 1 and 1/2, mean 5/6.  Both runs
	 * touched them.  5 has only the heavy run, 0 only the light one. */
	ASSERT_BLOCKS(&order, 1, 3, 5, 0);
	order_release(&order);
	made_graph_release(&made);
}

/* Equal weight and equal mean: by address. */
static void first_touch_breaks_ties_by_address(void **state)
{
	struct made_graph made;
	struct rva one[] = {block_begin(4), block_begin(1)};
	struct rva two[] = {block_begin(1), block_begin(4)};
	struct profile_run runs[] = {{1, one, 2}, {1, two, 2}};
	struct profile profile = {runs, 2};
	struct order order;

	(void)state;
	make_graph(&made, 6);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	ASSERT_BLOCKS(&order, 1, 4);
	order_release(&order);
	made_graph_release(&made);
}

/* A weight of 1 that three runs share counts as much as one run's. */
static void first_touch_adds_shares_of_a_weight(void **state)
{
	struct made_graph made;
	struct rva shared[] = {block_begin(1)}, alone[] = {block_begin(3)};
	struct profile_run runs[] = {{1.0 / 3, shared, 1},
				     {1, alone, 1},
				     {1.0 / 3, shared, 1},
				     {1.0 / 3, shared, 1}};
	struct profile profile = {runs, 4};
	struct order order;

	(void)state;
	make_graph(&made, 6);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	ASSERT_BLOCKS(&order, 1, 3); /* a tie */
	order_release(&order);
	made_graph_release(&made);
}

static void first_touch_counts_strangers_once(void **state)
{
	struct made_graph made;
	struct rva one[] = {
		{0x1001}, block_begin(1), {0x9000}}; /* inside a function; nowhere */
	struct rva two[] = {{0x9000}, block_begin(0)};
	struct profile_run runs[] = {{1, one, 3}, {1, two, 2}};
	struct profile profile = {runs, 2};
	struct order order;

	(void)state;
	make_graph(&made, 4);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	assert_int_equal(order.unmatched, 2);
	ASSERT_BLOCKS(&order, 1, 0);
	order_release(&order);
	made_graph_release(&made);
}

static void first_touch_of_no_runs_is_empty(void **state)
{
	struct made_graph made;
	struct profile profile = {NULL, 0};
	struct order order;

	(void)state;
	make_graph(&made, 4);
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	assert_int_equal(order.blocks.len, 0);
	order_release(&order);
	made_graph_release(&made);
}

/* --- the naive version: for each function a search through all runs --- */

enum { NAIVE_BLOCKS = 60, NAIVE_RUNS = 9 };

struct naive_key {
	double weight, mean;
};

static struct naive_key naive_key(const struct profile *profile, struct rva begin)
{
	struct naive_key key = {0};
	double sum = 0;

	for (uint32_t r = 0; r < profile->run_count; r++) {
		const struct profile_run *run = &profile->runs[r];

		for (uint32_t i = 0; i < run->count; i++) {
			if (run->touched[i].v != begin.v)
				continue;
			key.weight += run->weight;
			sum += run->weight *
			       (run->count > 1 ? (double)i / (run->count - 1) : 0);
		}
	}
	key.mean = key.weight > 0 ? sum / key.weight : 0;
	return key;
}

static bool naive_before(struct naive_key a, struct naive_key b)
{
	if (fabs(a.weight - b.weight) > 1e-9)
		return a.weight > b.weight;
	return a.mean < b.mean - 1e-6;
}

/* The best of the block's functions. */
static struct naive_key naive_block_key(const struct graph *graph,
					const struct profile *profile, uint32_t id)
{
	const struct block *block = &graph->blocks.data[id];
	struct naive_key best = {0};

	for (uint32_t i = 0; i < block->function_count; i++) {
		uint32_t function = block->first_function + i;
		struct naive_key key =
			naive_key(profile, graph->functions.data[function].begin);

		if (key.weight > 0 && (best.weight <= 0 || naive_before(key, best)))
			best = key;
	}
	return best;
}

/* Runs that touch some of the functions, each in a sequence of its own. */
static void draw_runs(const struct graph *graph, struct dice *dice,
		      struct profile_run *runs, struct rva (*touched)[NAIVE_BLOCKS * 2])
{
	for (uint32_t r = 0; r < NAIVE_RUNS; r++) {
		uint32_t count = 0;

		for (uint32_t f = 0; f < graph->functions.len; f++) {
			uint32_t at;

			if (dice_roll(dice, 4) == 0)
				continue;
			at = dice_roll(dice, count + 1);
			touched[r][count++] = touched[r][at];
			touched[r][at] = graph->functions.data[f].begin;
		}
		runs[r] = (struct profile_run){1 + dice_roll(dice, 3), touched[r], count};
	}
}

static void first_touch_agrees_with_naive(void **state)
{
	static struct rva touched[NAIVE_RUNS][NAIVE_BLOCKS * 2];

	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct dice dice = {seed};
		struct made_graph made;
		struct profile_run runs[NAIVE_RUNS];
		struct profile profile = {runs, NAIVE_RUNS};
		struct order order;
		bool seen[NAIVE_BLOCKS] = {false};

		make_graph(&made, NAIVE_BLOCKS);
		draw_runs(&made.graph, &dice, runs, touched);
		assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL),
				 STATUS_OK);
		for (uint32_t i = 0; i < order.blocks.len; i++) {
			uint32_t id = order.blocks.data[i];
			struct naive_key key = naive_block_key(&made.graph, &profile, id);

			assert_false(seen[id]);
			seen[id] = true;
			assert_true(key.weight > 0);
			if (i > 0)
				assert_false(naive_before(
					key, naive_block_key(&made.graph, &profile,
							     order.blocks.data[i - 1])));
		}
		for (uint32_t id = 0; id < NAIVE_BLOCKS; id++)
			assert_int_equal(seen[id],
					 naive_block_key(&made.graph, &profile, id).weight >
						 0);
		order_release(&order);
		made_graph_release(&made);
	}
}

/* The sequence in which runs are given does not matter. */
static void first_touch_ignores_the_sequence_of_runs(void **state)
{
	static struct rva touched[NAIVE_RUNS][NAIVE_BLOCKS * 2];
	struct dice dice = {99};
	struct made_graph made;
	struct profile_run runs[NAIVE_RUNS], turned[NAIVE_RUNS];
	struct profile profile = {runs, NAIVE_RUNS}, turned_profile = {turned, NAIVE_RUNS};
	struct order order, other;

	(void)state;
	make_graph(&made, NAIVE_BLOCKS);
	draw_runs(&made.graph, &dice, runs, touched);
	for (uint32_t i = 0; i < NAIVE_RUNS; i++) {
		runs[i].weight = 0.1 * (i + 1);
		turned[NAIVE_RUNS - 1 - i] = runs[i];
	}
	assert_int_equal(order_first_touch(&made.graph, &profile, &order, NULL), STATUS_OK);
	assert_int_equal(order_first_touch(&made.graph, &turned_profile, &other, NULL),
			 STATUS_OK);
	assert_int_equal(order.blocks.len, other.blocks.len);
	assert_memory_equal(order.blocks.data, other.blocks.data,
			    order.blocks.len * sizeof(uint32_t));
	order_release(&order);
	order_release(&other);
	made_graph_release(&made);
}

/* --- orders from a file --- */

static void make_named_graph(struct made_graph *made)
{
	static const char *names[] = {"main", "helper", NULL, "init", "helper", "helper2"};

	made_graph_init(made);
	made_graph_section(made, 0x1000, 0x1000);
	for (uint32_t i = 0; i < 6; i++)
		made_graph_block(made, 0x1000 + i * 64, 32, false, names[i]);
	made_graph_split(made, 16, "tail");
}

static enum status read_text(struct made_graph *made, const char *text, size_t size,
			     struct order *ret_order, struct diag *diag)
{
	/* An exact copy on the heap, so that a sanitizer sees a read past its end. */
	char *copy = malloc(size + !size);
	enum status status;

	assert_non_null(copy);
	memcpy(copy, text, size);
	status = order_from_file(&made->graph, copy, size, ret_order, diag);
	free(copy);
	return status;
}

static void assert_file(const char *text, const uint32_t *blocks, uint32_t count)
{
	struct made_graph made;
	struct order order;
	struct diag diag;

	make_named_graph(&made);
	assert_int_equal(read_text(&made, text, strlen(text), &order, &diag), STATUS_OK);
	assert_blocks(&order, blocks, count);
	order_release(&order);
	made_graph_release(&made);
}

#define ASSERT_FILE(text, ...)                                                             \
	assert_file(text, (const uint32_t[]){__VA_ARGS__},                                 \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void file_gives_names_and_rvas(void **state)
{
	(void)state;
	ASSERT_FILE("init\nmain\n0x1080\n", 3, 0, 2);
	ASSERT_FILE("# comment\r\n\r\n  init # its name\r\n\t0X1081\t\r\nmain", 3, 2, 0);
	ASSERT_FILE("\xef\xbb\xbfmain\n", 0);
	ASSERT_FILE("0x0000000000001000", 0);
}

static void file_may_repeat_blocks(void **state)
{
	(void)state;
	ASSERT_FILE("tail\nmain\nhelper2\n0x1140\nmain\n", 5, 0);
}

static void file_name_of_several_means_all(void **state)
{
	(void)state;
	ASSERT_FILE("helper\n", 1, 4);
	ASSERT_FILE("helper2\nhelper\n", 5, 1, 4);
}

static void file_of_comments_is_empty(void **state)
{
	(void)state;
	assert_file("", NULL, 0);
	assert_file("\n#\n  # x\n", NULL, 0);
}

static void assert_bad(const char *text, size_t size, const char *message)
{
	struct made_graph made;
	struct order order = {.unmatched = 77};
	struct diag diag;

	make_named_graph(&made);
	assert_int_equal(read_text(&made, text, size, &order, &diag), STATUS_BAD_ORDER);
	assert_string_equal(diag.message, message);
	assert_int_equal(order.unmatched, 77);
	assert_null(order.blocks.data);
	made_graph_release(&made);
}

#define ASSERT_BAD(text, message) assert_bad(text, sizeof(text) - 1, message)

static void file_with_bad_line_is_refused(void **state)
{
	(void)state;
	ASSERT_BAD("main\n\nhelp\n", "line 3: 'help' is no function of this image");
	ASSERT_BAD("helper22", "line 1: 'helper22' is no function of this image");
	ASSERT_BAD("main helper", "line 1: 'main helper' is no function of this image");
	ASSERT_BAD("0x1020", "line 1: '0x1020' lies in no function");
	ASSERT_BAD("0x", "line 1: '0x' is no hexadecimal RVA");
	ASSERT_BAD("0x10g0", "line 1: '0x10g0' is no hexadecimal RVA");
	ASSERT_BAD("0x100001000",
		   "line 1: '0x100001000' is no RVA, it needs more than 32 bits");
	ASSERT_BAD("main\0x", "line 1: 'main?x' is no function of this image");
	ASSERT_BAD("\x1b[1m", "line 1: '?[1m' is no function of this image");
}

static void file_with_endless_line_is_refused(void **state)
{
	char text[4096], message[256];

	(void)state;
	memset(text, 'a', sizeof(text));
	snprintf(message, sizeof(message), "line 1: '%.80s' is no function of this image",
		 text);
	assert_bad(text, sizeof(text), message);
	memset(text, '0', sizeof(text));
	text[1] = 'x';
	text[sizeof(text) - 1] = '!';
	snprintf(message, sizeof(message), "line 1: '%.80s' is no hexadecimal RVA", text);
	assert_bad(text, sizeof(text), message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(original_moves_nothing),
		cmocka_unit_test(random_permutes_what_may_move),
		cmocka_unit_test(random_depends_on_seed_alone),
		cmocka_unit_test(random_is_even),
		cmocka_unit_test(first_touch_of_one_run),
		cmocka_unit_test(first_touch_prefers_weight_then_rank),
		cmocka_unit_test(first_touch_breaks_ties_by_address),
		cmocka_unit_test(first_touch_adds_shares_of_a_weight),
		cmocka_unit_test(first_touch_counts_strangers_once),
		cmocka_unit_test(first_touch_of_no_runs_is_empty),
		cmocka_unit_test(first_touch_agrees_with_naive),
		cmocka_unit_test(first_touch_ignores_the_sequence_of_runs),
		cmocka_unit_test(file_gives_names_and_rvas),
		cmocka_unit_test(file_may_repeat_blocks),
		cmocka_unit_test(file_name_of_several_means_all),
		cmocka_unit_test(file_of_comments_is_empty),
		cmocka_unit_test(file_with_bad_line_is_refused),
		cmocka_unit_test(file_with_endless_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
