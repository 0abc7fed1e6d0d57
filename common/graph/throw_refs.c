/* References in what `throw` hands to the runtime (pe/throw_info.h).
 *
 * Code takes the address of a ThrowInfo by lea.  So each place in data that code names is
 * looked at.  When all of the structure is there, down to the type descriptors with their
 * names, its destructor and copy constructors are references; else it is something else,
 * and the net for hidden references looks after it.
 *
 * Rust's ThrowInfo is filled at run time (observed: rustc 1.7x); in the file it is zeros.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rva_list.h"
#include "graph/discovery.h"
#include "pe/throw_info.h"

enum { WORD_BYTES = 4 };

/* Whether a reference to the function is new: it may be code that nothing else led to. */
static bool add_function(struct discovery *d, struct rva site, struct rva target)
{
	struct ref ref = {.site = site,
			  .target = target,
			  .kind = REF_RVA,
			  .size = WORD_BYTES,
			  .enters = true};
	const uint8_t *state = discovery_state(d, target);

	if (!state)
		return false; /* 0, or in no data of a code section */
	discovery_ref(d, ref);
	discovery_enter(d, target, !discovery_table_entry(d, target));
	return (*state & CODE_STATE) != CODE_START;
}

/* Whether all catchable types are there; takes what they cost from the budget. */
static bool check_types(const struct discovery *d, const struct throw_info *info,
			uint64_t *budget)
{
	for (uint32_t i = 0; i < info->count; i++) {
		struct catchable_type type;

		if (*budget == 0)
			return false;
		--*budget;
		if (!catchable_type_read(d->image, info, i, &type))
			return false;
	}
	return true;
}

static bool add_throw(struct discovery *d, const struct throw_info *info)
{
	bool more = add_function(d, rva_add(info->rva, THROW_INFO_DESTRUCTOR),
				 info->destructor);

	table_bytes_hold(d, info->rva, THROW_INFO_BYTES, WORD_BYTES);
	table_bytes_keep(d, info->array, (info->count + 1) * WORD_BYTES);
	for (uint32_t i = 0; i < info->count; i++) {
		struct catchable_type type;

		if (!catchable_type_read(d->image, info, i, &type))
			continue;
		table_bytes_hold(d, type.rva, CATCHABLE_TYPE_BYTES, WORD_BYTES);
		more |= add_function(d, rva_add(type.rva, CATCHABLE_TYPE_COPY), type.copy);
	}
	return more;
}

bool throw_refs_add(struct discovery *d)
{
	uint32_t count = d->data_labels.len;
	struct rva *labels = malloc(((size_t)count + 1) * sizeof(*labels));
	uint64_t budget = d->image->size; /* catchable types to look at */
	bool more = false;

	if (!labels) {
		d->out_of_memory = true;
		return false;
	}
	if (count)
		memcpy(labels, d->data_labels.data, count * sizeof(*labels));
	rvas_sort(labels, count);
	for (uint32_t i = 0; i < count; i++) {
		struct throw_info info;

		if ((i > 0 && labels[i].v == labels[i - 1].v) || labels[i].v % WORD_BYTES)
			continue;
		if (throw_info_read(d->image, labels[i], &info) &&
		    check_types(d, &info, &budget))
			more |= add_throw(d, &info);
	}
	free(labels);
	return more;
}
