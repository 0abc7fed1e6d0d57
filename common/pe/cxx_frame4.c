/* Sources: Microsoft's C++ team blog, "Making C++ Exception Handling Smaller On x64";
 * the rest was observed in the images of MSVC 2019 and 2022 (node.exe 18 to 22,
 * node-pty).
 */
#include "pe/cxx_frame4.h"

enum {
	HEADER_TOOL = 4,
	HEADER_UNWINDS = 8,
	HEADER_TRIES = 16,
	HEADER_UNUSED = 128,
	KIND_NONE = 0,
	KIND_FUNCLET = 3,
	CATCH_ADJECTIVES = 1,
	CATCH_TYPE = 2,
	CATCH_OBJECT = 4,
	CATCH_ABSOLUTE = 8,
	CATCH_COUNT_SHIFT = 4,
	CATCH_UNUSED = 0xc0,
};

/* A packed number: its low 1 to 4 bits say its length. */
static uint32_t read_packed(struct reader *r)
{
	uint32_t first = read_u8(r), value = first, length = 1;

	while (length < 5 && (first >> (length - 1) & 1))
		length++;
	if (length == 5)
		return read_u32(r);
	for (uint32_t i = 1; i < length; i++)
		value |= (uint32_t)read_u8(r) << 8 * i;
	return r->failed ? 0 : value >> length;
}

static struct rva read_rva(struct reader *r)
{
	return rva_of(read_u32(r));
}

enum status cxx_frame4_read(const struct image *image, struct rva rva,
			    struct cxx_frame4 *ret_frame, struct diag *diag)
{
	struct reader r = image_reader(image, rva);
	struct cxx_frame4 frame = {.rva = rva, .header = read_u8(&r)};

	if (frame.header & HEADER_TOOL)
		(void)read_packed(&r);
	if (frame.header & HEADER_UNWINDS)
		frame.unwinds = read_rva(&r);
	if (frame.header & HEADER_TRIES)
		frame.tries = read_rva(&r);
	frame.states = read_rva(&r);
	if (frame.header & FRAME4_CATCH)
		(void)read_packed(&r);
	frame.size = (uint32_t)r.pos;
	if (r.failed || (frame.header & HEADER_UNUSED))
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "no compressed exception data of a C++ function");
	*ret_frame = frame;
	return STATUS_OK;
}

struct frame4_list frame4_list_at(const struct image *image, struct rva rva)
{
	struct frame4_list list = {.rva = rva, .r = image_reader(image, rva)};

	if (!image_section_at(image, rva))
		list.r.failed = true; /* the headers hold none */
	list.left = read_packed(&list.r);
	return list;
}

/* Begins with a row; false when there is none. */
static bool begin_row(struct frame4_list *list)
{
	if (list->left == 0 || list->r.failed)
		return false;
	list->left--;
	return true;
}

static struct rva here(const struct frame4_list *list)
{
	return rva_add(list->rva, (uint32_t)list->r.pos);
}

bool frame4_next_unwind(struct frame4_list *list, struct frame4_unwind *ret_unwind)
{
	uint32_t packed, kind;

	if (!begin_row(list))
		return false;
	*ret_unwind = (struct frame4_unwind){.offset = (uint32_t)list->r.pos};
	packed = read_packed(&list->r);
	kind = packed & 3;
	ret_unwind->distance = packed >> 2;
	if (kind != KIND_NONE) {
		ret_unwind->site = here(list);
		ret_unwind->action = read_rva(&list->r);
		if (kind != KIND_FUNCLET)
			(void)read_packed(&list->r);
	}
	return !list->r.failed;
}

bool frame4_next_try(struct frame4_list *list, struct frame4_try *ret_try)
{
	if (!begin_row(list))
		return false;
	ret_try->low = read_packed(&list->r);
	ret_try->high = read_packed(&list->r);
	ret_try->catch_high = read_packed(&list->r);
	ret_try->catches = read_rva(&list->r);
	return !list->r.failed;
}

bool frame4_next_catch(struct frame4_list *list, struct frame4_catch *ret_catch)
{
	struct frame4_catch row = {0};
	uint8_t header;

	if (!begin_row(list))
		return false;
	header = read_u8(&list->r);
	if (header & CATCH_UNUSED)
		list->r.failed = true;
	if (header & CATCH_ADJECTIVES)
		(void)read_packed(&list->r);
	if (header & CATCH_TYPE)
		row.type = read_rva(&list->r);
	if (header & CATCH_OBJECT)
		(void)read_packed(&list->r);
	row.site = here(list);
	row.funclet = read_rva(&list->r);
	row.absolute = header & CATCH_ABSOLUTE;
	row.count = header >> CATCH_COUNT_SHIFT & 3;
	if (row.count == 3)
		list->r.failed = true; /* reserved */
	for (unsigned i = 0; i < row.count; i++) {
		row.sites[i] = here(list);
		row.continuations[i] =
			row.absolute ? read_u32(&list->r) : read_packed(&list->r);
	}
	*ret_catch = row;
	return !list->r.failed;
}

bool frame4_next_state(struct frame4_list *list, struct frame4_state *ret_state)
{
	uint32_t step;

	if (!begin_row(list))
		return false;
	step = read_packed(&list->r);
	if (step > UINT32_MAX - ret_state->offset)
		list->r.failed = true;
	ret_state->offset += step;
	ret_state->state = (int32_t)(read_packed(&list->r) - 1);
	return !list->r.failed;
}

bool frame4_next_segment(struct frame4_list *list, struct frame4_segment *ret_segment)
{
	if (!begin_row(list))
		return false;
	ret_segment->site = here(list);
	ret_segment->begin = read_rva(&list->r);
	ret_segment->states = read_rva(&list->r);
	return !list->r.failed;
}

bool frame4_list_complete(const struct frame4_list *list)
{
	return list->left == 0 && !list->r.failed;
}
