/* Constants in code that are no RVAs, since they never meet the image's own address.
 * Internal to graph/.
 */
#ifndef APPULSE_GRAPH_CONSTANT_USE_H
#define APPULSE_GRAPH_CONSTANT_USE_H

#include "graph/value_query.h"

struct constant_uses {
	struct control_flow flow;
	struct value_query query;
	uint8_t *doubtful; /* owned: by function id, whether its code is in doubt, so that
			    * control may come to any place in it */
};

/* To be made when all code is known and all branches are sorted.  False when memory is
 * out; then nothing is owned. */
bool constant_uses_init(struct constant_uses *uses, struct discovery *d);
void constant_uses_release(struct constant_uses *uses);

/* Whether the constant is proven to be no part of an address in the image. */
bool constant_is_number(struct constant_uses *uses, const struct code_constant *constant);

#endif
