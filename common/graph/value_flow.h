/* Following values through the registers of one function, as far as computed
 * jumps need it.  Internal to graph/.
 *
 * A jump through a register is one of two things.  When it has a REX.W prefix, which
 * the unwinder needs to know an epilogue (observed: GCC 12.2, clang 14), or when the
 * value was a whole pointer from the start (a parameter, a call's result, loaded from
 * memory, an address taken by lea), it is a tail call or an absolute table, and
 * relocations and lea references cover it.  When it was computed, it must be the sum of
 * a table's entry and the table's base, or it is not understood.  What comes from the
 * stack counts as computed unless it was seen going there.
 */
#ifndef APPULSE_GRAPH_VALUE_FLOW_H
#define APPULSE_GRAPH_VALUE_FLOW_H

#include "decode/insn.h"
#include "graph/graph.h"

enum value_kind {
	VALUE_COMPUTED, /* what arithmetic has made, came from the stack, or is not known */
	VALUE_WHOLE,    /* a pointer or number as it came: parameter, loaded, returned */
	VALUE_ADDRESS,  /* the address `table` */
	VALUE_STACK,    /* an address on the stack, `table` bytes from where its id is */
	VALUE_SCALED,   /* 4 * the value with this id */
	VALUE_ELEMENT,  /* the address of an entry of the table at `table` */
	VALUE_ENTRY,    /* the 32-bit entry itself; sign-extended when the width is 8 */
	VALUE_TARGET,   /* that entry plus the address `base` */
};

/* Values with the same id are equal, in as many bytes as both are known to have;
 * addresses on the stack with the same id differ by their `table`. */
struct value {
	uint8_t kind;     /* enum value_kind */
	uint8_t width;    /* bytes: the value is below 256^width */
	bool survived;    /* an address on which it rests stood in memory, or in a register
	                   * that a call may change, while something else may have written
	                   * there: a compiler's own is still the same */
	struct rva table; /* as the kind says */
	struct rva base;
	uint32_t bound;   /* entries in reach, from a comparison; 0 when none is known */
	uint64_t id;
};

/* A local variable on the stack. */
struct slot {
	uint64_t stack; /* id of the address that `offset` counts from */
	int32_t offset; /* bytes */
	uint8_t size;   /* bytes; 0 when the slot is free */
	struct value value;
};

/* The value with this id is below `bound`. */
struct fact {
	uint64_t id;
	uint32_t bound; /* 0: free */
};

enum { FLOW_SLOTS = 16, FLOW_FACTS = 12 };

struct flow_state {
	struct value registers[REGISTER_COUNT];
	struct slot slots[FLOW_SLOTS];
	struct fact facts[FLOW_FACTS];
	uint8_t next_slot, next_fact; /* which to replace next */
	bool compared;                /* whether the flags stem from the comparison below */
	uint64_t compared_id;
	uint32_t compared_constant;
};

/* What a function finds when it is called. */
void flow_state_entry(struct flow_state *state, uint64_t id);

/* Nothing is known but that registers hold what was put there. */
void flow_state_unknown(struct flow_state *state, uint64_t id);

/* To be called before flow_state_step when the instruction at `at` has acted before:
 * in a loop it makes the same ids again, for other values.  What it made the last time
 * and still stands elsewhere gets ids of its own, and the facts about it go. */
void flow_state_retire(struct flow_state *state, struct rva at);

/* Lets the instruction at `at` act on the state. */
void flow_state_step(struct flow_state *state, struct rva at, const struct insn *insn,
		     const struct insn_detail *detail);

/* What the instruction at `at` finds in a register or in memory. */
struct value flow_state_read(struct flow_state *state, struct rva at,
			     const struct operand *operand);

/* What follows when a conditional branch was taken or not. */
void flow_state_branch(struct flow_state *state, enum insn_condition condition, bool taken);

/* Joins `from` into `into` at the place `at`; true when that changed `into`. */
bool flow_state_join(struct flow_state *into, const struct flow_state *from, struct rva at);

#endif
