#include "graph/exception_pass.h"

#include "base/rva_list.h"

bool exception_pass_spend(struct exception_pass *pass, uint64_t bytes)
{
	if (bytes > pass->budget) {
		pass->budget = 0;
		return false;
	}
	pass->budget -= bytes;
	return true;
}

void exception_pass_ref(struct exception_pass *pass, struct rva site, struct rva target,
			enum ref_kind kind, bool enters)
{
	struct ref ref = {.site = site,
			  .target = target,
			  .kind = (uint8_t)kind,
			  .size = 4,
			  .enters = enters};

	if (!pass->adding)
		return;
	discovery_ref(pass->d, ref);
	/* What the runtime calls is a function, in the function table or not: MSVC makes
	 * parts of one jump without unwind data, one behind the other. */
	if (kind == REF_RVA)
		discovery_enter(pass->d, target,
				enters && !discovery_table_entry(pass->d, target));
}

void exception_pass_name(struct exception_pass *pass, struct rva site, struct rva target)
{
	struct ref ref = {.site = site, .target = target, .kind = REF_RVA, .size = 4};

	if (!pass->adding)
		return;
	discovery_ref(pass->d, ref);
	if (exception_pass_is_code(pass, target))
		discovery_reach(pass->d, target);
}

void exception_pass_enter(struct exception_pass *pass, struct rva target)
{
	if (pass->adding)
		discovery_enter(pass->d, target, false);
}

void exception_pass_keep(struct exception_pass *pass, struct rva begin, uint32_t size)
{
	if (pass->adding)
		table_bytes_keep(pass->d, begin, size);
}

void exception_pass_rows(struct exception_pass *pass, struct rva begin, uint32_t size,
			 uint32_t stride, uint32_t fields)
{
	if (pass->adding)
		table_bytes_rows(pass->d, begin, size, stride, fields);
}

void exception_pass_join(struct exception_pass *pass, struct rva first, struct rva last)
{
	if (pass->adding)
		discovery_join(pass->d, first, last);
}

void exception_pass_doubt(struct exception_pass *pass, struct rva rva)
{
	if (pass->adding)
		discovery_doubt(pass->d, rva, PIN_UNKNOWN_HANDLER);
}

bool exception_pass_is_code(const struct exception_pass *pass, struct rva rva)
{
	return discovery_range(pass->d, rva) != NULL;
}

bool exception_pass_is_row(const struct exception_pass *pass, struct rva rva)
{
	const struct runtime_function *row = discovery_table_entry(pass->d, rva);

	return row && row->begin.v == rva.v;
}

/* The first part at or behind (root, begin): an index. */
static uint32_t part_from(const struct exception_pass *pass, struct rva root,
			  uint64_t begin)
{
	uint32_t low = 0, high = pass->parts.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct function_part *part = &pass->parts.data[middle];

		if (part->root.v < root.v ||
		    (part->root.v == root.v && part->begin.v < begin))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t exception_pass_parts(const struct exception_pass *pass,
			      const struct runtime_function *function, uint32_t *ret_count)
{
	uint32_t first = part_from(pass, function->begin, 0);

	*ret_count = part_from(pass, function->begin, UINT64_MAX) - first;
	return first;
}

const struct function_part *exception_pass_part_at(const struct exception_pass *pass,
						   const struct runtime_function *function,
						   struct rva rva)
{
	uint32_t behind = part_from(pass, function->begin, (uint64_t)rva.v + 1);
	const struct function_part *part;

	if (behind == 0)
		return NULL;
	part = &pass->parts.data[behind - 1];
	return part->root.v == function->begin.v && rva.v >= part->begin.v &&
			       rva.v < part->end.v
		       ? part
		       : NULL;
}

uint32_t exception_pass_next_info(const struct exception_pass *pass, struct rva rva)
{
	uint32_t next =
		rvas_first_from(pass->unwind_infos.data, pass->unwind_infos.len, rva);

	return next < pass->unwind_infos.len ? pass->unwind_infos.data[next].v : UINT32_MAX;
}
