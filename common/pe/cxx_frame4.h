/* The exception data of __CxxFrameHandler4 (MSVC 2019 and later).  The handler data
 * is the RVA of a FuncInfo4; RVAs stand in 4 bytes, other numbers are packed into 1
 * to 5 bytes, the number of low bits that are set in the first says how many more
 * there are:
 *
 *     u8      header: 1 catch funclet, 2 separated, 4 flags of a binary tool, 8 unwind
 *             map, 16 try blocks, 32 synchronous only, 64 noexcept
 *     number  flags of a binary tool                                 (4 only)
 *     rva     unwind map: count, rows { number: distance to the next state's row in
 *             bytes times 4 plus kind; rva action (kinds 1 to 3); number object (kinds
 *             1 and 2) }                                             (8 only)
 *     rva     try blocks: count, rows { number first state, last state, last state of
 *             the catches; rva of the catches }                     (16 only)
 *     rva     states: count, rows { number bytes since the row before, number state
 *             plus 1 }; or, when separated, segments: count, rows { rva of the
 *             segment's begin, rva of its states }
 *     number  displacement of the frame                              (1 only)
 *
 *     catches: count, rows { u8 header: 1 adjectives, 2 type, 4 object, 8 continuations
 *             are RVAs, 16 x number of continuations; number adjectives, rva type,
 *             number object, rva funclet, continuations: RVAs, or numbers relative to
 *             the function's begin }
 *
 * States count from the begin of the row of the function table, so most of it moves
 * with the function as it is.
 *
 * Nothing is copied: lists are read row by row. */
#ifndef APPULSE_PE_CXX_FRAME4_H
#define APPULSE_PE_CXX_FRAME4_H

#include "pe/image.h"

enum {
	FRAME4_CATCH = 1,
	FRAME4_SEPARATED = 2,
	FRAME4_NO_EXCEPT = 64,
};

struct cxx_frame4 {
	struct rva rva;
	uint32_t size;             /* bytes */
	uint8_t header;            /* FRAME4_* and others */
	struct rva unwinds, tries; /* 0 when there are none */
	struct rva states;         /* of the list, or of the segments when separated */
};

/* A list that is being read. */
struct frame4_list {
	struct rva rva;
	struct reader r; /* begins at `rva`; failed when the list is cut off */
	uint32_t left;   /* rows still to read */
};

struct frame4_unwind {
	uint32_t distance; /* bytes back to the next state's row */
	uint32_t offset;   /* bytes from the list's begin to this row */
	struct rva action; /* 0: nothing to do */
	struct rva site;   /* of that field */
};

struct frame4_try {
	uint32_t low, high, catch_high;
	struct rva catches;
};

struct frame4_catch {
	struct rva type, funclet;
	struct rva site; /* of the funclet's field */
	bool absolute;   /* continuations are RVAs */
	uint8_t count;   /* continuations */
	uint32_t continuations[3];
	struct rva sites[3]; /* of each, when absolute */
};

struct frame4_state {
	uint32_t offset; /* bytes from the begin of the function or segment */
	int32_t state;
};

struct frame4_segment {
	struct rva begin;
	struct rva site;   /* of that field */
	struct rva states; /* of the list */
};

/* Reads the FuncInfo4 at `rva`; MALFORMED when it is cut off or has bits that no
 * compiler sets. */
enum status cxx_frame4_read(const struct image *image, struct rva rva,
			    struct cxx_frame4 *ret_frame, struct diag *diag);

/* Begins with the list at `rva`; it has failed when there is none. */
struct frame4_list frame4_list_at(const struct image *image, struct rva rva);

/* The next row of a list of that kind; false at its end or when it is cut off.  The
 * offset of a state is what `*ret_state` held plus the row's: 0 before the first. */
bool frame4_next_unwind(struct frame4_list *list, struct frame4_unwind *ret_unwind);
bool frame4_next_try(struct frame4_list *list, struct frame4_try *ret_try);
bool frame4_next_catch(struct frame4_list *list, struct frame4_catch *ret_catch);
bool frame4_next_state(struct frame4_list *list, struct frame4_state *ret_state);
bool frame4_next_segment(struct frame4_list *list, struct frame4_segment *ret_segment);

/* Whether all rows have been read. */
bool frame4_list_complete(const struct frame4_list *list);

#endif
