/* References in the image's fixed tables, and the code that they name.
 *
 * Each table is listed once, with the kind of field that it holds.  A base
 * relocation whose word leads into code is a function pointer or, inside a
 * function, the address of a label (GCC's computed goto).
 */
#include "graph/discovery.h"
#include "pe/spare_exports.h"

static bool in_function_table(const struct discovery *d, struct rva rva)
{
	return discovery_table_entry(d, rva) != NULL;
}

/* A field at `site` leads to `target`; when that is code, it is a reference.  `entered`
 * says that control may enter there; else only the address is taken: a relocated word
 * and an export may lead to data between the code. */
static void add_pointer(struct discovery *d, struct rva site, struct rva target,
			enum ref_kind kind, uint8_t size, bool entered)
{
	struct ref ref = {.site = site,
			  .target = target,
			  .kind = (uint8_t)kind,
			  .size = size,
			  .enters = true};

	if (!discovery_range(d, target)) {
		discovery_note_behind(d, target);
		return;
	}
	discovery_ref(d, ref);
	if (entered)
		discovery_enter(d, target, !in_function_table(d, target));
	else
		discovery_take(d, target);
}

static void set_flags(struct discovery *d, struct rva rva, uint8_t flags)
{
	uint8_t *state = discovery_state(d, rva);

	if (state)
		*state |= flags;
}

static bool is_chained(const struct discovery *d, const struct runtime_function *entry)
{
	const uint8_t *info = image_bytes(d->image, entry->unwind, 1);

	return info && (*info >> 3 & UNWIND_CHAININFO);
}

/* The function table: boundaries first, so that no sweep runs across one. */
static void add_function_table(struct discovery *d)
{
	const struct function_table *table = &d->graph->tables.functions;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct runtime_function *entry = &table->data[i];
		struct ref begin = {.site = entry->site,
				    .target = entry->begin,
				    .kind = REF_RVA,
				    .size = 4};
		struct ref end = {.site = rva_add(entry->site, 4),
				  .target = entry->end,
				  .kind = REF_RVA_END,
				  .size = 4};

		if (entry->begin.v == entry->end.v)
			end.kind = REF_RVA; /* nothing stands before such an end */
		discovery_ref(d, begin);
		discovery_ref(d, end);
		if (entry->begin.v == entry->end.v) {
			/* It keeps its place among the others. */
			set_flags(d, entry->begin, CODE_LABEL);
			discovery_doubt(d, entry->begin, PIN_OUTSIDE_REFERENCE);
			discovery_doubt(d, rva_of(entry->begin.v - 1),
					PIN_OUTSIDE_REFERENCE);
			continue;
		}
		set_flags(d, entry->begin, CODE_BOUNDARY | CODE_FUNCTION);
		set_flags(d, entry->end, CODE_BOUNDARY);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		const struct runtime_function *entry = &table->data[i];

		/* A chained entry may hold a jump table only: never decode from it. */
		if (entry->begin.v != entry->end.v && !is_chained(d, entry))
			discovery_reach(d, entry->begin);
	}
}

/* What a relocated word means, and where a table of something else ends: at the word
 * and, when it leads to data, at that. */
static void add_relocated_word(struct discovery *d, struct rva site, uint32_t size,
			       struct rva target)
{
	for (uint32_t i = 0; i < size; i++) {
		uint8_t *state = discovery_state(d, rva_add(site, i));

		if (state)
			*state |= CODE_DATA;
	}
	if (!discovery_range(d, site) && !vec_push(&d->data_labels, site))
		d->out_of_memory = true;
	if (!discovery_range(d, target) && !vec_push(&d->data_labels, target))
		d->out_of_memory = true;
	add_pointer(d, site, target, size == 8 ? REF_VA64 : REF_VA32, (uint8_t)size, false);
}

static void add_relocated_pointers(struct discovery *d)
{
	const struct relocations *relocs = &d->graph->tables.relocs;
	uint64_t base = d->image->headers.image_base;

	for (uint32_t i = 0; i < relocs->count; i++) {
		const struct reloc *reloc = &relocs->data[i];
		bool wide = reloc->type == RELOC_DIR64;
		const uint8_t *word = image_bytes(d->image, reloc->site, wide ? 8 : 4);
		uint64_t value;

		if (!word)
			continue; /* relocations_read has proven it */
		value = wide ? load_u64(word) : load_u32(word);
		if (value < base || value - base > UINT32_MAX)
			continue;
		add_relocated_word(d, reloc->site, wide ? 8 : 4,
				   rva_of((uint32_t)(value - base)));
	}
}

