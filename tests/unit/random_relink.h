/* Relinks in random order, damaged outputs, and what the verifier says of them. */
#ifndef APPULSE_TESTS_RANDOM_RELINK_H
#define APPULSE_TESTS_RANDOM_RELINK_H

#include "image_builder.h"
#include "layout/order.h"
#include "layout/placement.h"
#include "layout/relink.h"
#include "layout/verify.h"
#include "pe/format.h"

/* The caller releases `*ret_relinked`.  `file_alignment` 0 keeps the image's. */
static inline void random_relink(const struct graph *graph, uint64_t seed,
				 enum placement placement, uint32_t file_alignment,
				 struct relinked *ret_relinked)
{
	struct relink_options options = {.file_alignment = file_alignment};
	struct order order;
	struct layout layout;
	struct diag diag;

	assert_int_equal(order_random(graph, seed, &order, &diag), STATUS_OK);
	assert_int_equal(layout_place(graph, &order, placement, &layout, &diag), STATUS_OK);
	assert_int_equal(relink_write(graph, &layout, &options, ret_relinked, &diag),
			 STATUS_OK);
	layout_release(&layout);
	order_release(&order);
}

/* What the verifier says of `graph` relinked; the output may be damaged. */
static inline enum status random_relink_verify(const struct graph *graph,
					       const struct relinked *relinked,
					       struct verify_report *report,
					       struct diag *diag)
{
	struct image image;
	enum status status;

	diag_init(diag);
	status = image_open_bytes(&image, relinked->bytes, relinked->size, "new", diag);
	if (status != STATUS_OK)
		return status;
	status = verify_relink(graph, &image, relinked->moves.data, relinked->moves.len,
			       report, diag);
	image_release(&image);
	return status;
}

/* Sets the checksum right that stands at `at` in the file, word by word as the PE/COFF
 * specification has it ("Optional Header Windows-Specific Fields", CheckSum). */
static inline void fix_checksum_at(uint8_t *bytes, size_t size, size_t at)
{
	uint32_t sum = 0;

	store_u32(bytes + at, 0);
	for (size_t i = 0; i < size; i += 2) {
		sum += bytes[i] | (i + 1 < size ? bytes[i + 1] << 8 : 0);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	store_u32(bytes + at, sum + (uint32_t)size);
}

/* The same for an image of image_builder. */
static inline void fix_checksum(uint8_t *bytes, size_t size)
{
	fix_checksum_at(bytes, size, BUILT_OPTIONAL + OPTIONAL_CHECKSUM);
}

#endif
