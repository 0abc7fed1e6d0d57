/* An instrumented image as trace/probe.h describes it, made in memory.
 *
 * It lets the agent be tested without the tool that instruments: units, slots and
 * tables are laid out here from the contract's words alone.  Function i gives i.
 */
#ifndef APPULSE_PROBED_IMAGE_H
#define APPULSE_PROBED_IMAGE_H

#include <stdint.h>

#include "trace/probe.h"

enum probed_body {
	BODY_GIVES_INDEX, /* mov eax, i; ret */
	BODY_ONLY_RETURNS, /* ret */
};

struct probed_image {
	uint8_t *base; /* owned */
	struct probe_image *image;
	uint64_t *slots;
	uint32_t *functions;
	uint8_t *units;
	uint8_t *common;
};

typedef uint32_t probed_function(void);

/* Makes an image of `count` functions whose probes call `entry`.  The hash is
 * `identity` in all bytes.  Ends the program when memory is out. */
void probed_image_make(struct probed_image *p, const char *name, uint8_t identity,
		       uint32_t count, enum probed_body body, void *entry);
void probed_image_free(struct probed_image *p);

/* Where a call of function i leads. */
probed_function *probed_thunk(const struct probed_image *p, uint32_t i);

/* The RVA that a record of function i must have. */
uint32_t probed_rva(const struct probed_image *p, uint32_t i);

#endif
