/* From the original's addresses to the relinked image's.
 *
 * Every reference asks once, so a lookup must not cost a search over all moves:
 * an index by page leaves the moves of one page to search.  Whole tables are
 * brought into their new sequence by two merges, without sorting.
 */
#include "layout/verify_state.h"

#include <stdlib.h>

enum { PAGE_SHIFT = 12 };

static struct rva move_end(const struct move *move)
{
	return rva_add(move->from, move->size);
}

struct rva verify_map(const struct verifier *v, struct rva rva)
{
	uint32_t low, high;

	if (rva.v >= v->span || v->move_count == 0)
		return rva;
	low = v->first_move[rva.v >> PAGE_SHIFT];
	high = v->first_move[(rva.v >> PAGE_SHIFT) + 1];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (move_end(&v->by_from[middle]).v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == v->move_count || rva.v < v->by_from[low].from.v)
		return rva;
	return rva_add(v->by_from[low].to, rva.v - v->by_from[low].from.v);
}

struct rva verify_map_end(const struct verifier *v, struct rva end)
{
	return end.v == 0 ? end : rva_add(verify_map(v, rva_of(end.v - 1)), 1);
}

struct rva verify_unmap(const struct verifier *v, struct rva rva)
{
	uint32_t low = 0, high = v->by_to ? v->move_count : 0;
	const struct move *move;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (v->by_to[middle].to.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return rva;
	move = &v->by_from[v->by_to[low - 1].move];
	return rva_in(rva, move->to, move->size) ? rva_add(move->from, rva.v - move->to.v)
						 : rva;
}

/* What verify_new_order sorts. */
struct keys {
	const char *items;
	size_t offset, stride;
};

static struct rva key_at(const struct keys *keys, uint32_t index)
{
	return *(const struct rva *)(keys->items + keys->stride * index + keys->offset);
}

enum status verify_new_order(struct verifier *v, const void *items, size_t offset,
			     size_t stride, uint32_t count, const char *what,
			     uint32_t **ret_order)
{
	struct keys keys = {items, offset, stride};
	uint32_t *first = malloc(((size_t)v->segment_count + 1) * sizeof(*first));
	uint32_t *order = malloc(((size_t)count + 1) * sizeof(*order));
	uint32_t done = 0, filled = 0, kept;
	enum status status = STATUS_OK;

	if (!first || !order) {
		status = diag_no_memory(v->diag);
		goto out;
	}
	for (uint32_t i = 0; i < v->segment_count; i++) {
		struct rva end = rva_add(v->segments[i].from, v->segments[i].size);

		first[i] = done;
		if (done < count && key_at(&keys, done).v < v->segments[i].from.v)
			break;
		while (done < count && key_at(&keys, done).v < end.v)
			done++;
		first[i + 1] = done;
	}
	/* Nothing moves behind the sections. */
	kept = done;
	while (done < count && key_at(&keys, done).v >= v->span)
		done++;
	if (done < count) {
		status = verify_fail(v, key_at(&keys, done), "a moved block covers %s",
				     what);
		goto out;
	}
	for (uint32_t i = 0; i < v->segment_count; i++) {
		uint32_t segment = v->new_order[i];

		for (uint32_t k = first[segment]; k < first[segment + 1]; k++)
			order[filled++] = k;
	}
	while (kept < done)
		order[filled++] = kept++;
	*ret_order = order;
	order = NULL;
out:
	free(first);
	free(order);
	return status;
}
