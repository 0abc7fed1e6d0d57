/* What each fuzz target has in common.
 *
 * A target is one function over untrusted bytes, under the name that libFuzzer
 * calls.  It ends the process when a promise is broken, whatever the bytes are.
 * replay.c calls it for each file of a corpus; any fuzzer may do the same.
 */
#ifndef APPULSE_TESTS_FUZZ_TARGET_H
#define APPULSE_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"

/* Returns 0 always. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process: a promise was broken. */
static inline void fuzz_fail(const char *promise, const struct diag *diag)
{
	char text[2048] = "";

	if (diag)
		diag_format(diag, text, sizeof(text));
	fprintf(stderr, "broken: %s: %s\n", promise, text);
	abort();
}

/* A failure must have a status of its own and a message; memory does not run out. */
static inline void fuzz_check_failure(enum status status, const struct diag *diag)
{
	if (status == STATUS_NO_MEMORY || status == STATUS_USAGE ||
	    status >= STATUS_COUNT || diag->status != status || diag->message[0] == '\0')
		fuzz_fail("a failure has a fitting status and a message", diag);
}

#endif
