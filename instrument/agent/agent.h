/* The parts of the agent DLL among each other.
 *
 * All of it runs inside the traced program, at any of its function calls: under
 * the loader lock, before any DllMain, in a thread with little stack left, with a
 * C runtime or without.  So there is no C runtime here, no heap and no thread
 * local storage, and compiled code uses general registers only.
 */
#ifndef APPULSE_AGENT_H
#define APPULSE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "trace/probe.h"
#include "trace/trace_format.h"

/* Where the touches of one image go, for the rest of the process's life. */
struct trace_map {
	struct trace_header *header; /* the mapped file; NULL: untraced */
	struct trace_record *records;
	uint8_t *claims;
};

/* Why an image is not traced. */
enum untraced {
	TRACED,
	UNTRACED_NO_FOLDER,   /* the environment names none */
	UNTRACED_BAD_FOLDER,  /* what it names is too long */
	UNTRACED_NO_FILE,     /* the file could not be made */
	UNTRACED_TOO_MANY,    /* images in the process, or probes in the image */
};

/* Makes the trace file of `image` and maps it.  Not reentrant: the caller sees to
 * it that one thread at a time is inside.  When the answer is not TRACED,
 * `ret_map` is all zero and `ret_error` the system's error, 0 when there is none. */
enum untraced trace_map_open(const struct probe_image *image, struct trace_map *ret_map,
			     uint32_t *ret_error);

/* Components to save in the low half (0: no XSAVE, use FXSAVE) and the bytes of
 * the save area in the high half; 0 until found. */
extern uint64_t vector_area;
uint64_t vector_area_find(void);

/* Records the touch of the probe whose stub is returned to at `return_address` if it
 * is the first, then makes its slot lead to the function. */
void probe_touch(struct probe_image *image, uint64_t return_address);

/* Says once in the process's life, on the debug output, why `image` is untraced. */
void say_untraced(const struct probe_image *image, enum untraced why, uint32_t error);

#endif
