#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "layout/placement_queue.h"
#include "made_graph.h"

enum { BLOCKS = 300 };

/* The rule of the header, by looking at every waiting block. */
static uint32_t naive_take(const struct graph *graph, const uint32_t *sequence, bool *gone,
			   uint32_t place, uint32_t room, uint32_t lookahead)
{
	uint32_t first = BLOCKS, best = BLOCKS, best_gap = PLACEMENT_ALIGNMENT;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const struct block *block = &graph->blocks.data[sequence[i]];
		uint32_t gap = 0;

		if (gone[i])
			continue;
		while ((place + gap) % PLACEMENT_ALIGNMENT !=
		       block->begin.v % PLACEMENT_ALIGNMENT)
			gap++;
		if (gap + block->size > room)
			continue;
		if (first == BLOCKS)
			first = i;
		if (i - first <= lookahead && gap < best_gap) {
			best = i;
			best_gap = gap;
		}
	}
	if (best == BLOCKS)
		return NO_BLOCK;
	gone[best] = true;
	return sequence[best];
}

static void shuffle(uint32_t *sequence, struct dice *dice)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint32_t at = dice_roll(dice, i + 1);

		sequence[i] = sequence[at];
		sequence[at] = i;
	}
}

static void takes_what_a_search_finds(void **state)
{
	static const uint32_t lookaheads[] = {0, 1, 8, 64, 1000};
	static const struct made_mix mix = {BLOCKS, 0, 600, 60};

	(void)state;
	for (uint32_t round = 0; round < 25; round++) {
		struct dice dice = {round + 1};
		struct made_graph made;
		struct block_queue queue;
		uint32_t sequence[BLOCKS], taken = 0;
		bool gone[BLOCKS] = {false};

		made_graph_init(&made);
		made_graph_fill(&made, 0x1000, &mix, &dice);
		shuffle(sequence, &dice);
		assert_int_equal(
			block_queue_init(&queue, &made.graph, sequence, BLOCKS, NULL),
			STATUS_OK);
		for (uint32_t i = 0; i < 3 * BLOCKS; i++) {
			struct rva place = {0x5000 + dice_roll(&dice, 64)}, begin = {0};
			uint32_t room = dice_roll(&dice, i % 2 ? 100 : 3000);
			uint32_t lookahead = lookaheads[round % 5];
			uint32_t id =
				block_queue_take(&queue, place, room, lookahead, &begin);

			assert_int_equal(id, naive_take(&made.graph, sequence, gone,
							place.v, room, lookahead));
			if (id == NO_BLOCK)
				continue;
			taken++;
			assert_true(begin.v >= place.v && begin.v < place.v + 16);
			assert_int_equal(begin.v % 16,
					 made.graph.blocks.data[id].begin.v % 16);
		}
		assert_true(taken > BLOCKS / 2);
		block_queue_release(&queue);
		made_graph_release(&made);
	}
}

static void empty_queue_gives_nothing(void **state)
{
	struct made_graph made;
	struct block_queue queue;
	struct rva begin;

	(void)state;
	made_graph_init(&made);
	assert_int_equal(block_queue_init(&queue, &made.graph, NULL, 0, NULL), STATUS_OK);
	assert_int_equal(block_queue_take(&queue, rva_of(0), UINT32_MAX, 10, &begin),
			 NO_BLOCK);
	block_queue_release(&queue);
	block_queue_release(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_a_search_finds),
		cmocka_unit_test(empty_queue_gives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
