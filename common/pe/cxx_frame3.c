/* Sources: LLVM's WinException.cpp for what it emits, and the observed data of
 * MSVC 2005 to 2022, rustc and clang 14.
 */
#include "pe/cxx_frame3.h"

enum {
	MAGIC_MASK = 0x1fffffff,
	MAGIC_FIRST = 0x19930520,
	MAGIC_LAST = 0x19930522,
	TYPE_LIST_BYTES = 8,
};

/* Notes an array; false when it is not in the file's data. */
static bool find_rows(const struct image *image, uint32_t count, struct rva rva,
		      uint32_t stride, struct frame3_rows *ret_rows)
{
	*ret_rows = (struct frame3_rows){.rva = rva, .count = count};
	if (count == 0)
		return true;
	if (count > UINT32_MAX / stride)
		return false;
	ret_rows->bytes = image_bytes(image, rva, count * stride);
	return ret_rows->bytes && image_section_at(image, rva);
}

static bool find_types(const struct image *image, struct cxx_frame3 *frame)
{
	const uint8_t *list;

	if (frame->type_list.v == 0)
		return true;
	list = image_bytes(image, frame->type_list, TYPE_LIST_BYTES);
	return list && find_rows(image, load_u32(list), rva_of(load_u32(list + 4)),
				 FRAME3_CATCH_BYTES, &frame->types);
}

enum status cxx_frame3_read(const struct image *image, struct rva rva,
			    struct cxx_frame3 *ret_frame, struct diag *diag)
{
	struct reader r = image_reader(image, rva);
	struct cxx_frame3 frame = {.rva = rva, .magic = read_u32(&r) & MAGIC_MASK};
	uint32_t state_count = read_u32(&r), try_count, ip_count;
	struct rva unwinds = rva_of(read_u32(&r)), tries, states;

	try_count = read_u32(&r);
	tries = rva_of(read_u32(&r));
	ip_count = read_u32(&r);
	states = rva_of(read_u32(&r));
	read_skip(&r, 4);
	if (frame.magic > MAGIC_FIRST)
		frame.type_list = rva_of(read_u32(&r));
	if (frame.magic == MAGIC_LAST)
		frame.flags = read_u32(&r);
	frame.size = (uint32_t)r.pos;
	if (r.failed || frame.magic < MAGIC_FIRST || frame.magic > MAGIC_LAST)
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "no exception data of a C++ function");
	if (state_count > INT32_MAX ||
	    !find_rows(image, state_count, unwinds, FRAME3_UNWIND_BYTES, &frame.unwinds) ||
	    !find_rows(image, try_count, tries, FRAME3_TRY_BYTES, &frame.tries) ||
	    !find_rows(image, ip_count, states, FRAME3_STATE_BYTES, &frame.states) ||
	    !find_types(image, &frame))
		return diag_fail_at(
			diag, STATUS_MALFORMED, rva,
			"exception data of a C++ function leaves the file's data");
	*ret_frame = frame;
	return STATUS_OK;
}

struct frame3_unwind frame3_unwind_at(const struct cxx_frame3 *frame, uint32_t index)
{
	uint32_t at = index * FRAME3_UNWIND_BYTES;
	const uint8_t *p = frame->unwinds.bytes + at;

	return (struct frame3_unwind){
		.next = (int32_t)load_u32(p),
		.action = rva_of(load_u32(p + 4)),
		.site = rva_add(frame->unwinds.rva, at + 4),
	};
}

bool frame3_try_at(const struct image *image, const struct cxx_frame3 *frame,
		   uint32_t index, struct frame3_try *ret_try)
{
	const uint8_t *p = frame->tries.bytes + (size_t)index * FRAME3_TRY_BYTES;

	ret_try->low = (int32_t)load_u32(p);
	ret_try->high = (int32_t)load_u32(p + 4);
	ret_try->catch_high = (int32_t)load_u32(p + 8);
	return find_rows(image, load_u32(p + 12), rva_of(load_u32(p + 16)),
			 FRAME3_CATCH_BYTES, &ret_try->catches);
}

struct frame3_catch frame3_catch_at(const struct frame3_rows *catches, uint32_t index)
{
	uint32_t at = index * FRAME3_CATCH_BYTES;
	const uint8_t *p = catches->bytes + at;

	return (struct frame3_catch){
		.adjectives = load_u32(p),
		.type = rva_of(load_u32(p + 4)),
		.funclet = rva_of(load_u32(p + 12)),
		.site = rva_add(catches->rva, at + 12),
	};
}

struct frame3_state frame3_state_at(const struct cxx_frame3 *frame, uint32_t index)
{
	const uint8_t *p = frame->states.bytes + (size_t)index * FRAME3_STATE_BYTES;

	return (struct frame3_state){rva_of(load_u32(p)), (int32_t)load_u32(p + 4)};
}
