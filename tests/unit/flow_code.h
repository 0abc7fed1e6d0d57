/* Code of one function in memory, to ask what its registers hold.
 *
 *     struct flow_code c;
 *     flow_code_init(&c, BYTES("\x48\x8d\x15\0\x10\0\0"));
 *     v = AT_END(&c, RDX);
 *     flow_code_release(&c);
 *
 * The function begins at 0x1000 and is called; its direct branches are known. */
#ifndef APPULSE_TESTS_FLOW_CODE_H
#define APPULSE_TESTS_FLOW_CODE_H

#include <stdlib.h>
#include <string.h>

#include "graph/value_query.h"

enum { RAX = 0, RCX = 1, RDX = 2, RBX = 3 };
enum { FLOW_CODE_BEGIN = 0x1000, FLOW_CODE_MAX = 512 };

/* lea rdx, [table]: the address 0x2007 when it is the first instruction */
#define LEA_RDX "\x48\x8d\x15\0\x10\0\0"
#define READ_ENTRY "\x48\x63\x04\x8a" /* movsxd rax, [rdx + rcx * 4] */
#define ADD_BASE "\x48\x01\xd0"       /* add rax, rdx */
#define BYTES(bytes) bytes, sizeof(bytes) - 1

struct flow_code {
	uint8_t bytes[FLOW_CODE_MAX], map[FLOW_CODE_MAX];
	struct code_range range;
	struct graph graph;
	struct discovery d;
	struct control_flow flow;
	struct value_query query;
	struct rva end;
};

static inline void flow_code_label(struct flow_code *c, uint32_t from, uint32_t to)
{
	struct branch branch = {rva_of(FLOW_CODE_BEGIN + from),
				rva_of(FLOW_CODE_BEGIN + to)};

	c->map[to] |= CODE_LABEL;
	assert_true(vec_push(&c->d.branches, branch));
}

static inline void flow_code_init(struct flow_code *c, const char *bytes, size_t size)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->bytes, bytes, size);
	for (uint32_t at = 0; at < size;) {
		struct insn insn;

		assert_true(insn_decode(c->bytes + at, size - at, &insn));
		c->map[at] |= CODE_START;
		for (uint32_t i = 1; i < insn.length; i++)
			c->map[at + i] |= CODE_INSIDE;
		if (insn.field == FIELD_BRANCH && insn.flow != FLOW_CALL)
			flow_code_label(c, at, at + insn.length + (uint32_t)insn.relative);
		at += insn.length;
	}
	c->map[0] |= CODE_FUNCTION | CODE_LABEL | CODE_ENTERED;
	c->range = (struct code_range){rva_of(FLOW_CODE_BEGIN), FLOW_CODE_MAX, c->bytes,
				       c->map};
	c->graph.ranges = &c->range;
	c->graph.range_count = 1;
	c->d.graph = &c->graph;
	c->d.flow_steps = 1 << 20;
	c->end = rva_of(FLOW_CODE_BEGIN + (uint32_t)size);
	control_flow_sort(&c->d);
	assert_true(control_flow_init(&c->flow, &c->d));
	assert_true(value_query_init(&c->query, &c->flow));
}

static inline void flow_code_release(struct flow_code *c)
{
	value_query_release(&c->query);
	control_flow_release(&c->flow);
	vec_release(&c->d.branches);
}

/* What a register holds behind the last instruction. */
#define AT_END(c, reg) value_query_register(&(c)->query, reg, (c)->end)

/* The same of code that is asked for one register only. */
static inline struct value register_after(const char *bytes, size_t size, uint8_t reg)
{
	struct flow_code c;
	struct value value;

	flow_code_init(&c, bytes, size);
	value = AT_END(&c, reg);
	flow_code_release(&c);
	return value;
}

#define RAX_AFTER(bytes) register_after(BYTES(bytes), RAX)

/* The bound of the index of the entry that rax holds at the end. */
static inline struct value_bound bound_after(const char *bytes, size_t size)
{
	struct flow_code c;
	struct value value;
	struct value_bound bound;

	flow_code_init(&c, bytes, size);
	value = AT_END(&c, RAX);
	assert_int_equal(value.kind, VALUE_ENTRY);
	bound = value_bound_at(&c.query, value.index, c.end);
	flow_code_release(&c);
	return bound;
}

#define BOUND_AFTER(bytes) (bound_after(BYTES(bytes)).count)

#endif
