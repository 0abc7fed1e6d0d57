/* Bytes that belong to the image's tables, and what may not stand on them.
 *
 * The writer edits fields, sorts some tables and writes others anew.  That is right
 * only when these bytes have no second meaning: a name that lies in a table which is
 * sorted is another name afterwards.  Linkers never make such images; damaged or
 * hostile ones have everything.
 *
 * What is written anew as a whole (the headers, the function table, guard tables, base
 * relocations, what names the PDB) must share no byte with any other table: such an
 * image is refused.  Tables that only must keep their bytes (names, descriptors,
 * unwind codes) pin: what a reference among their bytes names stays, so that the
 * reference keeps its value.  Where tables stand in the text (linkers can merge
 * sections), their bytes are no code, and no padding.
 *
 * The list is short of resources' data: nothing reads their bytes again, so that it is
 * enough that no step changes them unproven.
 *
 * Cost: a few comparisons for each name and each row of the function table.  Tables that
 * share bytes in an image that is made so could cost its square; more bytes of tables than
 * TABLE_BYTES_PER_BYTE times the file's are refused.
 */
#include <stddef.h>
#include <string.h>

#include "base/key_sort.h"
#include "graph/discovery.h"
#include "pe/spare_exports.h"

enum {
	EXPORT_DIRECTORY_BYTES = 40,
	EXPORT_DLL_NAME = 12,
	EXPORT_ADDRESS_COUNT = 20,
	EXPORT_NAME_COUNT = 24,
	EXPORT_ADDRESSES = 28,
	EXPORT_NAMES = 32,
	EXPORT_ORDINALS = 36,
	DELAY_DESCRIPTOR_BYTES = 32,
	DELAY_NAME = 4,
	TLS_DIRECTORY_BYTES = 40,
	UNWIND_HEADER_BYTES = 4,
	DEBUG_POINTER = 24,
	GUID_BYTES = 16,
	RVA_BYTES = 4,
	WORD_BYTES = 8,
	HINT_BYTES = 2,
	PSEUDO_RELOC_BYTES = 12,
	TABLE_BYTES_PER_BYTE = 16,
};

/* Says of bytes in the text that they are neither code nor padding. */
static void mark_data(struct discovery *d, struct rva begin, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		uint8_t *state = discovery_state(d, rva_add(begin, i));

		if (!state)
			return; /* a table lies in one section */
		*state |= CODE_DATA | CODE_LABEL;
	}
}

static bool too_many(const struct discovery *d)
{
	return d->table_byte_count / TABLE_BYTES_PER_BYTE > d->image->size;
}

static void push(struct discovery *d, struct table_bytes bytes)
{
	if (bytes.size == 0 || too_many(d))
		return;
	d->table_byte_count += bytes.size;
	mark_data(d, bytes.begin, bytes.size);
	if (!(bytes.use == TABLE_ANEW ? vec_push(&d->written_anew, bytes)
				      : vec_push(&d->kept, bytes)))
		d->out_of_memory = true;
}

void table_bytes_keep(struct discovery *d, struct rva begin, uint32_t size)
{
	push(d, (struct table_bytes){begin, size, .use = TABLE_KEPT});
}

void table_bytes_hold(struct discovery *d, struct rva begin, uint32_t size, uint32_t stride)
{
	push(d, (struct table_bytes){begin, size, TABLE_FIELDS, stride});
}

void table_bytes_rows(struct discovery *d, struct rva begin, uint32_t size, uint32_t stride,
		      uint32_t fields)
{
	push(d, (struct table_bytes){begin, size, TABLE_ROWS, stride, fields});
}

void table_bytes_sort(struct discovery *d, struct rva begin, uint32_t size, uint32_t stride)
{
	push(d, (struct table_bytes){begin, size, TABLE_ANEW, stride, 1});
}

static void write_anew(struct discovery *d, struct rva begin, uint32_t size)
{
	push(d, (struct table_bytes){begin, size, .use = TABLE_ANEW});
}

static void keep_string(struct discovery *d, struct rva rva)
{
	const char *string = image_string(d->image, rva);

	if (string)
		table_bytes_keep(d, rva, (uint32_t)strlen(string) + 1);
}

