/* Every field that the graph calls a reference, resolved from both images' bytes.
 *
 * The instructions' own fields have been proven by decoding already; they are
 * resolved here once more by the formula of their kind, which costs little and
 * covers references in code that discovery has not marked as instructions.
 */
#include "layout/verify_state.h"

/* What the field `bytes` of `ref` means when it stands at `site`. */
static struct rva resolve(const struct ref *ref, const uint8_t *bytes, struct rva site,
			  struct rva base, uint64_t image_base)
{
	uint32_t value = (uint32_t)verify_load(bytes, ref->size);

	switch (ref->kind) {
	case REF_BRANCH:
	case REF_ADDRESS:
	case REF_MEMORY:
		return rva_add(site, ref->size + ref->tail + value);
	case REF_TABLE:
		return rva_add(base, value);
	case REF_SELF:
		return rva_add(site, value);
	case REF_VA64:
		return rva_of((uint32_t)(load_u64(bytes) - image_base));
	case REF_VA32:
		return rva_of(value - (uint32_t)image_base);
	default:
		return rva_of(value);
	}
}

static enum status check_reference(struct verifier *v, const struct ref *ref)
{
	struct rva site = verify_map(v, ref->site), base = verify_map(v, ref->base),
		   expected;
	const uint8_t *was = image_bytes(v->old_image, ref->site, ref->size);
	const uint8_t *is = image_bytes(v->new_image, site, ref->size);
	uint64_t image_base = v->old_image->headers.image_base;
	struct rva found;
	enum status status;

	if (!was || !is)
		return verify_fail(v, site, "a reference cannot be read");
	found = resolve(ref, was, ref->site, ref->base, image_base);
	if (found.v != ref->target.v)
		return verify_differs(v, site, ref->target.v, found.v,
				      "the original's reference means something else");
	if (ref->kind == REF_RVA_END) {
		expected = verify_map_end(v, ref->target);
	} else {
		status = verify_target(v, site, ref->target, &expected);
		if (status != STATUS_OK)
			return status;
	}
	found = resolve(ref, is, site, base, image_base);
	if (found.v != expected.v)
		return verify_differs(v, site, expected.v, found.v,
				      "the target of a reference");
	verify_prove(v, ref->site, ref->size);
	return STATUS_OK;
}

enum status verify_references(struct verifier *v)
{
	const struct graph *graph = v->old_graph;

	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];
		enum status status;

		/* verify_frames.c proves state maps. */
		if (ref->kind == REF_STATE || verify_is_sorted(v, ref->site))
			continue;
		status = check_reference(v, ref);
		if (status != STATUS_OK)
			return status;
		if (ref->kind == REF_TABLE)
			v->report->table_entries++;
		else if (ref->kind >= REF_RVA)
			v->report->references++;
	}
	return STATUS_OK;
}
