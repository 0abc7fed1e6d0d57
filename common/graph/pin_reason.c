#include "graph/pin_reason.h"

#include <assert.h>

static const char *const names[PIN_REASON_COUNT] = {
#define X(id, name) [PIN_##id] = name,
	PIN_REASON_LIST(X)
#undef X
};

const char *pin_reason_name(enum pin_reason reason)
{
	assert(reason < PIN_REASON_COUNT);
	return names[reason];
}
