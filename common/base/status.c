#include "base/status.h"

#include <assert.h>

static const struct {
	const char *name;
	int exit_code;
} table[STATUS_COUNT] = {
#define X(id, name, code) [STATUS_##id] = {name, code},
	STATUS_LIST(X)
#undef X
};

const char *status_name(enum status status)
{
	assert(status < STATUS_COUNT);
	return table[status].name;
}

int status_exit_code(enum status status)
{
	assert(status < STATUS_COUNT);
	return table[status].exit_code;
}
