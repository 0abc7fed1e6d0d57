#include "probe_plan.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* A false probe is worse than a false move: bytes that are data in truth may be
 * moved with what refers to them, but a reference to data that leads to a thunk
 * breaks the program. */
static bool is_doubtful(const struct graph *graph, const struct function *function)
{
	return function->kind == FUNCTION_BYTES || (function->pins & PINS_UNPROBED) ||
	       (graph_code_state(graph, function->begin) & CODE_DATA);
}

static bool matches(const char *const *patterns, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

static bool is_wanted(const struct probe_filter *filter, const struct function *function)
{
	char rva[16];
	const char *name = function->name;

	if (!name) {
		snprintf(rva, sizeof(rva), "0x%x", function->begin.v);
		name = rva;
	}
	return (filter->only_count == 0 || matches(filter->only, filter->only_count, name)) &&
	       !matches(filter->skip, filter->skip_count, name);
}

/* Marks the functions that references enter with 0, the others with -1. */
static void find_entered(const struct graph *graph, int32_t *probe_of)
{
	memset(probe_of, 0xff, graph->functions.len * sizeof(*probe_of));
	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];
		uint32_t function = ref->enters ? graph_function_starting(graph, ref->target)
						: NO_FUNCTION;

		if (function != NO_FUNCTION)
			probe_of[function] = 0;
	}
}

/* What jump tables count their entries from must stay what it is, even where it is
 * the function's start. */
static void leave_table_bases(const struct graph *graph, int32_t *probe_of)
{
	for (uint32_t i = 0; i < graph->jump_tables.len; i++) {
		uint32_t function =
			graph_function_starting(graph, graph->jump_tables.data[i].base);

		if (function != NO_FUNCTION)
			probe_of[function] = -1;
	}
}

enum status probe_plan_make(const struct graph *graph, const struct probe_filter *filter,
			    struct probe_plan *ret_plan, struct diag *diag)
{
	memset(ret_plan, 0, sizeof(*ret_plan));
	ret_plan->probe_of = malloc(((size_t)graph->functions.len + 1) *
				    sizeof(*ret_plan->probe_of));
	if (!ret_plan->probe_of)
		return diag_no_memory(diag);
	find_entered(graph, ret_plan->probe_of);
	leave_table_bases(graph, ret_plan->probe_of);
	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *function = &graph->functions.data[i];
		bool entered = ret_plan->probe_of[i] == 0;

		ret_plan->probe_of[i] = -1;
		if (function->pins & 1u << PIN_USER) {
			ret_plan->pinned++;
		} else if (is_doubtful(graph, function)) {
			ret_plan->doubtful++;
		} else if (!is_wanted(filter, function)) {
			ret_plan->filtered++;
		} else if (!entered) {
			ret_plan->unreachable++;
		} else {
			ret_plan->probe_of[i] = (int32_t)ret_plan->functions.len;
			if (!vec_push(&ret_plan->functions, i)) {
				probe_plan_release(ret_plan);
				return diag_no_memory(diag);
			}
		}
	}
	return STATUS_OK;
}

void probe_plan_release(struct probe_plan *plan)
{
	free(plan->probe_of);
	vec_release(&plan->functions);
	memset(plan, 0, sizeof(*plan));
}
