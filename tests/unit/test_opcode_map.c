/* The opcode maps against Zydis: length, flow and operands for every opcode, ModRM byte,
 * REX byte and prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/insn.h"
#include "decode/opcode_map.h"
#include "decode/operand_map.h"
#include "decode/zydis_insn.h"

enum { LONGEST = 15, BYTES = 24 };

static void say(const uint8_t *bytes, const char *what)
{
	char text[3 * LONGEST + 1];

	for (unsigned i = 0; i < LONGEST; i++)
		snprintf(text + 3 * i, 4, "%02x ", bytes[i]);
	fail_msg("%s: %s", text, what);
}

static bool same_constants(const struct insn *a, const struct insn *b)
{
	return a->constant_count == b->constant_count &&
	       memcmp(a->constants, b->constants,
		      a->constant_count * sizeof(a->constants[0])) == 0;
}

static bool same_operands(const struct operand *a, const struct operand *b)
{
	return a->kind == b->kind && a->size == b->size && a->reg == b->reg &&
	       a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->value == b->value;
}

static void compare_details(const uint8_t *bytes, const struct insn_detail *a,
			    const struct insn_detail *b)
{
	if (a->op != b->op || a->condition != b->condition)
		say(bytes, "operation");
	if (a->store != b->store || a->written != b->written ||
	    a->changes_flags != b->changes_flags)
		say(bytes, "what is changed");
	if (!same_operands(&a->target, &b->target))
		say(bytes, "target");
	if (!same_operands(&a->source, &b->source))
		say(bytes, "source");
}

static void compare(const uint8_t *bytes, size_t size, const struct insn *mapped)
{
	struct insn_detail detail, mapped_detail;
	struct insn insn;

	if (!zydis_insn_describe(bytes, size, &insn, &detail))
		say(bytes, "no instruction");
	if (operand_map_describe(bytes, size, &insn, &mapped_detail))
		compare_details(bytes, &mapped_detail, &detail);
	if (!zydis_insn_decode(bytes, size, &insn))
		say(bytes, "no instruction without its operands");
	if (mapped->length != insn.length)
		say(bytes, "length");
	if (mapped->flow != insn.flow || mapped->tail_call != insn.tail_call ||
	    mapped->jump_computed != insn.jump_computed ||
	    mapped->jump_memory != insn.jump_memory)
		say(bytes, "flow");
	if (mapped->field != insn.field || mapped->field_offset != insn.field_offset ||
	    mapped->field_size != insn.field_size || mapped->relative != insn.relative)
		say(bytes, "field");
	if (!same_constants(mapped, &insn))
		say(bytes, "constants");
	if (mapped->padding != insn.padding || mapped->unlikely != insn.unlikely ||
	    mapped->loads_entry != insn.loads_entry)
		say(bytes, "kind");
}

/* Fills in what follows the opcode, and tries it; true when the maps have it. */
static bool try_with(uint8_t *bytes, size_t at, uint8_t modrm, uint8_t sib, uint8_t rest)
{
	struct insn insn;

	memset(bytes + at, rest, BYTES - at);
	bytes[at] = modrm;
	bytes[at + 1] = sib;
	if (!opcode_map_decode(bytes, BYTES, &insn))
		return false;
	compare(bytes, BYTES, &insn);
	return true;
}

/* Every ModRM byte behind the first `at` bytes, with a few bytes that follow. */
static uint32_t try_operands(uint8_t *bytes, size_t at)
{
	static const uint8_t sibs[] = {0x00, 0x25, 0xe5, 0xbc};
	uint32_t mapped = 0;

	for (unsigned modrm = 0; modrm < 256; modrm++) {
		mapped += try_with(bytes, at, (uint8_t)modrm, 0x84, 0x91);
		if ((modrm & 7) != 4 || modrm >= 0xc0)
			continue;
		for (unsigned i = 0; i < sizeof(sibs); i++)
			mapped += try_with(bytes, at, (uint8_t)modrm, sibs[i], 0x17);
	}
	return mapped;
}

