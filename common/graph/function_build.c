/* Cutting the swept code into functions.
 *
 * The function table gives most of them with their ends.  Between its entries
 * stand leaves: from a byte that is known as a function's start (called, taken,
 * exported) up to the next such byte, padding, or unknown bytes, with the jump
 * tables that stand behind their code (LLVM puts them there).  Padding that
 * something refers to is kept like unknown bytes, because a hole that the layout
 * fills must not be anybody's target.
 */
#include <string.h>

#include "graph/discovery.h"

static bool is_instruction_byte(uint8_t state)
{
	return (state & CODE_STATE) == CODE_START || (state & CODE_STATE) == CODE_INSIDE;
}

static void add_function(struct discovery *d, struct rva begin, uint32_t size,
			 enum function_kind kind)
{
	const uint8_t *state = discovery_state(d, begin);
	struct function function = {
		.begin = begin, .size = size, .kind = (uint8_t)kind, .block = NO_BLOCK};

	/* Code that nothing refers to has no such mark yet, and the nets need it. */
	if (kind != FUNCTION_BYTES)
		*discovery_state(d, begin) |= CODE_FUNCTION;
	if (!vec_push(&d->graph->functions, function))
		d->out_of_memory = true;
	/* One of this function and the code before it is none. */
	if ((*state & CODE_STATE) == CODE_INSIDE) {
		discovery_doubt(d, begin, PIN_OVERLAP);
		discovery_doubt(d, rva_of(begin.v - 1), PIN_OVERLAP);
	}
}

/* End of the code that begins at `from`, tables behind it included.  Code behind
 * padding that only branches lead to is a further part of it. */
static uint32_t code_end(const struct code_range *range, uint32_t from, uint32_t limit)
{
	uint32_t end = from + 1, at;

	for (at = end; at < limit; at++) {
		uint8_t map = range->map[at], state = map & CODE_STATE;

		if ((map & CODE_FUNCTION) || state == CODE_UNKNOWN)
			break;
		if (state == CODE_TABLE ||
		    (is_instruction_byte(map) && (at == end || (map & CODE_LABEL))))
			end = at + 1;
		else if (state != CODE_PADDING || (map & CODE_LABEL))
			break;
	}
	return end;
}

/* A hash at `at` belongs to the function behind it. */
static uint32_t hash_at(const struct discovery *d, const struct code_range *range,
			uint32_t at)
{
	return guard_hash_before(d, rva_add(range->begin, at + GUARD_HASH_BYTES));
}

/* End of the run of bytes in the same state as at `from`. */
static uint32_t run_end(const struct discovery *d, const struct code_range *range,
			uint32_t from, uint32_t limit)
{
	uint32_t end = from + 1;

	while (end < limit &&
	       (range->map[end] & CODE_STATE) == (range->map[from] & CODE_STATE) &&
	       !hash_at(d, range, end))
		end++;
	return end;
}

/* The bytes [from, to) of a range that no function table entry covers. */
static void build_gap(struct discovery *d, const struct code_range *range, uint32_t from,
		      uint32_t to)
{
	while (from < to) {
		uint8_t map = range->map[from];
		struct rva begin = rva_add(range->begin, from);
		uint32_t end;

		if ((map & CODE_STATE) == CODE_PADDING && !(map & CODE_LABEL)) {
			from++;
			continue;
		}
		if (hash_at(d, range, from)) {
			from += GUARD_HASH_BYTES;
			continue;
		}
		end = is_instruction_byte(map) ? code_end(range, from, to)
					       : run_end(d, range, from, to);
		if (!is_instruction_byte(map))
			add_function(d, begin, end - from, FUNCTION_BYTES);
		else
			add_function(d, begin, end - from,
				     map & (CODE_FUNCTION | CODE_LABEL) ? FUNCTION_LEAF
									: FUNCTION_ISLAND);
		from = end;
	}
}

static enum function_kind table_kind(const struct discovery *d,
				     const struct runtime_function *entry)
{
	const uint8_t *info = image_bytes(d->image, entry->unwind, 1);

	return info && (*info >> 3 & UNWIND_CHAININFO) ? FUNCTION_CHAINED : FUNCTION_TABLE;
}

static void build_range(struct discovery *d, const struct code_range *range)
{
	const struct function_table *table = &d->graph->tables.functions;
	uint32_t from = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct runtime_function *entry = &table->data[i];
		uint32_t size = entry->end.v - entry->begin.v;

		if (size == 0 || !rva_in(entry->begin, range->begin, range->size))
			continue;
		build_gap(d, range, from, entry->begin.v - range->begin.v);
		add_function(d, entry->begin, size, table_kind(d, entry));
		from = entry->begin.v - range->begin.v + size;
	}
	if (from < range->size)
		build_gap(d, range, from, range->size);
}

static void name_function(struct discovery *d, struct rva rva, const char *name)
{
	uint32_t id = graph_function_starting(d->graph, rva);

	if (id != NO_FUNCTION && !d->graph->functions.data[id].name)
		d->graph->functions.data[id].name = name;
}

/* Function symbols first, then exports, then any symbol at the start. */
static void name_functions(struct discovery *d)
{
	const struct coff_symbols *symbols = &d->graph->tables.symbols;
	const struct exports *exports = &d->graph->tables.exports;

	for (uint32_t i = 0; i < symbols->count; i++)
		if (symbols->data[i].is_function)
			name_function(d, symbols->data[i].rva, symbols->data[i].name);
	for (uint32_t i = 0; i < exports->count; i++)
		if (!exports->data[i].forwarder && exports->data[i].name)
			name_function(d, exports->data[i].target, exports->data[i].name);
	for (uint32_t i = 0; i < symbols->count; i++)
		if (symbols->data[i].name[0] != '.')
			name_function(d, symbols->data[i].rva, symbols->data[i].name);
}

enum status functions_build(struct discovery *d)
{
	const struct function_table *table = &d->graph->tables.functions;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct runtime_function *entry = &table->data[i];
		const struct code_range *range = discovery_range(d, entry->begin);

		if (entry->begin.v != entry->end.v &&
		    (!range || entry->end.v - range->begin.v > range->size))
			return diag_fail_at(d->diag, STATUS_MALFORMED, entry->begin,
					    "a function table entry lies outside the code");
	}
	for (uint32_t i = 0; i < d->graph->range_count; i++)
		build_range(d, &d->graph->ranges[i]);
	if (!discovery_is_of_facts(d))
		name_functions(d);
	return STATUS_OK;
}
