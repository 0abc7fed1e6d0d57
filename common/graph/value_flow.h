/* The values behind computed jumps, and what one instruction makes of them.
 * Internal to graph/.
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

#include "base/address.h"
#include "decode/insn.h"

enum value_kind {
	VALUE_OPEN,     /* not known yet: whatever it will turn out to be */
	VALUE_COMPUTED, /* what arithmetic has made, came from the stack, or is not known */
	VALUE_WHOLE,    /* a pointer or number as it came: parameter, loaded, returned */
	VALUE_ADDRESS,  /* the address `table` */
	VALUE_STACK,    /* an address on the stack; in a frame variable (value_query.h)
			 * `table` bytes from where its id is */
	VALUE_SCALED,   /* 4 * the value with the id `index` */
	VALUE_ELEMENT,  /* the address of entry `index` of the table at `table` */
	VALUE_ENTRY,    /* the 32-bit entry itself; sign-extended when the width is 8 */
	VALUE_TARGET,   /* that entry plus the address `base` */
	VALUE_SMALL, /* entry `index` of a table of bytes or words (by `width`) at `table`,
		      * zero-extended */
};

/* Values with the same id are equal, in as many bytes as both are known to have. */
struct value {
	uint8_t kind;     /* enum value_kind */
	uint8_t width;    /* bytes: the value is below 256^width */
	bool survived;    /* an address on which it rests stood in memory, or in a register
			   * that a call may change, while something else may have written
			   * there: a compiler's own is still the same */
	struct rva table; /* as the kind says */
	struct rva base;
	uint32_t id;    /* NO_ID: equal to no other */
	uint32_t index; /* id of the index, as the kind says */
};

/* An id is the node that made the value (value_query.h), times four, plus the bytes that
 * were taken of it when these are 1 or 2. */
#define NO_ID 0

static inline uint32_t value_id_of_node(uint32_t node)
{
	return (node + 1) * 4;
}

static inline uint32_t value_node_of_id(uint32_t id)
{
	return id / 4 - 1;
}

/* An upper bound of a value. */
struct value_bound {
	uint32_t count; /* the value is below; 0 when no bound is known */
	bool wide;      /* it follows from the value's size, a mask or equality only: a
			 * table may be shorter */
};

/* A value of 8 bytes of which nothing else is known. */
struct value value_fresh(enum value_kind kind, uint32_t id);

/* The lower `size` bytes of a value. */
struct value value_lower_part(struct value value, unsigned size);

bool value_same(const struct value *a, const struct value *b);

/* The best that holds for both; `id` is for what is equal to neither. */
struct value value_join(const struct value *a, const struct value *b, uint32_t id);

/* What an instruction finds.  A constant or memory operand has no value in `source`, but
 * its base register's; a variable on the stack has its own. */
struct value_inputs {
	struct value target; /* what the target register held */
	struct value source; /* the source register, the base of the source operand, or the
			      * variable on the stack that it names */
	struct value index;  /* the index of the source operand */
	uint32_t source_id;  /* of base and index, when they may be those of a table of */
	uint32_t index_id;   /* bytes or words: ids that can be compared */
	bool variable;       /* `source` is a variable on the stack */
};

/* What `operand`, a source, gives to the instruction. */
struct value value_read(const struct operand *operand, const struct value_inputs *inputs,
			uint32_t id);

/* The value that the instruction at `at` writes into its target register. */
struct value value_result(struct rva at, const struct insn *insn,
			  const struct insn_detail *detail,
			  const struct value_inputs *inputs, uint32_t id);

#endif
