/* Which function of one build is which of another.
 *
 * docs/stale-profiles.md explains the ways.  A match may be wrong; nothing that
 * depends on one may cost more than speed.
 */
#ifndef APPULSE_LAYOUT_FUNCTION_MATCH_H
#define APPULSE_LAYOUT_FUNCTION_MATCH_H

#include "base/diag.h"
#include "graph/function_identity.h"

#define MATCH_LIST(X)                                                             \
	X(NONE, "none")                                                           \
	X(NAME, "name")           /* one function bears it in either build */     \
	X(CONTENT, "content")     /* equal but for addresses */                   \
	X(NEIGHBOUR, "neighbour") /* it is called, calls or stands as the other */

enum match_way {
#define X(id, name) MATCH_##id,
	MATCH_LIST(X)
#undef X
	MATCH_WAY_COUNT
};

extern const char *const match_way_names[MATCH_WAY_COUNT];

/* For each function of the old build, by its place in the list. */
struct function_match {
	uint32_t *to; /* place in the new build's list; NO_FUNCTION: none */
	uint8_t *way; /* enum match_way */
	uint32_t count;
};

/* Each function of either build is matched with at most one of the other.  The same
 * lists give the same matches.  NO_MEMORY; on failure nothing is owned. */
enum status function_match_make(const struct function_identities *before,
				const struct function_identities *after,
				struct function_match *ret_match, struct diag *diag);
void function_match_release(struct function_match *match);

#endif
