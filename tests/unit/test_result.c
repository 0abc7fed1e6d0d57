#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/result.h"

static char *printed(const struct result *result)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	struct diag diag;

	assert_non_null(to);
	assert_int_equal(result_print(result, to, &diag), STATUS_OK);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void members_keep_their_order(void **state)
{
	struct result r;
	json_t *file, *list;
	char *text;

	(void)state;
	result_init(&r);
	result_put_count(&r, r.root, "zebra", 1);
	file = result_put_object(&r, r.root, "file");
	result_put_text(&r, file, "path", "a\"b");
	result_put_count(&r, file, "bytes", INT64_MAX);
	result_put_flag(&r, r.root, "ok", true);
	result_put_null(&r, r.root, "nothing");
	result_put_text(&r, r.root, "unknown", NULL);
	result_put_real(&r, r.root, "half", 0.5);
	list = result_put_array(&r, r.root, "list");
	result_add_text(&r, list, "t");
	result_add_count(&r, list, 0);
	result_put_flag(&r, result_add_object(&r, list), "f", false);
	text = printed(&r);
	assert_string_equal(text, "{\n"
				  "  \"zebra\": 1,\n"
				  "  \"file\": {\n"
				  "    \"path\": \"a\\\"b\",\n"
				  "    \"bytes\": 9223372036854775807\n"
				  "  },\n"
				  "  \"ok\": true,\n"
				  "  \"nothing\": null,\n"
				  "  \"unknown\": null,\n"
				  "  \"half\": 0.5,\n"
				  "  \"list\": [\n"
				  "    \"t\",\n"
				  "    0,\n"
				  "    {\n"
				  "      \"f\": false\n"
				  "    }\n"
				  "  ]\n"
				  "}\n");
	free(text);
	result_release(&r);
}

/* A path may be any bytes; the object must be JSON all the same. */
static void text_that_is_no_utf8_is_still_json(void **state)
{
	struct result r;
	char *text;
	json_t *back;

	(void)state;
	result_init(&r);
	result_put_text(&r, r.root, "path", "a\xff\x80/\t\xc3\xa9");
	text = printed(&r);
	back = json_loads(text, 0, NULL);
	assert_non_null(back);
	assert_string_equal(json_string_value(json_object_get(back, "path")),
			    "a?\?/\t\xc3\xa9");
	json_decref(back);
	free(text);
	result_release(&r);
}

static void a_failure_is_sticky(void **state)
{
	struct result r;
	struct diag diag;

	(void)state;
	result_init(&r);
	/* What a lack of memory looks like to the caller: no object to fill. */
	result_put_count(&r, NULL, "n", 1);
	assert_true(r.failed);
	result_put_count(&r, r.root, "m", 2);
	assert_null(result_put_object(&r, NULL, "o"));
	assert_null(result_add_object(&r, NULL));
	result_add_text(&r, NULL, "t");
	assert_int_equal(result_print(&r, stdout, &diag), STATUS_NO_MEMORY);
	result_release(&r);
}

static void a_full_disk_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct result r;
	struct diag diag;

	(void)state;
	assert_non_null(full);
	result_init(&r);
	assert_int_equal(result_print(&r, full, &diag), STATUS_IO);
	assert_string_equal(diag.message,
			    "cannot write the result: No space left on device");
	result_release(&r);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_keep_their_order),
		cmocka_unit_test(text_that_is_no_utf8_is_still_json),
		cmocka_unit_test(a_failure_is_sticky),
		cmocka_unit_test(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
