/* Placement: what both kinds share, and the one that appends.
 *
 * Each executable section is laid out for itself (placement_exchange.c), so that a
 * block stays in its section; only what finds no room goes into a section that is
 * added at the end of the image.  The pageable code of a driver may not go there: when
 * some of a section finds no room, the whole section stays as it was.  The result is proven
 * (placement_check.c) before it is handed out.
 *
 * docs/placement.md describes the method for readers of reports.
 */
#include "layout/placement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "layout/placement_check.h"
#include "layout/placement_exchange.h"
#include "pe/image_kind.h"

/* PE images end below 2 GiB (PE/COFF specification, "Optional Header", on
 * ImageBase and PE32+). */
static const uint32_t IMAGE_LIMIT = 0x7fffffff;

struct rva layout_end_of_image(const struct image *image)
{
	uint32_t mask = image->headers.section_alignment - 1;

	return rva_of((image->headers.size_of_image + mask) & ~mask);
}

static void plan_release(struct placement_plan *plan)
{
	free(plan->begins);
	free(plan->states);
	free(plan->hot);
}

/* Hot movable blocks wait, all others stand where they stood. */
static enum status plan_init(struct placement_plan *plan, const struct graph *graph,
			     const struct order *order, struct diag *diag)
{
	size_t count = graph->blocks.len;

	*plan = (struct placement_plan){
		.graph = graph,
		.begins = malloc((count + 1) * sizeof(*plan->begins)),
		.states = malloc(count + 1),
		.hot = calloc(count + 1, sizeof(*plan->hot)),
	};
	if (!plan->begins || !plan->states || !plan->hot) {
		plan_release(plan);
		return diag_no_memory(diag);
	}
	for (uint32_t id = 0; id < count; id++) {
		plan->begins[id] = graph->blocks.data[id].begin;
		plan->states[id] = graph->blocks.data[id].pins ? BLOCK_PINNED : BLOCK_COLD;
	}
	for (uint32_t i = 0; i < order->blocks.len; i++) {
		uint32_t id = order->blocks.data[i];

		assert(id < count && !plan->hot[id]);
		plan->hot[id] = true;
		if (plan->states[id] == BLOCK_COLD)
			plan->states[id] = BLOCK_WAITING;
	}
	return STATUS_OK;
}

/* Whether the section's blocks may not go into another one. */
static bool is_bound(const struct graph *graph, bool driver, struct rva rva)
{
	const struct section *section = image_section_at(graph->image, rva);

	return driver && section && section_is_pageable(section);
}

/* Puts the area's blocks back where they stood when any of them has no place. */
static void keep_whole(struct placement_area *area)
{
	struct placement_plan *plan = area->plan;
	bool waits = false;

	for (uint32_t id = area->first_block; id < area->end_block; id++)
		waits |= plan->states[id] == BLOCK_WAITING;
	for (uint32_t id = area->first_block; waits && id < area->end_block; id++) {
		plan->begins[id] = plan->graph->blocks.data[id].begin;
		plan->states[id] = plan->graph->blocks.data[id].pins ? BLOCK_PINNED
								     : BLOCK_COLD;
	}
}

static enum status exchange_area(struct placement_area *area, const struct order *order,
				 struct diag *diag)
{
	block_list hot = {0};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < order->blocks.len; i++) {
		uint32_t id = order->blocks.data[i];

		if (id >= area->first_block && id < area->end_block &&
		    area->plan->states[id] == BLOCK_WAITING && !vec_push(&hot, id))
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK && hot.len)
		status = placement_exchange(area, &hot, diag);
	vec_release(&hot);
	return status;
}

static enum status exchange(struct placement_plan *plan, const struct order *order,
			    struct diag *diag)
{
	const struct graph *graph = plan->graph;
	bool driver = image_kind_of(graph->image) == IMAGE_DRIVER;
	uint32_t block = 0;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < graph->range_count; i++) {
		struct placement_area area;

		status = placement_area_init(&area, plan, &graph->ranges[i], block, diag);
		if (status != STATUS_OK)
			break;
		block = area.end_block;
		status = exchange_area(&area, order, diag);
		if (status == STATUS_OK && is_bound(graph, driver, graph->ranges[i].begin))
			keep_whole(&area);
		placement_area_release(&area);
	}
	return status;
}

