/* Decoding by Zydis, cut down to what moving code needs.
 *
 * Most instructions are only asked for their length, their control flow and
 * their PC-relative field.  Zydis gives these without its costly operand pass, so
 * zydis_insn_decode stays at that (the raw fields: Zydis/DecoderTypes.h,
 * ZydisDecodedInstructionRaw).  A PC-relative field is either a relative
 * immediate or a 32-bit displacement under ModRM mod 0, rm 5 (Intel SDM volume
 * 2, 2.2.1.6 "RIP-Relative Addressing").
 */
#include "decode/zydis_insn.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <string.h>

#include "decode/vex_length.h"

static void decoder_init(ZydisDecoder *decoder)
{
	ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Whether Zydis has no such instruction, rather than a bad form of one that it has. */
static bool is_unknown(ZyanStatus status)
{
	return status == ZYDIS_STATUS_DECODING_ERROR;
}

static bool is_rip_relative(const ZydisDecodedInstruction *zi)
{
	return (zi->attributes & ZYDIS_ATTRIB_HAS_MODRM) && zi->raw.modrm.mod == 0 &&
	       zi->raw.modrm.rm == 5 && zi->raw.disp.size == 32;
}

/* Intel SDM volume 2, "INT n/INTO/INT3/INT1"; int 29h is Windows' fail-fast. */
static bool stops(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return true;
	case ZYDIS_MNEMONIC_INT:
		return zi->raw.imm[0].value.u == 0x29;
	default:
		return false;
	}
}

static enum insn_flow flow_of(const ZydisDecodedInstruction *zi)
{
	bool direct = zi->raw.imm[0].is_relative;

	switch (zi->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return direct ? FLOW_CALL : FLOW_CALL_INDIRECT;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return direct ? FLOW_JUMP : FLOW_JUMP_INDIRECT;
	case ZYDIS_CATEGORY_RET:
		return FLOW_RETURN;
	default:
		if (direct)
			return FLOW_BRANCH;
		return stops(zi) ? FLOW_STOP : FLOW_NEXT;
	}
}

static void find_field(const ZydisDecodedInstruction *zi, struct insn *insn)
{
	if (zi->raw.imm[0].is_relative) {
		insn->field = FIELD_BRANCH;
		insn->field_offset = zi->raw.imm[0].offset;
		insn->field_size = (uint8_t)(zi->raw.imm[0].size / 8);
		insn->relative = (int32_t)zi->raw.imm[0].value.s;
	} else if (is_rip_relative(zi)) {
		insn->field =
			zi->mnemonic == ZYDIS_MNEMONIC_LEA ? FIELD_ADDRESS : FIELD_MEMORY;
		insn->field_offset = zi->raw.disp.offset;
		insn->field_size = 4;
		insn->relative = (int32_t)zi->raw.disp.value;
	}
}

/* Whether the instruction's immediate can end up as a part of an address: moved,
 * pushed, or added.  A mask, a bound, a factor or a subtrahend cannot. */
static bool passes_immediate_on(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_TEST:
		return false;
	default:
		return true;
	}
}

/* Immediates and displacements of 32 bits and more that are not PC-relative:
 * they may be addresses in disguise. */
static void find_constants(const ZydisDecodedInstruction *zi, struct insn *insn)
{
	if (zi->raw.imm[0].size >= 32 && !zi->raw.imm[0].is_relative &&
	    passes_immediate_on(zi))
		insn->constants[insn->constant_count++] = zi->raw.imm[0].value.u;
	if (zi->raw.disp.size >= 32 && !is_rip_relative(zi)) {
		insn->constants[insn->constant_count++] = (uint64_t)zi->raw.disp.value;
		if (zi->raw.disp.size == 32)
			insn->displacement_offset = zi->raw.disp.offset;
	}
}

/* Cheap, and wide: not all of these read jump tables, but all reads of tables that
 * value_flow.h knows are among them. */
static bool loads_entry(const ZydisDecodedInstruction *zi)
{
	if (!(zi->attributes & ZYDIS_ATTRIB_HAS_MODRM) || zi->raw.modrm.mod == 3)
		return false;
	return zi->mnemonic == ZYDIS_MNEMONIC_MOVSXD ||
	       (zi->mnemonic == ZYDIS_MNEMONIC_MOV && zi->opcode == 0x8b && !zi->raw.rex.W);
}

static bool is_unlikely(const ZydisDecodedInstruction *zi, const uint8_t *bytes)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	default:
		return zi->meta.category == ZYDIS_CATEGORY_IO ||
		       zi->meta.category == ZYDIS_CATEGORY_IOSTRINGOP ||
		       zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
		       (zi->length == 2 && bytes[0] == 0 && bytes[1] == 0);
	}
}

