/* What the steps of the verifier share.  For layout/verify*.c only.
 *
 * The idea: every byte of the relinked image is one of
 *   - a byte of the original, at its own place or where its block went,
 *   - a hole, which must be int3,
 *   - part of a *field* that a step has understood and proven.
 * Steps mark the fields that they prove in `proven`, by their place in the
 * original; the last step compares all bytes and accepts differences in proven
 * fields only.  So what no step knows must not have changed.
 */
#ifndef APPULSE_LAYOUT_VERIFY_STATE_H
#define APPULSE_LAYOUT_VERIFY_STATE_H

#include "layout/verify.h"

/* `size` bytes of the original at `from` that stand at `to` in the relinked
 * image: a moved block, or a stretch that nothing touches (from == to). */
struct segment {
	struct rva from, to;
	uint32_t size;
};

struct range {
	struct rva begin;
	uint32_t size;
};

/* A move, seen from the relinked image. */
struct arrival {
	struct rva to;
	uint32_t move; /* index into by_from */
};

enum { SORTED_MAX = 8 };

struct verifier {
	const struct graph *old_graph;
	const struct image *old_image;
	struct image *new_image;
	struct graph new_graph; /* owned; what discovery finds, beside the first steps */
	struct verify_report *report;
	struct diag *diag;

	/* The claim and what follows from it; set and owned by verify_moves. */
	struct move *by_from;  /* those that change an RVA, ascending by `from` */
	struct arrival *by_to; /* the same, ascending by `to` */
	uint32_t move_count;
	uint32_t *first_move;     /* by page of the original: the first move in by_from
				   * that ends behind the page's begin */
	struct segment *segments; /* ascending by `from` */
	uint32_t *new_order;      /* indices into segments, ascending by `to` */
	uint32_t segment_count;
	struct range *holes; /* left by moved blocks, ascending */
	uint32_t hole_count;
	VEC(struct range) covered; /* padding that moved blocks cover, ascending */

	/* One bit for each byte of the original's memory. */
	uint64_t *proven; /* it belongs to a field that a step has proven */
	uint64_t *lost;   /* it has not moved, and a moved block covers it */
	uint32_t span;    /* bytes so described: up to the end of the original's sections */

	/* Tables that are sorted anew: the place of a row means nothing. */
	struct range sorted[SORTED_MAX];
	uint32_t sorted_count;
};

/* ---- verify_moves.c ---- */

/* Checks the claim against the original's blocks and the relinked image's
 * sections, and builds what mapping needs. */
enum status verify_moves(struct verifier *v, const struct move *moves, uint32_t count);
void verify_moves_release(struct verifier *v);

/* ---- verify_mapping.c ---- */

/* Where the byte at `rva` of the original stands now. */
struct rva verify_map(const struct verifier *v, struct rva rva);

/* The same for the exclusive end of a range: behind where its last byte stands. */
struct rva verify_map_end(const struct verifier *v, struct rva end);

/* Where the byte at `rva` of the relinked image stood; the same RVA when no
 * moved block has come there. */
struct rva verify_unmap(const struct verifier *v, struct rva rva);

/* The indices of `count` items in the sequence in which their keys stand in the
 * relinked image.  An item has `stride` bytes, its key stands `offset` bytes from
 * its begin; keys ascend.  VERIFY, naming `what` it is, when an item is lost.
 * *ret_order is the caller's to free. */
enum status verify_new_order(struct verifier *v, const void *items, size_t offset,
			     size_t stride, uint32_t count, const char *what,
			     uint32_t **ret_order);

/* ---- verify_state.c ---- */

/* VERIFY at `rva` of the relinked image, with the function that should stand
 * there; verify_differs also with the two values. */
enum status verify_fail(struct verifier *v, struct rva rva, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum status verify_differs(struct verifier *v, struct rva rva, uint64_t expected,
			   uint64_t found, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* A reader's failure on the relinked image, as VERIFY. */
enum status verify_unreadable(struct verifier *v, enum status status);

/* Marks `size` bytes of the original as a proven field. */
void verify_prove(struct verifier *v, struct rva old_rva, uint32_t size);
bool verify_is_proven(const struct verifier *v, struct rva old_rva);
bool verify_is_lost(const struct verifier *v, struct rva old_rva);

/* The stretch between two blocks that `rva` lies in, inside [low, high); false
 * when a block holds it. */
bool verify_gap_at(const struct verifier *v, struct rva rva, struct rva low,
		   struct rva high, struct range *ret_gap);

/* The range that holds [rva, rva + size), or NULL. */
const struct code_range *verify_range_of(const struct graph *graph, struct rva rva,
					 uint32_t size);

/* Notes a table that is sorted anew, and marks it as proven. */
enum status verify_sorted_table(struct verifier *v, struct rva begin, uint32_t size);
bool verify_is_sorted(const struct verifier *v, struct rva old_rva);

/* Whether a function, or one that is joined to it, may be something else than code, or
 * goes where discovery cannot tell.  It is pinned, and discovery's view of it changes
 * with the addresses in it. */
bool verify_is_strange(const struct verifier *v, const struct function *function);

/* Bytes of a section that are in the file and in memory. */
uint32_t verify_data_size(const struct section *section);

/* A little-endian field of 1, 2, 4 or 8 bytes, its sign extended. */
int64_t verify_load(const uint8_t *bytes, uint8_t size);

/* What a VA or an RVA to `target` of the original must be now; VERIFY when a
 * moved block covers what it meant. */
enum status verify_target(struct verifier *v, struct rva site, struct rva target,
			  struct rva *ret_target);

/* ---- the steps, one in each file ---- */

enum status verify_headers(struct verifier *v);
enum status verify_loose_bytes(struct verifier *v);
enum status verify_symbols(struct verifier *v);
enum status verify_unwind(struct verifier *v);
enum status verify_code(struct verifier *v);
enum status verify_frames(struct verifier *v);
enum status verify_functions(struct verifier *v);
enum status verify_relocations(struct verifier *v);
enum status verify_absolute(struct verifier *v);
enum status verify_tables(struct verifier *v);
enum status verify_volatile(struct verifier *v);
enum status verify_dynamic(struct verifier *v);
enum status verify_references(struct verifier *v);
enum status verify_rediscovered(struct verifier *v);
enum status verify_bytes(struct verifier *v);

#endif
