/* The claim: is it possible at all, and what does it say of each address?
 *
 * A move must be exactly a block of the original that may move; where it goes
 * must be code of the relinked image, free of all other blocks, congruent modulo
 * the alignment.  A moved block may cover padding that nothing refers to; those
 * bytes are *lost*.  What a moved block leaves, and no other covers, is a hole.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

#include "layout/placement.h"
#include "pe/image_kind.h"

enum { PAGE_SHIFT = 12 };

static int compare_from(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	return (x->from.v > y->from.v) - (x->from.v < y->from.v);
}

static int compare_to(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	return (x->to.v > y->to.v) - (x->to.v < y->to.v);
}

static uint32_t arrival_size(const struct verifier *v, uint32_t index)
{
	return v->by_from[v->by_to[index].move].size;
}

/* Exclusive end of an arrival, which may be 2^32. */
static uint64_t arrival_end(const struct verifier *v, uint32_t index)
{
	return (uint64_t)v->by_to[index].to.v + arrival_size(v, index);
}

/* Copies the moves that change an RVA and sorts them both ways. */
static enum status take_moves(struct verifier *v, const struct move *moves, uint32_t count)
{
	v->by_from = malloc(((size_t)count + 1) * sizeof(*v->by_from));
	v->by_to = malloc(((size_t)count + 1) * sizeof(*v->by_to));
	if (!v->by_from || !v->by_to)
		return diag_no_memory(v->diag);
	for (uint32_t i = 0; i < count; i++)
		if (moves[i].from.v != moves[i].to.v)
			v->by_from[v->move_count++] = moves[i];
	qsort(v->by_from, v->move_count, sizeof(*v->by_from), compare_from);
	for (uint32_t i = 0; i < v->move_count; i++)
		v->by_to[i] = (struct arrival){v->by_from[i].to, i};
	qsort(v->by_to, v->move_count, sizeof(*v->by_to), compare_to);
	return STATUS_OK;
}

/* Each move is one block of the original that is not pinned. */
static enum status check_blocks(struct verifier *v)
{
	const struct graph *graph = v->old_graph;
	uint32_t block = 0;

	for (uint32_t i = 0; i < v->move_count; i++) {
		const struct move *move = &v->by_from[i];

		while (block < graph->blocks.len &&
		       graph->blocks.data[block].begin.v < move->from.v)
			block++;
		if (block == graph->blocks.len ||
		    graph->blocks.data[block].begin.v != move->from.v ||
		    graph->blocks.data[block].size != move->size)
			return diag_fail_at(v->diag, STATUS_VERIFY, move->from,
					    "a move is no block of the original");
		if (graph->blocks.data[block].pins)
			return diag_fail_at(v->diag, STATUS_VERIFY, move->from,
					    "a pinned block has moved");
		if ((move->to.v - move->from.v) % PLACEMENT_ALIGNMENT != 0)
			return diag_fail_at(v->diag, STATUS_VERIFY, move->from,
					    "a move breaks the alignment of %d bytes",
					    PLACEMENT_ALIGNMENT);
		block++;
	}
	return STATUS_OK;
}

/* Each arrival lies in the data of one executable section; none overlap. */
static enum status check_arrivals(struct verifier *v)
{
	for (uint32_t i = 0; i < v->move_count; i++) {
		struct rva to = v->by_to[i].to;
		const struct section *section = image_section_at(v->new_image, to);

		if (i > 0 && to.v < arrival_end(v, i - 1))
			return diag_fail_at(v->diag, STATUS_VERIFY, to,
					    "two moved blocks overlap");
		if (!section || !(section->characteristics & SECTION_EXECUTE) ||
		    arrival_end(v, i) - section->rva.v > verify_data_size(section))
			return diag_fail_at(v->diag, STATUS_VERIFY, to,
					    "a block has moved out of the code sections");
	}
	return STATUS_OK;
}

/* Code of a driver stays in its section, or goes into one that is new: others are paged
 * out, or thrown away.  Pageable code does not even that. */
static enum status check_driver_sections(struct verifier *v)
{
	if (image_kind_of(v->old_image) != IMAGE_DRIVER)
		return STATUS_OK;
	for (uint32_t i = 0; i < v->move_count; i++) {
		const struct move *move = &v->by_from[i];
		const struct section *from = image_section_at(v->old_image, move->from);
		bool stays = image_section_at(v->old_image, move->to) == from;
		bool is_new = move->to.v >= v->span;

		if (!stays && (!is_new || !from || section_is_pageable(from)))
			return diag_fail_at(v->diag, STATUS_VERIFY, move->to,
					    "code of a driver has left its section");
	}
	return STATUS_OK;
}

/* No arrival covers a block that has not moved. */
static enum status check_unmoved(struct verifier *v)
{
	const struct graph *graph = v->old_graph;
	uint32_t move = 0, arrival = 0;

	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];

		if (move < v->move_count && v->by_from[move].from.v == block->begin.v) {
			move++;
			continue;
		}
		while (arrival < v->move_count && arrival_end(v, arrival) <= block->begin.v)
			arrival++;
		if (arrival < v->move_count &&
		    v->by_to[arrival].to.v < (uint64_t)block->begin.v + block->size)
			return diag_fail_at(
				v->diag, STATUS_VERIFY, block->begin,
				"a moved block overlaps one that has not moved");
	}
	return STATUS_OK;
}

static enum status index_pages(struct verifier *v)
{
	uint32_t pages = (v->span >> PAGE_SHIFT) + 2, move = 0;

