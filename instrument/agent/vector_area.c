/* What of the processor's state must be saved around the agent's code, and how
 * much room it takes.
 *
 * Everything that code of ours or of the system might change without the calling
 * convention's asking it to give it back: x87 and MMX, SSE, AVX, AVX-512's masks
 * and registers, APX's general registers.  AMX tiles are left out: no system
 * library touches them behind a program's back, and they alone take 8 KB.
 *
 * Components, offsets and sizes: Intel SDM volume 1, section 13.1 to 13.5;
 * CPUID leaf 0xd.
 */
#include <cpuid.h>

#include "agent.h"

enum {
	X87 = 1u << 0,
	SSE = 1u << 1,
	AVX = 1u << 2,
	AVX512_MASKS = 1u << 5,
	AVX512_UPPER_HALVES = 1u << 6,
	AVX512_UPPER_REGISTERS = 1u << 7,
	APX = 1u << 19,
	FIRST_EXTENDED = 2,
	LAST_EXTENDED = 19,

	LEGACY_BYTES = 512,
	XSAVE_HEADER_BYTES = 64,
	OSXSAVE = 1u << 27, /* CPUID leaf 1, ecx */
	XSAVE_LEAF = 0xd,
};

uint64_t vector_area;

static uint32_t enabled_components(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low & (X87 | SSE | AVX | AVX512_MASKS | AVX512_UPPER_HALVES |
		      AVX512_UPPER_REGISTERS | APX);
}

/* Threads may race here: all find the same, and it is one store. */
uint64_t vector_area_find(void)
{
	uint32_t a, b, c, d, components = 0, bytes = LEGACY_BYTES;
	uint64_t area;

	__cpuid(1, a, b, c, d);
	if (c & OSXSAVE) {
		components = enabled_components();
		bytes += XSAVE_HEADER_BYTES;
		for (uint32_t i = FIRST_EXTENDED; i <= LAST_EXTENDED; i++) {
			if (!(components >> i & 1))
				continue;
			__cpuid_count(XSAVE_LEAF, i, a, b, c, d);
			if (a + b > bytes)
				bytes = a + b;
		}
	}
	area = (uint64_t)bytes << 32 | components;
	__atomic_store_n(&vector_area, area, __ATOMIC_RELAXED);
	return area;
}
