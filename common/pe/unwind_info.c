/* The function table is what the system's unwinder searches by bisection, so
 * its order is checked, and what a row leads to: the chain of unwind
 * information from every row ends after at most UNWIND_CHAIN_MAX steps.  All
 * readers behind may follow chains without a check of their own.
 */
#include "pe/unwind_info.h"

#include <string.h>

enum {
	UNWIND_FIXED_BYTES = 4,
	UNWIND_CODE_BYTES = 2,
	INDIRECT = 1, /* RUNTIME_FUNCTION_INDIRECT */
};

/* UNWIND_OP_CODES; what they push or allocate ("x64 exception handling", struct
 * UNWIND_CODE; for version 2, whose codes 6 and 7 are others: observed, MSVC 2017). */
enum {
	PUSH_NONVOL = 0,
	ALLOC_LARGE = 1,
	ALLOC_SMALL = 2,
	SET_FPREG = 3,
	SAVE_NONVOL = 4,
	SAVE_NONVOL_FAR = 5,
	EPILOG = 6,
	SPARE = 7,
	SAVE_XMM128 = 8,
	SAVE_XMM128_FAR = 9,
	PUSH_MACHFRAME = 10,
	STACK_WORD = 8,
	MACHINE_FRAME_BYTES = 40,
};

static struct runtime_function load_row(const uint8_t *p, struct rva site)
{
	return (struct runtime_function){
		.begin = rva_of(load_u32(p)),
		.end = rva_of(load_u32(p + 4)),
		.unwind = rva_of(load_u32(p + 8)),
		.site = site,
	};
}

/* Reads what stands behind the unwind codes. */
static void read_tail(struct reader *r, struct unwind_info *info)
{
	struct rva field = rva_add(info->rva, (uint32_t)r->pos);

	if (info->flags & UNWIND_CHAININFO) {
		const uint8_t *row = read_bytes(r, RUNTIME_FUNCTION_BYTES);

		if (row)
			info->chained = load_row(row, field);
	} else if (info->flags) {
		info->handler = rva_of(read_u32(r));
		info->handler_site = field;
		info->handler_data = rva_add(info->rva, (uint32_t)r->pos);
	}
}

enum status unwind_info_read(const struct image *image, struct rva rva,
			     struct unwind_info *ret_info, struct diag *diag)
{
	struct reader r = image_reader(image, rva);
	struct unwind_info info = {.rva = rva};
	uint8_t first = read_u8(&r);

	info.version = first & 7;
	info.flags = first >> 3;
	info.prolog_size = read_u8(&r);
	info.code_count = read_u8(&r);
	read_skip(&r, 1); /* frame register and offset */
	/* An even number of slots is there always. */
	read_skip(&r, (size_t)((info.code_count + 1) & ~1) * UNWIND_CODE_BYTES);
	read_tail(&r, &info);
	if (r.failed)
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "unwind information leaves the file's data");
	if (info.version != 1 && info.version != 2)
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "unwind information of version %u", info.version);
	if (info.flags > UNWIND_CHAININFO)
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "unwind information with flags 0x%x", info.flags);
	info.size = (uint32_t)r.pos;
	*ret_info = info;
	return STATUS_OK;
}

/* Follows the chain of unwind information to its end. */
static enum status check_chain(const struct image *image, struct rva unwind,
			       struct diag *diag)
{
	struct rva start = unwind;
	struct unwind_info info;

	for (uint32_t i = 0; i <= UNWIND_CHAIN_MAX; i++) {
		enum status status = unwind_info_read(image, unwind, &info, diag);

		if (status != STATUS_OK)
			return status;
		if (!(info.flags & UNWIND_CHAININFO))
			return STATUS_OK;
		if (info.chained.unwind.v & INDIRECT)
			return diag_fail_at(diag, STATUS_UNSUPPORTED, info.rva,
					    "unwind information chained to an indirect "
					    "row");
		unwind = info.chained.unwind;
	}
	return diag_fail_at(diag, STATUS_MALFORMED, start,
			    "a chain of unwind information without end");
}

/* Checks a row that stands behind one which ends at `before_end`. */
static enum status check_row(const struct image *image, const struct runtime_function *row,
			     struct rva before_end, struct diag *diag)
{
	const struct section *section = image_section_at(image, row->begin);

