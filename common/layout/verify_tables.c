/* The image's other fixed tables: exports, imports, TLS, delay imports, the load
 * configuration and its guard tables, debug entries, pseudo relocations.
 *
 * All stand where they stood.  Only guard tables are sorted anew: the system
 * searches them by bisection.  A debug entry's data may have another place in the
 * file, and the GUID that ties an image to its PDB is new on purpose.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

enum { DEBUG_POINTER = 24, GUID_BYTES = 16 };

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static enum status compare_counts(struct verifier *v, uint32_t was, uint32_t is,
				  const char *what)
{
	if (was != is)
		return verify_differs(v, rva_of(0), was, is, "the number of %s", what);
	return STATUS_OK;
}

static enum status compare_export(struct verifier *v, const struct export_entry *was,
				  const struct export_entry *is)
{
	struct rva target = was->target;
	enum status status;

	if (was->ordinal != is->ordinal || was->site.v != is->site.v ||
	    !same_text(was->name, is->name) || !same_text(was->forwarder, is->forwarder))
		return verify_fail(v, is->site, "the name of export %u has changed",
				   was->ordinal);
	if (was->forwarder)
		return STATUS_OK;
	status = verify_target(v, is->site, was->target, &target);
	if (status != STATUS_OK)
		return status;
	if (is->target.v != target.v)
		return verify_differs(v, target, target.v, is->target.v,
				      "the target of export %u", was->ordinal);
	verify_prove(v, was->site, 4);
	v->report->table_entries++;
	return STATUS_OK;
}

static enum status check_exports(struct verifier *v)
{
	const struct exports *was = &v->old_graph->tables.exports;
	const struct exports *is = &v->new_graph.tables.exports;
	enum status status = compare_counts(v, was->count, is->count, "exports");

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++)
		status = compare_export(v, &was->data[i], &is->data[i]);
	return status;
}

static enum status check_imports(struct verifier *v)
{
	const struct image *was = v->old_image, *is = v->new_image;
	enum status status =
		compare_counts(v, was->import_count, is->import_count, "imports");

	for (uint32_t i = 0; status == STATUS_OK && i < was->import_count; i++) {
		const struct import *a = &was->imports[i], *b = &is->imports[i];

		if (!same_text(a->dll, b->dll) || !same_text(a->name, b->name) ||
		    a->ordinal != b->ordinal || a->slot.v != b->slot.v)
			status = verify_fail(v, b->slot, "import %u has changed", i);
	}
	return status;
}

static enum status check_delay_imports(struct verifier *v)
{
	const struct delay_imports *was = &v->old_graph->tables.delay;
	const struct delay_imports *is = &v->new_graph.tables.delay;
	enum status status = compare_counts(v, was->count, is->count, "delay imports");

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		const struct delay_import *a = &was->data[i], *b = &is->data[i];

		if (!same_text(a->dll, b->dll) || a->site.v != b->site.v ||
		    a->address_table.v != b->address_table.v ||
		    a->name_table.v != b->name_table.v || a->count != b->count ||
		    a->bound_table.v != b->bound_table.v ||
		    a->unload_table.v != b->unload_table.v)
			status = verify_fail(v, b->site, "delay import %u has changed", i);
	}
	return status;
}

static enum status check_tls(struct verifier *v)
{
	const struct tls *was = &v->old_graph->tables.tls, *is = &v->new_graph.tables.tls;
	enum status status = compare_counts(v, was->count, is->count, "TLS callbacks");

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		struct rva target = verify_map(v, was->callbacks[i].target);

		if (was->callbacks[i].site.v != is->callbacks[i].site.v ||
		    is->callbacks[i].target.v != target.v)
			status = verify_differs(v, is->callbacks[i].site, target.v,
						is->callbacks[i].target.v,
						"the target of TLS callback %u", i);
		v->report->table_entries++;
	}
	return status;
}

/* Both tables' bytes, `width` a row. */
struct guard_pair {
	const uint8_t *was, *is;
	uint32_t count, width;
};

static enum status compare_guard_rows(struct verifier *v, const struct guard_pair *pair,
				      const struct rva *keys)
{
	uint32_t *order = NULL;
	enum status status = verify_new_order(v, keys, 0, sizeof(*keys), pair->count,
					      "what a guard table names", &order);

	for (uint32_t i = 0; status == STATUS_OK && i < pair->count; i++) {
		const uint8_t *is = pair->is + (size_t)i * pair->width;
		const uint8_t *was = pair->was + (size_t)order[i] * pair->width;
		struct rva target = verify_map(v, keys[order[i]]);

		if (load_u32(is) != target.v)
			status = verify_differs(v, target, target.v, load_u32(is),
						"entry %u of a guard table", i);
		else if (memcmp(is + 4, was + 4, pair->width - 4) != 0)
			status = verify_fail(v, target,
					     "the flags of entry %u of a guard table", i);
		v->report->table_entries++;
	}
	free(order);
	return status;
}

