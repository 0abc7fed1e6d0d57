/* See function_identity.h.  References are found already and ascend by site, so one
 * walk over functions and references together does it, without decoding. */
#include "graph/function_identity.h"

#include <string.h>

enum {
	TEXT_MIN = 4,       /* characters of what counts as text */
	TEXT_MAX = 256,     /* bytes of it that are hashed */
	CONSTANT_BYTES = 4, /* of a constant: no operand reads less where it matters */
};

/* What a reference leads to, as far as two builds can agree on it. */
enum lead {
	LEAD_INSIDE = 1, /* a place in the function itself */
	LEAD_FUNCTION,   /* another function, or a place in it */
	LEAD_IMPORT,
	LEAD_CODE,       /* code or a table outside all functions */
	LEAD_TEXT,
	LEAD_CONSTANT,
	LEAD_DATA,       /* read-only data of another kind */
	LEAD_VARIABLE,
};

struct import_name {
	uint32_t slot; /* RVA */
	uint64_t hash;
};

struct walk {
	const struct graph *graph;
	struct import_name *imports; /* ascending by slot */
	uint32_t import_count;
	VEC(struct function_identity) list;
	VEC(struct rva) callees;
};

/* ---- hashing ---- */

/* A multiply-and-shift step for each eight bytes, and for what is left of them. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	for (; size - at >= sizeof(uint64_t); at += sizeof(uint64_t))
		hash = mix(hash, load_u64(bytes + at));
	for (; at < size; at++)
		hash = mix(hash, bytes[at]);
	return mix(hash, size);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return mix_bytes(hash, (const uint8_t *)text, strlen(text));
}

/* ---- what references lead to ---- */

static int by_slot(const void *a, const void *b)
{
	uint32_t x = ((const struct import_name *)a)->slot;
	uint32_t y = ((const struct import_name *)b)->slot;

	return x < y ? -1 : x > y;
}

static bool list_imports(struct walk *w)
{
	const struct image *image = w->graph->image;

	w->imports = malloc(((size_t)image->import_count + 1) * sizeof(*w->imports));
	if (!w->imports)
		return false;
	for (uint32_t i = 0; i < image->import_count; i++) {
		const struct import *import = &image->imports[i];
		uint64_t hash = mix_text(LEAD_IMPORT, import->dll);

		w->imports[i] = (struct import_name){
			import->slot.v, import->name ? mix_text(hash, import->name)
						     : mix(hash, import->ordinal)};
	}
	w->import_count = image->import_count;
	qsort(w->imports, w->import_count, sizeof(*w->imports), by_slot);
	return true;
}

/* Bytes of the text of printable ASCII that begins there, up to TEXT_MAX; 0 for anything
 * else.  UTF-16 text counts as text when every second byte is 0. */
static uint32_t text_size(const uint8_t *bytes, size_t size)
{
	uint32_t step = size >= 2 && bytes[1] == 0 ? 2 : 1, count = 0;

	for (uint32_t at = 0; at + step <= size && at < TEXT_MAX; at += step, count++) {
		bool end = bytes[at] == 0 && (step == 1 || bytes[at + 1] == 0);

		if (end)
			return count >= TEXT_MIN ? at : 0;
		if ((bytes[at] < ' ' && (bytes[at] < '\t' || bytes[at] > '\r')) ||
		    bytes[at] >= 0x7f || (step == 2 && bytes[at + 1] != 0))
			return 0;
	}
	return count >= TEXT_MIN ? count * step : 0;
}

/* How many bytes stand there, up to `limit`, before a word that the loader relocates. */
static size_t size_before_address(const struct relocations *relocs, struct rva rva, size_t limit)
{
	uint32_t low = 0, high = relocs->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (relocs->data[middle].site.v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < relocs->count && relocs->data[low].site.v - rva.v < limit)
		return relocs->data[low].site.v - rva.v;
	return limit;
}

/* Read-only data.  What is itself an address says nothing: it is other in each build.
 * References are to code; pointers to data have base relocations alone. */
static uint64_t mix_data(uint64_t hash, const struct graph *graph, const struct ref *ref)
{
	struct reader data = image_reader(graph->image, ref->target);
	const uint8_t *bytes = data.data;
	size_t size = reader_left(&data);
	uint32_t next = graph_ref_from(graph, ref->target), text;

	if (next < graph->refs.len && graph->refs.data[next].site.v - ref->target.v < size)
		size = graph->refs.data[next].site.v - ref->target.v;
	size = size_before_address(&graph->tables.relocs, ref->target, size);
	text = text_size(bytes, size);
	if (text)
		return mix_bytes(mix(hash, LEAD_TEXT), bytes, text);
	if (ref->kind == REF_MEMORY && size >= CONSTANT_BYTES)
		return mix_bytes(mix(hash, LEAD_CONSTANT), bytes, CONSTANT_BYTES);
	return mix(hash, LEAD_DATA);
}

