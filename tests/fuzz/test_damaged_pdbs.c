/* A PDB with one number wrong, or with its end missing.
 *
 * Every number of two and four bytes becomes one of some that a reader may stumble over;
 * pdb_target.c has what must hold then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz_target.h"
#include "made_pdb.h"
#include "symbols/pdb.h"

static const uint32_t numbers[] = {0, 1, 3, 0xff, 0x200, 0xffff, 0x7fffffff, 0xfffffffc,
				   0xffffffff};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

/* The target reads a copy of exactly that size, so that a sanitizer sees what is read
 * behind it. */
static void try_bytes(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static bool is_read(const uint8_t *bytes, size_t size)
{
	struct pdb pdb;

	if (pdb_open_bytes(&pdb, bytes, size, NULL) != STATUS_OK)
		return false;
	pdb_close(&pdb);
	return true;
}

static void wrong_numbers_break_no_promise(void **state)
{
	size_t size, tried = 0, refused = 0;
	uint8_t *bytes = made_pdb(&size);

	(void)state;
	assert_true(is_read(bytes, size));
	for (size_t at = 0; at + 4 <= size; at += 2)
		for (int i = 0; i < NUMBERS; i++) {
			uint32_t was = load_u32(bytes + at);

			if (at % 4 == 0)
				store_u32(bytes + at, numbers[i]);
			else
				store_u16(bytes + at, (uint16_t)numbers[i]);
			if (load_u32(bytes + at) != was) {
				try_bytes(bytes, size);
				refused += !is_read(bytes, size);
				tried++;
			}
			store_u32(bytes + at, was);
		}
	assert_in_range(refused, 1, tried - 1);
	free(bytes);
}

static void a_missing_end_is_refused(void **state)
{
	size_t size;
	uint8_t *bytes = made_pdb(&size);

	(void)state;
	for (size_t left = 0; left < size; left += left < 600 ? 1 : 61) {
		try_bytes(bytes, left);
		assert_false(is_read(bytes, left));
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_numbers_break_no_promise),
		cmocka_unit_test(a_missing_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
