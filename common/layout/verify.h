/* The verifier: proves that a relinked image is the original, moved.
 *
 * It reads the output afresh, as a stranger would, and shares no rewriting code
 * with the writer.  The moves are a claim that it does not trust: whatever they
 * say, the proof below must hold for it.
 */
#ifndef APPULSE_LAYOUT_VERIFY_H
#define APPULSE_LAYOUT_VERIFY_H

#include "base/diag.h"
#include "graph/graph.h"
#include "layout/map_file.h"

struct verify_report {
	uint32_t functions, instructions, references, relocations; /* counts that were compared */
	uint32_t table_entries; /* of jump tables, unwind, scope and guard tables */
};

/* `old_graph` is the original's graph; `relinked` is open, nothing of it has been
 * discovered.  STATUS_VERIFY with the first difference in `diag` (RVA in the
 * relinked image, function, expected, found); MALFORMED when the output cannot
 * even be read. */
enum status verify_relink(const struct graph *old_graph, struct image *relinked,
			  const struct move *moves, uint32_t move_count,
			  struct verify_report *ret_report, struct diag *diag);

#endif
