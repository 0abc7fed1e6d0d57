/* The writer of appulse-instrument: the original image with a thunk before every
 * probed function (trace/probe.h says what an instrumented image consists of).
 *
 * No function moves.  Three sections are added: the units, the slots with what the
 * agent needs, and read-only tables (the probed functions' RVAs, the import table
 * with the agent in it, the function table with the common code's unwind data). */
#ifndef APPULSE_INSTRUMENT_PROBE_WRITER_H
#define APPULSE_INSTRUMENT_PROBE_WRITER_H

#include "base/sha256.h"
#include "graph/graph.h"
#include "probe_plan.h"

struct probe_options {
	const char *agent;  /* file name of the agent DLL, at most 63 bytes */
	const char *name;   /* file name of the original */
	struct sha256 hash; /* of the original file */
};

struct probed {
	uint8_t *bytes; /* owned (heap) */
	size_t size;
	bool dropped_signature;
};

/* Statuses: NO_MEMORY, NO_ROOM, MALFORMED, UNSUPPORTED.  The plan must hold a probe.
 * On failure nothing is owned. */
enum status probe_write(const struct graph *graph, const struct probe_plan *plan,
			const struct probe_options *options, struct probed *ret_probed,
			struct diag *diag);
void probed_release(struct probed *probed);

#endif
