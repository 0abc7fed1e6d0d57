/* Discovery's passes in order, and the graph's accessors.
 *
 * The order matters in one place.  A jump table whose length no comparison gives is
 * read up to the next label; read too far, it corrupts its neighbour, whose label may
 * stand in code that only another table leads to.  So code is found in this order:
 * what is reached, also through tables of known length; what lies between; only then
 * through tables of unknown length.  And all tables are proven again at the end, when
 * every label is known.
 */
#include "graph/graph.h"

#include <stddef.h>
#include <string.h>

#include "base/key_sort.h"
#include "graph/discovery.h"

/* How often a pass is run again because there is more to see.  Compilers' code needs a
 * few rounds; an image that is made to need one for each of its functions would cost
 * the square.  What is not found then is unknown, and pins. */
enum {
	FIND_ROUNDS = 32,
	FLOW_STEPS = 1 << 18, /* of following values, and for each byte of code: */
	TRIAL_STEPS = 1 << 14, /* of code that may be none, and one for each byte of code */
	FLOW_STEPS_PER_BYTE = 8,
};

struct code_range *discovery_range(const struct discovery *d, struct rva rva)
{
	for (uint32_t i = 0; i < d->graph->range_count; i++) {
		struct code_range *range = &d->graph->ranges[i];

		if (rva_in(rva, range->begin, range->size))
			return range;
	}
	return NULL;
}

uint8_t *discovery_state(const struct discovery *d, struct rva rva)
{
	struct code_range *range = discovery_range(d, rva);

	return range ? &range->map[rva.v - range->begin.v] : NULL;
}

bool discovery_is_of_facts(const struct discovery *d)
{
	return d->options && d->options->facts_only;
}

void discovery_doubt(struct discovery *d, struct rva rva, enum pin_reason reason)
{
	struct doubt doubt = {rva, reason};

	if (!vec_push(&d->doubts, doubt))
		d->out_of_memory = true;
}

void discovery_ref(struct discovery *d, struct ref ref)
{
	if (!vec_push(&d->graph->refs, ref))
		d->out_of_memory = true;
}

void discovery_join(struct discovery *d, struct rva first, struct rva last)
{
	struct joined_code joined = {first, last};

	if (!vec_push(&d->joined, joined))
		d->out_of_memory = true;
}

/* What looked like padding is code where control enters. */
static void unpad(struct discovery *d, struct rva rva)
{
	struct code_range *range = discovery_range(d, rva);
	uint32_t at = rva.v - range->begin.v;

	while (at < range->size && (range->map[at] & CODE_STATE) == CODE_PADDING)
		range->map[at++] &= (uint8_t)~CODE_STATE;
}

void discovery_reach(struct discovery *d, struct rva rva)
{
	uint8_t *state = discovery_state(d, rva);

	if (!state)
		return;
	*state |= CODE_LABEL;
	if ((*state & CODE_STATE) == CODE_PADDING)
		unpad(d, rva);
	if ((*state & CODE_STATE) == CODE_UNKNOWN && !vec_push(&d->work, rva))
		d->out_of_memory = true;
	if ((*state & CODE_STATE) == CODE_INSIDE || (*state & CODE_STATE) == CODE_TABLE)
		discovery_doubt(d, rva, PIN_OVERLAP);
}

void discovery_enter(struct discovery *d, struct rva rva, bool function)
{
	uint8_t *state = discovery_state(d, rva);

	if (!state)
		return;
	*state |= CODE_ENTERED;
	if (function)
		*state |= CODE_FUNCTION;
	discovery_reach(d, rva);
}

void discovery_note_behind(struct discovery *d, struct rva rva)
{
	const struct section *last = &d->image->sections[d->image->section_count - 1];
	uint32_t mask = d->image->headers.section_alignment - 1;
	struct rva *behind = &d->graph->behind;

	if (rva.v > ((section_end(last).v + mask) & ~mask) &&
	    (behind->v == 0 || rva.v < behind->v))
		*behind = rva;
}