/* A table of words that ends with a zero, and the hints and names that it leads to. */
static void keep_lookup_table(struct discovery *d, struct rva table)
{
	struct reader r = image_reader(d->image, table);
	uint64_t word = read_u64(&r);

	for (; word != 0; word = read_u64(&r)) {
		if (word > UINT32_MAX)
			continue; /* an ordinal */
		table_bytes_keep(d, rva_of((uint32_t)word), HINT_BYTES);
		keep_string(d, rva_of((uint32_t)word + HINT_BYTES));
	}
	table_bytes_keep(d, table, (uint32_t)r.pos);
}

static void add_exports(struct discovery *d)
{
	struct rva directory = d->image->directories[DIRECTORY_EXPORT].rva;
	const uint8_t *p = image_bytes(d->image, directory, EXPORT_DIRECTORY_BYTES);
	const struct exports *exports = &d->graph->tables.exports;
	uint32_t count;
	struct rva names;

	if (directory.v == 0 || !p)
		return;
	count = load_u32(p + EXPORT_NAME_COUNT);
	names = rva_of(load_u32(p + EXPORT_NAMES));
	/* What comes to lie in the directory is taken for a forwarder. */
	mark_data(d, directory, d->image->directories[DIRECTORY_EXPORT].size);
	table_bytes_keep(d, directory, EXPORT_DIRECTORY_BYTES);
	table_bytes_hold(d, rva_of(load_u32(p + EXPORT_ADDRESSES)),
			 RVA_BYTES * load_u32(p + EXPORT_ADDRESS_COUNT), RVA_BYTES);
	keep_string(d, rva_of(load_u32(p + EXPORT_DLL_NAME)));
	table_bytes_keep(d, names, count * 4);
	table_bytes_keep(d, rva_of(load_u32(p + EXPORT_ORDINALS)), count * 2);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *name = image_bytes(d->image, rva_add(names, i * 4), 4);

		if (name)
			keep_string(d, rva_of(load_u32(name)));
	}
	for (uint32_t i = 0; i < exports->count; i++)
		if (exports->data[i].forwarder)
			keep_string(d, exports->data[i].target);
}

static void add_spare_exports(struct discovery *d)
{
	struct rva from = rva_add(d->image->directories[DIRECTORY_EXPORT].rva, RVA_BYTES);
	struct spare_exports spare;

	while (spare_exports_next(d->image, &from, &spare)) {
		struct rva behind = rva_add(spare.addresses, RVA_BYTES * spare.count);

		table_bytes_keep(d, spare.begin, EXPORT_DIRECTORY_BYTES);
		table_bytes_hold(d, spare.addresses, RVA_BYTES * spare.count, RVA_BYTES);
		table_bytes_keep(d, behind, spare.begin.v + spare.size - behind.v);
	}
}

static void add_imports(struct discovery *d)
{
	struct rva row = d->image->directories[DIRECTORY_IMPORT].rva;
	const uint8_t *p;

	while (row.v && (p = image_bytes(d->image, row, IMPORT_DESCRIPTOR_BYTES))) {
		struct rva lookup = rva_of(load_u32(p));
		struct rva addresses = rva_of(load_u32(p + 16));

		table_bytes_keep(d, row, IMPORT_DESCRIPTOR_BYTES);
		if (load_u32(p + 12) == 0)
			break;
		keep_string(d, rva_of(load_u32(p + 12)));
		keep_lookup_table(d, lookup.v ? lookup : addresses);
		row = rva_add(row, IMPORT_DESCRIPTOR_BYTES);
	}
	for (uint32_t i = 0; i < d->image->import_count; i++)
		table_bytes_keep(d, d->image->imports[i].slot, WORD_BYTES);
}

static void add_delay_imports(struct discovery *d)
{
	const struct delay_imports *delay = &d->graph->tables.delay;

	for (uint32_t i = 0; i < delay->count; i++) {
		const struct delay_import *import = &delay->data[i];
		const uint8_t *p =
			image_bytes(d->image, import->site, DELAY_DESCRIPTOR_BYTES);

		table_bytes_keep(d, import->site, DELAY_DESCRIPTOR_BYTES);
		if (p)
			keep_string(d, rva_of(load_u32(p + DELAY_NAME)));
		keep_lookup_table(d, import->name_table);
		table_bytes_hold(d, import->address_table, WORD_BYTES * import->count,
				 WORD_BYTES);
	}
}

