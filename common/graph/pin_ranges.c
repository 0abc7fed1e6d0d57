/* A word that does not do what its user thinks is dangerous here: who names code that
 * must not move, and misspells it, gets an image that crashes.  So whatever pins nothing
 * is an error.
 *
 * Ranges must begin with 0x, so that no word can be both a range and a name.
 */
#include "graph/pin_ranges.h"

#include <ctype.h>
#include <string.h>

static enum status bad_word(const char *word, const char *problem, struct diag *diag)
{
	return diag_fail(diag, STATUS_USAGE, "option '--pin': '%s' %s", word, problem);
}

/* Reads "0x" and digits, and steps behind them; false for anything else, and beyond 32
 * bits. */
static bool read_rva(const char **text, struct rva *ret_rva)
{
	const char *at = *text;
	uint64_t value = 0;

	if (at[0] != '0' || (at[1] | 0x20) != 'x' || !isxdigit((unsigned char)at[2]))
		return false;
	for (at += 2; isxdigit((unsigned char)*at); at++) {
		char c = *at;

		value = value << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
		if (value > UINT32_MAX)
			return false;
	}
	*text = at;
	*ret_rva = rva_of((uint32_t)value);
	return true;
}

/* The executable section that holds all of the range. */
static bool is_in_code(const struct image *image, const struct pin_range *range)
{
	const struct section *section = image_section_at(image, range->begin);

	return section && (section->characteristics & SECTION_EXECUTE) &&
	       range->end.v <= section_end(section).v;
}

static bool add(struct pin_ranges *ranges, struct pin_range range, uint32_t word)
{
	struct named_range named = {range, word};

	return vec_push(&ranges->ranges, range) && vec_push(&ranges->named, named);
}

static enum status add_range(const struct image *image, const char *word, uint32_t index,
			     struct pin_ranges *ranges, struct diag *diag)
{
	const char *at = word;
	struct pin_range range;

	if (!read_rva(&at, &range.begin))
		return bad_word(word, "is no RVA of 32 bits", diag);
	range.end = rva_add(range.begin, 1);
	if (*at == '-') {
		at++;
		if (!read_rva(&at, &range.end))
			return bad_word(word, "needs an RVA of 32 bits as its end, as in "
					      "0x1000-0x2000", diag);
		if (range.end.v == range.begin.v)
			return bad_word(word, "is empty, the end is exclusive", diag);
		if (range.end.v < range.begin.v)
			return bad_word(word, "ends before it begins", diag);
	}
	if (*at)
		return bad_word(word, "is no range of RVAs, as in 0x1000-0x2000", diag);
	if (!is_in_code(image, &range))
		return bad_word(word, "does not lie wholly in one code section", diag);
	return add(ranges, range, index) ? STATUS_OK : diag_no_memory(diag);
}

static enum status add_name(const struct image *image, const struct exports *exports,
			    const struct coff_symbols *symbols, const char *word,
			    uint32_t index, struct pin_ranges *ranges, struct diag *diag)
{
	uint32_t before = ranges->named.len;
	bool known = false, room = true;

	for (uint32_t i = 0; i < exports->count; i++) {
		const struct export_entry *entry = &exports->data[i];
		struct pin_range range = {entry->target, rva_add(entry->target, 1)};

		if (!entry->name || strcmp(entry->name, word) != 0)
			continue;
		known = true;
		if (!entry->forwarder && is_in_code(image, &range))
			room &= add(ranges, range, index);
	}
	for (uint32_t i = 0; i < symbols->count; i++) {
		const struct coff_symbol *symbol = &symbols->data[i];
		struct pin_range range = {symbol->rva, rva_add(symbol->rva, 1)};

		if (strcmp(symbol->name, word) != 0)
			continue;
		known = true;
		if (is_in_code(image, &range))
			room &= add(ranges, range, index);
	}
	if (!room)
		return diag_no_memory(diag);
	if (!known)
		return bad_word(word,
				"is no export and no symbol of the image; an RVA begins "
				"with 0x",
				diag);
	return ranges->named.len > before ? STATUS_OK : bad_word(word, "is no code", diag);
}

enum status pin_ranges_find(struct image *image, const struct pin_words *words,
			    struct pin_ranges *ret_ranges, struct diag *diag)
{
	struct pin_ranges ranges = {0};
	struct exports exports = {0};
	struct coff_symbols symbols = {0};
	enum status status;

	*ret_ranges = ranges;
	if (words->len == 0)
		return STATUS_OK;
	status = exports_read(image, &exports, diag);
	if (status == STATUS_OK)
		status = coff_symbols_read(image, &symbols, diag);
	for (uint32_t i = 0; status == STATUS_OK && i < words->len; i++) {
		const char *word = words->data[i];

		if (isdigit((unsigned char)word[0]))
			status = add_range(image, word, i, &ranges, diag);
		else
			status =
				add_name(image, &exports, &symbols, word, i, &ranges, diag);
	}
	if (status == STATUS_OK)
		*ret_ranges = ranges;
	else
		pin_ranges_release(&ranges);
	return status;
}

enum status pin_ranges_check(const struct pin_ranges *ranges, const struct graph *graph,
			     const struct pin_words *words, struct diag *diag)
{
	for (uint32_t i = 0; i < ranges->named.len; i++) {
		const struct pin_range *range = &ranges->named.data[i].range;
		uint32_t next = graph_function_from(graph, range->begin);

		if (next == graph->functions.len ||
		    graph->functions.data[next].begin.v >= range->end.v)
			return bad_word(words->data[ranges->named.data[i].word],
					"holds no function, only padding", diag);
	}
	return STATUS_OK;
}

void pin_ranges_release(struct pin_ranges *ranges)
{
	vec_release(&ranges->named);
	vec_release(&ranges->ranges);
}
