/* All bytes of all sections.
 *
 * Each byte of the original that is still there must be the same at its new
 * place, unless it belongs to a proven field.  What blocks have left is int3.
 * Padding in code stays as it was or, a whole stretch at a time, becomes int3; it
 * must where a moved block covers a part of it.
 * What a section of the original gained behind its data is zero; what a new
 * section holds is moved blocks and int3, or one relocated table and zeros.
 *
 * Compared in strides by memcmp: nearly all are equal.
 */
#include "layout/verify_state.h"

#include <string.h>

enum { INT3 = 0xcc, STRIDE = 512 };

/* A stretch of one section that stands at `to` in the relinked image. */
struct stretch {
	const uint8_t *was, *is; /* `size` of each */
	struct rva from, to;
	uint32_t size;
	bool code; /* of an executable section */
};

static bool all_are(const uint8_t *bytes, uint32_t size, uint8_t value)
{
	for (uint32_t i = 0; i < size; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* The bytes around `offset` that are in no block; false when that one is, or when
 * they are not all padding that nothing refers to. */
static bool find_padding(const struct verifier *v, const struct stretch *s, uint32_t offset,
			 uint32_t *ret_begin, uint32_t *ret_end)
{
	struct range gap;

	if (!s->code || s->from.v != s->to.v ||
	    !verify_gap_at(v, rva_add(s->from, offset), s->from, rva_add(s->from, s->size),
			   &gap))
		return false;
	for (uint32_t i = 0; i < gap.size; i++) {
		uint8_t state = graph_code_state(v->old_graph, rva_add(gap.begin, i));

		if ((state & (CODE_STATE | CODE_LABEL)) != CODE_PADDING)
			return false;
	}
	*ret_begin = gap.begin.v - s->from.v;
	*ret_end = *ret_begin + gap.size;
	return true;
}

/* The byte at *offset differs: is it proven, or padding that became int3?  Moves
 * *offset behind what has been explained. */
static enum status explain(struct verifier *v, const struct stretch *s, uint32_t *offset)
{
	struct rva old_rva = rva_add(s->from, *offset), new_rva = rva_add(s->to, *offset);
	uint32_t begin = 0, end = 0;

	if (verify_is_proven(v, old_rva)) {
		++*offset;
		return STATUS_OK;
	}
	if (find_padding(v, s, *offset, &begin, &end) &&
	    all_are(s->is + begin, end - begin, INT3)) {
		*offset = end;
		return STATUS_OK;
	}
	return verify_differs(v, new_rva, s->was[*offset], s->is[*offset],
			      "a byte that nothing explains has changed");
}

static enum status compare_stretch(struct verifier *v, const struct stretch *s)
{
	uint32_t offset = 0;

	while (offset < s->size) {
		uint32_t left = s->size - offset, size = left < STRIDE ? left : STRIDE;
		uint32_t end = offset + size;

		if (memcmp(s->was + offset, s->is + offset, size) == 0) {
			offset = end;
			continue;
		}
		while (offset < end) {
			enum status status = STATUS_OK;

			if (s->was[offset] == s->is[offset])
				offset++;
			else
				status = explain(v, s, &offset);
			if (status != STATUS_OK)
				return status;
		}
	}
	return STATUS_OK;
}

/* The part of a segment that lies in a section's data. */
static enum status compare_part(struct verifier *v, const struct section *section,
				const struct segment *segment)
{
	uint64_t begin = section->rva.v, end = begin + verify_data_size(section);
	uint64_t stop = (uint64_t)segment->from.v + segment->size;
	struct stretch s = {.code = section->characteristics & SECTION_EXECUTE};

	if (begin < segment->from.v)
		begin = segment->from.v;
	if (end > stop)
		end = stop;
	if (begin >= end)
		return STATUS_OK;
	s.from = rva_of((uint32_t)begin);
	s.to = rva_add(segment->to, s.from.v - segment->from.v);
	s.size = (uint32_t)(end - begin);
	s.was = image_bytes(v->old_image, s.from, s.size);
	s.is = image_bytes(v->new_image, s.to, s.size);
	if (!s.was || !s.is)
		return verify_fail(v, s.to, "bytes of the original are missing");
	return compare_stretch(v, &s);
}

/* Merges sections and segments, which both ascend. */
static enum status compare_sections(struct verifier *v)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < v->old_image->section_count; i++) {
		const struct section *section = &v->old_image->sections[i];
		uint64_t end = (uint64_t)section->rva.v + verify_data_size(section);

		while (first < v->segment_count &&
		       v->segments[first].from.v + v->segments[first].size <=
			       section->rva.v)
			first++;
		for (uint32_t k = first; k < v->segment_count; k++) {
			enum status status;

			if (v->segments[k].from.v >= end)
				break;
			status = compare_part(v, section, &v->segments[k]);
			if (status != STATUS_OK)
				return status;
		}
		mapped_file_forget(&v->old_image->file, section->raw.v, section->raw_size);
	}
	return STATUS_OK;
}

