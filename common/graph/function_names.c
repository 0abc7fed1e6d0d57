/* Names are given when all is found: what a file beside the image says can name a function
 * and can never make one, so a wrong or hostile file leads to wrong names only.
 *
 * Linkers fold functions with equal code, so one function may have many names.  The first
 * in the alphabet is taken, which is the same one in the next build, wherever the linker
 * put it.
 */
#include "graph/function_names.h"

#include <string.h>

static bool is_instruction(const struct graph *graph, struct rva rva)
{
	return (graph_code_state(graph, rva) & CODE_STATE) == CODE_START;
}

/* What the code says against the symbol; NAME_CONFLICT_COUNT: nothing. */
static enum name_conflict conflict_of(const struct graph *graph,
				      const struct symbol *symbol)
{
	struct rva end = rva_add(symbol->rva, symbol->size);
	uint32_t id = graph_function_at(graph, symbol->rva);

	if (symbol->kind >= SYMBOL_PLACE)
		return NAME_CONFLICT_COUNT;
	if (!is_instruction(graph, symbol->rva))
		return NAME_NO_INSTRUCTION;
	if (id != NO_FUNCTION && graph->functions.data[id].begin.v != symbol->rva.v &&
	    graph->functions.data[id].kind == FUNCTION_TABLE)
		return NAME_INSIDE;
	if (symbol->size && (graph_code_state(graph, end) & CODE_STATE) == CODE_INSIDE)
		return NAME_ENDS_INSIDE;
	return NAME_CONFLICT_COUNT;
}

static void note_conflict(const struct symbol *symbol, enum name_conflict conflict,
			  struct name_report *report)
{
	report->conflicts[conflict]++;
	report->conflict_count++;
	if (report->example_count < NAME_EXAMPLES)
		report->examples[report->example_count++] = symbol;
}

/* The best name of those from `first` on that share its address. */
static const char *best_name(const struct symbol_set *set, uint32_t first)
{
	const struct symbol *symbols = set->symbols.data, *best = &symbols[first];

	for (uint32_t i = first + 1;
	     i < set->symbols.len && symbols[i].rva.v == best->rva.v &&
	     symbols[i].kind == best->kind;
	     i++)
		if (strcmp(symbols[i].name, best->name) < 0)
			best = &symbols[i];
	return best->name;
}

static void count_functions(const struct graph *graph, struct name_report *report)
{
	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];

		if (f->kind == FUNCTION_BYTES || f->kind == FUNCTION_CHAINED)
			continue;
		report->functions++;
		report->own += f->name != NULL;
	}
}

void function_names_add(struct graph *graph, const struct symbol_set *set,
			struct name_report *ret_report)
{
	const struct symbol *symbols = set->symbols.data;

	memset(ret_report, 0, sizeof(*ret_report));
	count_functions(graph, ret_report);
	for (uint32_t i = 0; i < set->symbols.len; i++) {
		uint32_t id = graph_function_starting(graph, symbols[i].rva);
		enum name_conflict conflict = conflict_of(graph, &symbols[i]);
		struct function *f = id == NO_FUNCTION ? NULL : &graph->functions.data[id];

		if (conflict != NAME_CONFLICT_COUNT)
			note_conflict(&symbols[i], conflict, ret_report);
		if (!f || f->name || !is_instruction(graph, f->begin))
			continue;
		f->name = best_name(set, i);
		ret_report->added +=
			f->kind != FUNCTION_CHAINED && f->kind != FUNCTION_BYTES;
	}
}
