/* The instructions that compilers use, by the opcode maps.
 *
 * A general decoder spends some 1,200 instructions on each that it decodes, since it
 * wants to know all about it.  What is asked here is the length, the flow of control, the
 * PC-relative field and the constants; these follow from the opcode, the ModRM byte and
 * the prefixes (Intel SDM volume 2, chapter 2 and appendix A, tables ), for a
 * twentieth of that.  As discovery decodes each byte of the code, and the verifier
 * some of it again, this was more than a third of the time of a relink.
 *
 * It is a short way and no second decoder: the tables hold the opcodes that are valid with
 * every operand that their row allows, under the prefixes that their row allows.
 * Everything else, such as segment overrides, locks, x87, EVEX and whatever is rare, is
 * left to Zydis, and so is the judgement that bytes are no instruction.  A test holds
 * each row against Zydis, with every ModRM byte, prefix and REX byte.
 */
#include "decode/opcode_map.h"

#include <string.h>

#include "base/bytes.h"

enum {
	/* Prefixes under which the opcode is valid: none, 66, F3, F2. */
	P = 1 << 0,
	P66 = 1 << 1,
	PF3 = 1 << 2,
	PF2 = 1 << 3,
	SIZED = P | P66,
	REPEATED = P | P66 | PF3 | PF2,
	/* What follows the opcode, and what it must be. */
	MODRM = 1 << 4,
	MEMORY_ONLY = 1 << 5,
	REGISTER_ONLY = 1 << 6,
	IMM_8 = 1 << 7,
	IMM_16 = 1 << 8,
	IMM_Z = 1 << 9,  /* 4 bytes; 2 under 66 without REX.W */
	IMM_V = 1 << 10, /* as IMM_Z; 8 under REX.W */
	RELATIVE = 1 << 11, /* the immediate is relative */
	/* What it means. */
	PASSED_ON = 1 << 12, /* the immediate can be a part of an address */
	PADS = 1 << 13,
	READS_ENTRY = 1 << 14, /* from memory: insn.loads_entry; unless REX.W when the
				* opcode is mov's */
	PLAIN = 1 << 15, /* not under REX */
	FLOW_SHIFT = 16, /* enum insn_flow, 3 bits */
	NO_VVVV = 1 << 19, /* VEX.vvvv names no register: it must be 1111 */
	GROUP_SHIFT = 20, /* 1 + index into groups: the rest is in its row */
};

#define GROUP(n) (((n) + 1u) << GROUP_SHIFT)
#define FLOW(f) ((uint32_t)(f) << FLOW_SHIFT)
#define BRANCH (P | RELATIVE | FLOW(FLOW_BRANCH))

enum {
	LONGEST = 16, /* bytes that may be looked at */
	VEX_2 = 0xc5,
	VEX_3 = 0xc4,
	OPCODE_MOV_LOAD = 0x8b,
	OPCODE_LEA = 0x8d,
	GROUP_ARITHMETIC_Z = 0,
	GROUP_TEST_8,
	GROUP_TEST_Z,
	GROUP_INCREMENT,
	GROUP_FF,
	GROUP_BIT_TEST,
	GROUP_MOVE_8,
	GROUP_MOVE_Z,
};

/* The row of a two-operand operation: r/m and register both ways, then al and eax with an
 * immediate. */
#define ARITHMETIC(first, immediate)                          \
	[(first)] = SIZED | MODRM, [(first) + 1] = SIZED | MODRM, \
	[(first) + 2] = SIZED | MODRM, [(first) + 3] = SIZED | MODRM, \
	[(first) + 4] = SIZED | IMM_8, [(first) + 5] = SIZED | IMM_Z | (immediate)