static uint64_t mix_place(uint64_t hash, const struct function *function, struct rva target)
{
	hash = mix(hash, LEAD_FUNCTION);
	if (function->name)
		hash = mix_text(hash, function->name);
	return mix(hash, target.v - function->begin.v);
}

/* The reference in `function`, and the function that it leads to among its callees. */
static bool mix_ref(struct walk *w, uint64_t *hash, const struct function *function,
		    const struct ref *ref)
{
	const struct graph *graph = w->graph;
	const struct import_name key = {ref->target.v, 0}, *import;
	uint32_t other = graph_function_at(graph, ref->target);

	*hash = mix(*hash, ref->kind);
	if (other != NO_FUNCTION && &graph->functions.data[other] == function) {
		*hash = mix(mix(*hash, LEAD_INSIDE), ref->target.v - function->begin.v);
		return true;
	}
	if (other != NO_FUNCTION) {
		const struct function *callee = &graph->functions.data[other];

		*hash = mix_place(*hash, callee, ref->target);
		return vec_push(&w->callees, callee->begin);
	}
	import = bsearch(&key, w->imports, w->import_count, sizeof(key), by_slot);
	if (import)
		*hash = mix(mix(*hash, LEAD_IMPORT), import->hash);
	else if (image_is_code(graph->image, ref->target))
		*hash = mix(*hash, LEAD_CODE);
	else if (image_is_read_only(graph->image, ref->target))
		*hash = mix_data(*hash, graph, ref);
	else
		*hash = mix(*hash, LEAD_VARIABLE);
	return true;
}

/* ---- functions ---- */

/* `*at` is the first reference in the function, and behind it afterwards. */
static bool add_function(struct walk *w, const struct function *function,
			 const uint8_t *bytes, uint32_t *at)
{
	const struct graph *graph = w->graph;
	struct function_identity identity = {.rva = function->begin, .size = function->size,
					     .name = function->name,
					     .first_callee = w->callees.len};
	uint64_t hash = mix(0, function->size);
	uint32_t done = 0;

	for (; *at < graph->refs.len; (*at)++) {
		const struct ref *ref = &graph->refs.data[*at];
		uint32_t offset = ref->site.v - function->begin.v;

		if (offset >= function->size || ref->size > function->size - offset)
			break;
		if (offset < done)
			continue;
		hash = mix_bytes(hash, bytes + done, offset - done);
		if (!mix_ref(w, &hash, function, ref))
			return false;
		done = offset + ref->size;
	}
	hash = mix_bytes(hash, bytes + done, function->size - done);
	identity.content = hash ? hash : 1;
	identity.callee_count = w->callees.len - identity.first_callee;
	return vec_push(&w->list, identity);
}

static bool add_functions(struct walk *w)
{
	const struct graph *graph = w->graph;
	uint32_t at = 0;

	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *function = &graph->functions.data[i];
		const uint8_t *bytes =
			image_bytes(graph->image, function->begin, function->size);

		while (at < graph->refs.len &&
		       graph->refs.data[at].site.v < function->begin.v)
			at++;
		if (function->kind != FUNCTION_BYTES && bytes &&
		    !add_function(w, function, bytes, &at))
			return false;
	}
	return true;
}

enum status function_identities_make(const struct graph *graph,
				     struct function_identities *ret_identities,
				     struct diag *diag)
{
	struct walk w = {.graph = graph};
	bool ok = list_imports(&w) && vec_reserve(&w.list, (size_t)graph->functions.len + 1) &&
		  add_functions(&w);

	free(w.imports);
	if (!ok) {
		vec_release(&w.list);
		vec_release(&w.callees);
		return diag_no_memory(diag);
	}
	*ret_identities = (struct function_identities){w.list.data, w.list.len, w.callees.data,
						       w.callees.len};
	return STATUS_OK;
}

uint32_t function_identity_at(const struct function_identities *identities, struct rva rva)
{
	uint32_t low = 0, high = identities->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (identities->list[middle].rva.v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < identities->count && identities->list[low].rva.v == rva.v ? low
									       : NO_FUNCTION;
}

void function_identities_release(struct function_identities *identities)
{
	free(identities->list);
	free(identities->callees);
	memset(identities, 0, sizeof(*identities));
}