/* What the file holds of a section behind what memory sees of the original. */
static enum status compare_tails(struct verifier *v)
{
	for (uint32_t i = 0; i < v->old_image->section_count; i++) {
		const struct section *was = &v->old_image->sections[i];
		const struct section *is = &v->new_image->sections[i];
		const uint8_t *old_bytes = v->old_image->bytes + was->raw.v;
		const uint8_t *new_bytes = v->new_image->bytes + is->raw.v;
		uint32_t offset = verify_data_size(was);

		for (; offset < is->raw_size; offset++) {
			uint8_t expected = offset < was->raw_size ? old_bytes[offset] : 0;

			if (new_bytes[offset] == expected)
				continue;
			return verify_differs(
				v, rva_add(is->rva, offset), expected, new_bytes[offset],
				"a byte behind the section '%s' has changed", is->name);
		}
	}
	return STATUS_OK;
}

static enum status check_fill(struct verifier *v, const struct section *section,
			      uint32_t from, uint32_t to, uint8_t value)
{
	const uint8_t *bytes = v->new_image->bytes + section->raw.v;

	for (uint32_t i = from; i < to; i++)
		if (bytes[i] != value)
			return verify_differs(v, rva_add(section->rva, i), value, bytes[i],
					      "a byte between blocks");
	return STATUS_OK;
}

static enum status check_holes(struct verifier *v)
{
	for (uint32_t i = 0; i < v->hole_count; i++) {
		struct rva begin = v->holes[i].begin;
		const struct section *section = image_section_at(v->new_image, begin);
		uint32_t from = section ? begin.v - section->rva.v : 0;
		enum status status;

		if (!section)
			return verify_fail(v, begin, "a block's old place is gone");
		status = check_fill(v, section, from, from + v->holes[i].size, INT3);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/* What is left of padding that a moved block covers in part. */
static enum status check_leftovers(struct verifier *v)
{
	uint32_t done = 0; /* end of the last stretch */

	for (uint32_t i = 0; i < v->covered.len; i++) {
		struct rva begin = v->covered.data[i].begin;
		const struct section *section = image_section_at(v->new_image, begin);
		struct range gap;

		if (begin.v < done || !section ||
		    !verify_gap_at(v, begin, section->rva,
				   rva_add(section->rva, verify_data_size(section)), &gap))
			continue;
		done = gap.begin.v + gap.size;
		for (struct rva rva = gap.begin; rva.v < done; rva.v++) {
			uint32_t at = rva.v - section->rva.v;
			enum status status = STATUS_OK;

			if (!verify_is_lost(v, rva))
				status = check_fill(v, section, at, at + 1, INT3);
			if (status != STATUS_OK)
				return status;
		}
	}
	return STATUS_OK;
}

/* A new section: what is neither a moved block nor a table is filled. */
static enum status check_added(struct verifier *v, const struct section *section)
{
	bool code = section->characteristics & SECTION_EXECUTE;
	uint32_t size = verify_data_size(section), pos = 0;
	const struct data_directory tables[] = {
		v->new_image->directories[DIRECTORY_EXCEPTION],
		v->new_image->directories[DIRECTORY_RELOCATION],
		{v->new_graph.tables.dynamic.rva, v->new_graph.tables.dynamic.size},
	};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < v->move_count && status == STATUS_OK; i++) {
		struct rva to = v->by_to[i].to;

		if (!rva_in(to, section->rva, size))
			continue;
		status = check_fill(v, section, pos, to.v - section->rva.v, INT3);
		pos = to.v - section->rva.v + v->by_from[v->by_to[i].move].size;
	}
	for (unsigned k = 0; k < sizeof(tables) / sizeof(tables[0]) && status == STATUS_OK;
	     k++) {
		struct rva begin = tables[k].rva;

		if (!rva_in(begin, section->rva, size))
			continue;
		if (begin.v - section->rva.v < pos)
			return verify_fail(v, begin, "a table covers moved blocks");
		status = check_fill(v, section, pos, begin.v - section->rva.v, 0);
		pos = begin.v - section->rva.v + tables[k].size;
	}
	if (status == STATUS_OK && code)
		status = check_fill(v, section, pos, size, INT3);
	else if (status == STATUS_OK && pos != size)
		status = verify_differs(v, section->rva, pos, size,
					"the size of the new section '%s'", section->name);
	if (status == STATUS_OK)
		status = check_fill(v, section, size, section->raw_size, 0);
	return status;
}

enum status verify_bytes(struct verifier *v)
{
	enum status status = compare_sections(v);

	if (status == STATUS_OK)
		status = compare_tails(v);
	if (status == STATUS_OK)
		status = check_holes(v);
	if (status == STATUS_OK)
		status = check_leftovers(v);
	for (uint32_t i = v->old_image->section_count;
	     i < v->new_image->section_count && status == STATUS_OK; i++)
		status = check_added(v, &v->new_image->sections[i]);
	return status;
}
