/* What the usual integer instructions do, by the opcode maps.
 *
 * Following values needs an instruction's operands, and a general decoder takes 1,600
 * instructions to find them.  For what compilers compute with in general registers they
 * follow from the opcode, ModRM, SIB and REX (Intel SDM volume 2, chapter 2, appendix A
 * and the pages of the instructions).  All else, vectors above all, is left to Zydis; a
 * test holds every form against it, as in opcode_map.c.
 */
#include "decode/operand_map.h"

#include "decode/opcode_map.h"

/* Where an operand is named; the letters are the manual's (appendix A.2). */
enum place {
	NONE,
	E,    /* ModRM.rm: register or memory */
	G,    /* ModRM.reg */
	Z,    /* the opcode's last three bits */
	A,    /* al, ax, eax, rax */
	C,    /* cl */
	I,    /* immediate */
	U,    /* immediate of one byte, unsigned */
	ONE,  /* the number 1 */
};

enum {
	KNOWN = 1 << 0,
	BYTE = 1 << 1,          /* operands of one byte */
	SOURCE_BYTE = 1 << 2,   /* the source alone */
	SOURCE_WORD = 1 << 3,
	SOURCE_DOUBLE = 1 << 4,
	QUAD = 1 << 5,          /* 8 bytes, whatever REX.W says; not under 66 */
	WRITES = 1 << 6,        /* the target */
	WRITES_SOURCE = 1 << 7,
	FLAGS = 1 << 8,         /* changes flags */
	WIDE = 1 << 9,          /* under REX.W only */
	RAX = 1 << 10,          /* writes it besides */
	RDX = 1 << 11,
	RSP = 1 << 12,
	GROUPED = 1 << 13,      /* op is an index into groups */
};

struct form {
	uint8_t op; /* enum insn_op */
	uint8_t target, source; /* enum place */
	uint16_t flags;
};

/* The four ways of a two-operand operation with registers, and two with an immediate. */
#define BOTH_WAYS(first, op, flags)                                   \
	[(first)] = {op, E, G, KNOWN | BYTE | (flags)},               \
	[(first) + 1] = {op, E, G, KNOWN | (flags)},                  \
	[(first) + 2] = {op, G, E, KNOWN | BYTE | (flags)},           \
	[(first) + 3] = {op, G, E, KNOWN | (flags)}
#define ARITHMETIC(first, op, flags)                                  \
	BOTH_WAYS(first, op, flags),                                  \
	[(first) + 4] = {op, A, I, KNOWN | BYTE | (flags)},           \
	[(first) + 5] = {op, A, I, KNOWN | (flags)}

enum { GROUP_ARITHMETIC, GROUP_SHIFT, GROUP_UNARY, GROUP_INCREMENT, GROUP_BIT_TEST };

