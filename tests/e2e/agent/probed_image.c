/* RVAs, for `count` functions:
 *
 *     0x1000    struct probe_image, slots, functions, the import's cell
 *     units     on the next 4 KiB boundary: a unit for each function, common
 *     bodies    on the next: 16 bytes for each function
 *
 * All of it is writable and executable, which no real image is.
 */
#include "probed_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { DATA_RVA = 0x1000, PAGE = 0x1000, BODY_BYTES = 16, COMMON_BYTES = 32 };

static uint32_t page_up(uint64_t n)
{
	return (uint32_t)((n + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

/* Writes opcode bytes and the displacement from their end to `target`. */
static uint8_t *put_relative(uint8_t *p, const void *opcode, size_t size,
			     const void *target)
{
	int32_t displacement;

	memcpy(p, opcode, size);
	p += size;
	displacement = (int32_t)((const uint8_t *)target - (p + sizeof(displacement)));
	memcpy(p, &displacement, sizeof(displacement));
	return p + sizeof(displacement);
}

static uint8_t *put_immediate(uint8_t *p, uint8_t opcode, uint32_t value)
{
	*p++ = opcode;
	memcpy(p, &value, sizeof(value));
	return p + sizeof(value);
}

static void put_common(struct probed_image *p, void **cell)
{
	uint8_t *c = p->common;

	*c++ = 0x50;                                            /* push rax */
	c = put_relative(c, "\x48\x8d\x05", 3, p->image);       /* lea  rax, [image] */
	c = put_relative(c, "\xff\x15", 2, cell);               /* call [cell] */
	*c++ = 0x58;                                            /* pop  rax */
	*c = 0xc3;                                              /* ret */
}

static void put_unit(struct probed_image *p, uint32_t i)
{
	uint8_t *unit = p->units + (size_t)i * PROBE_UNIT_BYTES;
	uint8_t *stub = put_relative(unit, "\xff\x25", 2, &p->slots[i]); /* jmp [slot] */
	uint8_t *end = put_relative(stub, "\xe8", 1, p->common);         /* call common */

	memcpy(end, "\xeb\xf3", 2);                                      /* jmp unit */
	p->slots[i] = (uint64_t)stub;
}

static void put_body(struct probed_image *p, uint32_t i, enum probed_body body)
{
	uint8_t *b = p->base + p->functions[i];

	if (body == BODY_GIVES_INDEX)
		b = put_immediate(b, 0xb8, i);                  /* mov eax, i */
	*b = 0xc3;                                              /* ret */
}

void probed_image_make(struct probed_image *p, const char *name, uint8_t identity,
		       uint32_t count, enum probed_body body, void *entry)
{
	uint32_t slots = DATA_RVA + (uint32_t)sizeof(struct probe_image);
	uint32_t functions = slots + count * 8;
	uint32_t cell = (functions + count * 4 + 7) & ~7u;
	uint32_t units = page_up(cell + 8);
	uint32_t common = units + count * PROBE_UNIT_BYTES;
	uint32_t bodies = page_up(common + COMMON_BYTES);

	p->base = VirtualAlloc(NULL, bodies + (size_t)count * BODY_BYTES,
			       MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	if (!p->base) {
		puts("out of memory");
		exit(1);
	}
	p->image = (void *)(p->base + DATA_RVA);
	p->slots = (void *)(p->base + slots);
	p->functions = (void *)(p->base + functions);
	p->units = p->base + units;
	p->common = p->base + common;
	*p->image = (struct probe_image){
		.magic = PROBE_MAGIC,
		.version = PROBE_VERSION,
		.count = count,
		.base = (uint64_t)p->base,
		.slots = (uint64_t)p->slots,
		.functions = (uint64_t)p->functions,
		.units = (uint64_t)p->units,
	};
	memset(p->image->hash, identity, sizeof(p->image->hash));
	strncpy(p->image->name, name, sizeof(p->image->name) - 1);
	memcpy(p->base + cell, &entry, sizeof(entry));
	put_common(p, (void **)(p->base + cell));
	for (uint32_t i = 0; i < count; i++) {
		p->functions[i] = bodies + i * BODY_BYTES;
		put_unit(p, i);
		put_body(p, i, body);
	}
}

void probed_image_free(struct probed_image *p)
{
	VirtualFree(p->base, 0, MEM_RELEASE);
	memset(p, 0, sizeof(*p));
}

probed_function *probed_thunk(const struct probed_image *p, uint32_t i)
{
	return (probed_function *)(p->units + (size_t)i * PROBE_UNIT_BYTES);
}

uint32_t probed_rva(const struct probed_image *p, uint32_t i)
{
	return p->functions[i];
}