/* Whether the memory operand has rsp or rbp for a base (Intel SDM volume 2, tables 2-2
 * and 2-3). */
static bool is_frame_based(const ZydisDecodedInstruction *zi)
{
	uint8_t base = zi->raw.modrm.rm;

	if (zi->raw.modrm.mod == 3 || zi->raw.rex.B)
		return false;
	if (base == 4)
		base = zi->raw.sib.base;
	return base == 4 || (base == 5 && zi->raw.modrm.mod != 0);
}

static void fill_insn(const ZydisDecodedInstruction *zi, const uint8_t *bytes,
		      struct insn *insn)
{
	memset(insn, 0, sizeof(*insn));
	insn->length = zi->length;
	insn->flow = (uint8_t)flow_of(zi);
	insn->padding = zi->mnemonic == ZYDIS_MNEMONIC_INT3 ||
			(zi->mnemonic == ZYDIS_MNEMONIC_NOP && zi->raw.imm[0].size == 0) ||
			(zi->length == 2 && bytes[0] == 0x66 && bytes[1] == 0x90);
	find_field(zi, insn);
	find_constants(zi, insn);
	insn->loads_entry = loads_entry(zi);
	insn->unlikely = is_unlikely(zi, bytes);
	if (insn->flow == FLOW_JUMP_INDIRECT) {
		insn->tail_call = zi->raw.rex.W;
		insn->jump_computed = zi->raw.modrm.mod == 3 || is_frame_based(zi);
	}
	if (insn->flow == FLOW_JUMP_INDIRECT || insn->flow == FLOW_CALL_INDIRECT)
		insn->jump_memory = insn->field == FIELD_MEMORY;
}

bool zydis_insn_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	ZydisDecodedInstruction zi;
	ZydisDecoder decoder;
	ZyanStatus status;

	decoder_init(&decoder);
	/* Leaves out what only operands need (observed: Zydis 4.0). */
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &zi);
	if (!ZYAN_SUCCESS(status))
		return is_unknown(status) && vex_length_decode(bytes, size, ret_insn);
	fill_insn(&zi, bytes, ret_insn);
	return true;
}

static uint8_t register_number(ZydisRegister reg)
{
	ZydisRegister whole;

	if (reg == ZYDIS_REGISTER_RIP)
		return REGISTER_RIP;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return REGISTER_NONE;
	return (uint8_t)ZydisRegisterGetId(whole);
}

static bool is_high_byte(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

/* Whether general registers and the displacement give the whole address. */
static bool is_plain_place(const ZydisDecodedOperand *zo)
{
	return zo->mem.segment != ZYDIS_REGISTER_FS &&
	       zo->mem.segment != ZYDIS_REGISTER_GS &&
	       (zo->mem.index == ZYDIS_REGISTER_NONE ||
		register_number(zo->mem.index) != REGISTER_NONE);
}

static void describe_operand(const ZydisDecodedOperand *zo, struct operand *operand)
{
	memset(operand, 0, sizeof(*operand));
	operand->size = (uint8_t)(zo->size / 8 <= 64 ? zo->size / 8 : 0);
	operand->reg = operand->base = operand->index = REGISTER_NONE;
	switch (zo->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		operand->kind = OPERAND_REGISTER;
		if (!is_high_byte(zo->reg.value))
			operand->reg = register_number(zo->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		operand->kind = OPERAND_MEMORY;
		if (!is_plain_place(zo))
			break;
		operand->base = register_number(zo->mem.base);
		operand->index = register_number(zo->mem.index);
		operand->scale = zo->mem.scale;
		operand->value = zo->mem.disp.value;
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		operand->kind = OPERAND_CONSTANT;
		operand->value = zo->imm.value.s;
		break;
	default:
		break;
	}
}

static enum insn_op op_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return OP_MOVE;
	case ZYDIS_MNEMONIC_MOVZX:
		return OP_ZERO_EXTEND;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CDQE:
		return OP_SIGN_EXTEND;
	case ZYDIS_MNEMONIC_LEA:
		return OP_LEA;
	case ZYDIS_MNEMONIC_ADD:
		return OP_ADD;
	case ZYDIS_MNEMONIC_SUB:
		return OP_SUBTRACT;
	case ZYDIS_MNEMONIC_AND:
		return OP_AND;
	case ZYDIS_MNEMONIC_SHL:
		return OP_SHIFT_LEFT;
	case ZYDIS_MNEMONIC_CMP:
		return OP_COMPARE;
	case ZYDIS_MNEMONIC_PUSH:
		return OP_PUSH;
	case ZYDIS_MNEMONIC_POP:
		return OP_POP;
	default:
		return OP_OTHER;
	}
}

