/* The functions, as discovery finds them in the output.
 *
 * It has read the output afresh, and must have found the original's functions where
 * the moves say, no more and no fewer, with the same instruction boundaries.  Left
 * out is what may be no code at all (data in a code section, like mingw's lists of
 * constructors); it has not moved, and is compared as bytes.
 *
 * Blocks and pins are not compared: a number in data that looks like an RVA pins
 * other blocks once these have moved, and two functions may be joined because of
 * who stands beside whom.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

/* Bare code is a leaf or an island as something refers to it or not; where it
 * stands is known for the output, which makes both leaves. */
static bool same_kind(uint8_t was, uint8_t is)
{
	return was == is || (was == FUNCTION_ISLAND && is == FUNCTION_LEAF);
}

/* The same bytes must be the same instructions. */
static enum status compare_boundaries(struct verifier *v, const struct function *was,
				      struct rva begin)
{
	const struct code_range *old_range =
		verify_range_of(v->old_graph, was->begin, was->size);
	const struct code_range *new_range =
		verify_range_of(&v->new_graph, begin, was->size);
	const uint8_t *old_map, *new_map;

	if (!old_range || !new_range)
		return verify_fail(v, begin, "a function is not in the code");
	old_map = old_range->map + (was->begin.v - old_range->begin.v);
	new_map = new_range->map + (begin.v - new_range->begin.v);
	if (memcmp(old_map, new_map, was->size) == 0)
		return STATUS_OK;
	for (uint32_t i = 0; i < was->size; i++)
		if ((old_map[i] & CODE_STATE) != (new_map[i] & CODE_STATE))
			return verify_differs(v, rva_add(begin, i), old_map[i] & CODE_STATE,
					      new_map[i] & CODE_STATE,
					      "discovery finds other instructions here");
	return STATUS_OK;
}

static enum status compare_function(struct verifier *v, const struct function *was,
				    const struct function *is)
{
	struct rva begin = verify_map(v, was->begin);

	if (is->begin.v != begin.v)
		return verify_differs(v, begin, begin.v, is->begin.v,
				      "discovery finds another function here");
	if (is->size != was->size)
		return verify_differs(v, begin, was->size, is->size,
				      "the size of a function");
	if (!same_kind(was->kind, is->kind))
		return verify_differs(v, begin, was->kind, is->kind,
				      "the kind of a function");
	v->report->functions++;
	return compare_boundaries(v, was, begin);
}

/* Passes over functions of the output that lie in [end, limit), where no function
 * of the original is: discovery's view of bytes that it does not understand
 * changes with the addresses in them and with the holes beside them. */
static enum status skip_strange(struct verifier *v, uint32_t *k, uint32_t end,
				uint64_t limit)
{
	const struct graph *is = &v->new_graph;

	while (*k < is->functions.len && is->functions.data[*k].begin.v < limit) {
		const struct function *function = &is->functions.data[*k];

		if (function->begin.v < end ||
		    (uint64_t)function->begin.v + function->size > limit)
			return verify_fail(v, function->begin,
					   "discovery finds another function here");
		++*k;
	}
	return STATUS_OK;
}

static enum status compare_functions(struct verifier *v, const uint32_t *order)
{
	const struct graph *was = v->old_graph, *is = &v->new_graph;
	uint32_t k = 0, end = 0;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < was->functions.len && status == STATUS_OK; i++) {
		const struct function *function = &was->functions.data[order[i]];
		struct rva begin = verify_map(v, function->begin);

		if (verify_is_strange(v, function))
			continue;
		status = skip_strange(v, &k, end, begin.v);
		if (status == STATUS_OK && k == is->functions.len)
			status = verify_fail(v, begin, "discovery finds no function here");
		if (status == STATUS_OK)
			status = compare_function(v, function, &is->functions.data[k++]);
		end = begin.v + function->size;
	}
	if (status == STATUS_OK)
		status = skip_strange(v, &k, end, UINT32_MAX);
	return status;
}

enum status verify_functions(struct verifier *v)
{
	const struct graph *was = v->old_graph;
	uint32_t *order = NULL;
	enum status status;

	status = verify_new_order(v, was->functions.data, offsetof(struct function, begin),
				  sizeof(*was->functions.data), was->functions.len,
				  "a function", &order);
	if (status == STATUS_OK)
		status = compare_functions(v, order);
	free(order);
	return status;
}
