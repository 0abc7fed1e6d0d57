/* A map is a text for people, a line for each symbol:
 *
 *      0001:00000050       foo                        0000000180001050 f   a.obj
 *
 * section and offset, the name, the address, `f` for a function (MSVC's linker only; lld
 * does not tell), `i` for an inline one, and the object.  Two lists of them, public and
 * static symbols, follow a heading.  Before it stands a list of the sections' parts, whose
 * lines begin alike.
 *
 * Each line says twice where the symbol is.  Both must lead to one place, so a map of
 * another build is found out even without its time stamp.
 */
#include "symbols/linker_map.h"

#include <stdio.h>
#include <string.h>

static const char heading[] = "Publics by Value";
static const char time_stamp[] = "Timestamp is ";
static const char load_address[] = "Preferred load address is ";

/* A part of a line: the bytes from `at` up to `end`. */
struct words {
	const char *at, *end;
};

struct map_reading {
	const struct image *image;
	struct symbol_set *set;
	struct diag *diag;
	uint64_t base; /* the map's preferred load address */
	bool has_base;
	bool in_symbols; /* behind the heading */
	uint32_t line;   /* counts from 1 */
};

static enum status bad_line(const struct map_reading *reading, const char *what)
{
	return diag_fail(reading->diag, STATUS_BAD_SYMBOLS,
			 "a damaged linker map: line %u %s", reading->line, what);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_spaces(struct words *words)
{
	while (words->at < words->end && is_space(*words->at))
		words->at++;
}

/* The next word; an empty one at the line's end. */
static struct words next_word(struct words *words)
{
	struct words word;

	skip_spaces(words);
	word.at = words->at;
	while (words->at < words->end && !is_space(*words->at))
		words->at++;
	word.end = words->at;
	return word;
}

/* Whether all of the word is a hexadecimal number of so many digits. */
static bool read_hex(struct words word, unsigned min, unsigned max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (word.end - word.at < min || word.end - word.at > max)
		return false;
	for (; word.at < word.end; word.at++) {
		char c = *word.at, low = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			value = value << 4 | (unsigned)(c - '0');
		else if (low >= 'a' && low <= 'f')
			value = value << 4 | (unsigned)(low - 'a' + 10);
		else
			return false;
	}
	*ret_value = value;
	return true;
}

/* Where the text stands in the line, behind it; NULL when it does not. */
static const char *behind(struct words line, const char *text)
{
	size_t size = strlen(text);
	const char *found = memmem(line.at, (size_t)(line.end - line.at), text, size);

	return found ? found + size : NULL;
}

/* "0001:00000050". */
static bool read_place(struct words word, uint64_t *ret_section, uint64_t *ret_offset)
{
	const char *colon = memchr(word.at, ':', (size_t)(word.end - word.at));

	return colon && read_hex((struct words){word.at, colon}, 4, 8, ret_section) &&
	       read_hex((struct words){colon + 1, word.end}, 8, 8, ret_offset);
}

static enum status check_time_stamp(const struct map_reading *reading, struct words rest)
{
	uint32_t expected = reading->image->headers.time_date_stamp;
	struct words word = next_word(&rest);
	char of_image[16], of_map[16];
	uint64_t stamp;
	enum status status;

	if (!read_hex(word, 1, 8, &stamp))
		return bad_line(reading, "has no time stamp");
	/* A build that can be repeated has a hash in place of the time, and lld does not
	 * tell it. */
	if (behind(rest, "(Repro mode)") || stamp == expected)
		return STATUS_OK;
	status = diag_fail(
		reading->diag, STATUS_OTHER_IMAGE,
		"the linker map belongs to another image: its time stamp differs");
	snprintf(of_image, sizeof(of_image), "%08x", expected);
	snprintf(of_map, sizeof(of_map), "%08x", (uint32_t)stamp);
	diag_set_values(reading->diag, of_image, of_map);
	return status;
}

static enum status read_head(struct map_reading *reading, struct words line)
{
	const char *rest;

	if ((rest = behind(line, time_stamp)))
		return check_time_stamp(reading, (struct words){rest, line.end});
	if ((rest = behind(line, load_address))) {
		struct words words = {rest, line.end};

		if (!read_hex(next_word(&words), 8, 16, &reading->base))
			return bad_line(reading, "has no load address");
		reading->has_base = true;
	}
	if (behind(line, heading)) {
		if (!reading->has_base)
			return bad_line(reading, "stands before the load address");
		reading->in_symbols = true;
	}
	return STATUS_OK;
}

/* One symbol.  Lines of other kinds, between and behind the lists, begin otherwise. */
static enum status read_symbol(struct map_reading *reading, struct words line)
{
	struct words name, flag;
	struct symbol symbol = {.kind = SYMBOL_PLACE};
	uint64_t section, offset, address;

	if (!read_place(next_word(&line), &section, &offset))
		return STATUS_OK;
	name = next_word(&line);
	if (!read_hex(next_word(&line), 8, 16, &address))
		return bad_line(reading, "has no address");
	if (!symbol_address(reading->image, (uint32_t)section, (uint32_t)offset,
			    &symbol.rva)) {
		reading->set->outside++;
		return STATUS_OK;
	}
	if (address - reading->base != symbol.rva.v)
		return diag_fail(reading->diag, STATUS_OTHER_IMAGE,
				 "the linker map belongs to another image: the address in "
				 "line %u is not that of the section and offset",
				 reading->line);
	flag = next_word(&line);
	if (flag.end - flag.at == 1 && *flag.at == 'f')
		symbol.kind = SYMBOL_FUNCTION;
	/* lld lists sections too. */
	if (*name.at == '.')
		return STATUS_OK;
	symbol.name = name.at;
	return symbol_set_add(reading->set, reading->image, &symbol,
			      (size_t)(name.end - name.at))
		       ? STATUS_OK
		       : diag_no_memory(reading->diag);
}

enum status linker_map_add(const void *text, size_t size, const struct image *image,
			   struct symbol_set *set, struct diag *diag)
{
	struct map_reading reading = {.image = image, .set = set, .diag = diag};
	struct words rest = {text, (const char *)text + size};
	enum status status = STATUS_OK;

	if (size && memchr(text, 0, size))
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "no linker map: it holds bytes that are no text");
	while (rest.at < rest.end && status == STATUS_OK) {
		const char *newline = memchr(rest.at, '\n', (size_t)(rest.end - rest.at));
		struct words line = {rest.at, newline ? newline : rest.end};

		reading.line++;
		status = reading.in_symbols ? read_symbol(&reading, line)
					    : read_head(&reading, line);
		rest.at = newline ? newline + 1 : rest.end;
	}
	if (status == STATUS_OK && !reading.in_symbols)
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "no linker map of MSVC's linker or lld: it has no list of "
				 "'%s'",
				 heading);
	return status;
}
