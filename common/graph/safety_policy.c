/* The one place that decides whether code may move.
 *
 * It turns the facts and doubts that discovery recorded into pins.  A pin belongs
 * to a function; its block carries the union of its functions' pins and stays
 * when there is any.
 *
 * Code in doubt (it does not decode, or control enters the middle of an
 * instruction) may be neither moved nor edited: a reference that is "mended"
 * inside misread bytes corrupts them.  So its references are taken out of the
 * graph, and whatever they seem to name stays where it is.
 */
#include "graph/discovery.h"

static void pin(struct discovery *d, struct rva rva, enum pin_reason reason)
{
	uint32_t id = graph_function_at(d->graph, rva);

	if (id != NO_FUNCTION)
		d->graph->functions.data[id].pins |= 1u << reason;
}

/* As graph_function_at, for references one after the other: *at walks the functions along
 * with their sites. */
static uint32_t function_along(const struct graph *graph, struct rva site, uint32_t *at)
{
	const struct function *functions = graph->functions.data;

	while (*at < graph->functions.len &&
	       functions[*at].begin.v + functions[*at].size <= site.v)
		++*at;
	return *at < graph->functions.len && functions[*at].begin.v <= site.v ? *at
									       : NO_FUNCTION;
}

static void pin_doubts(struct discovery *d, uint32_t from)
{
	for (uint32_t i = from; i < d->doubts.len; i++)
		pin(d, d->doubts.data[i].rva, d->doubts.data[i].reason);
}

static void pin_user_ranges(struct discovery *d)
{
	for (uint32_t i = 0; d->options && i < d->options->pin_count; i++) {
		const struct pin_range *range = &d->options->pins[i];
		uint32_t f = graph_function_from(d->graph, range->begin);

		for (; f < d->graph->functions.len; f++) {
			struct function *function = &d->graph->functions.data[f];

			if (function->begin.v >= range->end.v)
				break;
			function->pins |= 1u << PIN_USER;
		}
	}
}

/* Whether the function's bytes may be something else than what they seem, or may be copied
 * or compared. */
static bool is_doubtful(const struct function *function)
{
	return function->kind == FUNCTION_BYTES ||
	       function->pins & (1u << PIN_UNDECODED | 1u << PIN_OVERLAP |
				 1u << PIN_POSITION_INDEXED);
}

static void pin_start(struct discovery *d, struct rva rva, enum pin_reason reason)
{
	uint8_t *state = discovery_state(d, rva);

	if (state && (*state & CODE_FUNCTION))
		pin(d, rva, reason);
}

/* Anything that four bytes of unknown bytes may mean, as a PC-relative field or as an
 * RVA. */
static void pin_named_by_bytes(struct discovery *d, const struct function *function)
{
	const struct code_range *range = discovery_range(d, function->begin);
	uint32_t begin = function->begin.v - range->begin.v;

	for (uint32_t i = 0; i + 4 <= function->size; i++) {
		struct rva site = rva_add(function->begin, i);
		uint32_t word = load_u32(range->bytes + begin + i);

		pin_start(d, rva_add(site, 4 + word), PIN_DOUBTFUL_TARGET);
		if (site.v % 4 == 0)
			pin_start(d, rva_of(word), PIN_HIDDEN_REFERENCE);
	}
}

static void pin_unknown_bytes(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->functions.len; i++) {
		struct function *function = &d->graph->functions.data[i];
		const struct code_range *range = discovery_range(d, function->begin);
		const uint8_t *map = range->map + (function->begin.v - range->begin.v);
		bool unknown = function->kind == FUNCTION_BYTES;
		bool unsolved = function->pins & (1u << PIN_UNSOLVED_JUMP);

		/* What was taken for a table of an unsolved jump may be anything. */
		unknown = unknown || code_map_next_unknown(map, 0, function->size) <
					     function->size;
		for (uint32_t b = 0; unsolved && b < function->size && !unknown; b++)
			unknown = (map[b] & CODE_STATE) == CODE_TABLE;
		if (!unknown)
			continue;
		function->pins |= 1u << PIN_UNKNOWN_BYTES;
		pin_named_by_bytes(d, function);
	}
}

/* Bytes in doubt may be an address wherever four of them stand. */
static void pin_named_absolutely(struct discovery *d)
{
	uint32_t doubts = d->doubts.len;

	for (uint32_t i = 0; i < d->graph->functions.len; i++) {
		const struct function *function = &d->graph->functions.data[i];

		if (is_doubtful(function) || function->pins & 1u << PIN_UNKNOWN_BYTES)
			absolute_refs_named_by(d, function->begin, function->size);
	}
	pin_doubts(d, doubts);
}

static bool ends_unknown(const struct discovery *d, const struct function *function)
{
	struct rva last = rva_add(function->begin, function->size - 1);
	uint8_t state = *discovery_state(d, last) & CODE_STATE;

	return state == CODE_UNKNOWN;
}

static bool is_known_start(const struct discovery *d, struct rva rva)
{
	uint32_t low = 0, high = d->options ? d->options->bare_count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->options->bare[middle].begin.v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return d->options && low < d->options->bare_count &&
	       d->options->bare[low].begin.v == rva.v;
}

