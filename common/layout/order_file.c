/* Orders that a file gives: one function a line, by RVA or by name.
 *
 * The file comes from a person or from another tool (a linker's order file is
 * such a list of names), so each line is checked and the first bad one is named
 * by its number.  Names are found by binary search in a sorted index of the
 * graph's names; a static function's name may stand for several functions, which
 * then all become hot, since the file cannot say which one it means.
 */
#include <stdlib.h>
#include <string.h>

#include "layout/order.h"

enum { SHOWN_BYTES = 80 };

struct name {
	const char *text;
	uint32_t function;
};

/* A line without its comment, line end and outer blanks. */
struct line {
	const char *text;
	size_t length;
	uint32_t number; /* from 1 */
};

struct order_reader {
	const struct graph *graph;
	struct diag *diag;
	const char *text, *end; /* what is not yet read */
	uint32_t number;        /* of the last line read */
	VEC(struct name) names; /* by text, then function */
	VEC(uint32_t) functions;
};

static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int result = strcmp(x->text, y->text);

	if (result)
		return result;
	return x->function < y->function ? -1 : x->function > y->function;
}

static bool index_names(struct order_reader *reader)
{
	for (uint32_t i = 0; i < reader->graph->functions.len; i++) {
		struct name name = {reader->graph->functions.data[i].name, i};

		if (name.text && !vec_push(&reader->names, name))
			return false;
	}
	if (reader->names.len)
		qsort(reader->names.data, reader->names.len, sizeof(*reader->names.data),
		      compare_names);
	return true;
}

/* As strcmp of a line and a name. */
static int compare_line(const struct line *line, const char *name)
{
	size_t length = strlen(name);
	int result =
		memcmp(line->text, name, line->length < length ? line->length : length);

	if (result)
		return result;
	return line->length < length ? -1 : line->length > length;
}

static uint32_t first_name(const struct order_reader *reader, const struct line *line)
{
	uint32_t low = 0, high = reader->names.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare_line(line, reader->names.data[middle].text) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool next_line(struct order_reader *reader, struct line *ret_line)
{
	size_t left = (size_t)(reader->end - reader->text);
	const char *begin = reader->text, *end, *comment;

	if (left == 0)
		return false;
	end = memchr(begin, '\n', left);
	reader->text = end ? end + 1 : reader->end;
	if (!end)
		end = reader->end;
	comment = memchr(begin, '#', (size_t)(end - begin));
	if (comment)
		end = comment;
	while (begin < end && is_blank(*begin))
		begin++;
	while (begin < end && is_blank(end[-1]))
		end--;
	*ret_line = (struct line){begin, (size_t)(end - begin), ++reader->number};
	return true;
}

/* BAD_ORDER that shows the line, whatever bytes are in it. */
static enum status bad_line(struct order_reader *reader, const struct line *line,
			    const char *problem)
{
	char shown[SHOWN_BYTES + 1];
	size_t length = line->length < SHOWN_BYTES ? line->length : SHOWN_BYTES;

	for (size_t i = 0; i < length; i++)
		shown[i] =
			line->text[i] >= ' ' && line->text[i] <= '~' ? line->text[i] : '?';
	shown[length] = 0;
	return diag_fail(reader->diag, STATUS_BAD_ORDER, "line %u: '%s' %s", line->number,
			 shown, problem);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_number(const struct line *line)
{
	return line->length >= 2 && line->text[0] == '0' && (line->text[1] | 0x20) == 'x';
}

static enum status read_number(struct order_reader *reader, const struct line *line)
{
	uint64_t value = 0;
	uint32_t function;

	if (line->length == 2)
		return bad_line(reader, line, "is no hexadecimal RVA");
	for (size_t i = 2; i < line->length; i++) {
		int digit = hex_digit(line->text[i]);

		if (digit < 0)
			return bad_line(reader, line, "is no hexadecimal RVA");
		value = value << 4 | (unsigned)digit;
		if (value > UINT32_MAX)
			return bad_line(reader, line,
					"is no RVA, it needs more than 32 bits");
	}
	function = graph_function_at(reader->graph, rva_of((uint32_t)value));
	if (function == NO_FUNCTION)
		return bad_line(reader, line, "lies in no function");
	return vec_push(&reader->functions, function) ? STATUS_OK
						      : diag_no_memory(reader->diag);
}

static enum status read_name(struct order_reader *reader, const struct line *line)
{
	uint32_t i = first_name(reader, line), begin = i;

	for (; i < reader->names.len && compare_line(line, reader->names.data[i].text) == 0;
	     i++) {
		if (!vec_push(&reader->functions, reader->names.data[i].function))
			return diag_no_memory(reader->diag);
	}
	return i > begin ? STATUS_OK
			 : bad_line(reader, line, "is no function of this image");
}

static enum status read_lines(struct order_reader *reader)
{
	enum status status = STATUS_OK;
	struct line line;

	while (status == STATUS_OK && next_line(reader, &line)) {
		if (line.length == 0)
			continue;
		status = is_number(&line) ? read_number(reader, &line)
					  : read_name(reader, &line);
	}
	return status;
}

enum status order_from_file(const struct graph *graph, const char *text, size_t size,
			    struct order *ret_order, struct diag *diag)
{
	static const char mark[3] = {'\xef', '\xbb',
				     '\xbf'}; /* UTF-8's, as some editors write */
	struct order_reader reader = {.graph = graph, .diag = diag};
	enum status status;

	if (size >= sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0) {
		text += sizeof(mark);
		size -= sizeof(mark);
	}
	reader.text = text;
	reader.end = text + size;
	status = index_names(&reader) ? read_lines(&reader) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = order_of_functions(graph, reader.functions.data,
					    reader.functions.len, ret_order, diag);
	vec_release(&reader.names);
	vec_release(&reader.functions);
	return status;
}
