/* The verifier: proves that a relinked image is the original, moved.
 *
 * It reads the output afresh, as a stranger would, and shares no rewriting code
 * with the writer.  The moves are a claim that it does not trust: whatever they
 * say, the proof below must hold for it.  docs/verifier.md says what is proven.
 */
#ifndef APPULSE_LAYOUT_VERIFY_H
#define APPULSE_LAYOUT_VERIFY_H

#include "base/diag.h"
#include "graph/graph.h"
#include "layout/map_file.h"

/* What was compared; valid also after a failure, as far as it came. */
struct verify_report {
	uint32_t functions;
	uint32_t instructions;
	uint32_t references; /* PC-relative fields of instructions, and all other fields */
	uint32_t relocations;
	uint32_t table_entries; /* of jump tables, unwind data, guard tables, exports,
				   symbols */
};

/* `old_graph` is the original's graph; `relinked` is open, nothing of it has been
 * discovered.  The moves may stand in any sequence.
 *
 * VERIFY with the first difference in `diag` (RVA in the relinked image,
 * function, expected, found), also when the output's tables or code cannot be
 * read at all, since the original's could; NO_MEMORY. */
enum status verify_relink(const struct graph *old_graph, struct image *relinked,
			  const struct move *moves, uint32_t move_count,
			  struct verify_report *ret_report, struct diag *diag);

#endif