/* What a debug entry's pointer into the file leads to, and the GUID in it. */
static void keep_debug_data(struct discovery *d, const struct debug_entry *entry)
{
	bool has_guid = entry->guid.v && debug_entry_agrees(d->image, entry);
	uint32_t size = entry->size;

	for (uint32_t i = 0; i < d->image->section_count; i++) {
		const struct section *section = &d->image->sections[i];
		uint32_t at = entry->data_off.v - section->raw.v;
		struct rva begin = rva_add(section->rva, at);

		if (entry->data_off.v < section->raw.v || at >= section->raw_size)
			continue;
		if (!has_guid) {
			table_bytes_keep(d, begin, size);
			continue;
		}
		table_bytes_keep(d, begin, entry->guid.v - begin.v);
		write_anew(d, entry->guid, GUID_BYTES);
		table_bytes_keep(d, rva_add(entry->guid, GUID_BYTES),
				 begin.v + size - entry->guid.v - GUID_BYTES);
	}
}

/* The entries' file offsets are set anew, and so is the GUID. */
static void add_debug(struct discovery *d)
{
	struct rva directory = d->image->directories[DIRECTORY_DEBUG].rva;
	const struct debug_directory *debug = &d->graph->tables.debug;

	for (uint32_t i = 0; i < debug->count; i++) {
		const struct debug_entry *entry = &debug->data[i];
		struct rva row = rva_add(directory, i * DEBUG_ENTRY_BYTES);

		table_bytes_keep(d, row, DEBUG_POINTER);
		keep_debug_data(d, entry);
		write_anew(d, rva_add(row, DEBUG_POINTER), 4);
	}
}

static void add_function_table(struct discovery *d)
{
	const struct function_table *table = &d->graph->tables.functions;

	if (table->count)
		push(d, (struct table_bytes){table->data[0].site,
					     table->count * RUNTIME_FUNCTION_BYTES,
					     TABLE_ANEW, RUNTIME_FUNCTION_BYTES, 2});
	for (uint32_t i = 0; i < table->count; i++) {
		const uint8_t *p =
			image_bytes(d->image, table->data[i].unwind, UNWIND_HEADER_BYTES);
		struct unwind_info info;

		/* Functions with the same unwind information stand side by side mostly. */
		if (!p || (i > 0 && table->data[i].unwind.v == table->data[i - 1].unwind.v))
			continue;
		table_bytes_keep(d, table->data[i].unwind, UNWIND_HEADER_BYTES + 2u * p[2]);
		if (unwind_info_read(d->image, table->data[i].unwind, &info, NULL) ==
		    STATUS_OK)
			table_bytes_hold(d, info.rva, info.size, RVA_BYTES);
	}
}

static void add_guard_table(struct discovery *d, const struct guard_table *table)
{
	uint32_t stride = 4 + table->extra;

	push(d, (struct table_bytes){table->rva, table->count * stride, TABLE_ANEW, stride,
				     1});
}

static void add_load_config(struct discovery *d)
{
	const struct load_config *config = &d->graph->tables.config;
	const struct dynamic_relocations *dynamic = &d->graph->tables.dynamic;

	if (dynamic->size) {
		uint32_t behind = dynamic->section_field.v + 2 - config->rva.v;

		table_bytes_keep(d, config->rva, dynamic->offset_field.v - config->rva.v);
		write_anew(d, dynamic->offset_field, 4);
		write_anew(d, dynamic->section_field, 2);
		table_bytes_keep(d, rva_add(config->rva, behind), config->size - behind);
		write_anew(d, dynamic->rva, dynamic->size);
	} else {
		table_bytes_keep(d, config->rva, config->size);
	}
	add_guard_table(d, &config->functions);
	add_guard_table(d, &config->address_taken_iat);
	add_guard_table(d, &config->long_jumps);
	add_guard_table(d, &config->eh_continuations);
}

/* The accesses are sorted anew, the ranges and their number made anew. */
static void add_volatile_metadata(struct discovery *d)
{
	const struct volatile_metadata *metadata = &d->graph->tables.volatiles;

	if (metadata->rva.v == 0)
		return;
	table_bytes_keep(d, metadata->rva, metadata->ranges_size.v - metadata->rva.v);
	write_anew(d, metadata->ranges_size, 4);
	push(d, (struct table_bytes){metadata->accesses, metadata->access_count * RVA_BYTES,
				     TABLE_ANEW, RVA_BYTES, 1});
	write_anew(d, metadata->ranges, metadata->range_count * VOLATILE_RANGE_BYTES);
}