static enum status check_guard_table(struct verifier *v, const struct guard_table *was,
				     const struct guard_table *is)
{
	struct guard_pair pair = {.count = was->count, .width = 4 + was->extra};
	uint64_t size = (uint64_t)pair.count * pair.width;
	enum status status;
	struct rva *keys;

	if (was->rva.v != is->rva.v || was->count != is->count || was->extra != is->extra)
		return verify_fail(v, is->rva, "a guard table has another place or size");
	if (was->rva.v == 0 || was->count == 0)
		return STATUS_OK;
	pair.was = image_bytes(v->old_image, was->rva, (uint32_t)size);
	pair.is = image_bytes(v->new_image, is->rva, (uint32_t)size);
	if (size > UINT32_MAX || !pair.was || !pair.is)
		return verify_fail(v, is->rva, "a guard table cannot be read");
	keys = malloc(pair.count * sizeof(*keys));
	if (!keys)
		return diag_no_memory(v->diag);
	for (uint32_t i = 0; i < pair.count; i++)
		keys[i] = rva_of(load_u32(pair.was + (size_t)i * pair.width));
	status = compare_guard_rows(v, &pair, keys);
	free(keys);
	if (status == STATUS_OK)
		status = verify_sorted_table(v, was->rva, (uint32_t)size);
	return status;
}

static enum status check_load_config(struct verifier *v)
{
	const struct load_config *was = &v->old_graph->tables.config;
	const struct load_config *is = &v->new_graph.tables.config;
	enum status status;

	if (was->size != is->size || was->rva.v != is->rva.v ||
	    was->guard_flags != is->guard_flags)
		return verify_fail(v, is->rva, "the load configuration has changed");
	status = check_guard_table(v, &was->functions, &is->functions);
	if (status == STATUS_OK)
		status = check_guard_table(v, &was->address_taken_iat,
					   &is->address_taken_iat);
	if (status == STATUS_OK)
		status = check_guard_table(v, &was->long_jumps, &is->long_jumps);
	if (status == STATUS_OK)
		status =
			check_guard_table(v, &was->eh_continuations, &is->eh_continuations);
	return status;
}

/* Where the file holds the byte at `rva`, which has data. */
static uint32_t offset_of(const struct image *image, struct rva rva)
{
	const uint8_t *byte = image_bytes(image, rva, 1);

	return byte ? (uint32_t)(byte - image->bytes) : 0;
}

static enum status check_debug_entry(struct verifier *v, const struct debug_entry *was,
				     const struct debug_entry *is, struct rva site)
{
	if (was->type != is->type || was->size != is->size || was->data.v != is->data.v ||
	    was->guid.v != is->guid.v)
		return verify_fail(v, site, "a debug entry has changed");
	if (was->guid.v)
		verify_prove(v, was->guid, GUID_BYTES);
	if (was->data_off.v == 0 || was->size == 0)
		return STATUS_OK;
	if (was->data.v && was->data_off.v == offset_of(v->old_image, was->data)) {
		uint32_t expected = offset_of(v->new_image, is->data);

		if (is->data_off.v != expected)
			return verify_differs(v, site, expected, is->data_off.v,
					      "the file offset of a debug entry");
	} else if (memcmp(v->old_image->bytes + was->data_off.v,
			  v->new_image->bytes + is->data_off.v, was->size) != 0) {
		return verify_fail(v, site, "the data of a debug entry has changed");
	}
	verify_prove(v, rva_add(site, DEBUG_POINTER), 4);
	return STATUS_OK;
}

static enum status check_debug(struct verifier *v)
{
	const struct debug_directory *was = &v->old_graph->tables.debug;
	const struct debug_directory *is = &v->new_graph.tables.debug;
	struct rva site = v->old_image->directories[DIRECTORY_DEBUG].rva;
	enum status status = compare_counts(v, was->count, is->count, "debug entries");

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		status = check_debug_entry(v, &was->data[i], &is->data[i], site);
		site = rva_add(site, DEBUG_ENTRY_BYTES);
	}
	return status;
}

/* The start-up code patches what these name. */
static enum status check_pseudo_relocs(struct verifier *v)
{
	const struct pseudo_relocs *was = &v->old_graph->tables.pseudo;
	const struct pseudo_relocs *is = &v->new_graph.tables.pseudo;
	enum status status = compare_counts(v, was->count, is->count, "pseudo relocations");

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		struct rva target = verify_map(v, was->data[i].target);

		if (was->data[i].site.v != is->data[i].site.v ||
		    is->data[i].target.v != target.v)
			status = verify_differs(v, is->data[i].site, target.v,
						is->data[i].target.v,
						"the target of pseudo relocation %u", i);
		else
			verify_prove(v, rva_add(was->data[i].site, 4), 4);
	}
	return status;
}

enum status verify_tables(struct verifier *v)
{
	static enum status (*const checks[])(struct verifier *) = {
		check_exports,     check_imports, check_delay_imports, check_tls,
		check_load_config, check_debug,   check_pseudo_relocs,
	};
	enum status status = STATUS_OK;

	for (size_t i = 0; status == STATUS_OK && i < sizeof(checks) / sizeof(checks[0]);
	     i++)
		status = checks[i](v);
	return status;
}
