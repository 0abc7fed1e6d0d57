#include "layout/verify_state.h"

#include <stdarg.h>
#include <stdio.h>

/* Names the function that stands, or should stand, at `rva`. */
static void name_function(struct verifier *v, struct rva rva)
{
	const struct graph *graph = v->old_graph;
	struct rva old_rva = verify_unmap(v, rva);
	uint32_t id = graph_function_at(graph, old_rva);
	char text[32];

	if (id == NO_FUNCTION)
		return;
	snprintf(text, sizeof(text), "0x%x", graph->functions.data[id].begin.v);
	diag_set_function(v->diag, graph->functions.data[id].name
					   ? graph->functions.data[id].name
					   : text);
}

enum status verify_fail(struct verifier *v, struct rva rva, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diag_fail_at(v->diag, STATUS_VERIFY, rva, "%s", text);
	name_function(v, rva);
	return STATUS_VERIFY;
}

enum status verify_differs(struct verifier *v, struct rva rva, uint64_t expected,
			   uint64_t found, const char *fmt, ...)
{
	char text[512], want[32], got[32];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(want, sizeof(want), "0x%llx", (unsigned long long)expected);
	snprintf(got, sizeof(got), "0x%llx", (unsigned long long)found);
	verify_fail(v, rva, "%s", text);
	diag_set_values(v->diag, want, got);
	return STATUS_VERIFY;
}

enum status verify_unreadable(struct verifier *v, enum status status)
{
	if (status_exit_code(status) != status_exit_code(STATUS_MALFORMED))
		return status;
	if (v->diag)
		v->diag->status = STATUS_VERIFY;
	return STATUS_VERIFY;
}

static bool get_bit(const uint64_t *bits, uint32_t index)
{
	return bits[index / 64] >> (index % 64) & 1;
}

void verify_prove(struct verifier *v, struct rva old_rva, uint32_t size)
{
	for (uint32_t i = 0; i < size && old_rva.v + i < v->span; i++) {
		uint32_t bit = old_rva.v + i;

		v->proven[bit / 64] |= (uint64_t)1 << (bit % 64);
	}
}

bool verify_is_proven(const struct verifier *v, struct rva old_rva)
{
	return old_rva.v < v->span && get_bit(v->proven, old_rva.v);
}

bool verify_is_lost(const struct verifier *v, struct rva old_rva)
{
	return old_rva.v < v->span && get_bit(v->lost, old_rva.v);
}

/* The first block behind `rva`: an index, blocks.len when there is none. */
static uint32_t block_behind(const struct graph *graph, struct rva rva)
{
	uint32_t low = 0, high = graph->blocks.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->blocks.data[middle].begin.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool verify_gap_at(const struct verifier *v, struct rva rva, struct rva low,
		   struct rva high, struct range *ret_gap)
{
	const struct graph *graph = v->old_graph;
	uint32_t next = block_behind(graph, rva);

	if (next > 0) {
		const struct block *block = &graph->blocks.data[next - 1];
		struct rva end = rva_add(block->begin, block->size);

		if (end.v > rva.v)
			return false;
		if (end.v > low.v)
			low = end;
	}
	if (next < graph->blocks.len && graph->blocks.data[next].begin.v < high.v)
		high = graph->blocks.data[next].begin;
	*ret_gap = (struct range){low, high.v - low.v};
	return true;
}

const struct code_range *verify_range_of(const struct graph *graph, struct rva rva,
					 uint32_t size)
{
	for (uint32_t i = 0; i < graph->range_count; i++) {
		const struct code_range *range = &graph->ranges[i];

		if (rva_in(rva, range->begin, range->size) &&
		    size <= range->size - (rva.v - range->begin.v))
			return range;
	}
	return NULL;
}

enum status verify_sorted_table(struct verifier *v, struct rva begin, uint32_t size)
{
	if (v->sorted_count == SORTED_MAX)
		return verify_fail(v, begin, "too many sorted tables");
	v->sorted[v->sorted_count++] = (struct range){begin, size};
	verify_prove(v, begin, size);
	return STATUS_OK;
}

bool verify_is_sorted(const struct verifier *v, struct rva old_rva)
{
	for (uint32_t i = 0; i < v->sorted_count; i++)
		if (rva_in(old_rva, v->sorted[i].begin, v->sorted[i].size))
			return true;
	return false;
}

bool verify_is_strange(const struct verifier *v, const struct function *function)
{
	const uint32_t doubts = 1u << PIN_OVERLAP | 1u << PIN_UNDECODED |
				1u << PIN_UNKNOWN_BYTES | 1u << PIN_UNSOLVED_JUMP |
				1u << PIN_TABLE_CONFLICT | 1u << PIN_READ_AS_DATA |
				1u << PIN_OUTSIDE_REFERENCE |
				1u << PIN_POSITION_INDEXED;

	return function->kind == FUNCTION_BYTES ||
	       (v->old_graph->blocks.data[function->block].pins & doubts);
}

uint32_t verify_data_size(const struct section *section)
{
	return section->raw_size < section->virtual_size ? section->raw_size
							 : section->virtual_size;
}

int64_t verify_load(const uint8_t *bytes, uint8_t size)
{
	switch (size) {
	case 1:
		return (int8_t)bytes[0];
	case 2:
		return (int16_t)load_u16(bytes);
	case 4:
		return (int32_t)load_u32(bytes);
	default:
		return (int64_t)load_u64(bytes);
	}
}

enum status verify_target(struct verifier *v, struct rva site, struct rva target,
			  struct rva *ret_target)
{
	if (verify_is_lost(v, target))
		return verify_differs(v, site, target.v, target.v,
				      "a moved block covers what a reference means");
	*ret_target = verify_map(v, target);
	return STATUS_OK;
}