void table_bytes_add(struct discovery *d)
{
	const struct image *image = d->image;
	const struct image_tables *tables = &d->graph->tables;
	struct rva tls = image->directories[DIRECTORY_TLS].rva;
	const struct data_directory *relocs = &image->directories[DIRECTORY_RELOCATION];

	write_anew(d, rva_of(0), image->headers.size_of_headers);
	add_exports(d);
	add_spare_exports(d);
	add_imports(d);
	add_delay_imports(d);
	add_debug(d);
	add_function_table(d);
	add_load_config(d);
	add_volatile_metadata(d);
	if (tls.v)
		table_bytes_keep(d, tls, TLS_DIRECTORY_BYTES);
	for (uint32_t i = 0; i < tables->tls.count; i++)
		table_bytes_hold(d, tables->tls.callbacks[i].site, WORD_BYTES, WORD_BYTES);
	for (uint32_t i = 0; i < tables->pseudo.count; i++)
		table_bytes_hold(d, tables->pseudo.data[i].site, PSEUDO_RELOC_BYTES,
				 RVA_BYTES);
	for (uint32_t i = 0; i < tables->resources.count; i++)
		table_bytes_keep(d, tables->resources.parts[i].begin,
				 tables->resources.parts[i].size);
	if (relocs->rva.v)
		write_anew(d, relocs->rva, relocs->size);
}

static void keep_padding(struct discovery *d, struct rva begin, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		uint8_t *state = discovery_state(d, rva_add(begin, i));

		if (!state)
			break;
		if ((*state & CODE_STATE) == CODE_PADDING)
			*state |= CODE_LABEL;
	}
}

void table_bytes_keep_padding(struct discovery *d)
{
	const struct relocations *relocs = &d->graph->tables.relocs;
	const struct volatile_metadata *metadata = &d->graph->tables.volatiles;
	const struct dynamic_relocations *dynamic = &d->graph->tables.dynamic;

	for (uint32_t i = 0; i < relocs->count; i++) {
		uint32_t size = relocs->data[i].type == RELOC_DIR64 ? 8 : 4;

		keep_padding(d, relocs->data[i].site, size);
	}
	for (uint32_t i = 0; i < dynamic->fixup_count; i++)
		keep_padding(d, dynamic->fixups[i].site, 1);
	for (uint32_t i = 0; i < metadata->access_count; i++)
		keep_padding(d, volatile_access(d->image, metadata, i), 1);
	for (uint32_t i = 0; i < d->doubts.len; i++)
		if (d->doubts.data[i].reason == PIN_ABSOLUTE_ADDRESS)
			keep_padding(d, d->doubts.data[i].rva, 1);
}

