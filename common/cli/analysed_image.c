#include "cli/analysed_image.h"

#include <string.h>

#include "base/arena.h"
#include "cli/pin_report.h"
#include "trace/db_identities.h"

/* Whether control can come to its first byte.  A row of the function table may hold a jump
 * table and nothing else: a breakpoint there would change where the jump leads. */
static bool is_code(const struct graph *graph, const struct function *function)
{
	return function->kind != FUNCTION_BYTES &&
	       (graph_code_state(graph, function->begin) & CODE_STATE) == CODE_START;
}

/* What the database keeps of each function; in `arena`, as are names of pin reasons. */
static struct db_function *list_functions(const struct graph *graph, const int32_t *probe_of,
					  struct arena *arena, uint32_t *ret_count)
{
	struct db_function *functions =
		arena_array(arena, graph->functions.len, sizeof(*functions));
	uint32_t count = 0;

	for (uint32_t i = 0; functions && i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];
		struct db_function *row = &functions[count];
		char pins[256];

		if (!is_code(graph, f))
			continue;
		count++;
		pin_names(graph, i, pins, sizeof(pins));
		*row = (struct db_function){
			.rva = f->begin, .size = f->size, .name = f->name,
			.movable = pins[0] == '\0', .probe = probe_of ? probe_of[i] : -1};
		if (pins[0] && !(row->pins = arena_strndup(arena, pins, strlen(pins))))
			return NULL;
	}
	*ret_count = count;
	return functions;
}

static enum status put_all(struct db *db, const struct db_image *row,
			   const struct db_function *functions, uint32_t count,
			   const struct function_identities *identities, int64_t *ret_id,
			   struct diag *diag)
{
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = db_put_image(db, row, functions, count, ret_id, diag);
	if (status == STATUS_OK)
		status = db_put_identities(db, *ret_id, identities, diag);
	return db_end(db, status, diag);
}

enum status db_put_analysed(struct db *db, const struct analysis *analysis, const char *name,
			    const int32_t *probe_of, int64_t *ret_id, struct diag *diag)
{
	const struct graph *graph = &analysis->graph;
	struct db_image row = {
		.hash = analysis->hash, .name = name, .size = analysis->image.size};
	struct function_identities identities = {0};
	struct db_function *functions;
	struct arena arena;
	uint32_t count = 0;
	enum status status;

	for (uint32_t i = 0; i < graph->range_count; i++)
		row.code_size += graph->ranges[i].size;
	arena_init(&arena);
	functions = list_functions(graph, probe_of, &arena, &count);
	status = functions ? function_identities_make(graph, &identities, diag)
			   : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = put_all(db, &row, functions, count, &identities, ret_id, diag);
	function_identities_release(&identities);
	arena_release(&arena);
	return status;
}