static enum insn_condition condition_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
		return CONDITION_ABOVE;
	case ZYDIS_MNEMONIC_JNB:
		return CONDITION_ABOVE_EQUAL;
	case ZYDIS_MNEMONIC_JB:
		return CONDITION_BELOW;
	case ZYDIS_MNEMONIC_JBE:
		return CONDITION_BELOW_EQUAL;
	case ZYDIS_MNEMONIC_JZ:
		return CONDITION_EQUAL;
	case ZYDIS_MNEMONIC_JNZ:
		return CONDITION_NOT_EQUAL;
	default:
		return CONDITION_OTHER;
	}
}

/* General registers that any operand, explicit or not, changes. */
static uint16_t written_registers(const ZydisDecodedInstruction *zi,
				  const ZydisDecodedOperand *operands)
{
	uint16_t written = 0;

	for (unsigned i = 0; i < zi->operand_count; i++) {
		uint8_t reg;

		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = register_number(operands[i].reg.value);
		if (reg < REGISTER_COUNT)
			written |= (uint16_t)(1u << reg);
	}
	return written;
}

static enum insn_store store_of(const ZydisDecodedInstruction *zi,
				const ZydisDecodedOperand *operands)
{
	enum insn_store store = STORE_NONE;

	if (zi->meta.category == ZYDIS_CATEGORY_CALL || zi->mnemonic == ZYDIS_MNEMONIC_PUSH)
		return STORE_NONE;
	for (unsigned i = 0; i < zi->operand_count; i++) {
		if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (i > 0 || operands[i].visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
		    operands[i].size == 0 || operands[i].size / 8 > 64)
			return STORE_OTHER;
		store = STORE_TARGET;
	}
	return store;
}

/* Of an instruction that only its length is known of: it may change whatever it likes,
 * but for the stack pointer, which no such instruction has for an operand to write. */
static void describe_unknown(struct insn_detail *detail)
{
	detail->op = OP_OTHER;
	detail->written = (uint16_t)~(1u << REGISTER_RSP);
	detail->store = STORE_OTHER;
	detail->changes_flags = true;
}

bool zydis_insn_describe(const uint8_t *bytes, size_t size, struct insn *ret_insn,
			 struct insn_detail *ret_detail)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction zi;
	ZydisDecoder decoder;
	unsigned explicit_count;
	ZyanStatus status;

	memset(ret_detail, 0, sizeof(*ret_detail));
	decoder_init(&decoder);
	status = ZydisDecoderDecodeFull(&decoder, bytes, size, &zi, operands);
	if (!ZYAN_SUCCESS(status)) {
		describe_unknown(ret_detail);
		return is_unknown(status) && vex_length_decode(bytes, size, ret_insn);
	}
	fill_insn(&zi, bytes, ret_insn);
	ret_detail->op = (uint8_t)op_of(zi.mnemonic);
	if (zi.meta.category == ZYDIS_CATEGORY_CMOV)
		ret_detail->op = OP_CONDITIONAL_MOVE;
	ret_detail->condition = (uint8_t)condition_of(zi.mnemonic);
	ret_detail->written = written_registers(&zi, operands);
	ret_detail->store = (uint8_t)store_of(&zi, operands);
	ret_detail->changes_flags =
		zi.cpu_flags && (zi.cpu_flags->modified | zi.cpu_flags->set_0 |
				 zi.cpu_flags->set_1 | zi.cpu_flags->undefined);
	/* cdqe names its registers only implicitly: rax, then eax. */
	explicit_count = zi.mnemonic == ZYDIS_MNEMONIC_CDQE ? 2 : zi.operand_count_visible;
	if (explicit_count > 0)
		describe_operand(&operands[0], &ret_detail->target);
	if (explicit_count > 1)
		describe_operand(&operands[1], &ret_detail->source);
	if (explicit_count > 2)
		ret_detail->op = OP_OTHER;
	return true;
}

struct decode_version decode_version(void)
{
	ZyanU64 loaded = ZydisGetVersion();
	struct decode_version version;

	_Static_assert(ZYDIS_VERSION >> 48 == 4, "written against Zydis 4");
	snprintf(version.text, sizeof(version.text), "%u.%u.%u",
		 ZYDIS_VERSION_MAJOR(loaded), ZYDIS_VERSION_MINOR(loaded),
		 ZYDIS_VERSION_PATCH(loaded));
	return version;
}
