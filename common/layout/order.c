/* Orders: which blocks are hot, and in which sequence.
 *
 * First touch over several runs: a function comes before another when the runs
 * that touched it weigh more together; among functions of the same runs' weight
 * the one with the lower weighted mean of its ranks comes first.  docs/orders.md
 * says why.
 *
 * Weights and ranks are summed as integers, so that the result does not depend
 * on the sequence in which the runs are given, as a sum of floating-point numbers
 * would.  Two functions are compared by their ranks only when their weights are
 * equal, so the sum of the weighted ranks serves as the mean: the divisor is the
 * same.
 *
 * Cost: one binary search over the functions for each touch, and one sort.
 */
#include "layout/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* The heaviest run's weight.  All numbers up to 16 divide it, so that runs which
 * share one scenario's weight add up to it again. */
enum { WEIGHT_ONE = 720720 };

/* The last rank of a run; the first is 0. */
enum { RANK_ONE = 1 << 24 };

struct touch_sum {
	uint64_t weight; /* of the runs that touched the function; 0: none did */
	uint64_t ranks;  /* sum of weight times rank */
	uint32_t function;
};

void order_release(struct order *order)
{
	vec_release(&order->blocks);
	memset(order, 0, sizeof(*order));
}

enum status order_original(const struct graph *graph, struct order *ret_order,
			   struct diag *diag)
{
	(void)graph;
	(void)diag;
	memset(ret_order, 0, sizeof(*ret_order));
	return STATUS_OK;
}

enum status order_of_functions(const struct graph *graph, const uint32_t *functions,
			       uint32_t count, struct order *ret_order, struct diag *diag)
{
	struct order order = {0};
	bool *seen = calloc(graph->blocks.len + 1u, sizeof(*seen));

	if (!seen || !vec_reserve(&order.blocks,
				  count < graph->blocks.len ? count : graph->blocks.len)) {
		free(seen);
		return diag_no_memory(diag);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = graph->functions.data[functions[i]].block;

		if (seen[block])
			continue;
		seen[block] = true;
		order.blocks.data[order.blocks.len++] = block;
	}
	free(seen);
	*ret_order = order;
	return STATUS_OK;
}

enum status order_random(const struct graph *graph, uint64_t seed, struct order *ret_order,
			 struct diag *diag)
{
	struct order order = {0};

	for (uint32_t id = 0; id < graph->blocks.len; id++) {
		if (graph->blocks.data[id].pins == 0 && !vec_push(&order.blocks, id)) {
			order_release(&order);
			return diag_no_memory(diag);
		}
	}
	/* Fisher and Yates' shuffle.  The remainder's bias is below 2^-32. */
	for (uint32_t left = order.blocks.len; left > 1; left--) {
		uint32_t drawn = (uint32_t)(random_next(&seed) % left);
		uint32_t block = order.blocks.data[drawn];

		order.blocks.data[drawn] = order.blocks.data[left - 1];
		order.blocks.data[left - 1] = block;
	}
	*ret_order = order;
	return STATUS_OK;
}

static double heaviest_weight(const struct profile *profile)
{
	double heaviest = 0;

	for (uint32_t i = 0; i < profile->run_count; i++) {
		assert(profile->runs[i].weight > 0);
		if (profile->runs[i].weight > heaviest)
			heaviest = profile->runs[i].weight;
	}
	return heaviest;
}

/* A run's weight in parts of the heaviest one's, never 0. */
static uint64_t scaled_weight(double weight, double heaviest)
{
	uint64_t scaled = (uint64_t)(weight / heaviest * WEIGHT_ONE + 0.5);

	return scaled ? scaled : 1;
}

typedef VEC(uint32_t) rva_list;

/* Adds one run to the sums; addresses that are no function go to `strangers`. */
static bool add_run(const struct graph *graph, const struct profile_run *run,
		    uint64_t weight, struct touch_sum *sums, rva_list *strangers)
{
	uint32_t last = run->count > 1 ? run->count - 1 : 1;

	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t id = graph_function_starting(graph, run->touched[i]);

		if (id == NO_FUNCTION) {
			if (!vec_push(strangers, run->touched[i].v))
				return false;
			continue;
		}
		sums[id].weight += weight;
		sums[id].ranks += weight * ((uint64_t)i * RANK_ONE / last);
	}
	return true;
}

static int compare_sums(const void *a, const void *b)
{
	const struct touch_sum *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t count_distinct(rva_list *list)
{
	uint32_t count = 0;

	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), compare_numbers);
	for (uint32_t i = 0; i < list->len; i++)
		count += i == 0 || list->data[i] != list->data[i - 1];
	return count;
}

/* The touched functions by their sums. */
static bool rank_functions(struct touch_sum *sums, uint32_t count,
			   struct function_order *order)
{
	uint32_t touched = 0;

	for (uint32_t id = 0; id < count; id++) {
		if (sums[id].weight == 0)
			continue;
		sums[touched] = sums[id];
		sums[touched++].function = id;
	}
	if (touched)
		qsort(sums, touched, sizeof(*sums), compare_sums);
	for (uint32_t i = 0; i < touched; i++)
		if (!vec_push(&order->functions, sums[i].function))
			return false;
	return true;
}

enum status function_order_first_touch(const struct graph *graph,
				       const struct profile *profile,
				       struct function_order *ret_order, struct diag *diag)
{
	struct touch_sum *sums = calloc(graph->functions.len + 1u, sizeof(*sums));
	double heaviest = heaviest_weight(profile);
	struct function_order order = {0};
	rva_list strangers = {0};
	bool complete = sums != NULL;

	for (uint32_t i = 0; complete && i < profile->run_count; i++)
		complete = add_run(graph, &profile->runs[i],
				   scaled_weight(profile->runs[i].weight, heaviest), sums,
				   &strangers);
	complete = complete && rank_functions(sums, graph->functions.len, &order);
	order.unmatched = count_distinct(&strangers);
	vec_release(&strangers);
	free(sums);
	if (complete)
		*ret_order = order;
	else
		function_order_release(&order);
	return complete ? STATUS_OK : diag_no_memory(diag);
}

void function_order_release(struct function_order *order)
{
	vec_release(&order->functions);
	memset(order, 0, sizeof(*order));
}

enum status order_first_touch(const struct graph *graph, const struct profile *profile,
			      struct order *ret_order, struct diag *diag)
{
	struct function_order touched;
	enum status status = function_order_first_touch(graph, profile, &touched, diag);

	if (status != STATUS_OK)
		return status;
	status = order_of_functions(graph, touched.functions.data, touched.functions.len,
				    ret_order, diag);
	if (status == STATUS_OK)
		ret_order->unmatched = touched.unmatched;
	function_order_release(&touched);
	return status;
}