	if (row->begin.v < before_end.v || row->end.v < row->begin.v)
		return diag_fail_at(diag, STATUS_MALFORMED, row->site,
				    "the function table is out of order or its rows "
				    "overlap");
	if (!section || row->end.v > section_end(section).v)
		return diag_fail_at(diag, STATUS_MALFORMED, row->site,
				    "a row of the function table leaves the sections");
	if (row->unwind.v & INDIRECT)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, row->site,
				    "an indirect row of the function table");
	return check_chain(image, row->unwind, diag);
}

/* Rows without those of zeros at the end, with which some linkers pad. */
static uint32_t count_rows(const uint8_t *bytes, uint32_t size)
{
	static const uint8_t zero[RUNTIME_FUNCTION_BYTES];
	uint32_t count = size / RUNTIME_FUNCTION_BYTES;

	while (count && memcmp(bytes + (size_t)(count - 1) * RUNTIME_FUNCTION_BYTES, zero,
			       RUNTIME_FUNCTION_BYTES) == 0)
		count--;
	return count;
}

enum status function_table_read(struct image *image, struct function_table *ret_table,
				struct diag *diag)
{
	const struct data_directory *directory = &image->directories[DIRECTORY_EXCEPTION];
	const uint8_t *bytes = image_bytes(image, directory->rva, directory->size);
	struct function_table table = {0};
	struct rva end = rva_of(0);

	if (directory->rva.v == 0 || directory->size == 0) {
		*ret_table = table;
		return STATUS_OK;
	}
	if (!bytes)
		return diag_fail_at(diag, STATUS_MALFORMED, directory->rva,
				    "the function table leaves the file's data");
	table.count = count_rows(bytes, directory->size);
	table.data = arena_array(&image->arena, table.count, sizeof(*table.data));
	if (!table.data)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < table.count; i++) {
		uint32_t offset = i * RUNTIME_FUNCTION_BYTES;
		enum status status;

		table.data[i] = load_row(bytes + offset, rva_add(directory->rva, offset));
		status = check_row(image, &table.data[i], end, diag);
		if (status != STATUS_OK)
			return status;
		end = table.data[i].end;
	}
	*ret_table = table;
	return STATUS_OK;
}

/* 16-bit slots of the code at `p`, and the stack that it takes; 0 when it is none that is
 * known, or cut off by the `left` slots. */
static uint32_t slots_of(const struct unwind_info *info, const uint8_t *p, uint32_t left,
			 uint64_t *stack)
{
	uint8_t operation = p[1] & 15, operand = p[1] >> 4;
	uint32_t slots = 1;

	switch (operation) {
	case PUSH_NONVOL:
		*stack += STACK_WORD;
		break;
	case ALLOC_SMALL:
		*stack += (uint64_t)STACK_WORD * operand + STACK_WORD;
		break;
	case ALLOC_LARGE:
		slots = operand ? 3 : 2;
		if (slots <= left)
			*stack += operand ? load_u32(p + 2)
					  : (uint64_t)STACK_WORD * load_u16(p + 2);
		break;
	case PUSH_MACHFRAME:
		*stack += MACHINE_FRAME_BYTES + (operand ? STACK_WORD : 0);
		break;
	case SET_FPREG:
		break;
	case SAVE_NONVOL:
	case SAVE_XMM128:
		slots = 2;
		break;
	case SAVE_NONVOL_FAR:
	case SAVE_XMM128_FAR:
		slots = 3;
		break;
	case EPILOG:
		slots = info->version == 2 ? 1 : 0;
		break;
	case SPARE:
	default:
		slots = 0;
	}
	return slots <= left ? slots : 0;
}

enum status unwind_info_frame_size(const struct image *image,
				   const struct unwind_info *info, uint64_t *ret_size,
				   struct diag *diag)
{
	uint32_t bytes = UNWIND_CODE_BYTES * (uint32_t)info->code_count;
	const uint8_t *codes =
		image_bytes(image, rva_add(info->rva, UNWIND_FIXED_BYTES), bytes);
	uint64_t stack = 0;

	for (uint32_t i = 0; i < info->code_count;) {
		uint32_t slots =
			codes ? slots_of(info, codes + (size_t)i * UNWIND_CODE_BYTES,
					 info->code_count - i, &stack)
			      : 0;

		if (slots == 0)
			return diag_fail_at(diag, STATUS_UNSUPPORTED, info->rva,
					    "an unknown unwind code");
		i += slots;
	}
	*ret_size = stack;
	return STATUS_OK;
}