__extension__ static const uint32_t one_byte[256] = {
	ARITHMETIC(0x00, PASSED_ON), /* add */
	ARITHMETIC(0x08, PASSED_ON), /* or */
	ARITHMETIC(0x10, PASSED_ON), /* adc */
	ARITHMETIC(0x18, PASSED_ON), /* sbb */
	ARITHMETIC(0x20, 0),         /* and */
	ARITHMETIC(0x28, 0),         /* sub */
	ARITHMETIC(0x30, PASSED_ON), /* xor */
	ARITHMETIC(0x38, 0),         /* cmp */
	[0x50 ... 0x5f] = SIZED,     /* push, pop */
	[0x63] = SIZED | MODRM | READS_ENTRY, /* movsxd */
	[0x68] = P | IMM_Z | PASSED_ON,       /* push */
	[0x69] = SIZED | MODRM | IMM_Z,       /* imul */
	[0x6a] = P | IMM_8,
	[0x6b] = SIZED | MODRM | IMM_8,
	[0x70 ... 0x7f] = BRANCH | IMM_8,
	[0x80] = SIZED | MODRM | IMM_8,
	[0x81] = SIZED | MODRM | GROUP(GROUP_ARITHMETIC_Z),
	[0x83] = SIZED | MODRM | IMM_8,
	[0x84 ... 0x8a] = SIZED | MODRM, /* test, xchg, mov */
	[OPCODE_MOV_LOAD] = SIZED | MODRM | READS_ENTRY,
	[OPCODE_LEA] = SIZED | MODRM | MEMORY_ONLY,
	[0x90] = SIZED | PADS | PLAIN,
	[0x91 ... 0x97] = SIZED,      /* xchg */
	[0x98 ... 0x99] = SIZED,      /* cdqe, cqo */
	[0xa4 ... 0xa7] = REPEATED,   /* movs, cmps */
	[0xa8] = SIZED | IMM_8,
	[0xa9] = SIZED | IMM_Z,       /* test */
	[0xaa ... 0xaf] = REPEATED,   /* stos, lods, scas */
	[0xb0 ... 0xb7] = SIZED | IMM_8,
	[0xb8 ... 0xbf] = SIZED | IMM_V | PASSED_ON, /* mov */
	[0xc0 ... 0xc1] = SIZED | MODRM | IMM_8,     /* shifts */
	[0xc2] = P | IMM_16 | FLOW(FLOW_RETURN),
	[0xc3] = P | PF3 | FLOW(FLOW_RETURN),
	[0xc6] = SIZED | MODRM | GROUP(GROUP_MOVE_8),
	[0xc7] = SIZED | MODRM | GROUP(GROUP_MOVE_Z),
	[0xc9] = P, /* leave */
	[0xcc] = P | PADS | PLAIN | FLOW(FLOW_STOP),
	[0xd0 ... 0xd3] = SIZED | MODRM, /* shifts */
	[0xd8] = P | MODRM,              /* x87, the two rows without exceptions */
	[0xdc] = P | MODRM,
	[0xe8] = P | RELATIVE | IMM_Z | FLOW(FLOW_CALL),
	[0xe9] = P | RELATIVE | IMM_Z | FLOW(FLOW_JUMP),
	[0xeb] = P | RELATIVE | IMM_8 | FLOW(FLOW_JUMP),
	[0xf6] = SIZED | MODRM | GROUP(GROUP_TEST_8),
	[0xf7] = SIZED | MODRM | GROUP(GROUP_TEST_Z),
	[0xfe] = SIZED | MODRM | GROUP(GROUP_INCREMENT),
	[0xff] = SIZED | MODRM | GROUP(GROUP_FF),
};

