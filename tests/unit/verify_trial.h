/* An image with everything in it, one relink of it, and what the verifier says. */
#ifndef APPULSE_TESTS_VERIFY_TRIAL_H
#define APPULSE_TESTS_VERIFY_TRIAL_H

#include "full_image.h"
#include "random_relink.h"

/* The original, and one relink of it. */
struct trial {
	struct full_image full;
	struct image image;
	struct graph graph;
	struct relinked relinked;
	uint8_t *bytes; /* of the output, to be damaged */
	size_t size;
};

static inline void relink(struct trial *t, uint64_t seed, enum placement placement,
			  uint32_t file_alignment)
{
	random_relink(&t->graph, seed, placement, file_alignment, &t->relinked);
	t->bytes = t->relinked.bytes;
	t->size = t->relinked.size;
}

/* Moves the block of one function, and it alone. */
static inline void relink_one(struct trial *t, struct rva function,
			      enum placement placement)
{
	struct relink_options options = {0};
	struct order order = {0};
	struct layout layout;
	struct diag diag;

	assert_true(vec_push(&order.blocks, graph_block_at(&t->graph, function)));
	assert_int_equal(layout_place(&t->graph, &order, placement, &layout, &diag),
			 STATUS_OK);
	assert_int_equal(relink_write(&t->graph, &layout, &options, &t->relinked, &diag),
			 STATUS_OK);
	t->bytes = t->relinked.bytes;
	t->size = t->relinked.size;
	layout_release(&layout);
	order_release(&order);
}

static inline void open_variant(struct trial *t, const struct full_variant *variant)
{
	struct discovery_options options = {0};
	struct diag diag;

	memset(t, 0, sizeof(*t));
	full_image_make_as(&t->full, variant);
	assert_int_equal(
		image_open_bytes(&t->image, t->full.bytes, t->full.size, "old", &diag),
		STATUS_OK);
	assert_int_equal(graph_discover(&t->graph, &t->image, &options, &diag), STATUS_OK);
}

static inline void open_original(struct trial *t)
{
	const struct full_variant variant = {.has_hash = true};

	open_variant(t, &variant);
}

static inline void close_trial(struct trial *t)
{
	relinked_release(&t->relinked);
	graph_release(&t->graph);
	image_release(&t->image);
	full_image_release(&t->full);
}

static inline enum status verify_moves_of(struct trial *t, const struct move *moves,
					  uint32_t count, struct verify_report *report,
					  struct diag *diag)
{
	struct image image;
	enum status status;

	diag_init(diag);
	status = image_open_bytes(&image, t->bytes, t->size, "new", diag);
	if (status != STATUS_OK)
		return status;
	status = verify_relink(&t->graph, &image, moves, count, report, diag);
	image_release(&image);
	return status;
}

static inline enum status verify(struct trial *t, struct verify_report *report,
				 struct diag *diag)
{
	return verify_moves_of(t, t->relinked.moves.data, t->relinked.moves.len, report,
			       diag);
}

static inline void expect_ok(struct trial *t, struct verify_report *report)
{
	char text[2048];
	struct diag diag;

	if (verify(t, report, &diag) == STATUS_OK)
		return;
	diag_format(&diag, text, sizeof(text));
	fail_msg("%s", text);
}

/* Where a byte of the original stands in the output, by the list of moves. */
static inline struct rva moved(const struct trial *t, struct rva rva)
{
	for (uint32_t i = 0; i < t->relinked.moves.len; i++) {
		const struct move *move = &t->relinked.moves.data[i];

		if (rva_in(rva, move->from, move->size))
			return rva_add(move->to, rva.v - move->from.v);
	}
	return rva;
}

/* The output's byte of an address of the original. */
static inline uint8_t *at(struct trial *t, struct rva old_rva)
{
	return t->bytes + full_offset(t->bytes, moved(t, old_rva));
}

#endif
