#include "base/utf8.h"

#include <string.h>

/* Bytes of the well-formed sequence at `p`, or 0.  The NUL that ends the text
 * is no continuation byte, so nothing behind it is read. */
static size_t sequence_length(const unsigned char *p)
{
	/* Lowest and highest second byte: they rule out overlong forms, surrogates
	 * and what lies beyond U+10FFFF. */
	unsigned low = 0x80, high = 0xbf;
	size_t length;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

static bool is_control(const unsigned char *p)
{
	return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

void utf8_clean(char *text, bool keep_controls)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t length = sequence_length(p);

		if (length == 0)
			*p++ = '?';
		else if (!keep_controls && is_control(p))
			memset(p, '?', length), p += length;
		else
			p += length;
	}
}

bool utf8_is_clean(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t length = sequence_length(p);

		if (length == 0 || is_control(p))
			return false;
		p += length;
	}
	return true;
}

size_t utf8_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}
