#include "cli/result.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void result_init(struct result *result)
{
	result->root = json_object();
	result->failed = !result->root;
}

void result_release(struct result *result)
{
	json_decref(result->root);
	*result = (struct result){0};
}

/* jansson takes `value` even when it fails, and NULL for either is a failure:
 * so values that could not be made need no test of their own. */
static void put(struct result *result, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) != 0)
		result->failed = true;
}

static void add(struct result *result, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) != 0)
		result->failed = true;
}

static json_t *text_value(const char *text)
{
	json_t *value;
	char *copy;

	if (!text)
		return json_null();
	copy = strdup(text);
	if (!copy)
		return NULL;
	utf8_clean(copy, true);
	value = json_string(copy);
	free(copy);
	return value;
}

static json_t *count_value(uint64_t n)
{
	assert(n <= INT64_MAX);
	return json_integer((json_int_t)n);
}

void result_put_text(struct result *result, json_t *object, const char *key,
		     const char *text)
{
	put(result, object, key, text_value(text));
}

void result_put_count(struct result *result, json_t *object, const char *key, uint64_t n)
{
	put(result, object, key, count_value(n));
}

void result_put_real(struct result *result, json_t *object, const char *key, double value)
{
	assert(isfinite(value));
	put(result, object, key, json_real(value));
}

void result_put_flag(struct result *result, json_t *object, const char *key, bool flag)
{
	put(result, object, key, json_boolean(flag));
}

void result_put_null(struct result *result, json_t *object, const char *key)
{
	put(result, object, key, json_null());
}

json_t *result_put_object(struct result *result, json_t *object, const char *key)
{
	put(result, object, key, json_object());
	return json_object_get(object, key);
}

json_t *result_put_array(struct result *result, json_t *object, const char *key)
{
	put(result, object, key, json_array());
	return json_object_get(object, key);
}

json_t *result_add_object(struct result *result, json_t *array)
{
	json_t *object = json_object();

	/* The array holds the reference; a failed append has dropped it. */
	if (json_array_append_new(array, object) == 0)
		return object;
	result->failed = true;
	return NULL;
}

json_t *result_add_array(struct result *result, json_t *array)
{
	json_t *inner = json_array();

	if (json_array_append_new(array, inner) == 0)
		return inner;
	result->failed = true;
	return NULL;
}

void result_add_null(struct result *result, json_t *array)
{
	add(result, array, json_null());
}

void result_add_integer(struct result *result, json_t *array, int64_t n)
{
	add(result, array, json_integer(n));
}

void result_add_real(struct result *result, json_t *array, double value)
{
	add(result, array, isfinite(value) ? json_real(value) : json_null());
}

void result_add_text(struct result *result, json_t *array, const char *text)
{
	add(result, array, text_value(text));
}

void result_add_count(struct result *result, json_t *array, uint64_t n)
{
	add(result, array, count_value(n));
}

enum status result_print(const struct result *result, FILE *to, struct diag *diag)
{
	char *text;
	enum status status = STATUS_OK;

	if (result->failed)
		return diag_no_memory(diag);
	text = json_dumps(result->root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	if (!text)
		return diag_no_memory(diag);
	if (fputs(text, to) < 0 || putc('\n', to) < 0 || fflush(to) != 0)
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot write the result");
	free(text);
	return status;
}