/* A leaf that runs straight into unknown bytes was perhaps never code; and what begins
 * where they end is perhaps run into. */
static void doubt_neighbours(struct discovery *d)
{
	for (uint32_t i = 0; i + 1 < d->graph->functions.len; i++) {
		struct function *leaf = &d->graph->functions.data[i];

		if (ends_unknown(d, leaf) && leaf[1].begin.v == leaf->begin.v + leaf->size)
			leaf[1].pins |= 1u << PIN_DOUBTFUL_TARGET;
		if ((leaf->kind == FUNCTION_LEAF || leaf->kind == FUNCTION_ISLAND) &&
		    leaf[1].kind == FUNCTION_BYTES &&
		    leaf[1].begin.v == leaf->begin.v + leaf->size &&
		    !is_known_start(d, leaf->begin))
			leaf->pins |= 1u << PIN_UNDECODED;
	}
}

/* Code that branches into the middle of an instruction, into a table or out of all code
 * may be none. */
static void doubt_odd_branches(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->refs.len; i++) {
		const struct ref *ref = &d->graph->refs.data[i];
		uint8_t *state = discovery_state(d, ref->target);

		if (ref->kind == REF_BRANCH &&
		    (!state || (*state & CODE_STATE) == CODE_INSIDE ||
		     (*state & CODE_STATE) == CODE_TABLE))
			pin(d, ref->site, PIN_OVERLAP);
	}
}

/* Takes the references of doubtful code out, and pins what they name. */
static void drop_doubtful_refs(struct discovery *d)
{
	struct graph *graph = d->graph;
	uint32_t kept = 0, at = 0;

	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];
		uint32_t id = function_along(graph, ref->site, &at);
		bool relocated = ref->kind == REF_VA64 || ref->kind == REF_VA32;

		/* A relocated word is a pointer wherever it stands. */
		if (id != NO_FUNCTION && !relocated &&
		    is_doubtful(&graph->functions.data[id]))
			pin(d, ref->target, PIN_DOUBTFUL_TARGET);
		else
			graph->refs.data[kept++] = *ref;
	}
	graph->refs.len = kept;
}

/* References whose target is no instruction, or that read code as data. */
static void pin_odd_targets(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->refs.len; i++) {
		const struct ref *ref = &d->graph->refs.data[i];
		uint8_t *state = discovery_state(d, ref->target);

		if (!state || ref->kind == REF_RVA_END || ref->kind == REF_STATE)
			continue;
		if ((ref->kind == REF_ADDRESS || ref->kind == REF_DISPLACEMENT ||
		     (ref->kind == REF_RVA && !ref->enters)) &&
		    (*state & CODE_STATE) == CODE_TABLE)
			continue; /* a proven table, or a chained row that holds one only */
		if (ref->kind == REF_MEMORY || ref->kind == REF_DISPLACEMENT)
			pin(d, ref->target, PIN_READ_AS_DATA);
		else if ((*state & CODE_STATE) != CODE_START)
			pin(d, ref->target, PIN_OUTSIDE_REFERENCE);
	}
}

/* Branches inside one function keep their value, and no thunk stands in for it. */
static void drop_inner_branches(struct graph *graph)
{
	uint32_t kept = 0, at = 0;

	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];

		if (ref->kind == REF_BRANCH) {
			uint32_t id = function_along(graph, ref->site, &at);
			const struct function *function = &graph->functions.data[id];

			if (id != NO_FUNCTION &&
			    rva_in(ref->target, function->begin, function->size))
				continue;
		}
		graph->refs.data[kept++] = *ref;
	}
	graph->refs.len = kept;
}

static void note_taken(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->refs.len; i++) {
		const struct ref *ref = &d->graph->refs.data[i];
		uint32_t id;

		if (!ref->enters || ref->kind == REF_BRANCH)
			continue;
		id = graph_function_starting(d->graph, ref->target);
		if (id != NO_FUNCTION)
			d->graph->functions.data[id].taken = true;
	}
}

/* A word that may be a function's address stays, so nothing may take another for it: a
 * program would find two pointers to it that are not equal. */
static void keep_addresses(struct discovery *d)
{
	for (uint32_t i = 0; i < d->graph->refs.len; i++) {
		struct ref *ref = &d->graph->refs.data[i];
		uint32_t id = graph_function_starting(d->graph, ref->target);

		if (ref->kind != REF_BRANCH && id != NO_FUNCTION &&
		    d->graph->functions.data[id].pins & 1u << PIN_ABSOLUTE_ADDRESS)
			ref->enters = false;
	}
}

static void pin_blocks(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->functions.len; i++)
		graph->blocks.data[graph->functions.data[i].block].pins |=
			graph->functions.data[i].pins;
}

void safety_policy_apply(struct discovery *d)
{
	pin_doubts(d, 0);
	pin_user_ranges(d);
	doubt_neighbours(d);
	pin_unknown_bytes(d);
	doubt_odd_branches(d);
	pin_named_absolutely(d);
	drop_doubtful_refs(d);
	pin_odd_targets(d);
	drop_inner_branches(d->graph);
	note_taken(d);
	keep_addresses(d);
	pin_blocks(d->graph);
}
