/* Every field that the graph calls a reference, resolved from both images' bytes.
 *
 * The instructions' own fields have been proven by decoding already; they are
 * resolved here once more by the formula of their kind, which costs little and
 * covers references in code that discovery has not marked as instructions.
 *
 * Later the references that discovery has found in the output must be among the
 * original's, mapped: one more would be something that nobody has looked after.
 * Branches are left out, since the graph keeps those between blocks only, and
 * which functions are one block may depend on who stands beside whom.
 */
#include "layout/verify_state.h"

#include <stdlib.h>

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

		if (verify_is_sorted(v, ref->site))
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

/* Whether a reference of the output is `was`, moved. */
static bool is_moved(const struct verifier *v, const struct ref *was, const struct ref *is)
{
	struct rva target = was->kind == REF_RVA_END ? verify_map_end(v, was->target)
						     : verify_map(v, was->target);

	return was->kind == is->kind && was->size == is->size && was->tail == is->tail &&
	       is->target.v == target.v &&
	       (was->kind != REF_TABLE || is->base.v == verify_map(v, was->base).v);
}

/* Whether the reference stands in bytes that nobody understands; what discovery
 * reads there changes with the addresses in them. */
static bool is_in_strange_bytes(const struct verifier *v, struct rva site)
{
	struct rva old_site = verify_unmap(v, site);
	uint32_t id = graph_function_at(v->old_graph, old_site);

	if (id == NO_FUNCTION)
		return image_is_code(v->old_image, old_site);
	return verify_is_strange(&v->old_graph->functions.data[id]);
}

static enum status check_rediscovered(struct verifier *v, const uint32_t *order)
{
	const struct graph *was = v->old_graph, *is = &v->new_graph;
	uint32_t k = 0;

	for (uint32_t i = 0; i < is->refs.len; i++) {
		const struct ref *ref = &is->refs.data[i];

		if (ref->kind == REF_BRANCH || verify_is_sorted(v, ref->site))
			continue;
		while (k < was->refs.len &&
		       verify_map(v, was->refs.data[order[k]].site).v < ref->site.v)
			k++;
		if (k < was->refs.len && is_moved(v, &was->refs.data[order[k]], ref))
			continue;
		if (!is_in_strange_bytes(v, ref->site))
			return verify_fail(
				v, ref->site,
				"discovery finds a reference that the original has not");
	}
	return STATUS_OK;
}

enum status verify_rediscovered(struct verifier *v)
{
	const struct graph *graph = v->old_graph;
	uint32_t *order = NULL;
	enum status status;

	status = verify_new_order(v, graph->refs.data, offsetof(struct ref, site),
				  sizeof(*graph->refs.data), graph->refs.len, "a reference",
				  &order);
	if (status == STATUS_OK)
		status = check_rediscovered(v, order);
	free(order);
	return status;
}
