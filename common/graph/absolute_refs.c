/* Absolute addresses in an image without base relocations.
 *
 * Base relocations say where an image holds addresses.  Without them an address is a
 * number like any other, but one of a known form: linkers have two relocations that leave
 * an address behind, of 64 and of 32 bits, and both fill whole words (PE/COFF
 * specification, "Type Indicators" for x64 processors: ADDR64 and ADDR32; all others
 * leave RVAs, distances and places in sections).  The words may stand at any byte, in
 * data and in operands.
 *
 * So each word that lies in the image's code when the image lies at its preferred base
 * pins what it names.  Nothing that such a word may mean moves then, the word stays as it
 * is, and whether it is an address need not be known.  Words of 8 bytes count at every
 * byte of the image.  Words of 4 look like addresses by chance in an image below 4 GiB
 * (the nop 0f 1f 40 00 is 401f0fh there, and RVAs in a table are, three bytes off).  So
 * they count at every byte of data that is no other reference, at every byte of code that
 * is not understood or may be none (safety_policy.c), and in an instruction where a field
 * of 32 bits can stand: immediates come last, and behind a displacement stands nothing
 * but one.
 *
 * An image that may lie anywhere and lists no address has none that works (observed: lld
 * 14 leaves the table away then); its words are looked at all the same.
 *
 * Words of 8 bytes in data at multiples of 4 are no chance.  They tell discovery what
 * relocated words do elsewhere: where code may begin, and where a table ends.
 *
 * DWARF's addresses are not looked at: no program reads them, and they name all functions.
 */
#include "graph/discovery.h"
#include "pe/section_name.h"

/* Whether the number is an address at the preferred base. */
static bool is_address(const struct discovery *d, uint64_t value, struct rva *ret_rva)
{
	value -= d->image->headers.image_base;
	if (value > INT32_MAX)
		return false;
	*ret_rva = rva_of((uint32_t)value);
	return true;
}

static void doubt(struct discovery *d, uint64_t value)
{
	struct rva target;

	if (is_address(d, value, &target) && discovery_range(d, target))
		discovery_doubt(d, target, PIN_ABSOLUTE_ADDRESS);
}

static void doubt_short(struct discovery *d, uint32_t word)
{
	doubt(d, word);
	if (word > INT32_MAX) /* an operand's sign is extended */
		doubt(d, (uint64_t)(int64_t)(int32_t)word);
}

static void add_data_label(struct discovery *d, struct rva rva)
{
	if (image_section_at(d->image, rva) && !discovery_range(d, rva) &&
	    !vec_push(&d->data_labels, rva))
		d->out_of_memory = true;
}

/* What a relocated word would tell (table_refs.c). */
static void add_label(struct discovery *d, struct rva site, uint64_t value)
{
	struct rva target;

	if (!is_address(d, value, &target))
		return;
	if (image_section_at(d->image, target))
		add_data_label(d, site);
	add_data_label(d, target);
	if (discovery_range(d, target))
		discovery_take(d, target);
}

/* The section's bytes in the file; NULL for what is not looked at. */
static const uint8_t *section_bytes(const struct image *image, uint32_t index,
				    uint32_t *ret_size)
{
	const struct section *section = &image->sections[index];

	*ret_size = section->raw_size < section->virtual_size ? section->raw_size
							      : section->virtual_size;
	if (image_has_relocations(image) || section_is_dwarf(image, section))
		return NULL;
	return image_bytes(image, section->rva, *ret_size);
}

void absolute_refs_add(struct discovery *d)
{
	for (uint32_t s = 0; s < d->image->section_count; s++) {
		struct rva begin = d->image->sections[s].rva;
		uint32_t size;
		const uint8_t *bytes = section_bytes(d->image, s, &size);

		for (uint32_t i = 0; bytes && i + 8 <= size; i++) {
			uint64_t value = load_u64(bytes + i);

			doubt(d, value);
			if (i % 4 == 0 && !discovery_range(d, begin))
				add_label(d, rva_add(begin, i), value);
		}
	}
}

void absolute_refs_constant(struct discovery *d, uint64_t value)
{
	struct rva target;

	if (!image_has_relocations(d->image) && is_address(d, value, &target))
		add_data_label(d, target);
}

static bool is_instruction(uint8_t map)
{
	return (map & CODE_STATE) == CODE_START || (map & CODE_STATE) == CODE_INSIDE;
}

/* The fields of 32 bits that the instruction [begin, end) of the range may have. */
static void doubt_fields(struct discovery *d, const struct code_range *range,
			 uint32_t begin, uint32_t end)
{
	static const uint8_t behind[] = {0, 1, 2, 4}; /* bytes of an immediate */

	for (unsigned i = 0; i < sizeof(behind); i++)
		if (begin + 4 + behind[i] < end)
			doubt_short(d, load_u32(range->bytes + end - 4 - behind[i]));
}

/* A word of which no byte is an instruction's, and not all are padding. */
static void doubt_loose(struct discovery *d, const struct code_range *range, uint32_t at)
{
	bool padding = true;

	for (uint32_t i = at; i < at + 4; i++) {
		if (is_instruction(range->map[i]))
			return;
		padding = padding && (range->map[i] & CODE_STATE) == CODE_PADDING;
	}
	if (!padding)
		doubt_short(d, load_u32(range->bytes + at));
}

static void check_code(struct discovery *d, const struct code_range *range)
{
	uint32_t at = 0, end;

	while (at + 4 <= range->size) {
		if (!is_instruction(range->map[at])) {
			doubt_loose(d, range, at++);
			continue;
		}
		for (end = at + 1;
		     end < range->size && (range->map[end] & CODE_STATE) == CODE_INSIDE;
		     end++)
			;
		doubt_fields(d, range, at, end);
		at = end;
	}
}

/* Words of data that share no byte with a known reference. */
static void check_data(struct discovery *d, struct rva begin, const uint8_t *bytes,
		       uint32_t size)
{
	const struct graph *graph = d->graph;
	uint32_t at = graph_ref_from(graph, begin);

	for (uint32_t i = 0; i + 4 <= size; i++) {
		uint32_t site = begin.v + i;

		while (at < graph->refs.len &&
		       graph->refs.data[at].site.v + graph->refs.data[at].size <= site)
			at++;
		if (at == graph->refs.len || graph->refs.data[at].site.v >= site + 4)
			doubt_short(d, load_u32(bytes + i));
	}
}

void absolute_refs_check(struct discovery *d)
{
	for (uint32_t s = 0; s < d->image->section_count; s++) {
		struct rva begin = d->image->sections[s].rva;
		const struct code_range *range = discovery_range(d, begin);
		uint32_t size;
		const uint8_t *bytes = section_bytes(d->image, s, &size);

		if (bytes && range)
			check_code(d, range);
		else if (bytes)
			check_data(d, begin, bytes, size);
	}
}

void absolute_refs_named_by(struct discovery *d, struct rva begin, uint32_t size)
{
	const uint8_t *bytes = image_bytes(d->image, begin, size);

	for (uint32_t i = 0; bytes && !image_has_relocations(d->image) && i + 4 <= size;
	     i++)
		doubt_short(d, load_u32(bytes + i));
}
