/* The ranges of the volatile metadata, for moved code.
 *
 * Inside a range an emulator takes each access that is not in the table of accesses
 * for one that no other thread sees.  So a range may never come to cover code that
 * none covered; code that is covered no longer only runs slower under emulation.
 *
 * Functions are taken in their new sequence and those of one kind that stand side by
 * side become one range.  When that makes more ranges than the table has rows, the
 * largest are kept.  Rejected: dropping the metadata (its pointer and the relocation
 * of that), which is as sound but makes all code of the image slow under emulation,
 * though mostly nothing changes at all: an exchange inside of one object's code leaves
 * the ranges as they were; and a bigger table elsewhere, for the sake of a few small
 * objects.
 *
 * What stands between functions is never executed, so it may be in a range or not.
 */
#include "layout/rewrite.h"

#include <stdlib.h>

/* A part of a function, where it goes; or a range. */
struct part {
	struct rva begin;
	uint32_t size;
	uint32_t section; /* in the new file */
	bool covered;
};

struct ranges {
	const struct rewrite *rewrite;
	VEC(struct part) parts;
	VEC(struct part) made;
};

/* The original's bytes [from, to) of one function. */
static bool add_part(struct ranges *r, uint32_t from, uint32_t to, bool covered)
{
	const struct rewrite *rewrite = r->rewrite;
	struct part part = {.size = to - from, .covered = covered};

	if (from == to)
		return true;
	part.begin = layout_map(rewrite->graph, rewrite->layout, rva_of(from));
	part.section = image_file_section_at(rewrite->file, part.begin);
	return vec_push(&r->parts, part);
}

/* Cuts functions at the bounds of the original's ranges; both ascend. */
static bool add_parts(struct ranges *r)
{
	const struct graph *graph = r->rewrite->graph;
	const struct volatile_metadata *metadata = &graph->tables.volatiles;
	uint32_t range = 0;
	bool ok = true;

	for (uint32_t i = 0; i < graph->functions.len && ok; i++) {
		uint32_t at = graph->functions.data[i].begin.v;
		uint32_t stop = at + graph->functions.data[i].size;

		while (ok && at < stop) {
			struct rva begin = rva_of(stop), end = rva_of(stop);
			uint32_t next;

			if (range < metadata->range_count)
				volatile_range(graph->image, metadata, range, &begin, &end);
			if (end.v <= at) {
				range++;
				continue;
			}
			next = at < begin.v ? begin.v : end.v;
			if (next > stop)
				next = stop;
			ok = add_part(r, at, next, at >= begin.v && at < end.v);
			at = next;
		}
	}
	return ok;
}

static int compare_begins(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

/* The largest first; those of one size as they stand. */
static int compare_sizes(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->size != y->size ? (x->size < y->size ? 1 : -1) : compare_begins(a, b);
}

/* Covered parts that stand side by side become one range. */
static bool join_parts(struct ranges *r)
{
	if (r->parts.len)
		qsort(r->parts.data, r->parts.len, sizeof(*r->parts.data), compare_begins);
	for (uint32_t i = 0; i < r->parts.len; i++) {
		const struct part *part = &r->parts.data[i];
		bool joins = i > 0 && part[-1].covered && part[-1].section == part->section;

		if (!part->covered)
			continue;
		if (joins)
			r->made.data[r->made.len - 1].size =
				part->begin.v + part->size -
				r->made.data[r->made.len - 1].begin.v;
		else if (!vec_push(&r->made, *part))
			return false;
	}
	return true;
}

static enum status write_ranges(struct ranges *r, struct diag *diag)
{
	const struct volatile_metadata *metadata = &r->rewrite->graph->tables.volatiles;
	uint32_t size = metadata->range_count * VOLATILE_RANGE_BYTES;
	uint8_t *rows = image_file_at(r->rewrite->file, metadata->ranges, size);
	uint8_t *bytes = image_file_at(r->rewrite->file, metadata->ranges_size, 4);

	if (!rows || !bytes)
		return diag_fail_at(diag, STATUS_MALFORMED, metadata->ranges,
				    "a table leaves its section");
	if (r->made.len > metadata->range_count) {
		qsort(r->made.data, r->made.len, sizeof(*r->made.data), compare_sizes);
		r->made.len = metadata->range_count;
		qsort(r->made.data, r->made.len, sizeof(*r->made.data), compare_begins);
	}
	memset(rows, 0, size);
	for (uint32_t i = 0; i < r->made.len; i++, rows += VOLATILE_RANGE_BYTES) {
		store_u32(rows, r->made.data[i].begin.v);
		store_u32(rows + VOLATILE_RANGE_SIZE, r->made.data[i].size);
	}
	store_u32(bytes, r->made.len * VOLATILE_RANGE_BYTES);
	return STATUS_OK;
}

enum status rewrite_volatile_ranges(const struct rewrite *rewrite, struct diag *diag)
{
	struct ranges r = {.rewrite = rewrite};
	enum status status;

	/* Nothing to do for code that stays; its ranges may reach into padding. */
	if (rewrite->graph->tables.volatiles.range_count == 0 || !rewrite->layout->moved)
		return STATUS_OK;
	if (add_parts(&r) && join_parts(&r))
		status = write_ranges(&r, diag);
	else
		status = diag_no_memory(diag);
	vec_release(&r.parts);
	vec_release(&r.made);
	return status;
}