/* Opcodes behind 0F. */
__extension__ static const uint32_t two_byte[256] = {
	[0x10 ... 0x11] = REPEATED | MODRM, /* movups and its like */
	[0x12] = P | PF3 | PF2 | MODRM,
	[0x13] = SIZED | MODRM | MEMORY_ONLY,
	[0x14 ... 0x15] = SIZED | MODRM,
	[0x16] = P | PF3 | MODRM,
	[0x17] = SIZED | MODRM | MEMORY_ONLY,
	[0x1f] = SIZED | MODRM | PADS, /* nop */
	[0x28 ... 0x29] = SIZED | MODRM, /* movaps */
	[0x2a] = REPEATED | MODRM,       /* conversions */
	[0x2c ... 0x2d] = REPEATED | MODRM,
	[0x2e ... 0x2f] = SIZED | MODRM,
	[0x40 ... 0x4f] = SIZED | MODRM, /* cmovcc */
	[0x51] = REPEATED | MODRM,
	[0x52 ... 0x53] = P | PF3 | MODRM,
	[0x54 ... 0x57] = SIZED | MODRM,
	[0x58 ... 0x5a] = REPEATED | MODRM,
	[0x5b] = P | P66 | PF3 | MODRM,
	[0x5c ... 0x5f] = REPEATED | MODRM,
	[0x60 ... 0x6b] = SIZED | MODRM,
	[0x6c ... 0x6d] = P66 | MODRM,
	[0x6e] = SIZED | MODRM,
	[0x6f] = P | P66 | PF3 | MODRM,
	[0x70] = REPEATED | MODRM | IMM_8,
	[0x74 ... 0x76] = SIZED | MODRM,
	[0x7e ... 0x7f] = P | P66 | PF3 | MODRM,
	[0x80 ... 0x8f] = BRANCH | IMM_Z,
	[0x90 ... 0x9f] = SIZED | MODRM, /* setcc */
	[0xa3] = SIZED | MODRM,          /* bt */
	[0xa4] = SIZED | MODRM | IMM_8,  /* shld */
	[0xa5] = SIZED | MODRM,
	[0xab] = SIZED | MODRM,
	[0xac] = SIZED | MODRM | IMM_8,
	[0xad] = SIZED | MODRM,
	[0xaf] = SIZED | MODRM, /* imul */
	[0xb0 ... 0xb1] = SIZED | MODRM,
	[0xb3] = SIZED | MODRM,
	[0xb6 ... 0xb7] = SIZED | MODRM, /* movzx */
	[0xb8] = PF3 | MODRM,            /* popcnt */
	[0xba] = SIZED | MODRM | GROUP(GROUP_BIT_TEST),
	[0xbb] = SIZED | MODRM,
	[0xbc ... 0xbd] = P | P66 | PF3 | MODRM, /* bsf, bsr, tzcnt, lzcnt */
	[0xbe ... 0xbf] = SIZED | MODRM,         /* movsx */
	[0xc0 ... 0xc1] = SIZED | MODRM,         /* xadd */
	[0xc2] = REPEATED | MODRM | IMM_8,       /* cmpps */
	[0xc4] = SIZED | MODRM | IMM_8,
	[0xc5] = SIZED | MODRM | REGISTER_ONLY | IMM_8,
	[0xc6] = SIZED | MODRM | IMM_8,
	[0xc8 ... 0xcf] = SIZED, /* bswap */
	[0xd1 ... 0xd5] = SIZED | MODRM,
	[0xd6] = P66 | MODRM,
	[0xd7] = SIZED | MODRM | REGISTER_ONLY,
	[0xd8 ... 0xe5] = SIZED | MODRM,
	[0xe6] = P66 | PF3 | PF2 | MODRM,
	[0xe7] = SIZED | MODRM | MEMORY_ONLY,
	[0xe8 ... 0xef] = SIZED | MODRM,
	[0xf1 ... 0xf6] = SIZED | MODRM,
	[0xf8 ... 0xfe] = SIZED | MODRM,
};

/* Opcodes behind a VEX prefix, by map; the prefixes are what VEX.pp stands for.  Vector
 * length and VEX.W may be anything. */
