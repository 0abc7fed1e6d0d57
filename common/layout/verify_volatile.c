/* Volatile metadata: the accesses are the original's, mapped and sorted; the ranges
 * cover what they covered, or less.
 *
 * The ranges that are expected are made here from the functions in their new
 * sequence.  When the table has rows for all of them, all must be there; when it has
 * not, it must be full, and each row one of them: less cover is slower under
 * emulation, more would be wrong.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

/* The ranges that there would be without a limit. */
struct expected {
	VEC(struct range) ranges;
	const struct section *section; /* of the last piece */
	bool open;                     /* the last piece was covered */
};

/* Whether the original's range `index` holds `rva`, and where that ends. */
static bool covered_at(const struct verifier *v, struct rva rva, struct rva *ret_end)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	uint32_t low = 0, high = was->range_count;
	struct rva begin, end;

	/* The first range that ends behind `rva`. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		volatile_range(v->old_image, was, middle, &begin, &end);
		if (end.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_end = rva_of(UINT32_MAX);
	if (low == was->range_count)
		return false;
	volatile_range(v->old_image, was, low, &begin, &end);
	*ret_end = begin.v <= rva.v ? end : begin;
	return begin.v <= rva.v;
}

/* `size` bytes of a function stand at `begin`. */
static bool expect(struct verifier *v, struct expected *e, struct rva begin, uint32_t size,
		   bool covered)
{
	const struct section *section = image_section_at(v->new_image, begin);
	bool joins = e->open && section == e->section;

	e->open = covered;
	e->section = section;
	if (!covered)
		return true;
	if (joins) {
		struct range *last = &e->ranges.data[e->ranges.len - 1];

		last->size = begin.v + size - last->begin.v;
		return true;
	}
	return vec_push(&e->ranges, ((struct range){begin, size}));
}

static enum status expect_all(struct verifier *v, struct expected *e)
{
	const struct graph *graph = v->old_graph;
	uint32_t *order = NULL;
	enum status status = verify_new_order(
		v, graph->functions.data, offsetof(struct function, begin),
		sizeof(*graph->functions.data), graph->functions.len, "a function", &order);

	for (uint32_t i = 0; status == STATUS_OK && i < graph->functions.len; i++) {
		const struct function *function = &graph->functions.data[order[i]];
		struct rva at = function->begin, stop = rva_add(at, function->size);

		while (status == STATUS_OK && at.v < stop.v) {
			struct rva end;
			bool covered = covered_at(v, at, &end);

			if (end.v > stop.v)
				end = stop;
			if (!expect(v, e, verify_map(v, at), end.v - at.v, covered))
				status = diag_no_memory(v->diag);
			at = end;
		}
	}
	free(order);
	return status;
}

static enum status compare_ranges(struct verifier *v, const struct expected *e)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	const struct volatile_metadata *is = &v->new_graph.tables.volatiles;
	uint32_t count = e->ranges.len < was->range_count ? e->ranges.len
							  : was->range_count;
	uint32_t at = 0;

	if (is->range_count != count)
		return verify_differs(v, is->rva, count, is->range_count,
				      "the number of ranges of the volatile metadata");
	for (uint32_t i = 0; i < count; i++, at++) {
		struct rva begin, end;

		volatile_range(v->new_image, is, i, &begin, &end);
		while (at < e->ranges.len && e->ranges.data[at].begin.v < begin.v)
			at++;
		if (at == e->ranges.len || e->ranges.data[at].begin.v != begin.v ||
		    e->ranges.data[at].size != end.v - begin.v)
			return verify_fail(v, begin, "range %u of the volatile metadata",
					   i);
	}
	return STATUS_OK;
}

/* Rows that are no longer counted are zero. */
static enum status check_rest(struct verifier *v)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	const struct volatile_metadata *is = &v->new_graph.tables.volatiles;

	for (uint32_t i = is->range_count * VOLATILE_RANGE_BYTES;
	     i < was->range_count * VOLATILE_RANGE_BYTES; i++) {
		const uint8_t *byte = image_bytes(v->new_image, rva_add(was->ranges, i), 1);

		if (!byte || *byte)
			return verify_fail(v, rva_add(was->ranges, i),
					   "bytes are left of the volatile metadata");
	}
	return STATUS_OK;
}

static enum status check_ranges(struct verifier *v)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	struct expected e = {0};
	enum status status;

	/* Where nothing moves every byte stays. */
	if (was->range_count == 0 || v->move_count == 0)
		return STATUS_OK;
	status = expect_all(v, &e);
	if (status == STATUS_OK)
		status = compare_ranges(v, &e);
	if (status == STATUS_OK)
		status = check_rest(v);
	vec_release(&e.ranges);
	if (status != STATUS_OK)
		return status;
	verify_prove(v, was->ranges, was->range_count * VOLATILE_RANGE_BYTES);
	verify_prove(v, was->ranges_size, 4);
	return STATUS_OK;
}

static enum status compare_accesses(struct verifier *v, const struct rva *keys)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	const struct volatile_metadata *is = &v->new_graph.tables.volatiles;
	uint32_t *order = NULL;
	enum status status = verify_new_order(v, keys, 0, sizeof(*keys), was->access_count,
					      "a volatile access", &order);

	for (uint32_t i = 0; status == STATUS_OK && i < was->access_count; i++) {
		struct rva found = volatile_access(v->new_image, is, i), target;

		status = verify_target(v, rva_add(is->accesses, i * VOLATILE_ACCESS_BYTES),
				       keys[order[i]], &target);
		if (status == STATUS_OK && found.v != target.v)
			status = verify_differs(v, target, target.v, found.v,
						"volatile access %u", i);
		v->report->table_entries++;
	}
	free(order);
	return status;
}

static enum status check_accesses(struct verifier *v)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	enum status status;
	struct rva *keys;

	if (was->access_count == 0)
		return STATUS_OK;
	keys = malloc(was->access_count * sizeof(*keys));
	if (!keys)
		return diag_no_memory(v->diag);
	for (uint32_t i = 0; i < was->access_count; i++)
		keys[i] = volatile_access(v->old_image, was, i);
	status = compare_accesses(v, keys);
	free(keys);
	if (status == STATUS_OK)
		status = verify_sorted_table(v, was->accesses,
					     was->access_count * VOLATILE_ACCESS_BYTES);
	return status;
}

enum status verify_volatile(struct verifier *v)
{
	const struct volatile_metadata *was = &v->old_graph->tables.volatiles;
	const struct volatile_metadata *is = &v->new_graph.tables.volatiles;
	enum status status;

	if (was->rva.v != is->rva.v || was->accesses.v != is->accesses.v ||
	    was->access_count != is->access_count || was->ranges.v != is->ranges.v)
		return verify_fail(v, is->rva, "the volatile metadata has changed");
	status = check_accesses(v);
	return status == STATUS_OK ? check_ranges(v) : status;
}
