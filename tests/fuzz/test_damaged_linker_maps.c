/* A linker map with one byte wrong, or with its end missing; linker_map_target.c has what
 * must hold then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz_target.h"

static const char map[] =
	" app\n\n Timestamp is 00000000 (Repro mode)\n\n"
	" Preferred load address is 0000000180000000\n\n"
	"  Address         Publics by Value              Rva+Base               Lib:Object\n\n"
	" 0001:00000000       first                      0000000180001000 f   a.obj\n"
	" entry point at         0000:00000000\n Static symbols\n"
	" 0001:00000010       second                     0000000180001010     a.obj\n";

/* A copy of exactly that size, so that a sanitizer sees what is read behind it. */
static void try_bytes(const char *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void wrong_bytes_break_no_promise(void **state)
{
	static const char bytes[] = "\0 \n\r:0f9z\xff";
	char text[sizeof(map)];

	(void)state;
	for (size_t at = 0; at < sizeof(map) - 1; at++)
		for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
			memcpy(text, map, sizeof(map));
			text[at] = bytes[i];
			try_bytes(text, sizeof(map) - 1);
		}
}

static void a_missing_part_breaks_no_promise(void **state)
{
	(void)state;
	for (size_t at = 0; at < sizeof(map); at++) {
		try_bytes(map, at);
		try_bytes(map + at, sizeof(map) - 1 - at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_bytes_break_no_promise),
		cmocka_unit_test(a_missing_part_breaks_no_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
