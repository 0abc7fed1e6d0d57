#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void check(const void *data, size_t size, const char *expected)
{
	struct sha256 hash = sha256_of(data, size);
	char hex[SHA256_HEX_SIZE];

	sha256_hex(&hash, hex);
	assert_string_equal(hex, expected);
}

/* The examples that NIST publishes for FIPS 180-4, and the empty message. */
static void nist_examples(void **state)
{
	static const char two_blocks[] =
		"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	(void)state;
	check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check(two_blocks, strlen(two_blocks),
	      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_letters(void **state)
{
	char *text = malloc(1000000);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', 1000000);
	check(text, 1000000,
	      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}

/* Every length around the ends of blocks, from places of every alignment. */
static void agrees_with_libmd(void **state)
{
	enum { LIMIT = 300 };
	uint8_t bytes[LIMIT + 16], expected[SHA256_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + i / 7);
	for (unsigned size = 0; size < LIMIT; size++) {
		const uint8_t *from = bytes + size % 16;
		struct sha256 hash = sha256_of(from, size);
		SHA2_CTX context;

		SHA256Init(&context);
		SHA256Update(&context, from, size);
		SHA256Final(expected, &context);
		assert_memory_equal(hash.bytes, expected, SHA256_BYTES);
	}
}

static void hex_keeps_leading_zeros_and_order(void **state)
{
	struct sha256 hash = {{0x00, 0x0f, 0xf0, 0xa5}};
	char hex[SHA256_HEX_SIZE];

	(void)state;
	sha256_hex(&hash, hex);
	assert_memory_equal(hex, "000ff0a500000000", 16);
	assert_int_equal(strlen(hex), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nist_examples),
		cmocka_unit_test(a_million_letters),
		cmocka_unit_test(agrees_with_libmd),
		cmocka_unit_test(hex_keeps_leading_zeros_and_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
