/* One x86-64 instruction.  decode/ is the only folder that includes Zydis.
 *
 * Two depths: insn_decode gives what moving code needs (length, control flow,
 * fields relative to the instruction), insn_describe what following values
 * through registers needs.  Both read a given buffer and nothing else.
 */
#ifndef APPULSE_DECODE_INSN_H
#define APPULSE_DECODE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where control goes after the instruction. */
enum insn_flow {
	FLOW_NEXT,          /* to the next instruction only */
	FLOW_CALL,          /* direct call, then next */
	FLOW_CALL_INDIRECT, /* call through a register or memory, then next */
	FLOW_BRANCH,        /* to the target or next: jcc, jrcxz, loop, xbegin */
	FLOW_JUMP,          /* direct jump */
	FLOW_JUMP_INDIRECT, /* jump through a register or memory */
	FLOW_RETURN,
	FLOW_STOP,          /* int3, ud2, int 29h, hlt: nothing follows */
};

/* What the PC-relative field of an instruction is. */
enum insn_field {
	FIELD_NONE,
	FIELD_BRANCH,  /* target of a call, jump or branch */
	FIELD_ADDRESS, /* address taken by lea */
	FIELD_MEMORY,  /* memory operand that is read, written or jumped through */
};

struct insn {
	uint8_t length;       /* bytes, 1 to 15 */
	uint8_t flow;         /* enum insn_flow */
	uint8_t field;        /* enum insn_field; at most one is PC-relative */
	uint8_t field_offset; /* bytes from the instruction's start */
	uint8_t field_size;   /* bytes: 1, 2 or 4 */
	bool padding;         /* int3 or a nop of any length */
	bool jump_computed;   /* FLOW_JUMP_INDIRECT through a register, or memory that rsp
	                       * or rbp names, where a register may have been saved */
	bool tail_call;       /* FLOW_JUMP_INDIRECT in the form of an epilogue, REX.W */
	bool loads_entry;     /* reads 32 bits in the ways in which jump tables are read:
	                       * sign-extended, or into a register from an indexed place */
	bool jump_memory;     /* an indirect jump or call through [rip + disp32] */
	bool unlikely;        /* data decodes to it, and no program has it: port input and
	                       * output, interrupts off, far jumps, add [rax], al (zeros) */
	int32_t relative;     /* the field's value: bytes from the instruction's end */
	uint8_t constant_count; /* constants that may be a part of an address: up to 2 */
	uint64_t constants[2];  /* 32- and 64-bit immediates that are passed on, and
	                         * displacements; none that is PC-relative */
	uint8_t displacement_offset; /* bytes from the instruction's start to the
	                              * displacement, the last of `constants`; 0: none */
};

/* Decodes the instruction at `bytes`; false when there is none within `size`. */
bool insn_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);

/* Whether the instruction of `length` bytes at `bytes` can have a PC-relative
 * field at all: false is certain, true is not.  Far cheaper than decoding, for who
 * knows where instructions begin and end. */
bool insn_may_be_relative(const uint8_t *bytes, size_t length);

/* The few operations that address computations are made of. */
enum insn_op {
	OP_OTHER, /* anything else: `written` says which registers it changes */
	OP_MOVE,  /* mov */
	OP_ZERO_EXTEND, /* movzx */
	OP_SIGN_EXTEND, /* movsx, movsxd, cdqe (register to itself) */
	OP_LEA,
	OP_ADD,
	OP_SUBTRACT,
	OP_AND,
	OP_SHIFT_LEFT,
	OP_CONDITIONAL_MOVE, /* cmovcc */
	OP_COMPARE,
	OP_PUSH, /* `target` goes to the stack */
	OP_POP,  /* `target` comes from the stack */
};

/* Condition of a FLOW_BRANCH that bounds an unsigned value, as far as needed. */
enum insn_condition {
	CONDITION_OTHER,
	CONDITION_ABOVE,          /* ja */
	CONDITION_ABOVE_EQUAL,    /* jae */
	CONDITION_BELOW,          /* jb */
	CONDITION_BELOW_EQUAL,    /* jbe */
	CONDITION_EQUAL,          /* je */
	CONDITION_NOT_EQUAL,      /* jne */
};

/* What an instruction writes to memory, the return address of a call and what push
 * writes left out. */
enum insn_store {
	STORE_NONE,
	STORE_TARGET, /* the place that `target` names, no more than its size */
	STORE_OTHER,  /* more, or elsewhere */
};

enum operand_kind { OPERAND_NONE, OPERAND_REGISTER, OPERAND_MEMORY, OPERAND_CONSTANT };

enum {
	REGISTER_RSP = 4,
	REGISTER_RBP = 5,
	REGISTER_COUNT = 16,
	REGISTER_RIP = 0xfe,
	REGISTER_NONE = 0xff,
};

struct operand {
	uint8_t kind;        /* enum operand_kind */
	uint8_t size;        /* bytes of the value; 0 for more than 64 */
	uint8_t reg;         /* OPERAND_REGISTER: 0 (rax) to 15, REGISTER_NONE for others */
	/* OPERAND_MEMORY: registers, REGISTER_NONE or REGISTER_RIP.  A place that is not
	 * named by general registers alone (fs, gs, vectors of indices) has neither. */
	uint8_t base, index;
	uint8_t scale;       /* OPERAND_MEMORY: 1, 2, 4, 8; 0 without an index */
	int64_t value;       /* OPERAND_CONSTANT: it; OPERAND_MEMORY: the displacement */
};

struct insn_detail {
	uint8_t op;        /* enum insn_op */
	uint8_t condition; /* enum insn_condition */
	uint8_t store;     /* enum insn_store */
	uint16_t written;  /* general registers changed in whole or part, bit r */
	bool changes_flags; /* any of the status flags */
	/* The explicit operands; for OP_COMPARE left and right. */
	struct operand target, source;
};

/* As insn_decode, with the operands; some three times the cost. */
bool insn_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
		   struct insn_detail *ret_detail);

struct decode_version {
	char text[24];
};

/* The version of the Zydis that is loaded, as "4.0.0", for --version. */
struct decode_version decode_version(void);

#endif
