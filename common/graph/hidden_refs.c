/* The nets: numbers that may be references nobody explains.
 *
 * A word in data that no table we understand accounts for may name a function in some
 * private way: by its RVA, by its distance from the word itself (Swift), or from the begin
 * of a table whose address is taken (clang's C++ tables of relative pointers).  A constant
 * in an instruction may be an RVA that is added to the image base.  Nearly all such hits
 * are chance, but a true one that is missed is a crash, so the function that is named is
 * pinned.
 *
 * Only function starts count: words that happen to equal some instruction's RVA are so many
 * that a net for them would catch everything.  Only words at multiples of four count:
 * observed in node.exe 18, words anywhere name 10,001 functions, seven times as many as
 * aligned ones and a tenth of all.  Words relative to themselves or to a table name 49 more
 * in it, and none to five in others.
 *
 * Data of exception handlers that are not understood is looked at byte by byte all the
 * same, and where it may lead to other data, all of the sections that it lies in and leads
 * to: such data may be packed, as FuncInfo4 is (observed: link 14.51), and name any
 * function by its RVA.
 */
#include <string.h>

#include "base/rva_list.h"
#include "graph/constant_use.h"
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
	if ((section->characteristics & SECTION_DISCARDABLE) &&
	    rva_in(relocs, section->rva, section->virtual_size))
		return false;
	return !section_is_dwarf(image, section);
}

/* The last place up to `site` that something leads to, `site` itself when there is none;
 * *at walks the sorted labels along with ascending sites. */
static struct rva label_before(const struct discovery *d, struct rva site, uint32_t *at)
{
	const struct rva *labels = d->data_labels.data;

	while (*at < d->data_labels.len && labels[*at].v <= site.v)
		++*at;
	return *at ? labels[*at - 1] : site;
}

/* The ways in which programs keep places in a word: as an RVA, by the distance from the
 * word itself, from the begin of its table. */
enum { WAYS = 3 };

static bool names_start(const struct discovery *d, const uint32_t *values, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (starts_function(d, values[i]))
			return true;
	return false;
}

static void doubt_starts(struct discovery *d, const uint32_t *values, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (starts_function(d, values[i]))
			discovery_doubt(d, rva_of(values[i]), PIN_HIDDEN_REFERENCE);
}

/* Whether data from `data` on lies in the section, or one of its first words leads there.
 */
static bool leads_into(const struct image *image, struct rva data,
		       const struct section *section)
{
	enum { WORDS = 16 }; /* more than any handler's data that is known */

	if (rva_in(data, section->rva, section->virtual_size))
		return true;
	for (uint32_t i = 0; i < WORDS; i++) {
		const uint8_t *word = image_bytes(image, rva_add(data, 4 * i), 4);

		if (word &&
		    rva_in(rva_of(load_u32(word)), section->rva, section->virtual_size))
			return true;
	}
	return false;
}

/* Whether the section may hold data of a handler that is not understood. */
static bool may_be_packed(const struct discovery *d, const struct section *section)
{
	for (uint32_t i = 0; i < d->graph->handlers.len; i++) {
		const struct handler_use *use = &d->graph->handlers.data[i];

		if (use->form == HANDLER_UNKNOWN && use->size == UNKNOWN_SIZE &&
		    leads_into(d->image, use->data, section))
			return true;
	}
	return false;
}

/* Words in it that the net catches. */
static uint32_t scan_section(struct discovery *d, const struct section *section)
{
	uint32_t size = section->raw_size < section->virtual_size ? section->raw_size
								  : section->virtual_size;
	const uint8_t *bytes = image_bytes(d->image, section->rva, size);
	uint32_t at = graph_ref_from(d->graph, section->rva), caught = 0;
	uint32_t label =
		rvas_first_from(d->data_labels.data, d->data_labels.len, section->rva);
	uint32_t step = may_be_packed(d, section) ? 1 : 4;

	/* A reference may begin before the section only if it is malformed. */
	for (uint32_t i = 0; bytes && i + 4 <= size; i += step) {
		struct rva site = rva_add(section->rva, i);
		uint32_t word = load_u32(bytes + i);
		unsigned ways = i % 4 ? 1 : WAYS;

		if (word == 0)
			continue; /* most are */
		const uint32_t values[WAYS] = {word, site.v + word,
					       label_before(d, site, &label).v + word};

		if (!names_start(d, values, ways) || explained(d->graph, site, &at) ||
		    table_bytes_are_known(d, site, 4))
			continue;
		doubt_starts(d, values, ways);
		caught++;
	}
	return caught;
}

/* The words at other places than multiples of four. */
static void scan_handler_data(struct discovery *d, const struct handler_use *use)
{
	const uint8_t *bytes = use->size == UNKNOWN_SIZE
				       ? NULL
				       : image_bytes(d->image, use->data, use->size);

	for (uint32_t i = 0; bytes && i + 4 <= use->size; i++)
		if ((use->data.v + i) % 4 && starts_function(d, load_u32(bytes + i)))
			discovery_doubt(d, rva_of(load_u32(bytes + i)),
					PIN_HIDDEN_REFERENCE);
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
	for (uint32_t i = 0; i < d->graph->handlers.len; i++)
		if (d->graph->handlers.data[i].form == HANDLER_UNKNOWN)
			scan_handler_data(d, &d->graph->handlers.data[i]);
}

/* Whether the constant is known to be a displacement from the image's own address. */
static bool is_displacement(const struct graph *graph, const struct code_constant *constant)
{
	enum { INSN_BYTES = 15 };
	struct rva end = rva_add(constant->site, INSN_BYTES);
	uint32_t i = graph_ref_from(graph, constant->site);

	for (; i < graph->refs.len && graph->refs.data[i].site.v < end.v; i++)
		if (graph->refs.data[i].kind == REF_DISPLACEMENT &&
		    graph->refs.data[i].target.v == constant->value.v)
			return true;
	return false;
}

static void catch_constant(struct discovery *d, struct constant_uses *uses,
			   const struct code_constant *constant)
{
	if (!is_displacement(d->graph, constant) && !constant_is_number(uses, constant))
		discovery_doubt(d, constant->value, PIN_CODE_CONSTANT);
}

/* A constant may name a function.  A displacement may name a table that stands among code
 * as well: that is how tables are read. */
static void scan_code(struct discovery *d, struct constant_uses *uses)
{
	for (uint32_t i = 0; i < d->constants.len; i++)
		if (starts_function(d, d->constants.data[i].value.v))
			catch_constant(d, uses, &d->constants.data[i]);
	for (uint32_t i = 0; i < d->displaced.len; i++) {
		uint8_t state = *discovery_state(d, d->displaced.data[i].value);

		if ((state & CODE_STATE) == CODE_TABLE)
			catch_constant(d, uses, &d->displaced.data[i]);
	}
}

void hidden_refs_add(struct discovery *d)
{
	struct constant_uses uses;

	scan_sections(d);
	if (!constant_uses_init(&uses, d)) {
		d->out_of_memory = true;
		return;
	}
	scan_code(d, &uses);
	constant_uses_release(&uses);
}