void discovery_take(struct discovery *d, struct rva rva)
{
	*discovery_state(d, rva) |= CODE_LABEL | CODE_ENTERED;
	if (!vec_push(&d->taken_labels, rva))
		d->out_of_memory = true;
}

const struct runtime_function *discovery_table_entry(const struct discovery *d,
						     struct rva rva)
{
	const struct function_table *table = &d->graph->tables.functions;
	uint32_t low = 0, high = table->count;

	page_index_narrow(&d->row_index, rva.v, &low, &high);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->data[middle].begin.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && rva.v < table->data[low - 1].end.v ? &table->data[low - 1] : NULL;
}

/* Executable sections with data in the file become code ranges. */
static enum status add_ranges(struct discovery *d)
{
	struct image *image = d->image;
	struct graph *graph = d->graph;

	graph->ranges =
		arena_array(&image->arena, image->section_count, sizeof(*graph->ranges));
	if (!graph->ranges)
		return diag_no_memory(d->diag);
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		uint32_t size = section->raw_size < section->virtual_size
					? section->raw_size
					: section->virtual_size;
		struct code_range range = {.begin = section->rva, .size = size};

		if (!(section->characteristics & SECTION_EXECUTE) || size == 0)
			continue;
		range.bytes = image_bytes(image, section->rva, size);
		range.map = arena_alloc(&image->arena, size);
		if (!range.bytes || !range.map)
			return diag_no_memory(d->diag);
		graph->ranges[graph->range_count++] = range;
		d->flow_steps += (uint64_t)size * FLOW_STEPS_PER_BYTE;
		d->trial_steps += size;
	}
	d->flow_steps += FLOW_STEPS;
	d->trial_steps += TRIAL_STEPS;
	return STATUS_OK;
}

static enum status read_tables(struct discovery *d)
{
	struct image_tables *tables = &d->graph->tables;
	enum status status = relocations_read(d->image, &tables->relocs, d->diag);

	if (status == STATUS_OK)
		status = function_table_read(d->image, &tables->functions, d->diag);
	if (status == STATUS_OK)
		status = exports_read(d->image, &tables->exports, d->diag);
	if (status == STATUS_OK)
		status = tls_read(d->image, &tables->tls, d->diag);
	if (status == STATUS_OK)
		status = load_config_read(d->image, &tables->config, d->diag);
	if (status == STATUS_OK)
		status = volatile_metadata_read(d->image, &tables->config,
						&tables->volatiles, d->diag);
	if (status == STATUS_OK)
		status = dynamic_relocations_read(d->image, &tables->config,
						  &tables->dynamic, d->diag);
	if (status == STATUS_OK)
		status = delay_imports_read(d->image, &tables->delay, d->diag);
	if (status == STATUS_OK)
		status = coff_symbols_read(d->image, &tables->symbols, d->diag);
	if (status == STATUS_OK)
		status = debug_directory_read(d->image, &tables->debug, d->diag);
	if (status == STATUS_OK)
		status = pseudo_relocs_read(d->image, &tables->pseudo, d->diag);
	if (status == STATUS_OK)
		status = resource_tree_read(d->image, &tables->resources, d->diag);
	return status;
}

static int compare_refs(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->site.v != y->site.v)
		return x->site.v < y->site.v ? -1 : 1;
	if (x->target.v != y->target.v)
		return x->target.v < y->target.v ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static bool agree(const struct ref *a, const struct ref *b)
{
	return a->site.v == b->site.v && a->size == b->size && a->kind == b->kind &&
	       a->target.v == b->target.v && a->base.v == b->base.v;
}

/* Sorts the references and drops what was found twice.  Two that disagree about
 * one site are a doubt about all that they name. */
