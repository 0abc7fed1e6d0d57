/* Scope tables of __C_specific_handler: the handler data of functions with
 * __try (winnt.h, SCOPE_TABLE_AMD64).
 *
 *     count; count x { begin, end, handler, target }     all 32-bit RVAs
 *
 * handler is 1 for EXCEPTION_EXECUTE_HANDLER, else a filter or, when target is
 * 0, a termination handler. */
#ifndef APPULSE_PE_SCOPE_TABLE_H
#define APPULSE_PE_SCOPE_TABLE_H

#include "pe/image.h"

enum { SCOPE_RECORD_BYTES = 16, SCOPE_HANDLER_EXECUTE = 1 };

struct scope_record {
	struct rva begin, end, handler, target;
	struct rva site; /* of this record; fields at +0, +4, +8, +12 */
};

struct scope_table {
	struct scope_record *data; /* in the caller's arena */
	uint32_t count;
};

/* Reads the table at `data`.  MALFORMED when it does not fit its section. The
 * fields are not checked here: whether they are a scope table at all is what
 * the caller decides from them. */
enum status scope_table_read(const struct image *image, struct arena *arena,
			     struct rva data, struct scope_table *ret_table,
			     struct diag *diag);

#endif
