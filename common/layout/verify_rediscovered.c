/* The references that discovery has found in the output must be among the original's,
 * mapped: one more would be something that nobody has looked after.
 *
 * Branches are left out, since the graph keeps those between blocks only, and which
 * functions are one block may depend on who stands beside whom.  Left out is also what
 * is a reference only by chance, and only now: in bytes that are no code beyond doubt, to
 * an address where the original has nothing, and behind the last entry of a jump table
 * whose length no comparison gives, since what stands there may look like one more entry
 * once other code stands where it seems to lead.
 */
#include "layout/verify_state.h"

#include <stdlib.h>

/* Where jump tables may seem to have other entries than they had. */
struct loose_tables {
	VEC(struct range) ranges; /* ascending by begin */
};

/* Whether a reference of the output is `was`, moved. */
static bool is_moved(const struct verifier *v, const struct ref *was, const struct ref *is)
{
	struct rva target = was->kind == REF_RVA_END ? verify_map_end(v, was->target)
						     : verify_map(v, was->target);

	return was->kind == is->kind && was->size == is->size && was->tail == is->tail &&
	       is->target.v == target.v &&
	       (was->kind != REF_TABLE || is->base.v == verify_map(v, was->base).v);
}

static bool is_strange_at(const struct verifier *v, struct rva old_rva)
{
	uint32_t id = graph_function_at(v->old_graph, old_rva);

	return id != NO_FUNCTION && verify_is_strange(v, &v->old_graph->functions.data[id]);
}

/* Whether the reference stands in bytes that nobody understands: what discovery reads
 * there changes with the addresses in them, and with the int3 that others left. */
static bool is_in_strange_bytes(const struct verifier *v, struct rva site)
{
	struct rva old_site = verify_unmap(v, site);
	bool left = verify_map(v, old_site).v != site.v;

	if (left || graph_function_at(v->old_graph, old_site) == NO_FUNCTION)
		return image_is_code(v->old_image, old_site);
	return is_strange_at(v, old_site);
}

/* The original's table for the jump that stands at `jump` now, or NULL. */
static const struct jump_table *original_table(const struct verifier *v, struct rva jump)
{
	const struct graph *was = v->old_graph;
	uint32_t low = 0, high = was->jump_tables.len;
	struct rva old_jump = verify_unmap(v, jump);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (was->jump_tables.data[middle].jump.v < old_jump.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < was->jump_tables.len && was->jump_tables.data[low].jump.v == old_jump.v
		       ? &was->jump_tables.data[low]
		       : NULL;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

static enum status find_loose_tables(struct verifier *v, struct loose_tables *loose)
{
	const struct graph *is = &v->new_graph;

	for (uint32_t i = 0; i < is->jump_tables.len; i++) {
		const struct jump_table *table = &is->jump_tables.data[i];
		const struct jump_table *was = original_table(v, table->jump);
		struct range range = {table->table, 4 * table->count};

		if (!is_strange_at(v, verify_unmap(v, table->jump))) {
			if (!was || was->count >= table->count)
				continue;
			range.begin = rva_add(table->table, 4 * was->count);
			range.size -= 4 * was->count;
		}
		if (!vec_push(&loose->ranges, range))
			return diag_no_memory(v->diag);
	}
	if (loose->ranges.len)
		qsort(loose->ranges.data, loose->ranges.len, sizeof(struct range),
		      compare_ranges);
	return STATUS_OK;
}

static enum status check_rediscovered(struct verifier *v, const uint32_t *order,
				      const struct loose_tables *loose)
{
	const struct graph *was = v->old_graph, *is = &v->new_graph;
	uint32_t k = 0, table = 0;
	uint64_t loose_end = 0;

	for (uint32_t i = 0; i < is->refs.len; i++) {
		const struct ref *ref = &is->refs.data[i];

		for (; table < loose->ranges.len &&
		       loose->ranges.data[table].begin.v <= ref->site.v;
		     table++) {
			const struct range *range = &loose->ranges.data[table];
			uint64_t end = (uint64_t)range->begin.v + range->size;

			loose_end = end > loose_end ? end : loose_end;
		}
		if (ref->kind == REF_BRANCH || ref->kind == REF_STATE ||
		    verify_is_sorted(v, ref->site))
			continue;
		while (k < was->refs.len &&
		       verify_map(v, was->refs.data[order[k]].site).v < ref->site.v)
			k++;
		if (k < was->refs.len && is_moved(v, &was->refs.data[order[k]], ref))
			continue;
		if (!is_in_strange_bytes(v, ref->site) &&
		    image_section_at(v->old_image, ref->target) &&
		    !(ref->kind == REF_TABLE && ref->site.v < loose_end))
			return verify_fail(
				v, ref->site,
				"discovery finds a reference that the original has not");
	}
	return STATUS_OK;
}

enum status verify_rediscovered(struct verifier *v)
{
	const struct graph *graph = v->old_graph;
	struct loose_tables loose = {0};
	uint32_t *order = NULL;
	enum status status;

	status = verify_new_order(v, graph->refs.data, offsetof(struct ref, site),
				  sizeof(*graph->refs.data), graph->refs.len, "a reference",
				  &order);
	if (status == STATUS_OK)
		status = find_loose_tables(v, &loose);
	if (status == STATUS_OK)
		status = check_rediscovered(v, order, &loose);
	vec_release(&loose.ranges);
	free(order);
	return status;
}
