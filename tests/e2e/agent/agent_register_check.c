/* Whether a first touch leaves the processor's whole state as it was.
 *
 * Every register gets a value of its own, the call goes through a thunk to a function
 * that only returns, and the state after is compared with the state before.  The
 * comparison's own eyesight is shown first, on a function that changes everything. */
#include "agent_register_check.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "cpu_state.h"

enum {
	LEGACY_BYTES = 512,
	ST_OFFSET = 32,
	XMM_OFFSET = 160,
	MXCSR_OFFSET = 24,
	ALL_FLAGS = 0xcd5, /* carry, parity, adjust, zero, sign, direction, overflow */
	FIXED_FLAGS = 0x202,
	LAST_ERROR = 0x1234,
};

static const struct component {
	const char *name;
	uint32_t bit;
} extended[] = {
	{"ymm", 2}, {"k", 5}, {"zmm", 6}, {"zmm16", 7},
};
enum { EXTENDED_COUNT = sizeof(extended) / sizeof(extended[0]) };

static _Alignas(64) struct cpu_state before, after;

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void fill_random(void *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)(next_random() >> 32);
}

static uint64_t usable_components(void)
{
	uint32_t low, high, mask = 3;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	for (unsigned i = 0; i < EXTENDED_COUNT; i++)
		mask |= 1u << extended[i].bit;
	return low & mask;
}

static void find_component(uint32_t bit, uint32_t *ret_offset, uint32_t *ret_size)
{
	uint32_t c, d;

	__cpuid_count(0xd, bit, *ret_size, *ret_offset, c, d);
}

static void prepare(uint64_t components, uint64_t flags)
{
	uint32_t offset, size;
	uint32_t mxcsr = 0x3f80; /* rounds down, all masked */

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	fill_random(before.general, sizeof(before.general));
	fill_random(before.stack, sizeof(before.stack));
	before.flags = FIXED_FLAGS | flags;
	memcpy(before.area, "\x7f\x02\0\0\xff", 5); /* double precision, all x87 in use */
	memcpy(before.area + MXCSR_OFFSET, &mxcsr, sizeof(mxcsr));
	for (unsigned i = 0; i < 8; i++) {
		fill_random(before.area + ST_OFFSET + 16 * i, 8);
		/* As MMX leaves it. */
		memset(before.area + ST_OFFSET + 16 * i + 8, 0xff, 2);
	}
	fill_random(before.area + XMM_OFFSET, 16 * 16);
	for (unsigned i = 0; i < EXTENDED_COUNT; i++) {
		if (!(components >> extended[i].bit & 1))
			continue;
		find_component(extended[i].bit, &offset, &size);
		fill_random(before.area + offset, size);
	}
	memcpy(before.area + LEGACY_BYTES, &components, sizeof(components));
}

static void compare(const char *what, unsigned number, size_t offset, size_t size)
{
	if (memcmp(before.area + offset, after.area + offset, size) != 0)
		printf(" %s%u", what, number);
}

static void report(uint64_t components)
{
	uint32_t offset, size;

	for (unsigned i = 0; i < 16; i++)
		if (before.general[i] != after.general[i])
			printf(" r%u", i);
	if (before.flags != after.flags)
		printf(" flags");
	for (unsigned i = 0; i < CPU_STACK_WORDS; i++)
		if (before.stack[i] != after.stack[i])
			printf(" stack%u", i);
	compare("x87-control", 0, 0, MXCSR_OFFSET);
	compare("mxcsr", 0, MXCSR_OFFSET, 4);
	for (unsigned i = 0; i < 8; i++)
		compare("st", i, ST_OFFSET + 16 * i, 10);
	for (unsigned i = 0; i < 16; i++)
		compare("xmm", i, XMM_OFFSET + 16 * i, 16);
	for (unsigned i = 0; i < EXTENDED_COUNT; i++) {
		if (!(components >> extended[i].bit & 1))
			continue;
		find_component(extended[i].bit, &offset, &size);
		compare(extended[i].name, 0, offset, size);
	}
	if (GetLastError() != LAST_ERROR)
		printf(" last-error");
}

static void check(const char *name, void *function, uint64_t flags)
{
	uint64_t components = usable_components();
	DWORD error;

	prepare(components, flags);
	SetLastError(LAST_ERROR);
	cpu_state_run(&before, &after, function, components);
	error = GetLastError();
	printf("%s changed:", name);
	SetLastError(error);
	report(components);
	printf("\n");
}

static void spoil_all(void)
{
	SetLastError(0);
	cpu_state_spoil();
}

void agent_register_check(const struct probed_image *image)
{
	check("spoiler", (void *)cpu_state_spoil, ALL_FLAGS);
	check("error spoiler", (void *)spoil_all, 0);
	/* The first makes the trace file. */
	check("first touch", (void *)probed_thunk(image, 0), ALL_FLAGS);
	check("touch", (void *)probed_thunk(image, 1), ALL_FLAGS);
	check("touch without flags", (void *)probed_thunk(image, 2), 0);
	check("later call", (void *)probed_thunk(image, 0), ALL_FLAGS);
}
