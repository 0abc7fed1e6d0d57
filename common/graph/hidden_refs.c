/* The nets: numbers that may be references nobody explains.
 *
 * A word in data that equals the RVA of a function's start and that no table we
 * understand accounts for may be an RVA of some private table; a constant in an
 * instruction may be an RVA that is added to the image base.  Nearly all such
 * hits are chance, but a true one that is missed is a crash, so the function that
 * is named is pinned.  Only function starts count: words that happen to equal
 * some instruction's RVA are so many that a net for them would catch everything.
 */
#include <string.h>

#include "graph/discovery.h"
#include "pe/section_name.h"

/* Whether a known reference explains the word at `site`; *at walks the sorted
 * references along with ascending sites. */
static bool explained(const struct graph *graph, struct rva site, uint32_t *at)
{
	while (*at < graph->refs.len &&
	       graph->refs.data[*at].site.v + graph->refs.data[*at].size <= site.v)
		++*at;
	return *at < graph->refs.len && graph->refs.data[*at].site.v < site.v + 4;
}

static bool starts_function(const struct discovery *d, uint32_t value)
{
	uint8_t *state = discovery_state(d, rva_of(value));

	return state && (*state & CODE_FUNCTION);
}

/* All data but what no program reads: base relocations and DWARF.  That a section may be
 * discarded says nothing: programs keep theirs, and drivers have data that they use while
 * they start. */
static bool is_scanned(const struct image *image, const struct section *section)
{
	struct rva relocs = image->directories[DIRECTORY_RELOCATION].rva;

	if ((section->characteristics & SECTION_EXECUTE) || section->raw_size == 0)
		return false;
	return !(section->characteristics & SECTION_DISCARDABLE) ||
	       (!rva_in(relocs, section->rva, section->virtual_size) &&
		strncmp(section_name(image, section), ".debug_", strlen(".debug_")) != 0);
}

/* Words in it that the net catches. */
static uint32_t scan_section(struct discovery *d, const struct section *section)
{
	uint32_t size = section->raw_size < section->virtual_size ? section->raw_size
								  : section->virtual_size;
	const uint8_t *bytes = image_bytes(d->image, section->rva, size);
	uint32_t at = graph_ref_from(d->graph, section->rva), caught = 0;

	/* A reference may begin before the section only if it is malformed. */
	for (uint32_t i = 0; bytes && i + 4 <= size; i += 4) {
		uint32_t word = load_u32(bytes + i);
		struct rva site = rva_add(section->rva, i);

		if (!starts_function(d, word) || explained(d->graph, site, &at) ||
		    table_bytes_are_known(d, site, 4))
			continue;
		discovery_doubt(d, rva_of(word), PIN_HIDDEN_REFERENCE);
		caught++;
	}
	return caught;
}

static void scan_sections(struct discovery *d)
{
	struct image *image = d->image;
	uint32_t *words = arena_array(&image->arena, image->section_count, sizeof(*words));

	for (uint32_t i = 0; words && i < image->section_count; i++)
		if (is_scanned(image, &image->sections[i]))
			words[i] = scan_section(d, &image->sections[i]);
	if (!words)
		d->out_of_memory = true;
	d->graph->hidden_words = words;
}

/* Whether the constant is known to be a displacement from the image's own address. */
static bool is_displacement(const struct graph *graph, const struct code_constant *constant)
{
	uint32_t i = graph_ref_from(graph, constant->site);

	for (; i < graph->refs.len && graph->refs.data[i].site.v < constant->site.v + 15; i++)
		if (graph->refs.data[i].kind == REF_DISPLACEMENT &&
		    graph->refs.data[i].target.v == constant->value.v)
			return true;
	return false;
}

/* A constant may name a function, or a table in one that is not code. */
static bool may_be_named(const struct discovery *d, struct rva rva)
{
	uint8_t state = *discovery_state(d, rva);

	return (state & CODE_FUNCTION) || (state & CODE_STATE) == CODE_TABLE;
}

void hidden_refs_add(struct discovery *d)
{
	scan_sections(d);
	for (uint32_t i = 0; i < d->constants.len; i++)
		if (may_be_named(d, d->constants.data[i].value) &&
		    !is_displacement(d->graph, &d->constants.data[i]))
			discovery_doubt(d, d->constants.data[i].value, PIN_CODE_CONSTANT);
}
