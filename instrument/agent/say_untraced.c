/* The one line on the debug output when a program runs on untraced: for whoever
 * wonders where the trace is. */
#include <windows.h>

#include "agent.h"

static const char *const reasons[] = {
	[TRACED] = "",
	[UNTRACED_NO_FOLDER] = PROBE_TRACE_FOLDER " is not set",
	[UNTRACED_BAD_FOLDER] = PROBE_TRACE_FOLDER " is not a usable path",
	[UNTRACED_NO_FILE] =
		"cannot make a trace file in the folder of " PROBE_TRACE_FOLDER,
	[UNTRACED_TOO_MANY] = "too many images or probes",
};

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *put_number(char *to, uint32_t value)
{
	char digits[12];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while ((value /= 10) != 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

void say_untraced(const struct probe_image *image, enum untraced why, uint32_t error)
{
	static uint8_t said;
	static char line[PROBE_NAME_BYTES + 160];
	char *to;

	/* The image's name may stand right in front of other data. */
	if (image->name[PROBE_NAME_BYTES - 1] ||
	    __atomic_exchange_n(&said, 1, __ATOMIC_ACQ_REL))
		return;
	to = put_text(line, "appulse: ");
	to = put_text(to, image->name);
	to = put_text(to, " runs untraced: ");
	to = put_text(to, reasons[why]);
	if (error) {
		to = put_text(to, " (error ");
		to = put_number(to, error);
		to = put_text(to, ")");
	}
	to = put_text(to, "\n");
	*to = '\0';
	OutputDebugStringA(line);
}
