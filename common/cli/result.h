/* What a tool did, as the one JSON object of --json.
 *
 * A command fills tool->result while it works; tool_finish adds the head
 * (tool, version, schema, status, exit code, the error if there was one, the
 * warnings and the steps) and prints it in one go.
 *
 *     struct result *r = &tool->result;
 *     json_t *file = result_put_object(r, r->root, "output");
 *
 *     result_put_text(r, file, "path", path);
 *     result_put_count(r, file, "bytes", size);
 *
 * Memory running out is sticky: whatever follows is ignored, and tool_finish
 * fails with NO_MEMORY.  So no call needs a check.  Members keep the order in
 * which they were put.  Sizes, RVAs and counts are integers, durations are
 * seconds; what is unknown is null.
 */
#ifndef APPULSE_CLI_RESULT_H
#define APPULSE_CLI_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

/* Version of the objects' form; raised when a member changes its meaning or
 * goes away, not when one is added. */
enum { RESULT_SCHEMA = 1 };

struct result {
	json_t *root; /* owned */
	bool failed;  /* memory ran out */
};

void result_init(struct result *result);
void result_release(struct result *result);

/* Set a member of `object`.  A NULL text gives null; bytes that are not UTF-8
 * become '?'.  A count is at most INT64_MAX, a real is finite. */
void result_put_text(struct result *result, json_t *object, const char *key,
		     const char *text);
void result_put_count(struct result *result, json_t *object, const char *key, uint64_t n);
void result_put_real(struct result *result, json_t *object, const char *key, double value);
void result_put_flag(struct result *result, json_t *object, const char *key, bool flag);
void result_put_null(struct result *result, json_t *object, const char *key);

/* Set a member to a new empty object or array and return it, borrowed. */
json_t *result_put_object(struct result *result, json_t *object, const char *key);
json_t *result_put_array(struct result *result, json_t *object, const char *key);

/* Append to an array.  A real that JSON cannot say, an infinite one, becomes null. */
json_t *result_add_object(struct result *result, json_t *array);
json_t *result_add_array(struct result *result, json_t *array);
void result_add_null(struct result *result, json_t *array);
void result_add_integer(struct result *result, json_t *array, int64_t n);
void result_add_real(struct result *result, json_t *array, double value);
void result_add_text(struct result *result, json_t *array, const char *text);
void result_add_count(struct result *result, json_t *array, uint64_t n);

/* Prints the whole object, indented, with a newline.  NO_MEMORY, IO. */
enum status result_print(const struct result *result, FILE *to, struct diag *diag);

#endif
