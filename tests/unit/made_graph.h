/* Graphs that tests make in memory: no image is opened, nothing is discovered.
 *
 * A graph is made block by block, ascending, in one code section or several; each
 * block is one function unless the test splits it.  What lies between the blocks
 * is padding.
 */
#ifndef APPULSE_TESTS_MADE_GRAPH_H
#define APPULSE_TESTS_MADE_GRAPH_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

enum { MADE_RANGES = 4 };

struct made_graph {
	struct graph graph;
	struct image image;
	struct code_range ranges[MADE_RANGES];
};

/* Numbers that are the same on every machine (Lehmer's generator, modulus 2^31 - 1). */
struct dice {
	uint32_t state; /* 1 to 2^31 - 2 */
};

static inline uint32_t dice_roll(struct dice *dice, uint32_t below)
{
	dice->state = (uint32_t)((uint64_t)dice->state * 48271 % 0x7fffffff);
	return dice->state % below;
}

static inline void made_graph_init(struct made_graph *made)
{
	memset(made, 0, sizeof(*made));
	made->image.headers.section_alignment = 4096;
	made->image.headers.size_of_image = 0x1000;
	made->image.path = "made";
	made->graph.image = &made->image;
	made->graph.ranges = made->ranges;
}

/* A code section of padding; sections are added ascending. */
static inline void made_graph_section(struct made_graph *made, uint32_t begin,
				      uint32_t size)
{
	struct code_range *range = &made->ranges[made->graph.range_count++];

	assert(made->graph.range_count <= MADE_RANGES);
	*range = (struct code_range){.begin = {begin}, .size = size, .map = malloc(size)};
	assert(range->map);
	memset(range->map, CODE_PADDING, size);
	made->image.headers.size_of_image = begin + size;
}

/* Bytes of the newest section that are no padding. */
static inline void made_graph_mark(struct made_graph *made, uint32_t begin, uint32_t size,
				   uint8_t state)
{
	struct code_range *range = &made->ranges[made->graph.range_count - 1];

	assert(begin >= range->begin.v && begin + size <= range->begin.v + range->size);
	memset(range->map + (begin - range->begin.v), state, size);
}

/* A block of one function at `begin`; returns its id, which is the function's too
 * as long as no block has several. */
static inline uint32_t made_graph_block(struct made_graph *made, uint32_t begin,
					uint32_t size, bool pinned, const char *name)
{
	struct graph *graph = &made->graph;
	uint32_t pins = pinned ? 1u << PIN_USER : 0;
	struct block block = {{begin}, size, graph->functions.len, 1, pins};
	struct function function = {
		.begin = {begin},
		.size = size,
		.block = graph->blocks.len,
		.pins = pins,
		.name = name,
	};
	bool added =
		vec_push(&graph->blocks, block) && vec_push(&graph->functions, function);

	assert(added);
	made_graph_mark(made, begin, size, CODE_INSIDE);
	made_graph_mark(made, begin, 1, CODE_START | CODE_FUNCTION);
	return graph->blocks.len - 1;
}

/* Lets another function begin `offset` bytes into the newest block. */
static inline void made_graph_split(struct made_graph *made, uint32_t offset,
				    const char *name)
{
	struct graph *graph = &made->graph;
	struct block *block = &graph->blocks.data[graph->blocks.len - 1];
	struct function *last = &graph->functions.data[graph->functions.len - 1];
	uint32_t begin = block->begin.v + offset, end = last->begin.v + last->size;
	struct function function = *last;
	bool added;

	assert(begin > last->begin.v && begin < end);
	last->size = begin - last->begin.v;
	function.begin = rva_of(begin);
	function.size = end - begin;
	function.name = name;
	block->function_count++;
	added = vec_push(&graph->functions, function);
	assert(added);
}

static inline void made_graph_release(struct made_graph *made)
{
	for (uint32_t i = 0; i < made->graph.range_count; i++)
		free(made->ranges[i].map);
	vec_release(&made->graph.blocks);
	vec_release(&made->graph.functions);
}

/* How made_graph_fill draws its blocks. */
struct made_mix {
	uint32_t blocks;
	uint32_t pinned;    /* of 1000 */
	uint32_t unaligned; /* of 1000; the others begin at a multiple of 16 */
	uint32_t median;    /* bytes of a block; the mean is about 2.5 times that */
};

/* A section of blocks as a compiler lays them: most are small, a few are large. */
static inline void made_graph_fill(struct made_graph *made, uint32_t begin,
				   const struct made_mix *mix, struct dice *dice)
{
	uint32_t *gaps = malloc(mix->blocks * sizeof(*gaps));
	uint32_t *sizes = malloc(mix->blocks * sizeof(*sizes));
	uint32_t at = begin;

	assert(gaps && sizes);
	for (uint32_t i = 0; i < mix->blocks; i++) {
		/* A geometric ladder of sizes, halved or doubled with even chance. */
		uint32_t size = mix->median / 2 + dice_roll(dice, mix->median) + 1;

		while (dice_roll(dice, 10) < 4 && size < 40000)
			size = size * 2 + dice_roll(dice, 16);
		while (dice_roll(dice, 10) < 4 && size > 2)
			size = size / 2 + dice_roll(dice, 2);
		gaps[i] = dice_roll(dice, 1000) < mix->unaligned ? 0 : -at % 16;
		sizes[i] = size;
		at += gaps[i] + size;
	}
	made_graph_section(made, begin, at - begin);
	at = begin;
	for (uint32_t i = 0; i < mix->blocks; i++) {
		at += gaps[i];
		made_graph_block(made, at, sizes[i], dice_roll(dice, 1000) < mix->pinned,
				 NULL);
		at += sizes[i];
	}
	free(gaps);
	free(sizes);
}

#endif