__extension__ static const uint32_t vex_rows[3][256] = {
	{
		[0x10 ... 0x11] = REPEATED | MODRM | NO_VVVV, /* vmovups and its like */
		[0x12] = PF3 | PF2 | MODRM | NO_VVVV,
		[0x14 ... 0x15] = SIZED | MODRM,
		[0x16] = PF3 | MODRM | NO_VVVV,
		[0x28 ... 0x29] = SIZED | MODRM | NO_VVVV, /* vmovaps */
		[0x2a] = PF3 | PF2 | MODRM,
		[0x2c ... 0x2d] = PF3 | PF2 | MODRM | NO_VVVV,
		[0x2e ... 0x2f] = SIZED | MODRM | NO_VVVV,
		[0x51] = REPEATED | MODRM | NO_VVVV,
		[0x54 ... 0x57] = SIZED | MODRM,
		[0x58 ... 0x59] = REPEATED | MODRM,
		[0x5a] = REPEATED | MODRM | NO_VVVV,
		[0x5b] = P | P66 | PF3 | MODRM | NO_VVVV,
		[0x5c ... 0x5f] = REPEATED | MODRM,
		[0x60 ... 0x6d] = P66 | MODRM,
		[0x6f] = P66 | PF3 | MODRM | NO_VVVV,
		[0x70] = P66 | PF3 | PF2 | MODRM | IMM_8 | NO_VVVV,
		[0x74 ... 0x76] = P66 | MODRM,
		[0x77] = P | NO_VVVV, /* vzeroupper */
		[0x7c ... 0x7d] = P66 | PF2 | MODRM,
		[0x7f] = P66 | PF3 | MODRM | NO_VVVV,
		[0xc2] = REPEATED | MODRM | IMM_8,
		[0xc6] = SIZED | MODRM | IMM_8,
		[0xd0] = P66 | PF2 | MODRM,
		[0xd1 ... 0xd5] = P66 | MODRM,
		[0xd8 ... 0xe5] = P66 | MODRM,
		[0xe6] = P66 | PF3 | PF2 | MODRM | NO_VVVV,
		[0xe8 ... 0xef] = P66 | MODRM,
		[0xf1 ... 0xf6] = P66 | MODRM,
		[0xf8 ... 0xfe] = P66 | MODRM,
	},
	{
		[0x00 ... 0x0b] = P66 | MODRM,
		[0x17] = P66 | MODRM | NO_VVVV,
		[0x1c ... 0x1e] = P66 | MODRM | NO_VVVV,
		[0x20 ... 0x25] = P66 | MODRM | NO_VVVV,
		[0x28 ... 0x29] = P66 | MODRM,
		[0x2b] = P66 | MODRM,
		[0x30 ... 0x35] = P66 | MODRM | NO_VVVV,
		[0x37 ... 0x40] = P66 | MODRM,
		[0x45] = P66 | MODRM,
		[0x47] = P66 | MODRM,
		[0x96 ... 0x9f] = P66 | MODRM, /* vfmadd132ps and its like */
		[0xa6 ... 0xaf] = P66 | MODRM,
		[0xb6 ... 0xbf] = P66 | MODRM,
	},
	{
		[0x08 ... 0x09] = P66 | MODRM | IMM_8 | NO_VVVV,
		[0x0a ... 0x0f] = P66 | MODRM | IMM_8,
		[0x42] = P66 | MODRM | IMM_8,
	},
};

/* What an opcode means by bits 3 to 5 of its ModRM byte; 0: left to Zydis. */
static const uint32_t groups[][8] = {
	[GROUP_ARITHMETIC_Z] = {
		SIZED | IMM_Z | PASSED_ON, SIZED | IMM_Z | PASSED_ON, /* add, or */
		SIZED | IMM_Z | PASSED_ON, SIZED | IMM_Z | PASSED_ON, /* adc, sbb */
		SIZED | IMM_Z, SIZED | IMM_Z,                         /* and, sub */
		SIZED | IMM_Z | PASSED_ON, SIZED | IMM_Z,             /* xor, cmp */
	},
	[GROUP_TEST_8] = {SIZED | IMM_8, SIZED | IMM_8, SIZED, SIZED,
			  SIZED, SIZED, SIZED, SIZED},
	[GROUP_TEST_Z] = {SIZED | IMM_Z, SIZED | IMM_Z, SIZED, SIZED,
			  SIZED, SIZED, SIZED, SIZED},
	[GROUP_INCREMENT] = {SIZED, SIZED},
	[GROUP_FF] = {
		[0] = SIZED, [1] = SIZED, /* inc, dec */
		[2] = P | FLOW(FLOW_CALL_INDIRECT),
		[4] = P | FLOW(FLOW_JUMP_INDIRECT),
		[6] = P, /* push */
	},
	[GROUP_BIT_TEST] = {[4] = SIZED | IMM_8, [5] = SIZED | IMM_8, [6] = SIZED | IMM_8,
			    [7] = SIZED | IMM_8},
	[GROUP_MOVE_8] = {SIZED | IMM_8},
	[GROUP_MOVE_Z] = {SIZED | IMM_Z | PASSED_ON},
};