__extension__ static const struct form one_byte[256] = {
	ARITHMETIC(0x00, OP_ADD, WRITES | FLAGS),
	ARITHMETIC(0x08, OP_OTHER, WRITES | FLAGS), /* or */
	ARITHMETIC(0x10, OP_OTHER, WRITES | FLAGS), /* adc */
	ARITHMETIC(0x18, OP_OTHER, WRITES | FLAGS), /* sbb */
	ARITHMETIC(0x20, OP_AND, WRITES | FLAGS),
	ARITHMETIC(0x28, OP_SUBTRACT, WRITES | FLAGS),
	ARITHMETIC(0x30, OP_OTHER, WRITES | FLAGS), /* xor */
	ARITHMETIC(0x38, OP_COMPARE, FLAGS),
	[0x50 ... 0x57] = {OP_PUSH, Z, NONE, KNOWN | QUAD | RSP},
	[0x58 ... 0x5f] = {OP_POP, Z, NONE, KNOWN | QUAD | RSP | WRITES},
	[0x63] = {OP_SIGN_EXTEND, G, E, KNOWN | SOURCE_DOUBLE | WRITES},
	[0x68] = {OP_PUSH, I, NONE, KNOWN | QUAD | RSP},
	[0x69] = {OP_OTHER, G, E, KNOWN | WRITES | FLAGS}, /* imul */
	[0x6a] = {OP_PUSH, I, NONE, KNOWN | QUAD | RSP},
	[0x6b] = {OP_OTHER, G, E, KNOWN | WRITES | FLAGS},
	[0x70 ... 0x7f] = {OP_OTHER, I, NONE, KNOWN}, /* jcc */
	[0x80] = {GROUP_ARITHMETIC, E, I, KNOWN | GROUPED | BYTE},
	[0x81] = {GROUP_ARITHMETIC, E, I, KNOWN | GROUPED},
	[0x83] = {GROUP_ARITHMETIC, E, I, KNOWN | GROUPED},
	[0x84] = {OP_OTHER, E, G, KNOWN | BYTE | FLAGS}, /* test */
	[0x85] = {OP_OTHER, E, G, KNOWN | FLAGS},
	[0x86] = {OP_OTHER, E, G, KNOWN | BYTE | WRITES | WRITES_SOURCE}, /* xchg */
	[0x87] = {OP_OTHER, E, G, KNOWN | WRITES | WRITES_SOURCE},
	BOTH_WAYS(0x88, OP_MOVE, WRITES),
	[0x8d] = {OP_LEA, G, E, KNOWN | WRITES},
	[0x90] = {OP_OTHER, NONE, NONE, KNOWN},
	[0x98] = {OP_SIGN_EXTEND, A, A, KNOWN | WIDE | SOURCE_DOUBLE | WRITES}, /* cdqe */
	[0x99] = {OP_OTHER, NONE, NONE, KNOWN | RDX},
	[0xa8] = {OP_OTHER, A, I, KNOWN | BYTE | FLAGS}, /* test */
	[0xa9] = {OP_OTHER, A, I, KNOWN | FLAGS},
	[0xb0 ... 0xb7] = {OP_MOVE, Z, I, KNOWN | BYTE | WRITES},
	[0xb8 ... 0xbf] = {OP_MOVE, Z, I, KNOWN | WRITES},
	[0xc0] = {GROUP_SHIFT, E, U, KNOWN | GROUPED | BYTE},
	[0xc1] = {GROUP_SHIFT, E, U, KNOWN | GROUPED},
	[0xc3] = {OP_OTHER, NONE, NONE, KNOWN | RSP},
	[0xc6] = {OP_MOVE, E, I, KNOWN | BYTE | WRITES},
	[0xc7] = {OP_MOVE, E, I, KNOWN | WRITES},
	[0xd0] = {GROUP_SHIFT, E, ONE, KNOWN | GROUPED | BYTE},
	[0xd1] = {GROUP_SHIFT, E, ONE, KNOWN | GROUPED},
	[0xd2] = {GROUP_SHIFT, E, C, KNOWN | GROUPED | BYTE},
	[0xd3] = {GROUP_SHIFT, E, C, KNOWN | GROUPED},
	[0xe8] = {OP_OTHER, I, NONE, KNOWN | RSP},
	[0xe9] = {OP_OTHER, I, NONE, KNOWN},
	[0xeb] = {OP_OTHER, I, NONE, KNOWN},
	[0xf7] = {GROUP_UNARY, E, NONE, KNOWN | GROUPED},
	[0xfe] = {GROUP_INCREMENT, E, NONE, KNOWN | GROUPED | BYTE},
	[0xff] = {GROUP_INCREMENT, E, NONE, KNOWN | GROUPED},
};

/* Opcodes behind 0F. */
__extension__ static const struct form two_byte[256] = {
	[0x1f] = {OP_OTHER, E, G, KNOWN}, /* nop */
	[0x40 ... 0x4f] = {OP_CONDITIONAL_MOVE, G, E, KNOWN | WRITES},
	[0x80 ... 0x8f] = {OP_OTHER, I, NONE, KNOWN},             /* jcc */
	[0x90 ... 0x9f] = {OP_OTHER, E, NONE, KNOWN | BYTE | WRITES}, /* setcc */
	[0xa3] = {OP_OTHER, E, G, KNOWN | FLAGS},                 /* bt */
	[0xaf] = {OP_OTHER, G, E, KNOWN | WRITES | FLAGS},        /* imul */
	[0xb6] = {OP_ZERO_EXTEND, G, E, KNOWN | SOURCE_BYTE | WRITES},
	[0xb7] = {OP_ZERO_EXTEND, G, E, KNOWN | SOURCE_WORD | WRITES},
	[0xba] = {GROUP_BIT_TEST, E, U, KNOWN | GROUPED},
	[0xbe] = {OP_SIGN_EXTEND, G, E, KNOWN | SOURCE_BYTE | WRITES},
	[0xbf] = {OP_SIGN_EXTEND, G, E, KNOWN | SOURCE_WORD | WRITES},
};