static void sort_refs(struct discovery *d)
{
	struct graph *graph = d->graph;
	uint32_t kept = 0;

	if (!key_sort_by(graph->refs.data, graph->refs.len, sizeof(*graph->refs.data),
			 offsetof(struct ref, site) + offsetof(struct rva, v),
			 compare_refs)) {
		d->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < graph->refs.len; i++) {
		struct ref *ref = &graph->refs.data[i];
		struct ref *last = kept ? &graph->refs.data[kept - 1] : NULL;

		if (last && ref->site.v - last->site.v < last->size) {
			if (!agree(last, ref)) {
				discovery_doubt(d, last->target, PIN_TABLE_CONFLICT);
				discovery_doubt(d, ref->target, PIN_TABLE_CONFLICT);
			}
			continue;
		}
		graph->refs.data[kept++] = *ref;
	}
	graph->refs.len = kept;
}

/* What is needed for finding code and no longer. */
static void release_sweep(struct discovery *d)
{
	vec_release(&d->work);
	vec_release(&d->computed_jumps);
	vec_release(&d->entry_loads);
	vec_release(&d->branches);
	vec_release(&d->table_branches);
	vec_release(&d->taken_labels);
	vec_release(&d->short_branches);
}

static void discovery_release(struct discovery *d)
{
	release_sweep(d);
	vec_release(&d->displaced);
	vec_release(&d->constants);
	vec_release(&d->joined);
	vec_release(&d->hashed);
	vec_release(&d->doubts);
	vec_release(&d->data_labels);
	vec_release(&d->kept);
	vec_release(&d->written_anew);
	vec_release(&d->known);
}

/* Decodes what lies between; true when there was some. */
static bool find_more(struct discovery *d)
{
	uint32_t decoded = d->graph->decoded;

	for (int round = 0; round < FIND_ROUNDS; round++) {
		code_sweep_holes(d);
		if (!jump_tables_explore(d, true))
			break;
	}
	return d->graph->decoded != decoded;
}

/* Decodes what is reached, also through tables of known length: a table in the text must be
 * known before what lies between is looked at. */
static void find_reached(struct discovery *d)
{
	int round = 0;

	do
		code_sweep_reached(d);
	while (jump_tables_explore(d, false) && ++round < FIND_ROUNDS);
}

/* All instructions, and what they refer to, but for what `throw` needs. */
static void find_most_code(struct discovery *d)
{
	int round = 0;

	find_reached(d);
	find_more(d);
	/* What is found last may take the address of what was found first. */
	do {
		code_sweep_taken(d);
		find_reached(d);
	} while (find_more(d) && ++round < FIND_ROUNDS);
}

static void find_code(struct discovery *d)
{
	int round = 0;

	do
		find_most_code(d);
	while (throw_refs_add(d) && ++round < FIND_ROUNDS);
}

/* Rows of the function table are looked up for each branch. */
static enum status index_rows(struct discovery *d)
{
	const struct function_table *table = &d->graph->tables.functions;

	return page_index_make(&d->row_index, &d->image->arena, table->data, table->count,
			       sizeof(*table->data),
			       offsetof(struct runtime_function, begin) +
				       offsetof(struct rva, v))
		       ? STATUS_OK
		       : diag_no_memory(d->diag);
}

/* Functions are looked up for each reference, several times. */
static void index_functions(struct discovery *d)
{
	struct graph *graph = d->graph;

	if (!page_index_make(&graph->function_index, &d->image->arena,
			     graph->functions.data, graph->functions.len,
			     sizeof(*graph->functions.data),
			     offsetof(struct function, begin) + offsetof(struct rva, v)))
		d->out_of_memory = true;
}

static enum status run_passes(struct discovery *d)
{
	enum status status = add_ranges(d);