bool discovery_is_relocated(const struct discovery *d, struct rva site)
{
	const struct relocations *relocs = &d->graph->tables.relocs;
	uint32_t low = 0, high = relocs->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (relocs->data[middle].site.v < site.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < relocs->count && relocs->data[low].site.v == site.v &&
	       relocs->data[low].type == RELOC_DIR64;
}

/* Their words are relocated, so they are references already.  One that is not works
 * only at the preferred base, and keeps its value. */
static void enter_tls_callbacks(struct discovery *d)
{
	const struct tls *tls = &d->graph->tables.tls;

	for (uint32_t i = 0; i < tls->count; i++) {
		const struct tls_callback *callback = &tls->callbacks[i];

		discovery_enter(d, callback->target,
				!in_function_table(d, callback->target));
		if (!discovery_is_relocated(d, callback->site))
			discovery_doubt(d, callback->target, PIN_HIDDEN_REFERENCE);
	}
}

/* The instructions are named, not entered. */
static void add_volatile_accesses(struct discovery *d)
{
	const struct volatile_metadata *metadata = &d->graph->tables.volatiles;

	for (uint32_t i = 0; i < metadata->access_count; i++) {
		struct ref ref = {
			.site = rva_add(metadata->accesses, i * VOLATILE_ACCESS_BYTES),
			.target = volatile_access(d->image, metadata, i),
			.kind = REF_RVA,
			.size = 4};

		if (discovery_range(d, ref.target))
			discovery_ref(d, ref);
	}
}

static void add_exports(struct discovery *d)
{
	const struct exports *exports = &d->graph->tables.exports;

	for (uint32_t i = 0; i < exports->count; i++)
		if (!exports->data[i].forwarder)
			add_pointer(d, exports->data[i].site, exports->data[i].target,
				    REF_RVA, 4, false);
}

/* Nobody enters by them: words that mean functions, and no more. */
static void add_spare_exports(struct discovery *d)
{
	struct rva from = rva_add(d->image->directories[DIRECTORY_EXPORT].rva, 4);
	struct spare_exports spare;

	while (spare_exports_next(d->image, &from, &spare))
		for (uint32_t i = 0; i < spare.count; i++) {
			struct ref ref = {.site = rva_add(spare.addresses, 4 * i),
					  .kind = REF_RVA,
					  .size = 4};
			const uint8_t *word = image_bytes(d->image, ref.site, 4);

			ref.target = rva_of(load_u32(word));
			if (discovery_range(d, ref.target))
				discovery_ref(d, ref);
		}
}

static void add_pseudo_relocs(struct discovery *d)
{
	const struct pseudo_relocs *pseudo = &d->graph->tables.pseudo;

	for (uint32_t i = 0; i < pseudo->count; i++) {
		struct ref ref = {.site = rva_add(pseudo->data[i].site, 4),
				  .target = pseudo->data[i].target,
				  .kind = REF_RVA,
				  .size = 4};

		if (!discovery_range(d, ref.target))
			continue;
		discovery_ref(d, ref);
		/* The start-up code writes there. */
		for (uint32_t b = 0; b < pseudo->data[i].bits / 8; b++)
			set_flags(d, rva_add(ref.target, b), CODE_LABEL);
	}
}

/* A symbol is a function's start only where the function table is silent. */
static void add_symbols(struct discovery *d)
{
	const struct coff_symbols *symbols = &d->graph->tables.symbols;

	for (uint32_t i = 0; i < symbols->count; i++)
		if (symbols->data[i].is_function &&
		    !in_function_table(d, symbols->data[i].rva))
			discovery_enter(d, symbols->data[i].rva, true);
}

static void add_bare_code(struct discovery *d)
{
	for (uint32_t i = 0; d->options && i < d->options->bare_count; i++) {
		const struct bare_code *code = &d->options->bare[i];

		if (in_function_table(d, code->begin))
			continue;
		set_flags(d, code->end, CODE_BOUNDARY);
		discovery_enter(d, code->begin, true);
	}
}

enum status table_refs_add(struct discovery *d)
{
	const struct pe_headers *headers = &d->image->headers;

	add_function_table(d);
	if (headers->entry.v)
		add_pointer(d, rva_of(headers->optional.v + OPTIONAL_ENTRY), headers->entry,
			    REF_RVA, 4, true);
	add_relocated_pointers(d);
	enter_tls_callbacks(d);
	add_exports(d);
	add_spare_exports(d);
	guard_refs_add(d);
	add_volatile_accesses(d);
	add_pseudo_relocs(d);
	add_symbols(d);
	add_bare_code(d);
	return STATUS_OK;
}

/* What leads to the stubs that load a DLL is relocated, in the table that the program
 * calls through and in the copy that unloading restores it from. */
static void check_delay_words(struct discovery *d, struct rva table, uint32_t count)
{
	uint64_t base = d->image->headers.image_base;

	for (uint32_t i = 0; table.v && i < count; i++) {
		struct rva site = rva_add(table, 8 * i);
		const uint8_t *word = image_bytes(d->image, site, 8);
		uint64_t value = word ? load_u64(word) : 0;

		if (value >= base && value - base < UINT32_MAX &&
		    !discovery_is_relocated(d, site))
			discovery_doubt(d, rva_of((uint32_t)(value - base)),
					PIN_HIDDEN_REFERENCE);
	}
}

static void check_delay_imports(struct discovery *d)
{
	const struct delay_imports *delay = &d->graph->tables.delay;

	for (uint32_t i = 0; i < delay->count; i++) {
		const struct delay_import *import = &delay->data[i];

		check_delay_words(d, import->address_table, import->count);
		check_delay_words(d, import->unload_table, import->count);
	}
}

/* An instruction, or a word inside of one. */
static void check_fixups(struct discovery *d)
{
	const struct dynamic_relocations *dynamic = &d->graph->tables.dynamic;

	for (uint32_t i = 0; i < dynamic->group_count; i++) {
		const struct dynamic_group *group = &dynamic->groups[i];
		bool instruction = dynamic_symbol_names_instructions(group->symbol);

		for (uint32_t k = 0; k < group->count; k++) {
			struct rva site = dynamic->fixups[group->first + k].site;
			const uint8_t *state = discovery_state(d, site);

			if (state && (*state & CODE_STATE) != (instruction ? CODE_START
									   : CODE_INSIDE))
				discovery_doubt(d, site, PIN_OUTSIDE_REFERENCE);
		}
	}
}

void table_refs_check(struct discovery *d)
{
	check_fixups(d);
	check_delay_imports(d);
	guard_refs_check(d);
}
