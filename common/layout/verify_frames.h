/* The verifier's steps over C++ exception data.  For layout/verify*.c only. */
#ifndef APPULSE_LAYOUT_VERIFY_FRAMES_H
#define APPULSE_LAYOUT_VERIFY_FRAMES_H

#include "layout/verify_state.h"

/* ---- verify_frames.c ---- */

/* VERIFY unless `is` is where `was` has gone; `site` is where this was read. */
enum status verify_frames_moved(struct verifier *v, struct rva site, struct rva was,
				struct rva is, const char *what);

/* VERIFY unless two numbers are the same. */
enum status verify_frames_same(struct verifier *v, struct rva site, int64_t was, int64_t is,
			       const char *what);

/* VERIFY unless what stood `offset` bytes behind `begin` still does. */
enum status verify_frames_rigid(struct verifier *v, struct rva begin, uint32_t offset);

/* ---- verify_frame3.c ---- */

/* The FuncInfo at `info`: all but the states of code. */
enum status verify_frame3(struct verifier *v, struct rva info);

/* The state of each byte of a row of the original's function table. */
enum status verify_states3(struct verifier *v, struct rva info,
			   const struct runtime_function *row);

/* ---- verify_frame4.c ---- */

/* The FuncInfo4 at `info`, for the function at `begin`; `shared`: it has been seen, and
 * only what counts from the function's begin is looked at. */
enum status verify_frame4(struct verifier *v, struct rva info, struct rva begin,
			  bool shared);

/* A row whose unwind information is chained to the one at `root`. */
enum status verify_part4(struct verifier *v, struct rva root,
			 const struct runtime_function *row);

#endif