/* One opcode map, under all prefixes that are looked at, in twos as well. */
static uint32_t try_map(bool two_bytes)
{
	static const uint8_t prefixes[][2] = {{0, 0}, {0x66, 0}, {0xf3, 0}, {0xf2, 0},
					      {0x66, 0xf3}, {0x2e, 0}, {0xf0, 0}};
	uint8_t bytes[BYTES];
	uint32_t mapped = 0;

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++)
		for (unsigned rex = 0x3f; rex < 0x50; rex++)
			for (unsigned opcode = 0; opcode < 256; opcode++) {
				size_t at = 0;

				for (int i = 0; i < 2; i++)
					if (prefixes[p][i])
						bytes[at++] = prefixes[p][i];
				if (rex >= 0x40)
					bytes[at++] = (uint8_t)rex;
				if (two_bytes)
					bytes[at++] = 0x0f;
				bytes[at++] = (uint8_t)opcode;
				mapped += try_operands(bytes, at);
			}
	return mapped;
}

/* One map of VEX, with all forms of its last byte that matter: VEX.W, vvvv, L, pp. */
static uint32_t try_vex_map(uint8_t map)
{
	static const uint8_t vvvvs[] = {0x78, 0x70, 0x38, 0x00};
	uint8_t bytes[BYTES];
	uint32_t mapped = 0;

	for (unsigned form = 0; form < 16 * sizeof(vvvvs); form++)
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			uint8_t w = form & 8 ? 0x80 : 0;

			bytes[0] = 0xc4;
			bytes[1] = (uint8_t)(map | (opcode * 0x60 & 0xe0));
			bytes[2] = (uint8_t)(w | vvvvs[form / 16] | (form & 7));
			bytes[3] = (uint8_t)opcode;
			mapped += try_operands(bytes, 4);
			if (map != 1 || w)
				continue;
			bytes[0] = 0xc5;
			bytes[1] = bytes[2] | (opcode & 1 ? 0x80 : 0);
			bytes[2] = (uint8_t)opcode;
			mapped += try_operands(bytes, 3);
		}
	return mapped;
}

static void test_vex_too(void **state)
{
	(void)state;
	for (uint8_t map = 0; map < 32; map++)
		assert_true((try_vex_map(map) > 10000) == (map >= 1 && map <= 3));
}

static void test_says_what_zydis_says(void **state)
{
	(void)state;
	assert_true(try_map(false) > 1000000);
	assert_true(try_map(true) > 1000000);
}

/* A buffer that ends in an instruction holds none. */
static void test_needs_all_bytes(void **state)
{
	static const uint8_t bytes[] = {0x48, 0x81, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8};
	struct insn insn;

	(void)state;
	for (size_t size = 0; size < sizeof(bytes); size++) {
		assert_false(opcode_map_decode(bytes, size, &insn));
		assert_false(insn_decode(bytes, size, &insn));
	}
	assert_true(opcode_map_decode(bytes, sizeof(bytes), &insn));
	assert_int_equal(insn.length, sizeof(bytes));
	assert_int_equal(insn.constant_count, 2);
	assert_int_equal(insn.constants[0], 0x08070605);
	assert_int_equal(insn.constants[1], 0x04030201);
}

/* The instructions that most code is made of take the short way. */
static void test_holds_the_usual(void **state)
{
	static const char *const usual[] = {
		"\x48\x89\x5c\x24\x08", "\x55", "\x41\x57", "\x48\x83\xec\x28",
		"\xe8\0\0\0\0", "\x0f\x84\0\0\0\0", "\x75\0", "\xeb\0", "\xc3",
		"\x48\x8d\x05\0\0\0\0", "\x48\x8b\x05\0\0\0\0", "\xff\x15\0\0\0\0",
		"\x31\xc0", "\x0f\xb6\x00", "\x66\x90", "\x0f\x1f\x40\0",
		"\x0f\x94\xc0", "\xff\xe0", "\xc1\xe0\x02", "\xf7\xd8", "\x48\x98",
		"\xcc", "\x66\x0f\x6f\x00", "\xf2\x0f\x10\x00",
	};
	const size_t integer_count = sizeof(usual) / sizeof(usual[0]) - 3;
	struct insn_detail detail;
	struct insn insn;

	(void)state;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		uint8_t bytes[BYTES] = {0};

		/* They end in zeros, as the buffer does. */
		strncpy((char *)bytes, usual[i], sizeof(bytes) - 1);
		assert_true(opcode_map_decode(bytes, sizeof(bytes), &insn));
		assert_true(operand_map_describe(bytes, sizeof(bytes), &insn, &detail) ==
			    (i < integer_count));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_what_zydis_says),
		cmocka_unit_test(test_vex_too),
		cmocka_unit_test(test_needs_all_bytes),
		cmocka_unit_test(test_holds_the_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
