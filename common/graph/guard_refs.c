/* The load configuration's references, and what its tables claim.
 *
 * A control-flow guard table says what indirect calls may reach, where longjmp may
 * go, and where execution may go on after an exception.  Its targets are instructions;
 * the target of longjmp stands behind a call.  What is none pins its function.
 *
 * XFG (an extended control-flow guard; winnt.h, IMAGE_GUARD_FLAG_FID_XFG): a flagged
 * function has a hash of its type in the 8 bytes before it, which the caller compares.
 * The hash is part of the function's block.  An indirect call of a thunk would not find
 * it, so that only direct calls may go through one.
 *
 * A pointer of the load configuration that leads to code is relocated, and so a
 * reference like any other; one that is not is true only at the preferred base and
 * keeps its value.
 */
#include "graph/discovery.h"

enum { INSTRUCTION_MAX = 15 };

static struct rva target_of(const struct discovery *d, const struct guard_table *table,
			    uint32_t index, struct rva *ret_site)
{
	*ret_site = rva_add(table->rva, index * (4 + table->extra));
	return rva_of(load_u32(image_bytes(d->image, *ret_site, 4)));
}

/* `entered`: as a function is, from anywhere. */
static void add_table(struct discovery *d, const struct guard_table *table, bool entered)
{
	for (uint32_t i = 0; i < table->count; i++) {
		struct rva site, target = target_of(d, table, i, &site);
		struct ref ref = {.site = site,
				  .target = target,
				  .kind = REF_RVA,
				  .size = 4,
				  .enters = entered};

		if (!discovery_range(d, target)) {
			discovery_note_behind(d, target);
			continue;
		}
		discovery_ref(d, ref);
		discovery_enter(d, target,
				entered && discovery_table_entry(d, target) == NULL);
	}
}

static bool has_hash(const struct discovery *d, const struct guard_table *table,
		     struct rva site)
{
	return table->extra > 0 &&
	       *image_bytes(d->image, rva_add(site, 4), 1) & GUARD_TARGET_XFG;
}

/* Before anything is decoded: the hashes are data. */
static void add_hashes(struct discovery *d)
{
	const struct guard_table *table = &d->graph->tables.config.functions;

	for (uint32_t i = 0; i < table->count; i++) {
		struct rva site, target = target_of(d, table, i, &site);

		if (!has_hash(d, table, site) || !discovery_range(d, target))
			continue;
		if (!vec_push(&d->hashed, target))
			d->out_of_memory = true;
		for (uint32_t b = 1; b <= GUARD_HASH_BYTES; b++) {
			uint8_t *state = discovery_state(d, rva_of(target.v - b));

			if (state)
				*state |= CODE_DATA | CODE_LABEL;
		}
	}
}

void guard_refs_add(struct discovery *d)
{
	const struct load_config *config = &d->graph->tables.config;

	add_table(d, &config->functions, true);
	add_table(d, &config->long_jumps, false);
	add_table(d, &config->eh_continuations, false);
	add_hashes(d);
}

/* Whether the 8 bytes before a flagged function are its hash and nothing else. */
static bool is_hash(const struct discovery *d, struct rva target)
{
	for (uint32_t b = 1; b <= GUARD_HASH_BYTES; b++) {
		struct rva rva = rva_of(target.v - b);
		const uint8_t *state = discovery_state(d, rva);

		if (!state || (*state & CODE_STATE) != CODE_UNKNOWN ||
		    (*state & CODE_FUNCTION) || discovery_table_entry(d, rva))
			return false;
	}
	return true;
}

uint32_t guard_hash_before(const struct discovery *d, struct rva rva)
{
	uint32_t low = 0, high = d->hashed.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->hashed.data[middle].v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->hashed.len && d->hashed.data[low].v == rva.v ? GUARD_HASH_BYTES : 0;
}

/* Hashes that something else claims too pin both; the others are left. */
static void check_hashes(struct discovery *d)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->hashed.len; i++) {
		struct rva target = d->hashed.data[i];

		if (is_hash(d, target)) {
			d->hashed.data[kept++] = target;
			continue;
		}
		for (uint32_t b = 0; b <= GUARD_HASH_BYTES; b++)
			discovery_doubt(d, rva_of(target.v - b), PIN_OUTSIDE_REFERENCE);
	}
	d->hashed.len = kept;
	for (uint32_t i = 0; kept && i < d->graph->refs.len; i++) {
		struct ref *ref = &d->graph->refs.data[i];

		if (ref->enters && ref->kind != REF_BRANCH &&
		    guard_hash_before(d, ref->target))
			ref->enters = false;
	}
}

/* Whether a call ends where `rva` begins. */
static bool is_behind_call(const struct discovery *d, struct rva rva)
{
	const struct code_range *range = discovery_range(d, rva);
	uint32_t end = rva.v - range->begin.v;

	for (uint32_t size = 1; size <= INSTRUCTION_MAX && size <= end; size++) {
		struct insn insn;
		uint8_t state = range->map[end - size] & CODE_STATE;

		if (state != CODE_START && state != CODE_INSIDE)
			return false;
		if (state == CODE_START)
			return insn_decode(range->bytes + end - size, size, &insn) &&
			       insn.length == size &&
			       (insn.flow == FLOW_CALL || insn.flow == FLOW_CALL_INDIRECT);
	}
	return false;
}

static void check_long_jumps(struct discovery *d)
{
	const struct guard_table *table = &d->graph->tables.config.long_jumps;

	for (uint32_t i = 0; i < table->count; i++) {
		struct rva site, target = target_of(d, table, i, &site);

		if (discovery_range(d, target) && !is_behind_call(d, target))
			discovery_doubt(d, target, PIN_OUTSIDE_REFERENCE);
	}
}

/* Any word of the structure, of fields still to come as well. */
static void check_pointers(struct discovery *d)
{
	const struct load_config *config = &d->graph->tables.config;
	uint64_t base = d->image->headers.image_base;

	for (uint32_t at = 0; config->size >= 8 && at <= config->size - 8; at += 8) {
		struct rva site = rva_add(config->rva, at);
		const uint8_t *word = image_bytes(d->image, site, 8);
		uint64_t value = word ? load_u64(word) : 0;

		if (value >= base && value - base < UINT32_MAX &&
		    discovery_range(d, rva_of((uint32_t)(value - base))) &&
		    !discovery_is_relocated(d, site))
			discovery_doubt(d, rva_of((uint32_t)(value - base)),
					PIN_HIDDEN_REFERENCE);
	}
}

void guard_refs_check(struct discovery *d)
{
	check_hashes(d);
	check_long_jumps(d);
	check_pointers(d);
}