/* What ModRM.reg adds to a form with GROUPED. */
static const struct form groups[][8] = {
	[GROUP_ARITHMETIC] = {
		{OP_ADD, .flags = WRITES | FLAGS}, {OP_OTHER, .flags = WRITES | FLAGS},
		{OP_OTHER, .flags = WRITES | FLAGS}, {OP_OTHER, .flags = WRITES | FLAGS},
		{OP_AND, .flags = WRITES | FLAGS}, {OP_SUBTRACT, .flags = WRITES | FLAGS},
		{OP_OTHER, .flags = WRITES | FLAGS}, {OP_COMPARE, .flags = FLAGS},
	},
	/* shl has two numbers. */
	[GROUP_SHIFT] = {
		{OP_OTHER, .flags = WRITES | FLAGS}, {OP_OTHER, .flags = WRITES | FLAGS},
		{OP_OTHER, .flags = WRITES | FLAGS}, {OP_OTHER, .flags = WRITES | FLAGS},
		[4] = {OP_SHIFT_LEFT, .flags = WRITES | FLAGS},
		[5] = {OP_OTHER, .flags = WRITES | FLAGS},
		[6] = {OP_SHIFT_LEFT, .flags = WRITES | FLAGS},
		[7] = {OP_OTHER, .flags = WRITES | FLAGS},
	},
	/* test, test, not, neg, mul, imul, div, idiv */
	[GROUP_UNARY] = {
		{OP_OTHER, .source = I, .flags = FLAGS},
		{OP_OTHER, .source = I, .flags = FLAGS},
		{OP_OTHER, .flags = WRITES}, {OP_OTHER, .flags = WRITES | FLAGS},
		{OP_OTHER, .flags = RAX | RDX | FLAGS},
		{OP_OTHER, .flags = RAX | RDX | FLAGS},
		{OP_OTHER, .flags = RAX | RDX | FLAGS},
		{OP_OTHER, .flags = RAX | RDX | FLAGS},
	},
	/* inc, dec, call, -, jmp, -, push; the others are no valid instructions here. */
	[GROUP_INCREMENT] = {
		{OP_OTHER, .flags = WRITES | FLAGS}, {OP_OTHER, .flags = WRITES | FLAGS},
		{OP_OTHER, .flags = QUAD | RSP}, {OP_OTHER}, {OP_OTHER, .flags = QUAD},
		{OP_OTHER}, {OP_PUSH, .flags = QUAD | RSP}, {OP_OTHER},
	},
	/* bt, bts, btr, btc */
	[GROUP_BIT_TEST] = {
		[4] = {OP_OTHER, .flags = FLAGS}, [5] = {OP_OTHER, .flags = WRITES | FLAGS},
		[6] = {OP_OTHER, .flags = WRITES | FLAGS},
		[7] = {OP_OTHER, .flags = WRITES | FLAGS},
	},
};

static struct form form_of(const struct opcode_parts *p)
{
	struct form form = p->two_bytes ? two_byte[p->opcode] : one_byte[p->opcode];

	if (form.flags & GROUPED) {
		const struct form *more = &groups[form.op][p->modrm >> 3 & 7];

		form.op = more->op;
		form.flags |= more->flags;
		if (more->source)
			form.source = more->source;
	}
	return form;
}

static uint8_t operand_size(const struct opcode_parts *p, uint16_t flags)
{
	if (flags & BYTE)
		return 1;
	if ((flags & QUAD) || (p->rex & REX_W))
		return 8;
	return p->prefix == PREFIX_SIZE ? 2 : 4;
}

static void name_register(const struct opcode_parts *p, struct operand *operand,
			  uint8_t number)
{
	operand->kind = OPERAND_REGISTER;
	/* ah, ch, dh, bh have no number (Intel SDM volume 2, table 2-2 and 2.2.1.2). */
	operand->reg =
		operand->size == 1 && !p->rex && number >= 4 ? REGISTER_NONE : number;
}

/* Intel SDM volume 2, tables 2-2, 2-3 and 2-5. */
static void name_memory(const struct opcode_parts *p, struct operand *operand)
{
	uint8_t mod = p->modrm >> 6, base = p->modrm & 7;

	operand->kind = OPERAND_MEMORY;
	operand->value = p->displacement;
	if (base == 4) {
		uint8_t index = (p->sib >> 3 & 7) | (p->rex & REX_X ? 8 : 0);

		if (index != REGISTER_RSP) {
			operand->index = index;
			operand->scale = (uint8_t)(1 << (p->sib >> 6));
		}
		base = p->sib & 7;
		if (base != 5 || mod != 0)
			operand->base = base | (p->rex & REX_B ? 8 : 0);
	} else if (mod == 0 && base == 5) {
		operand->base = REGISTER_RIP;
	} else {
		operand->base = base | (p->rex & REX_B ? 8 : 0);
	}
}

