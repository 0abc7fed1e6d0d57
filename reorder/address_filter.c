#include "address_filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* What a line may hold of an address: its digits, from `begin` to `end`. */
struct digits {
	const char *begin, *end;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-.", c)) ||
	       (unsigned char)c >= 0x80; /* of a letter in UTF-8 */
}

/* Bytes of "name+0x" at `text`; 0 when it does not stand there. */
static size_t skip_name(const char *text, const char *end, const char *name, size_t length)
{
	static const char plus[] = "+0x";

	if ((size_t)(end - text) <= length + 3 || strncasecmp(text, name, length) != 0 ||
	    strncasecmp(text + length, plus, 3) != 0)
		return 0;
	return length + 3;
}

static bool find_digits(const char *text, const char *end, const char *module,
			struct digits *ret_digits)
{
	const char *dot = strrchr(module, '.');
	size_t skipped = skip_name(text, end, module, strlen(module));

	if (!skipped && dot && dot > module)
		skipped = skip_name(text, end, module, (size_t)(dot - module));
	if (!skipped)
		return false;
	*ret_digits = (struct digits){text + skipped, text + skipped};
	while (ret_digits->end < end && isxdigit((unsigned char)*ret_digits->end))
		ret_digits->end++;
	return ret_digits->end > ret_digits->begin;
}

/* False when they are no RVA. */
static bool read_digits(const struct digits *digits, struct rva *ret_rva)
{
	uint64_t value = 0;

	for (const char *c = digits->begin; c < digits->end; c++) {
		int digit = isdigit((unsigned char)*c) ? *c - '0' : (*c | 0x20) - 'a' + 10;

		value = value << 4 | (unsigned)digit;
		if (value > UINT32_MAX)
			return false;
	}
	*ret_rva = rva_of((uint32_t)value);
	return true;
}

static void write_address(struct address_filter *filter, const struct digits *digits,
			  FILE *out)
{
	int width = (int)(digits->end - digits->begin);
	struct rva from, to;
	bool gone = !read_digits(digits, &from);

	if (!gone)
		to = filter->back ? move_map_backward(filter->map, from, &gone)
				  : move_map_forward(filter->map, from);
	if (gone) {
		filter->gone++;
		fwrite(digits->begin, 1, (size_t)width, out);
		return;
	}
	filter->translated++;
	fprintf(out, "%0*" PRIx32, width, to.v);
}

void address_filter_line(struct address_filter *filter, const char *line, size_t size,
			 FILE *out)
{
	const char *end = line + size, *written = line;
	struct digits digits;

	for (const char *c = line; c < end; c++) {
		if ((c > line && is_word(c[-1])) ||
		    !find_digits(c, end, filter->module, &digits))
			continue;
		fwrite(written, 1, (size_t)(digits.begin - written), out);
		write_address(filter, &digits, out);
		written = digits.end;
		c = digits.end - 1;
	}
	fwrite(written, 1, (size_t)(end - written), out);
}
