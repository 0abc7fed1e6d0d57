/* A queue of blocks that answers "the first that fits".
 *
 * A block fits when the gap that keeps its begin modulo 16 and its size together
 * are not more than the room.  So the waiting blocks are kept in 16 classes by
 * that remainder, and each class has a tournament tree of sizes over its sequence:
 * the first block of at most n bytes is found by one walk from the root.  With
 * the sequence sorted by falling size the same question means "the largest that
 * fits", which is how holes are filled.
 *
 * Cost: 16 walks of log2(count) steps for each block taken, under a microsecond.
 * Rejected: one list for all, which is quadratic when many blocks are pinned.
 */
#include "layout/placement_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The size of a leaf whose block is gone, or that never had one. */
static const uint32_t GONE = UINT32_MAX;

static uint32_t leaves_for(uint32_t count)
{
	uint32_t leaves = 1;

	while (leaves < count)
		leaves *= 2;
	return leaves;
}

static uint32_t block_class(const struct block_queue *queue, uint32_t position)
{
	return queue->graph->blocks.data[queue->sequence[position]].begin.v %
	       PLACEMENT_ALIGNMENT;
}

/* Divides the queue's memory among the classes, whose counts are known. */
static bool divide_memory(struct block_queue *queue)
{
	size_t total = 0;
	uint32_t *next;

	for (int i = 0; i < PLACEMENT_ALIGNMENT; i++) {
		struct queue_class *class = &queue->classes[i];

		class->leaves = leaves_for(class->count);
		total += class->count + 2 * (size_t) class->leaves;
	}
	next = queue->memory = calloc(total, sizeof(*queue->memory));
	for (int i = 0; next && i < PLACEMENT_ALIGNMENT; i++) {
		struct queue_class *class = &queue->classes[i];

		class->positions = next;
		class->least = next + class->count;
		next = class->least + 2 * (size_t) class->leaves;
		for (size_t node = 0; node < 2 * (size_t) class->leaves; node++)
			class->least[node] = GONE;
	}
	return next != NULL;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void build_tree(struct block_queue *queue, struct queue_class *class)
{
	for (uint32_t i = 0; i < class->count; i++) {
		uint32_t id = queue->sequence[class->positions[i]];

		class->least[class->leaves + i] = queue->graph->blocks.data[id].size;
	}
	for (uint32_t node = class->leaves - 1; node > 0; node--)
		class->least[node] =
			smaller(class->least[2 * node], class->least[2 * node + 1]);
}

enum status block_queue_init(struct block_queue *queue, const struct graph *graph,
			     const uint32_t *sequence, uint32_t count, struct diag *diag)
{
	uint32_t filled[PLACEMENT_ALIGNMENT] = {0};

	*queue = (struct block_queue){.graph = graph, .sequence = sequence};
	for (uint32_t i = 0; i < count; i++)
		queue->classes[block_class(queue, i)].count++;
	if (!divide_memory(queue))
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t c = block_class(queue, i);

		queue->classes[c].positions[filled[c]++] = i;
	}
	for (int i = 0; i < PLACEMENT_ALIGNMENT; i++)
		build_tree(queue, &queue->classes[i]);
	return STATUS_OK;
}

void block_queue_release(struct block_queue *queue)
{
	free(queue->memory);
	memset(queue, 0, sizeof(*queue));
}

/* The leaf of the first block of at most `size` bytes; the root says there is one. */
static uint32_t first_leaf(const struct queue_class *class, uint32_t size)
{
	uint32_t node = 1;

	assert(class->least[1] <= size);
	while (node < class->leaves)
		node = class->least[2 * node] <= size ? 2 * node : 2 * node + 1;
	return node;
}

static void remove_leaf(struct queue_class *class, uint32_t leaf)
{
	class->least[leaf] = GONE;
	for (uint32_t node = leaf / 2; node > 0; node /= 2)
		class->least[node] =
			smaller(class->least[2 * node], class->least[2 * node + 1]);
}

uint32_t block_queue_take(struct block_queue *queue, struct rva place, uint32_t room,
			  uint32_t lookahead, struct rva *ret_begin)
{
	uint32_t leaves[PLACEMENT_ALIGNMENT]; /* by gap; 0: no block fits behind it */
	uint32_t positions[PLACEMENT_ALIGNMENT] = {0};
	uint32_t first = UINT32_MAX;

	for (uint32_t gap = 0; gap < PLACEMENT_ALIGNMENT; gap++) {
		const struct queue_class *class =
			&queue->classes[(place.v + gap) % PLACEMENT_ALIGNMENT];

		leaves[gap] = 0;
		if (class->least[1] == GONE || room <= gap || class->least[1] > room - gap)
			continue;
		leaves[gap] = first_leaf(class, room - gap);
		positions[gap] = class->positions[leaves[gap] - class->leaves];
		first = smaller(first, positions[gap]);
	}
	for (uint32_t gap = 0; gap < PLACEMENT_ALIGNMENT; gap++) {
		if (leaves[gap] == 0 || positions[gap] - first > lookahead)
			continue;
		*ret_begin = rva_add(place, gap);
		remove_leaf(&queue->classes[ret_begin->v % PLACEMENT_ALIGNMENT],
			    leaves[gap]);
		return queue->sequence[positions[gap]];
	}
	return NO_BLOCK;
}
