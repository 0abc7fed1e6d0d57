/* Dynamic value relocations: the same places for each symbol, mapped, with what is
 * said of each.  The table stands where it stood and is no larger, or in a section
 * that the original has not; what is left of its place is zero. */
#include "layout/verify_state.h"

#include <stddef.h>
#include <stdlib.h>

static enum status compare_fixups(struct verifier *v, const struct dynamic_group *was,
				  const struct dynamic_group *is)
{
	const struct dynamic_fixup *old_fixups =
		v->old_graph->tables.dynamic.fixups + was->first;
	const struct dynamic_fixup *new_fixups =
		v->new_graph.tables.dynamic.fixups + is->first;
	uint32_t *order = NULL;
	enum status status =
		verify_new_order(v, old_fixups, offsetof(struct dynamic_fixup, site),
				 sizeof(*old_fixups), was->count,
				 "the place of a dynamic value relocation", &order);

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		struct rva site = verify_map(v, old_fixups[order[i]].site);

		if (new_fixups[i].site.v != site.v)
			status = verify_differs(v, site, site.v, new_fixups[i].site.v,
						"the place of a dynamic value relocation");
		else if (new_fixups[i].rest != old_fixups[order[i]].rest)
			status = verify_fail(v, site,
					     "what a dynamic value relocation asks for");
		v->report->table_entries++;
	}
	free(order);
	return status;
}

static enum status compare_groups(struct verifier *v)
{
	const struct dynamic_relocations *was = &v->old_graph->tables.dynamic;
	const struct dynamic_relocations *is = &v->new_graph.tables.dynamic;
	enum status status = STATUS_OK;

	if (was->version != is->version || was->group_count != is->group_count ||
	    was->fixup_count != is->fixup_count)
		return verify_fail(v, is->rva,
				   "the number of dynamic value relocations has changed");
	for (uint32_t i = 0; status == STATUS_OK && i < was->group_count; i++) {
		const struct dynamic_group *a = &was->groups[i], *b = &is->groups[i];

		if (a->symbol != b->symbol || a->symbol_group != b->symbol_group ||
		    a->flags != b->flags || a->count != b->count)
			return verify_fail(v, is->rva,
					   "the symbol of dynamic value relocations");
		status = compare_fixups(v, a, b);
	}
	return status;
}

/* The table's old place, which may hold the new one. */
static enum status check_place(struct verifier *v)
{
	const struct dynamic_relocations *was = &v->old_graph->tables.dynamic;
	const struct dynamic_relocations *is = &v->new_graph.tables.dynamic;
	bool stays = was->rva.v == is->rva.v;

	if (stays && is->size > was->size)
		return verify_fail(v, is->rva,
				   "the dynamic value relocations cover other data");
	if (!stays && is->rva.v < v->span)
		return verify_fail(v, is->rva, "the dynamic value relocations stand in a "
					       "section of the original");
	for (uint32_t i = stays ? is->size : 0; i < was->size; i++) {
		const uint8_t *byte = image_bytes(v->new_image, rva_add(was->rva, i), 1);

		if (!byte || *byte)
			return verify_fail(v, rva_add(was->rva, i),
					   "bytes are left of the old dynamic value "
					   "relocations");
	}
	verify_prove(v, was->rva, was->size);
	if (!stays) {
		verify_prove(v, was->offset_field, 4);
		verify_prove(v, was->section_field, 2);
	}
	return STATUS_OK;
}

enum status verify_dynamic(struct verifier *v)
{
	enum status status = compare_groups(v);

	/* Where nothing moves every byte stays. */
	if (status == STATUS_OK && v->old_graph->tables.dynamic.size && v->move_count)
		status = check_place(v);
	return status;
}