	v->first_move = malloc(pages * sizeof(*v->first_move));
	if (!v->first_move)
		return diag_no_memory(v->diag);
	for (uint32_t page = 0; page < pages; page++) {
		uint64_t begin = (uint64_t)page << PAGE_SHIFT;

		while (move < v->move_count &&
		       (uint64_t)v->by_from[move].from.v + v->by_from[move].size <= begin)
			move++;
		v->first_move[page] = move;
	}
	return STATUS_OK;
}

/* Whether the byte is padding that nothing refers to. */
static bool is_dead(const struct verifier *v, struct rva rva)
{
	uint8_t state = graph_code_state(v->old_graph, rva);

	return (state & CODE_STATE) == CODE_PADDING && !(state & CODE_LABEL);
}

static enum status lose(struct verifier *v, struct rva begin, struct rva end)
{
	struct range covered = {begin, end.v - begin.v};

	for (uint32_t rva = begin.v; rva < end.v; rva++) {
		if (!is_dead(v, rva_of(rva)))
			return diag_fail_at(
				v->diag, STATUS_VERIFY, rva_of(rva),
				"a moved block covers bytes that are no padding");
		v->lost[rva / 64] |= (uint64_t)1 << (rva % 64);
	}
	if (!vec_push(&v->covered, covered))
		return diag_no_memory(v->diag);
	return STATUS_OK;
}

static uint32_t min_u32(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Cuts the original into moved blocks, stretches that stay, and lost bytes. */
static enum status cut_segments(struct verifier *v)
{
	uint32_t pos = 0, move = 0, arrival = 0;

	while (pos < v->span) {
		struct segment *segment = &v->segments[v->segment_count];
		uint32_t end = v->span;

		if (move < v->move_count && v->by_from[move].from.v == pos) {
			const struct move *moved = &v->by_from[move++];

			*segment = (struct segment){moved->from, moved->to, moved->size};
			v->segment_count++;
			pos += moved->size;
			continue;
		}
		if (move < v->move_count)
			end = v->by_from[move].from.v;
		while (arrival < v->move_count && arrival_end(v, arrival) <= pos)
			arrival++;
		if (arrival < v->move_count && v->by_to[arrival].to.v <= pos) {
			enum status status;

			end = min_u32(end, arrival_end(v, arrival));
			status = lose(v, rva_of(pos), rva_of(end));
			if (status != STATUS_OK)
				return status;
		} else {
			if (arrival < v->move_count)
				end = min_u32(end, v->by_to[arrival].to.v);
			*segment = (struct segment){rva_of(pos), rva_of(pos), end - pos};
			v->segment_count++;
		}
		pos = end;
	}
	return STATUS_OK;
}

/* The segments in the sequence of the relinked image: a merge of the moved ones,
 * whose sequence by_to has, and the others, which kept theirs. */
static enum status order_segments(struct verifier *v)
{
	uint32_t *moved = malloc(((size_t)v->move_count + 1) * sizeof(*moved));
	uint32_t stay = 0, arrival = 0, filled = 0;

	if (!moved)
		return diag_no_memory(v->diag);
	for (uint32_t i = 0, move = 0; i < v->segment_count; i++)
		if (v->segments[i].from.v != v->segments[i].to.v)
			moved[move++] = i;
	while (filled < v->segment_count) {
		while (stay < v->segment_count &&
		       v->segments[stay].from.v != v->segments[stay].to.v)
			stay++;
		if (arrival < v->move_count &&
		    (stay == v->segment_count ||
		     v->by_to[arrival].to.v < v->segments[stay].to.v))
			v->new_order[filled++] = moved[v->by_to[arrival++].move];
		else
			v->new_order[filled++] = stay++;
	}
	free(moved);
	return STATUS_OK;
}

static enum status make_segments(struct verifier *v)
{
	/* A cut begins or ends at a move's begin or end in either image. */
	size_t room = 4 * (size_t)v->move_count + 2;
	enum status status;

	v->segments = malloc(room * sizeof(*v->segments));
	v->new_order = malloc(room * sizeof(*v->new_order));
	if (!v->segments || !v->new_order)
		return diag_no_memory(v->diag);
	status = cut_segments(v);
	if (status != STATUS_OK)
		return status;
	return order_segments(v);
}

/* The parts of moved blocks' old places that no arrival covers. */
static enum status find_holes(struct verifier *v)
{
	uint32_t arrival = 0;

	v->holes = malloc((2 * (size_t)v->move_count + 1) * sizeof(*v->holes));
	if (!v->holes)
		return diag_no_memory(v->diag);
	for (uint32_t i = 0; i < v->move_count; i++) {
		uint32_t pos = v->by_from[i].from.v, end = pos + v->by_from[i].size;

		while (pos < end) {
			uint32_t stop = end;

			while (arrival < v->move_count && arrival_end(v, arrival) <= pos)
				arrival++;
			if (arrival < v->move_count && v->by_to[arrival].to.v <= pos) {
				pos = min_u32(end, arrival_end(v, arrival));
				continue;
			}
			if (arrival < v->move_count)
				stop = min_u32(end, v->by_to[arrival].to.v);
			v->holes[v->hole_count++] = (struct range){rva_of(pos), stop - pos};
			pos = stop;
		}
	}
	return STATUS_OK;
}

enum status verify_moves(struct verifier *v, const struct move *moves, uint32_t count)
{
	static enum status (*const steps[])(struct verifier *) = {
		check_blocks, check_arrivals, check_driver_sections, check_unmoved,
		index_pages,  make_segments,  find_holes,
	};
	enum status status = take_moves(v, moves, count);

	for (size_t i = 0; status == STATUS_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
		status = steps[i](v);
	return status;
}

void verify_moves_release(struct verifier *v)
{
	free(v->by_from);
	free(v->by_to);
	free(v->first_move);
	free(v->segments);
	free(v->new_order);
	free(v->holes);
	vec_release(&v->covered);
}
