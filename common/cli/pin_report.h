/* How much of an image may move, and what holds the rest, for reports. */
#ifndef APPULSE_CLI_PIN_REPORT_H
#define APPULSE_CLI_PIN_REPORT_H

#include "cli/result.h"
#include "graph/graph.h"

enum { PIN_LARGEST = 3 };

struct pin_count {
	uint32_t functions; /* that carry the reason themselves; one may carry several */
	uint64_t bytes;     /* of these functions */
	uint32_t largest[PIN_LARGEST]; /* ids, by falling size, then by id; the first
					* min(functions, PIN_LARGEST) are valid */
};

struct pin_report {
	uint32_t functions, movable_functions; /* without places that are no functions */
	uint64_t bytes, movable_bytes; /* all that is not padding; what may move of it */
	struct pin_count reasons[PIN_REASON_COUNT];
	struct pin_count joined; /* pinned only because their block holds a pinned function */
	struct pin_count unknown; /* places in code sections that are not understood */
};

void pin_report_make(const struct graph *graph, struct pin_report *ret_report);

/* Puts "functions", "movable_functions", "bytes", "movable_bytes", "unknown_places",
 * "unknown_bytes" and "pins" (a list of reason, functions, bytes) into `object`. */
void pin_report_put(const struct pin_report *report, struct result *result, json_t *object);

/* Puts "largest_pinned" into `object`: the largest functions of each reason, a list of
 * reason, rva, size, function (its name or null). */
void pin_report_put_largest(const struct pin_report *report, const struct graph *graph,
			    struct result *result, json_t *object);

/* The counts in the order of all reports, reasons without a function left out: the one at
 * `index`, its name in `ret_name`; NULL behind the last. */
const struct pin_count *pin_report_row(const struct pin_report *report, unsigned index,
				       const char **ret_name);

/* Prints lines for people: the movable shares, then a line for each reason. */
void pin_report_print(const struct pin_report *report, FILE *to);

/* The names of the reasons in `pins`, comma-separated, into `ret_text` of `size`
 * bytes, cut when too long; "joined" when the function itself has none but its
 * block has.  Empty when the function may move. */
void pin_names(const struct graph *graph, uint32_t function, char *ret_text, unsigned size);

#endif
