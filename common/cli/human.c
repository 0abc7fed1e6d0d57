#include "cli/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct human human_count(uint64_t n)
{
	char digits[24];
	struct human h;
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = h.text;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return h;
}

struct human human_things(uint64_t n, const char *word)
{
	struct human h, count = human_count(n);

	snprintf(h.text, sizeof(h.text), "%.26s %.18s%s", count.text, word,
		 n == 1 ? "" : "s");
	return h;
}

struct human human_bytes(uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	struct human h;
	unsigned unit = 0;
	double value = (double)bytes / 1024;

	if (bytes < 10000) {
		h = human_count(bytes);
		strcat(h.text, " B");
		return h;
	}
	/* 1023.95 would be shown as 1024.0. */
	while (value >= 1023.95 && unit + 1 < strlen(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(h.text, sizeof(h.text), "%.1f %ciB", value, units[unit]);
	return h;
}

struct human human_percent(uint64_t part, uint64_t whole)
{
	struct human h = {"-"};

	if (whole)
		snprintf(h.text, sizeof(h.text), "%.1f %%",
			 100.0 * (double)part / (double)whole);
	return h;
}

struct human human_seconds(double seconds)
{
	struct human h;

	if (seconds < 0.9995)
		snprintf(h.text, sizeof(h.text), "%.0f ms", seconds * 1000);
	else if (seconds < 59.95)
		snprintf(h.text, sizeof(h.text), "%.1f s", seconds);
	else
		snprintf(h.text, sizeof(h.text), "%" PRIu64 " min %02u s",
			 (uint64_t)(seconds + 0.5) / 60,
			 (unsigned)((uint64_t)(seconds + 0.5) % 60));
	return h;
}