/* VEX prefix and opcode (Intel SDM volume 2, 2.3.5); false when the maps do not have
 * them. */
static inline bool take_vex(struct opcode_parts *p)
{
	bool three = p->bytes[0] == VEX_3;
	uint8_t map = three ? p->bytes[1] & 0x1f : 1, last = p->bytes[three ? 2 : 1];
	uint8_t under = 1 << (last & 3);

	if (map < 1 || map > 3)
		return false;
	p->vex = true;
	p->at = three ? 3 : 2;
	p->opcode = p->bytes[p->at++];
	p->modrm = p->bytes[p->at];
	p->row = vex_rows[map - 1][p->opcode];
	return (p->row & under) && (!(p->row & NO_VVVV) || (last & 0x78) == 0x78);
}

/* Prefixes and opcode; false when the maps do not have them. */
static inline bool take_opcode(struct opcode_parts *p)
{
	uint8_t byte = p->bytes[0], under = P;
	uint32_t row;

	if (byte == VEX_2 || byte == VEX_3)
		return take_vex(p);
	if (byte == PREFIX_SIZE || byte == 0xf3 || byte == 0xf2) {
		under = byte == PREFIX_SIZE ? P66 : byte == 0xf3 ? PF3 : PF2;
		p->prefix = byte;
		p->at = 1;
		byte = p->bytes[1];
	}
	if ((byte & 0xf0) == 0x40) {
		p->rex = byte;
		byte = p->bytes[++p->at];
	}
	p->at++;
	p->two_bytes = byte == 0x0f;
	if (p->two_bytes)
		byte = p->bytes[p->at++];
	p->opcode = byte;
	row = p->two_bytes ? two_byte[byte] : one_byte[byte];
	p->modrm = p->bytes[p->at];
	if (row >> GROUP_SHIFT) {
		uint32_t by_reg = groups[(row >> GROUP_SHIFT) - 1][p->modrm >> 3 & 7];

		row = by_reg ? MODRM | by_reg : 0;
	}
	p->row = row;
	return (row & under) && !((row & PLAIN) && p->rex);
}

static bool is_opcode(const struct opcode_parts *p, uint8_t opcode)
{
	return p->opcode == opcode && !p->two_bytes && !p->vex;
}

/* ModRM, SIB and displacement (Intel SDM volume 2, tables 2-2 and 2-3). */
static inline bool take_operands(struct opcode_parts *p, struct insn *insn)
{
	uint8_t mod = p->modrm >> 6, base = p->modrm & 7;
	bool relative = mod == 0 && base == 5;
	uint8_t size = mod == 1 ? 1 : mod == 2 || relative ? 4 : 0;

	p->at++;
	if (mod == 3)
		return !(p->row & MEMORY_ONLY);
	if (p->row & REGISTER_ONLY)
		return false;
	if (base == 4) {
		p->sib = p->bytes[p->at++];
		base = p->sib & 7;
		if (mod == 0 && base == 5)
			size = 4;
	}
	if (size == 4)
		p->displacement = (int32_t)load_u32(p->bytes + p->at);
	else if (size == 1)
		p->displacement = (int8_t)p->bytes[p->at];
	if (relative) {
		insn->field = is_opcode(p, OPCODE_LEA) ? FIELD_ADDRESS : FIELD_MEMORY;
		insn->field_offset = p->at;
		insn->field_size = 4;
		insn->relative = p->displacement;
	} else if (size == 4) {
		insn->constants[0] = (uint64_t)p->displacement;
		insn->constant_count = 1;
		insn->displacement_offset = p->at;
	}
	p->at += size;
	if (p->row & READS_ENTRY)
		insn->loads_entry = !is_opcode(p, OPCODE_MOV_LOAD) || !(p->rex & REX_W);
	/* rsp or rbp as a base; REX.B makes others of them. */
	if (insn->flow == FLOW_JUMP_INDIRECT && !(p->rex & REX_B))
		insn->jump_computed = base == 4 || (base == 5 && mod != 0);
	return true;
}