/* Puts what still waits into a new section, by `sequence`. */
static enum status append(struct placement_plan *plan, const block_list *sequence,
			  struct layout *layout, struct diag *diag)
{
	struct rva begin = layout_end_of_image(plan->graph->image);
	bool driver = image_kind_of(plan->graph->image) == IMAGE_DRIVER;
	uint64_t at = begin.v;

	for (uint32_t i = 0; i < sequence->len; i++) {
		uint32_t id = sequence->data[i];
		const struct block *block = &plan->graph->blocks.data[id];

		if (plan->states[id] != BLOCK_WAITING ||
		    is_bound(plan->graph, driver, block->begin))
			continue;
		at += (block->begin.v - at) % PLACEMENT_ALIGNMENT;
		if (at + block->size > IMAGE_LIMIT)
			return diag_fail(diag, STATUS_NO_ROOM,
					 "the image has no room for another code section");
		plan->begins[id] = rva_of((uint32_t)at);
		plan->states[id] = BLOCK_PLACED;
		at += block->size;
	}
	if (at > begin.v) {
		layout->added = begin;
		layout->added_size = (uint32_t)(at - begin.v);
	}
	/* What leads behind the image means nothing yet, and must not come to mean the
	 * middle of what is put there. */
	if (plan->graph->behind.v > begin.v && plan->graph->behind.v < at)
		return diag_fail_at(diag, STATUS_NO_ROOM, plan->graph->behind,
				    "something refers to where a new section would stand");
	return STATUS_OK;
}

/* As append, by address. */
static enum status append_rest(struct placement_plan *plan, struct layout *layout,
			       struct diag *diag)
{
	block_list rest = {0};
	enum status status = STATUS_OK;

	for (uint32_t id = 0; status == STATUS_OK && id < plan->graph->blocks.len; id++) {
		if (plan->states[id] == BLOCK_WAITING && !vec_push(&rest, id))
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		status = append(plan, &rest, layout, diag);
	vec_release(&rest);
	return status;
}

/* Hands the plan's begins over to `layout` and proves it. */
static enum status finish(struct placement_plan *plan, struct layout *layout,
			  struct diag *diag)
{
	const struct graph *graph = plan->graph;
	const char *fault = NULL;
	enum status status;

	layout->begins = plan->begins;
	plan->begins = NULL;
	layout->block_count = graph->blocks.len;
	for (uint32_t id = 0; id < graph->blocks.len; id++)
		layout->moved += layout->begins[id].v != graph->blocks.data[id].begin.v;
	status = layout_find_fault(graph, layout, &fault, diag);
	assert(status != STATUS_OK || !fault);
	return status;
}

enum status layout_place(const struct graph *graph, const struct order *order,
			 enum placement placement, struct layout *ret_layout,
			 struct diag *diag)
{
	struct layout layout = {0};
	block_list sequence = {order->blocks.data, order->blocks.len, order->blocks.cap};
	struct placement_plan plan;
	enum status status = plan_init(&plan, graph, order, diag);

	if (status != STATUS_OK)
		return status;
	if (placement == PLACEMENT_EXCHANGE) {
		status = exchange(&plan, order, diag);
		if (status == STATUS_OK)
			status = append_rest(&plan, &layout, diag);
	} else {
		status = append(&plan, &sequence, &layout, diag);
	}
	if (status == STATUS_OK)
		status = finish(&plan, &layout, diag);
	plan_release(&plan);
	if (status == STATUS_OK)
		*ret_layout = layout;
	else
		layout_release(&layout);
	return status;
}

void layout_release(struct layout *layout)
{
	free(layout->begins);
	memset(layout, 0, sizeof(*layout));
}

struct rva layout_map(const struct graph *graph, const struct layout *layout,
		      struct rva rva)
{
	uint32_t id = graph_block_at(graph, rva);

	if (id == NO_BLOCK)
		return rva;
	return rva_add(layout->begins[id], rva.v - graph->blocks.data[id].begin.v);
}

struct rva layout_map_end(const struct graph *graph, const struct layout *layout,
			  struct rva end)
{
	return rva_add(layout_map(graph, layout, rva_of(end.v - 1)), 1);
}
