/* Joining parts of functions by the jumps between them.
 *
 * A jump into the middle of another function stays in its family; so does one to the
 * begin of a function that is never called and whose address nobody takes: either a
 * cold part, or a function that is reached by tail calls only, which cannot be told
 * apart and does no harm.  So do chained rows of the function table (MSVC lays most of its
 * functions in several).  A part that only the table of a jump leads to has no
 * reference at all when that table is not understood.  Such functions are dead in most
 * cases and cost nothing to pin.
 */
#include "graph/function_family.h"

#include <stdlib.h>

static uint32_t root_of(struct function_families *families, uint32_t id)
{
	while (families->members[id].parent != id) {
		uint32_t parent = families->members[id].parent;

		families->members[id].parent = families->members[parent].parent;
		id = parent;
	}
	return id;
}

/* The lower id becomes the root, so that the result does not depend on the order. */
static void unite(struct function_families *families, uint32_t a, uint32_t b)
{
	a = root_of(families, a);
	b = root_of(families, b);
	if (a < b)
		families->members[b].parent = a;
	else
		families->members[a].parent = b;
}

/* Whether the branch whose field is at `site` is a call. */
static bool is_call(const struct discovery *d, const struct ref *ref)
{
	const uint8_t *opcode = image_bytes(d->image, rva_of(ref->site.v - 1), 1);

	return opcode && *opcode == 0xe8;
}

static void add_entry(struct function_families *families, const struct discovery *d,
		      const struct ref *ref)
{
	uint32_t to = graph_function_at(d->graph, ref->target);

	if (to == NO_FUNCTION)
		return;
	families->members[to].referred_to = true;
	if (d->graph->functions.data[to].begin.v == ref->target.v)
		families->members[to].called = true;
}

static bool is_branch_to_part(const struct function_families *families,
			      const struct discovery *d, uint32_t from, uint32_t to,
			      struct rva target)
{
	return from != NO_FUNCTION && to != NO_FUNCTION && from != to &&
	       (d->graph->functions.data[to].begin.v != target.v ||
		!families->members[to].called);
}

/* As graph_function_at; most often it is the same as the last time. */
static uint32_t function_near(const struct graph *graph, struct rva rva, uint32_t last)
{
	return last < graph->functions.len && rva_in(rva, graph->functions.data[last].begin,
						     graph->functions.data[last].size)
		       ? last
		       : graph_function_at(graph, rva);
}

static void add_branch(struct function_families *families, const struct discovery *d,
		       struct rva site, struct rva target)
{
	uint32_t from = function_near(d->graph, site, families->last_from), to;

	if (from != NO_FUNCTION) {
		const struct function *function = &d->graph->functions.data[from];

		families->last_from = from;
		if (rva_in(target, function->begin, function->size))
			return;
	}
	to = graph_function_at(d->graph, target);
	if (to != NO_FUNCTION && from != to)
		families->members[to].referred_to = true;
	if (!is_branch_to_part(families, d, from, to, target))
		return;
	unite(families, from, to);
}

/* A chained row of the function table is a part of the function that it is chained to:
 * the unwinder takes its frame for that one's.  So it is no case of another's jump. */
static void add_chained(struct function_families *families, const struct discovery *d,
			uint32_t id)
{
	const struct function *part = &d->graph->functions.data[id];
	const struct runtime_function *row = discovery_table_entry(d, part->begin);
	struct unwind_info info;
	uint32_t whole;

	if (!row || unwind_info_read(d->image, row->unwind, &info, NULL) != STATUS_OK ||
	    !(info.flags & UNWIND_CHAININFO))
		return;
	whole = graph_function_starting(d->graph, info.chained.begin);
	if (whole == NO_FUNCTION || whole == id)
		return;
	families->members[id].referred_to = true;
	families->members[whole].chained++;
	unite(families, whole, id);
}

/* Whether data leads to the function in other ways than by its own rows and those that
 * are chained to it: exception data leads to funclets so. */
static bool is_described(const struct function_families *families, uint32_t id)
{
	const struct family_member *member = &families->members[id];

	return member->described > member->chained;
}

/* Rows of the function table and volatile accesses say something of an instruction
 * without leading there. */
static bool leads_nowhere(const struct discovery *d, struct rva site)
{
	const struct function_table *rows = &d->graph->tables.functions;
	const struct volatile_metadata *volatiles = &d->graph->tables.volatiles;

	return (rows->count && rva_in(site, rows->data[0].site,
				      rows->count * RUNTIME_FUNCTION_BYTES)) ||
	       rva_in(site, volatiles->accesses,
		      volatiles->access_count * VOLATILE_ACCESS_BYTES);
}

static void add_description(struct function_families *families, const struct discovery *d,
			    const struct ref *ref)
{
	uint32_t to = graph_function_starting(d->graph, ref->target);

	if (to != NO_FUNCTION && !leads_nowhere(d, ref->site))
		families->members[to].described++;
}

bool function_families_init(struct function_families *families, struct discovery *d)
{
	const struct graph *graph = d->graph;

	families->count = graph->functions.len;
	families->last_from = 0;
	families->members = calloc((size_t)families->count + 1, sizeof(*families->members));
	if (!families->members)
		return false;
	for (uint32_t i = 0; i < families->count; i++)
		families->members[i].parent = i;
	for (uint32_t i = 0; i < families->count; i++)
		if (graph->functions.data[i].kind == FUNCTION_CHAINED)
			add_chained(families, d, i);
	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];

		if (ref->enters && (ref->kind != REF_BRANCH || is_call(d, ref)))
			add_entry(families, d, ref);
		else if (ref->kind == REF_RVA)
			add_description(families, d, ref);
	}
	for (uint32_t i = 0; i < families->count; i++)
		families->members[i].referred_to |= is_described(families, i);
	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];

		if (ref->kind == REF_BRANCH)
			add_branch(families, d, ref->site, ref->target);
	}
	for (uint32_t i = 0; i < d->short_branches.len; i++)
		add_branch(families, d, d->short_branches.data[i].from,
			   d->short_branches.data[i].to);
	return true;
}

void function_families_release(struct function_families *families)
{
	free(families->members);
	families->members = NULL;
	families->count = 0;
}

void function_families_join(struct function_families *families, struct discovery *d,
			    uint32_t from, struct rva target)
{
	uint32_t to = graph_function_at(d->graph, target);

	if (to == NO_FUNCTION || to == from)
		return;
	families->members[to].referred_to = true;
	unite(families, from, to);
}

void function_families_doubt(struct function_families *families, struct discovery *d)
{
	bool any = false;

	for (uint32_t i = 0; i < families->count; i++) {
		if (!families->members[i].unsolved)
			continue;
		any = true;
		families->members[root_of(families, i)].unsolved = true;
	}
	for (uint32_t i = 0; any && i < families->count; i++) {
		struct rva begin = d->graph->functions.data[i].begin;

		if (families->members[root_of(families, i)].unsolved)
			discovery_doubt(d, begin, PIN_UNSOLVED_JUMP);
		else if (!families->members[i].referred_to)
			discovery_doubt(d, begin, PIN_DOUBTFUL_TARGET);
	}
}
