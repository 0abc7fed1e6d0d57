/* The proof that every layout passes before it leaves placement.
 *
 * It looks only at the graph and at the new begins, none of which a plan, a queue
 * or a window can have biased.  Blocks are sorted by their new begin; then one pass
 * shows that no two overlap, and that what a moved block covers was padding or a
 * block's old place (whose block, since none overlap, has moved away).  Linear but
 * for the sort.
 */
#include "layout/placement_check.h"

#include <stdlib.h>

struct standing {
	uint32_t begin, id;
};

static int compare_standing(const void *a, const void *b)
{
	const struct standing *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static const struct code_range *range_at(const struct graph *graph, struct rva rva)
{
	for (uint32_t i = 0; i < graph->range_count; i++) {
		if (rva_in(rva, graph->ranges[i].begin, graph->ranges[i].size))
			return &graph->ranges[i];
	}
	return NULL;
}

static bool fits(uint32_t begin, uint32_t size, uint32_t in_begin, uint32_t in_size)
{
	return begin >= in_begin && size <= in_size && begin - in_begin <= in_size - size;
}

/* Whether all bytes of a block's new place are padding or some block's old place.
 * `*old` is the first block whose old place may matter; it only advances. */
static bool covers_room(const struct graph *graph, const struct code_range *range,
			struct standing place, uint32_t *old)
{
	uint32_t end = place.begin + graph->blocks.data[place.id].size;

	for (uint32_t at = place.begin; at < end; at++) {
		const struct block *block = &graph->blocks.data[*old];

		while (*old < graph->blocks.len && block->begin.v + block->size <= at) {
			(*old)++;
			block = &graph->blocks.data[*old];
		}
		if (*old < graph->blocks.len && block->begin.v <= at)
			at = block->begin.v + block->size - 1;
		else if ((range->map[at - range->begin.v] & CODE_STATE) != CODE_PADDING)
			return false;
	}
	return true;
}

static const char *fault_of_block(const struct graph *graph, const struct layout *layout,
				  struct standing place, uint32_t *old)
{
	const struct block *block = &graph->blocks.data[place.id];
	const struct code_range *range = range_at(graph, block->begin);

	if (place.begin == block->begin.v)
		return NULL;
	if (block->pins)
		return "a pinned block moved";
	if (place.begin % PLACEMENT_ALIGNMENT != block->begin.v % PLACEMENT_ALIGNMENT)
		return "a block lost its alignment";
	if (layout->added_size &&
	    fits(place.begin, block->size, layout->added.v, layout->added_size))
		return NULL;
	if (!range || !fits(place.begin, block->size, range->begin.v, range->size))
		return "a block left its section";
	if (!covers_room(graph, range, place, old))
		return "a block covers bytes that must stay";
	return NULL;
}

static const char *find_fault(const struct graph *graph, const struct layout *layout,
			      const struct standing *places)
{
	uint32_t moved = 0, old = 0;
	uint64_t end = 0;

	for (uint32_t i = 0; i < layout->block_count; i++) {
		const struct block *block = &graph->blocks.data[places[i].id];
		const char *fault = fault_of_block(graph, layout, places[i], &old);

		if (fault)
			return fault;
		if (places[i].begin < end)
			return "two blocks overlap";
		end = (uint64_t)places[i].begin + block->size;
		moved += places[i].begin != block->begin.v;
	}
	return moved == layout->moved ? NULL : "the number of moved blocks is wrong";
}

enum status layout_find_fault(const struct graph *graph, const struct layout *layout,
			      const char **ret_fault, struct diag *diag)
{
	struct standing *places;

	if (layout->block_count != graph->blocks.len) {
		*ret_fault = "the number of blocks is wrong";
		return STATUS_OK;
	}
	places = malloc((layout->block_count + (size_t)1) * sizeof(*places));
	if (!places)
		return diag_no_memory(diag);
	for (uint32_t id = 0; id < layout->block_count; id++)
		places[id] = (struct standing){layout->begins[id].v, id};
	qsort(places, layout->block_count, sizeof(*places), compare_standing);
	*ret_fault = find_fault(graph, layout, places);
	free(places);
	return STATUS_OK;
}
