/* The exception data of __CxxFrameHandler3: MSVC's C++ since 2005, clang's and
 * Rust's for the MSVC ABI.  The handler data is the RVA of a FuncInfo:
 *
 *     u32  magic number, 29 bits; flags of a binary tool, 3 bits
 *     i32  states; they are numbered from 0 on, -1 is none
 *     rva  unwind map: a row { i32 next state, rva action or 0 } for each state
 *     u32  count, rva: try blocks { i32 first and last state, i32 last state of the
 *          catches, u32 count, rva of the catches { u32 adjectives, rva type, i32
 *          object, rva funclet, u32 frame } }
 *     u32  count, rva: { rva instruction, i32 state from there on }, ascending
 *     i32  where the frame keeps its state
 *     rva  exception specification { u32 count, rva of catches }, or 0  (21, 22)
 *     u32  flags                                                       (22 only)
 *
 * The three magic numbers are 0x19930520 (MSVC 2005), 21 and 22; FuncInfos of
 * version 20 end before the specification.
 *
 * Nothing is copied: rows are read where they stand. */
#ifndef APPULSE_PE_CXX_FRAME3_H
#define APPULSE_PE_CXX_FRAME3_H

#include "pe/image.h"

enum {
	FRAME3_UNWIND_BYTES = 8,
	FRAME3_TRY_BYTES = 20,
	FRAME3_CATCH_BYTES = 20,
	FRAME3_STATE_BYTES = 8
};

/* An array in the image: `count` rows at `rva`. */
struct frame3_rows {
	struct rva rva;
	uint32_t count;
	const uint8_t *bytes; /* all of them; NULL when there are none */
};

struct cxx_frame3 {
	struct rva rva;
	uint32_t size;  /* bytes */
	uint32_t magic; /* without the tool's flags */
	struct frame3_rows unwinds, tries, states;
	struct frame3_rows types; /* of the exception specification */
	struct rva type_list;     /* of its count, 0 when there is none */
	uint32_t flags;
};

struct frame3_unwind {
	int32_t next;
	struct rva action; /* 0: nothing to do */
	struct rva site;   /* of that field */
};

struct frame3_try {
	int32_t low, high, catch_high;
	struct frame3_rows catches;
};

struct frame3_catch {
	uint32_t adjectives;
	struct rva type; /* 0: any */
	struct rva funclet;
	struct rva site; /* of that field */
};

struct frame3_state {
	struct rva ip;
	int32_t state;
};

/* Reads the FuncInfo at `rva`.  MALFORMED when it has none of the magic numbers,
 * or it or one of its arrays is not in the file's data. */
enum status cxx_frame3_read(const struct image *image, struct rva rva,
			    struct cxx_frame3 *ret_frame, struct diag *diag);

/* Row `index` of an array; of a try block also whether its catches are in the
 * file's data. */
struct frame3_unwind frame3_unwind_at(const struct cxx_frame3 *frame, uint32_t index);
bool frame3_try_at(const struct image *image, const struct cxx_frame3 *frame,
		   uint32_t index, struct frame3_try *ret_try);
struct frame3_catch frame3_catch_at(const struct frame3_rows *catches, uint32_t index);
struct frame3_state frame3_state_at(const struct cxx_frame3 *frame, uint32_t index);

#endif
