/* Numbers for people, as text by value:
 *
 *     printf("%s of %s\n", human_count(pages).text, human_bytes(size).text);
 */
#ifndef APPULSE_CLI_HUMAN_H
#define APPULSE_CLI_HUMAN_H

#include <stdint.h>

struct human {
	char text[48];
};

/* "1,234,567" */
struct human human_count(uint64_t n);

/* "1 function", "1,234 functions": the plural is the word with an s. */
struct human human_things(uint64_t n, const char *word);

/* "812 B", "9,999 B", "24.5 KiB", "1.3 GiB": exact below 10,000 bytes, then one
 * decimal in units of 1024. */
struct human human_bytes(uint64_t bytes);

/* "12.3 %" of `part` in `whole`; "-" when `whole` is 0. */
struct human human_percent(uint64_t part, uint64_t whole);

/* "35 ms" below one second, "4.2 s" below a minute, then "3 min 05 s". */
struct human human_seconds(double seconds);

#endif