static void name_constant(struct operand *operand, int64_t value, uint8_t size)
{
	operand->kind = OPERAND_CONSTANT;
	operand->size = size;
	operand->value = value;
}

static void name_operand(const struct opcode_parts *p, enum place place, uint8_t size,
			 struct operand *operand)
{
	if (place == NONE)
		return;
	*operand = (struct operand){.size = size, .reg = REGISTER_NONE,
				    .base = REGISTER_NONE, .index = REGISTER_NONE};
	switch (place) {
	case E:
		if (p->modrm >> 6 == 3)
			name_register(p, operand,
				      (p->modrm & 7) | (p->rex & REX_B ? 8 : 0));
		else
			name_memory(p, operand);
		break;
	case G:
		name_register(p, operand, (p->modrm >> 3 & 7) | (p->rex & REX_R ? 8 : 0));
		break;
	case Z:
		name_register(p, operand, (p->opcode & 7) | (p->rex & REX_B ? 8 : 0));
		break;
	case A:
		name_register(p, operand, 0);
		break;
	case C:
		operand->size = 1;
		name_register(p, operand, 1);
		break;
	case I:
		name_constant(operand, p->immediate, p->immediate_size);
		break;
	case U:
		name_constant(operand, (uint8_t)p->immediate, 1);
		break;
	default:
		name_constant(operand, 1, 1);
	}
}

/* The bit of the register that an operand is, in whole or in part: a high byte is a part
 * of one of the first four. */
static uint16_t register_bit(const struct opcode_parts *p, enum place place, bool byte)
{
	struct operand operand = {0};

	name_operand(p, place, 8, &operand);
	if (operand.kind != OPERAND_REGISTER)
		return 0;
	if (byte && !p->rex && operand.reg >= 4)
		operand.reg -= 4;
	return (uint16_t)(1u << operand.reg);
}

static uint16_t written_by(const struct opcode_parts *p, const struct form *form)
{
	bool byte = form->flags & BYTE;
	uint32_t written = 0;

	if (form->flags & RAX)
		written |= 1u << 0;
	if (form->flags & RDX)
		written |= 1u << 2;
	if (form->flags & RSP)
		written |= 1u << REGISTER_RSP;
	if (form->flags & WRITES)
		written |= register_bit(p, (enum place)form->target, byte);
	if (form->flags & WRITES_SOURCE)
		written |= register_bit(p, (enum place)form->source, byte);
	return (uint16_t)written;
}

/* Opcodes' last four bits (Intel SDM volume 2, appendix B, table B-10). */
static enum insn_condition condition_of(uint8_t opcode)
{
	switch (opcode & 15) {
	case 2:
		return CONDITION_BELOW;
	case 3:
		return CONDITION_ABOVE_EQUAL;
	case 6:
		return CONDITION_BELOW_EQUAL;
	case 4:
		return CONDITION_EQUAL;
	case 5:
		return CONDITION_NOT_EQUAL;
	case 7:
		return CONDITION_ABOVE;
	default:
		return CONDITION_OTHER;
	}
}

bool operand_map_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
			  struct insn_detail *ret_detail)
{
	struct insn_detail detail = {0};
	struct opcode_parts p;
	struct form form;
	uint8_t operands, source;

	if (!opcode_map_take(bytes, size, &p, ret_insn))
		return false;
	form = form_of(&p);
	if (p.vex)
		return false;
	if (!(form.flags & KNOWN) || (p.prefix && p.prefix != PREFIX_SIZE) ||
	    ((form.flags & (QUAD | SOURCE_DOUBLE)) && p.prefix) ||
	    ((form.flags & WIDE) && !(p.rex & REX_W)))
		return false;
	operands = source = operand_size(&p, form.flags);
	if (form.flags & (SOURCE_BYTE | SOURCE_WORD | SOURCE_DOUBLE))
		source = form.flags & SOURCE_BYTE ? 1 : form.flags & SOURCE_WORD ? 2 : 4;
	if (form.op == OP_LEA)
		source = 8;
	detail.op = form.op;
	if (ret_insn->flow == FLOW_BRANCH)
		detail.condition = (uint8_t)condition_of(p.opcode);
	name_operand(&p, (enum place)form.target, operands, &detail.target);
	name_operand(&p, (enum place)form.source, source, &detail.source);
	if ((form.flags & WRITES) && detail.target.kind == OPERAND_MEMORY)
		detail.store = STORE_TARGET;
	detail.written = written_by(&p, &form);
	detail.changes_flags = (form.flags & FLAGS) != 0;
	*ret_detail = detail;
	return true;
}