	if (status == STATUS_OK)
		status = read_tables(d);
	if (status == STATUS_OK)
		status = index_rows(d);
	if (status != STATUS_OK)
		return status;
	/* What the tables say: entries, exports, relocated pointers, handlers. */
	table_bytes_add(d);
	known_data_add(d);
	status = table_refs_add(d);
	absolute_refs_add(d);
	if (status == STATUS_OK)
		status = exception_refs_add(d);
	if (status != STATUS_OK)
		return status;
	find_code(d);
	table_bytes_keep_padding(d);
	table_refs_check(d);
	/* What moves as one. */
	if (!d->out_of_memory)
		status = functions_build(d);
	if (status == STATUS_OK && !d->out_of_memory)
		index_functions(d);
	if (status == STATUS_OK && !d->out_of_memory)
		jump_tables_prove(d);
	if (status == STATUS_OK && !d->out_of_memory && !discovery_is_of_facts(d))
		status = blocks_build(d);
	if (status != STATUS_OK || d->out_of_memory)
		return status ? status : diag_no_memory(d->diag);
	if (discovery_is_of_facts(d))
		release_sweep(d);
	sort_refs(d);
	status = table_bytes_check(d);
	if (status != STATUS_OK || discovery_is_of_facts(d))
		return status ? status : d->out_of_memory ? diag_no_memory(d->diag) : STATUS_OK;
	/* What must not move. */
	absolute_refs_check(d);
	hidden_refs_add(d); /* follows values along the branches that were found */
	release_sweep(d);
	indexed_code_find(d);
	safety_policy_apply(d);
	return d->out_of_memory ? diag_no_memory(d->diag) : STATUS_OK;
}

enum status graph_discover(struct graph *graph, struct image *image,
			   const struct discovery_options *options, struct diag *diag)
{
	struct discovery d = {
		.graph = graph, .image = image, .options = options, .diag = diag};
	enum status status;

	memset(graph, 0, sizeof(*graph));
	graph->image = image;
	status = run_passes(&d);
	discovery_release(&d);
	if (status != STATUS_OK) {
		graph_release(graph);
		diag_set_file(diag, image->path);
	}
	return status;
}

void graph_release(struct graph *graph)
{
	vec_release(&graph->functions);
	vec_release(&graph->blocks);
	vec_release(&graph->refs);
	vec_release(&graph->jump_tables);
	vec_release(&graph->state_maps);
	vec_release(&graph->handlers);
	memset(graph, 0, sizeof(*graph));
}

static bool is_in_block(const struct graph *graph, uint32_t id, struct rva rva)
{
	return rva_in(rva, graph->blocks.data[id].begin, graph->blocks.data[id].size);
}

/* A block begins with a function, and ends with one or a guard byte behind it. */
uint32_t graph_block_at(const struct graph *graph, struct rva rva)
{
	const struct function *functions = graph->functions.data;
	uint32_t next = graph_function_from(graph, rva);

	if (graph->blocks.len == 0)
		return NO_BLOCK;
	if (next < graph->functions.len && is_in_block(graph, functions[next].block, rva))
		return functions[next].block;
	if (next > 0 && is_in_block(graph, functions[next - 1].block, rva))
		return functions[next - 1].block;
	return NO_BLOCK;
}

uint32_t graph_function_from(const struct graph *graph, struct rva rva)
{
	uint32_t low = 0, high = graph->functions.len;
	const struct function *last;

	page_index_narrow(&graph->function_index, rva.v, &low, &high);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->functions.data[middle].begin.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	last = &graph->functions.data[low - 1];
	return rva_in(rva, last->begin, last->size) ? low - 1 : low;
}

uint32_t graph_function_at(const struct graph *graph, struct rva rva)
{
	uint32_t id = graph_function_from(graph, rva);

	return id < graph->functions.len && graph->functions.data[id].begin.v <= rva.v
		       ? id
		       : NO_FUNCTION;
}

uint32_t graph_function_starting(const struct graph *graph, struct rva rva)
{
	uint32_t id = graph_function_at(graph, rva);

	return id != NO_FUNCTION && graph->functions.data[id].begin.v == rva.v
		       ? id
		       : NO_FUNCTION;
}

uint8_t graph_code_state(const struct graph *graph, struct rva rva)
{
	for (uint32_t i = 0; i < graph->range_count; i++) {
		const struct code_range *range = &graph->ranges[i];

		if (rva_in(rva, range->begin, range->size))
			return range->map[rva.v - range->begin.v];
	}
	return 0;
}

uint32_t graph_ref_from(const struct graph *graph, struct rva rva)
{
	uint32_t low = 0, high = graph->refs.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->refs.data[middle].site.v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
