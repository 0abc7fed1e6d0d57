#include "graph/pin_reason.h"

#include <assert.h>

static const struct {
	const char *name, *meaning;
} table[PIN_REASON_COUNT] = {
#define X(id, name, meaning) [PIN_##id] = {name, meaning},
	PIN_REASON_LIST(X)
#undef X
};

const char *pin_reason_name(enum pin_reason reason)
{
	assert(reason < PIN_REASON_COUNT);
	return table[reason].name;
}

const char *pin_reason_meaning(enum pin_reason reason)
{
	assert(reason < PIN_REASON_COUNT);
	return table[reason].meaning;
}
