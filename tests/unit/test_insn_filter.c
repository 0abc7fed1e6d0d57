/* insn_may_be_relative against the decoder, over bytes that mean nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/insn.h"

enum { TRIALS = 1000000 };

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void test_never_denies_a_field(void **state)
{
	/* Bytes that lead to fields, often at the front. */
	static const uint8_t likely[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x48, 0x4c, 0x0f,
					 0x38, 0x3a, 0xc4, 0xc5, 0x62, 0xe1, 0x05, 0x0d,
					 0x3d, 0x80, 0x85, 0x8d, 0xc7, 0xe8, 0xeb, 0xff};
	uint64_t random = 1;
	uint32_t fields = 0, denied = 0;

	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		uint8_t bytes[16];
		struct insn insn;

		for (unsigned k = 0; k < sizeof(bytes); k++) {
			uint64_t r = next_random(&random);

			bytes[k] = r & 0x100 && k < 6 ? likely[r % sizeof(likely)]
						      : (uint8_t)r;
		}
		if (!insn_decode(bytes, 15, &insn))
			continue;
		fields += insn.field != FIELD_NONE;
		if (insn_may_be_relative(bytes, insn.length))
			continue;
		denied++;
		if (insn.field != FIELD_NONE)
			fail_msg("%02x %02x %02x %02x %02x %02x: a field at %u", bytes[0],
				 bytes[1], bytes[2], bytes[3], bytes[4], bytes[5],
				 insn.field_offset);
	}
	/* The trial has met both kinds, and the filter is worth something. */
	assert_true(fields > TRIALS / 50);
	assert_true(denied > TRIALS / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_denies_a_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