static int compare_begins(const void *a, const void *b)
{
	const struct table_bytes *x = a, *y = b;

	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

static int compare_tables(const void *a, const void *b)
{
	const struct table_bytes *x = a, *y = b;

	if (x->begin.v != y->begin.v)
		return x->begin.v < y->begin.v ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	if (x->use != y->use)
		return x->use < y->use ? -1 : 1;
	if (x->stride != y->stride)
		return x->stride < y->stride ? -1 : 1;
	return (x->fields > y->fields) - (x->fields < y->fields);
}

static enum status shared(struct discovery *d, struct rva rva)
{
	return diag_fail_at(d->diag, STATUS_MALFORMED, rva,
			    "two tables of the image share bytes");
}

/* The first table that is written anew and ends behind `rva`: an index. */
static uint32_t anew_behind(const struct discovery *d, struct rva rva)
{
	uint32_t low = 0, high = d->written_anew.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct table_bytes *table = &d->written_anew.data[middle];

		if (table->begin.v + table->size <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The table written anew that shares bytes with [begin, begin + size), or NULL. */
static const struct table_bytes *anew_at(const struct discovery *d, struct rva begin,
					 uint32_t size)
{
	uint32_t i = anew_behind(d, begin);

	return i < d->written_anew.len && d->written_anew.data[i].begin.v < begin.v + size
		       ? &d->written_anew.data[i]
		       : NULL;
}

bool table_bytes_are_known(const struct discovery *d, struct rva rva, uint32_t size)
{
	uint32_t low = 0, high = d->known.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->known.data[middle].begin.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && rva.v + size <= d->known.data[low - 1].end.v;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct pin_range *x = a, *y = b;

	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

/* All tables but those whose fields may be references: a field that discovery has passed
 * over (of unwind information that no function has) is not known.  Those that touch are
 * one. */
static void join_known(struct discovery *d)
{
	uint32_t count = 0;
	bool ok = vec_reserve(&d->known, (size_t)d->kept.len + d->written_anew.len + 1);

	if (!ok) {
		d->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < d->kept.len + d->written_anew.len; i++) {
		const struct table_bytes *bytes =
			i < d->kept.len ? &d->kept.data[i]
					: &d->written_anew.data[i - d->kept.len];

		if (bytes->use != TABLE_FIELDS && bytes->use != TABLE_ROWS)
			d->known.data[d->known.len++] = (struct pin_range){
				bytes->begin, rva_add(bytes->begin, bytes->size)};
	}
	if (d->known.len)
		qsort(d->known.data, d->known.len, sizeof(*d->known.data), compare_ranges);
	for (uint32_t i = 0; i < d->known.len; i++) {
		struct pin_range range = d->known.data[i];
		struct pin_range *last = &d->known.data[count - 1];

		if (count == 0 || range.begin.v > last->end.v)
			d->known.data[count++] = range;
		else if (range.end.v > last->end.v)
			last->end = range.end;
	}
	d->known.len = count;
}

static enum status check_written_anew(struct discovery *d)
{
	const struct table_bytes *tables = d->written_anew.data;

	if (d->written_anew.len == 0)
		return STATUS_OK;
	qsort(d->written_anew.data, d->written_anew.len, sizeof(*tables), compare_begins);
	for (uint32_t i = 0; i < d->written_anew.len; i++)
		/* The headers are the first. */
		if (i > 0 &&
		    (!image_section_at(d->image, tables[i].begin) ||
		     tables[i - 1].begin.v + tables[i - 1].size > tables[i].begin.v))
			return shared(d, tables[i].begin);
	return STATUS_OK;
}

/* Whether the reference is one of the table's own fields. */
static bool is_own(const struct discovery *d, const struct table_bytes *table,
		   const struct ref *ref)
{
	uint32_t at = ref->site.v - table->begin.v;

	if (table->begin.v == 0)
		return ref->site.v == d->image->headers.optional.v + OPTIONAL_ENTRY;
	return table->stride && ref->site.v >= table->begin.v && ref->size == 4 &&
	       at % table->stride % 4 == 0 && at % table->stride / 4 < table->fields;
}

/* What an edit of `ref` would spoil stays as it is when its target stays, and when no
 * thunk stands in for it. */
static void pin_ref(struct discovery *d, struct ref *ref)
{
	ref->enters = false;
	discovery_doubt(d, ref->site, PIN_TABLE_CONFLICT);
	discovery_doubt(d, ref->target, PIN_TABLE_CONFLICT);
}

/* Whether the reference is one of the fields of a table that holds such: no operand, no
 * entry of a jump table, and where fields of its size stand. */
static bool is_field(const struct table_bytes *table, const struct ref *ref)
{
	bool kind = ref->kind == REF_RVA || ref->kind == REF_RVA_END ||
		    ref->kind == REF_VA64 || ref->kind == REF_VA32;

	uint32_t at = ref->site.v - table->begin.v;

	if (table->use == TABLE_ROWS)
		return kind && ref->size == RVA_BYTES && ref->site.v >= table->begin.v &&
		       at % table->stride % RVA_BYTES == 0 &&
		       table->fields >> at % table->stride / RVA_BYTES & 1;
	return table->use == TABLE_FIELDS && kind && ref->size == table->stride &&
	       at % table->stride == 0;
}

static enum status check_kept(struct discovery *d, const struct table_bytes *kept)
{
	const struct graph *graph = d->graph;
	uint32_t before = kept->begin.v < 7 ? 0 : kept->begin.v - 7;

	if (anew_at(d, kept->begin, kept->size))
		return shared(d, kept->begin);
	/* A reference of up to 8 bytes may begin before. */
	for (uint32_t i = graph_ref_from(graph, rva_of(before)); i < graph->refs.len; i++) {
		struct ref *ref = &graph->refs.data[i];

		if (ref->site.v >= kept->begin.v + kept->size)
			break;
		if (ref->site.v + ref->size > kept->begin.v && !is_field(kept, ref))
			pin_ref(d, ref);
	}
	return STATUS_OK;
}

/* Code that a table stands in can neither move nor be edited.  Up to `*end` this is known
 * already. */
static void pin_code(struct discovery *d, const struct table_bytes *bytes, uint64_t *end)
{
	uint64_t behind = (uint64_t)bytes->begin.v + bytes->size;

	for (uint64_t at = bytes->begin.v > *end ? bytes->begin.v : *end; at < behind; at++)
		if (discovery_state(d, rva_of((uint32_t)at)))
			discovery_doubt(d, rva_of((uint32_t)at), PIN_READ_AS_DATA);
		else
			break;
	*end = behind > *end ? behind : *end;
}

/* Sorts the tables that stay, and drops what was noted twice: rows of the function table
 * and names may share what they lead to. */
static void sort_kept(struct discovery *d)
{
	uint32_t count = 0;

	if (!key_sort_by(d->kept.data, d->kept.len, sizeof(*d->kept.data),
			 offsetof(struct table_bytes, begin) + offsetof(struct rva, v),
			 compare_tables)) {
		d->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < d->kept.len; i++)
		if (count == 0 ||
		    compare_tables(&d->kept.data[i], &d->kept.data[count - 1]) != 0)
			d->kept.data[count++] = d->kept.data[i];
	d->kept.len = count;
}

static enum status check_refs(struct discovery *d)
{
	const struct graph *graph = d->graph;

	for (uint32_t i = 0; i < graph->refs.len; i++) {
		struct ref *ref = &graph->refs.data[i];
		const struct table_bytes *table = anew_at(d, ref->site, ref->size);

		if (table && !is_own(d, table, ref))
			return shared(d, ref->site);
		if (i > 0 && ref[-1].site.v + ref[-1].size > ref->site.v) {
			pin_ref(d, &ref[-1]);
			pin_ref(d, ref);
		}
	}
	return STATUS_OK;
}

/* A relocated word that is no whole field, or stands half in one function, half
 * outside. */
static enum status check_relocs(struct discovery *d)
{
	const struct relocations *relocs = &d->graph->tables.relocs;
	const struct graph *graph = d->graph;
	uint32_t at = 0;

	for (uint32_t i = 0; i < relocs->count; i++) {
		struct rva site = relocs->data[i].site;
		uint32_t size = relocs->data[i].type == RELOC_DIR64 ? 8 : 4;
		struct rva last = rva_add(site, size - 1);

		if (anew_at(d, site, size))
			return shared(d, site);
		while (at < graph->refs.len &&
		       graph->refs.data[at].site.v + graph->refs.data[at].size <= site.v)
			at++;
		for (uint32_t k = at; k < graph->refs.len; k++) {
			struct ref *ref = &graph->refs.data[k];

			if (ref->site.v > last.v)
				break;
			if (ref->site.v != site.v || ref->size != size ||
			    (ref->kind != REF_VA64 && ref->kind != REF_VA32))
				pin_ref(d, ref);
		}
		if (!discovery_state(d, site) ||
		    graph_function_at(graph, site) == graph_function_at(graph, last))
			continue;
		for (uint32_t b = 0; b < size; b++)
			discovery_doubt(d, rva_add(site, b), PIN_TABLE_CONFLICT);
	}
	return STATUS_OK;
}

enum status table_bytes_check(struct discovery *d)
{
	enum status status = check_written_anew(d);
	uint64_t end = 0;

	if (too_many(d))
		return shared(d, rva_of(0));
	sort_kept(d);
	for (uint32_t i = 0; status == STATUS_OK && i < d->kept.len; i++) {
		status = check_kept(d, &d->kept.data[i]);
		pin_code(d, &d->kept.data[i], &end);
	}
	end = 0;
	for (uint32_t i = 0; status == STATUS_OK && i < d->written_anew.len; i++)
		pin_code(d, &d->written_anew.data[i], &end);
	join_known(d);
	if (status == STATUS_OK)
		status = check_refs(d);
	return status == STATUS_OK ? check_relocs(d) : status;
}
