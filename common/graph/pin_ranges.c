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

/* Where names come from; `set` may be NULL. */
struct name_sources {
	const struct image *image;
	struct exports exports;
	struct coff_symbols symbols;
	const struct symbol_set *set;
};

/* A name that is looked up. */
struct name_search {
	const struct name_sources *sources;
	struct pin_ranges *ranges;
	const char *word;
	uint32_t index; /* of the word */
	bool known;     /* some source has the name */
	bool room;      /* false: memory is out */
};

static void meet_name(struct name_search *search, const char *name, struct rva rva)
{
	struct pin_range range = {rva, rva_add(rva, 1)};

	if (!name || strcmp(name, search->word) != 0)
		return;
	search->known = true;
	if (is_in_code(search->sources->image, &range))
		search->room &= add(search->ranges, range, search->index);
}

static enum status add_name(const struct name_sources *sources, const char *word,
			    uint32_t index, struct pin_ranges *ranges, struct diag *diag)
{
	struct name_search search = {sources, ranges, word, index, false, true};
	uint32_t before = ranges->named.len;

	for (uint32_t i = 0; i < sources->exports.count; i++) {
		const struct export_entry *entry = &sources->exports.data[i];

		if (!entry->forwarder)
			meet_name(&search, entry->name, entry->target);
		else
			search.known |= entry->name && strcmp(entry->name, word) == 0;
	}
	for (uint32_t i = 0; i < sources->symbols.count; i++)
		meet_name(&search, sources->symbols.data[i].name,
			  sources->symbols.data[i].rva);
	for (uint32_t i = 0; sources->set && i < sources->set->symbols.len; i++)
		meet_name(&search, sources->set->symbols.data[i].name,
			  sources->set->symbols.data[i].rva);
	if (!search.room)
		return diag_no_memory(diag);
	if (!search.known)
		return bad_word(word,
				"is no export and no symbol of the image; an RVA begins "
				"with 0x",
				diag);
	return ranges->named.len > before ? STATUS_OK : bad_word(word, "is no code", diag);
}

enum status pin_ranges_find(struct image *image, const struct pin_words *words,
			    const struct symbol_set *names, struct pin_ranges *ret_ranges,
			    struct diag *diag)
{
	struct pin_ranges ranges = {0};
	struct name_sources sources = {.image = image, .set = names};
	enum status status;

	*ret_ranges = ranges;
	if (words->len == 0)
		return STATUS_OK;
	status = exports_read(image, &sources.exports, diag);
	if (status == STATUS_OK)
		status = coff_symbols_read(image, &sources.symbols, diag);
	for (uint32_t i = 0; status == STATUS_OK && i < words->len; i++) {
		const char *word = words->data[i];

		if (isdigit((unsigned char)word[0]))
			status = add_range(image, word, i, &ranges, diag);
		else
			status = add_name(&sources, word, i, &ranges, diag);
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
