#include "pe/gs_data.h"

enum { GS_FLAGS = 7, GS_ALIGNED = 4 };

enum status gs_data_read(const struct image *image, struct rva data,
			 struct gs_data *ret_data, struct diag *diag)
{
	struct reader r = image_reader(image, data);
	uint32_t word = read_u32(&r);
	struct gs_data gs = {.offset = word & ~(uint32_t)GS_FLAGS,
			     .aligned = word & GS_ALIGNED};
	uint32_t alignment = 1;

	if (gs.aligned) {
		read_skip(&r, 4); /* base of the aligned frame */
		alignment = read_u32(&r);
	}
	if (r.failed || alignment == 0 || (alignment & (alignment - 1)))
		return diag_fail_at(diag, STATUS_MALFORMED, data,
				    "no data of a security cookie");
	gs.size = (uint32_t)r.pos;
	*ret_data = gs;
	return STATUS_OK;
}