static inline uint8_t immediate_size(const struct opcode_parts *p)
{
	if (p->row & IMM_8)
		return 1;
	if (p->row & IMM_16)
		return 2;
	if ((p->row & IMM_V) && (p->rex & REX_W))
		return 8;
	if (p->row & (IMM_Z | IMM_V))
		return p->prefix == PREFIX_SIZE && !(p->rex & REX_W) ? 2 : 4;
	return 0;
}

static inline int64_t load_signed(const uint8_t *bytes, uint8_t size)
{
	switch (size) {
	case 1:
		return (int8_t)bytes[0];
	case 2:
		return (int16_t)load_u16(bytes);
	case 4:
		return (int32_t)load_u32(bytes);
	case 8:
		return (int64_t)load_u64(bytes);
	default:
		return 0;
	}
}

static inline void take_immediate(struct opcode_parts *p, struct insn *insn)
{
	uint8_t size = immediate_size(p);

	p->immediate_size = size;
	p->immediate = load_signed(p->bytes + p->at, size);
	if (p->row & RELATIVE) {
		insn->field = FIELD_BRANCH;
		insn->field_offset = p->at;
		insn->field_size = size;
		insn->relative = (int32_t)p->immediate;
	} else if ((p->row & PASSED_ON) && size >= 4) {
		/* Before the displacement. */
		insn->constants[1] = insn->constants[0];
		insn->constants[0] = (uint64_t)p->immediate;
		insn->constant_count++;
	}
	p->at += size;
}

/* Takes the instruction at p->bytes, of which LONGEST may be looked at. */
static inline bool take(struct opcode_parts *p, struct insn *insn)
{
	if (!take_opcode(p))
		return false;
	*insn = (struct insn){.flow = p->row >> FLOW_SHIFT & 7,
			      .padding = (p->row & PADS) != 0,
			      .unlikely = p->bytes[0] == 0 && p->bytes[1] == 0};
	if (insn->flow == FLOW_JUMP_INDIRECT) {
		insn->tail_call = (p->rex & REX_W) != 0;
		insn->jump_computed = p->modrm >> 6 == 3;
	}
	if ((p->row & MODRM) && !take_operands(p, insn))
		return false;
	take_immediate(p, insn);
	if (insn->flow == FLOW_JUMP_INDIRECT || insn->flow == FLOW_CALL_INDIRECT)
		insn->jump_memory = insn->field == FIELD_MEMORY;
	insn->length = p->at;
	return true;
}

/* At the end of the code: zeros stand for what is not there. */
static bool take_short(const uint8_t *bytes, size_t size, struct opcode_parts *parts,
		       struct insn *insn)
{
	uint8_t copy[LONGEST] = {0};

	memcpy(copy, bytes, size);
	*parts = (struct opcode_parts){.bytes = copy};
	return take(parts, insn) && insn->length <= size;
}

bool opcode_map_take(const uint8_t *bytes, size_t size, struct opcode_parts *ret_parts,
		     struct insn *ret_insn)
{
	if (size < LONGEST)
		return take_short(bytes, size, ret_parts, ret_insn);
	*ret_parts = (struct opcode_parts){.bytes = bytes};
	return take(ret_parts, ret_insn);
}

bool opcode_map_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	struct opcode_parts parts = {.bytes = bytes};

	if (size < LONGEST)
		return take_short(bytes, size, &parts, ret_insn);
	return take(&parts, ret_insn);
}
