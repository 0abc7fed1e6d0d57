/* The function table (.pdata) and unwind information of x86-64
 * (Microsoft Learn, "x64 exception handling"). */
#ifndef APPULSE_PE_UNWIND_INFO_H
#define APPULSE_PE_UNWIND_INFO_H

#include "pe/image.h"

/* One RUNTIME_FUNCTION. */
struct runtime_function {
	struct rva begin, end; /* end is exclusive */
	struct rva unwind;     /* of its UNWIND_INFO, bit 0 clear */
	struct rva site;       /* of this row; its fields stand at +0, +4, +8 */
};

struct function_table {
	struct runtime_function *data; /* in the image's arena, in file order (ascending) */
	uint32_t count;
};

/* The longest chain of unwind information that is followed, in steps. */
enum { UNWIND_CHAIN_MAX = 32 };

/* Reads the exception directory.  MALFORMED when a row is out of order,
 * overlaps another, leaves the sections, or its unwind information or what that
 * is chained to is not readable.  So the chain from every row of the table ends
 * within UNWIND_CHAIN_MAX steps.  Rows of length zero are kept, rows of zeros at
 * the end of the table are not.  A row whose `unwind` has bit 0 set (indirection,
 * "RUNTIME_FUNCTION_INDIRECT") is UNSUPPORTED. */
enum status function_table_read(struct image *image, struct function_table *ret_table,
				struct diag *diag);

struct unwind_info {
	struct rva rva;         /* of the structure */
	uint8_t version, flags; /* UNWIND_* */
	uint8_t prolog_size;    /* bytes */
	uint8_t code_count;     /* 16-bit slots */
	uint32_t size;          /* bytes up to the handler data, or the whole without a handler */
	struct rva handler;      /* valid with EHANDLER or UHANDLER */
	struct rva handler_site; /* of the field that holds it */
	struct rva handler_data; /* first byte behind that field */
	struct runtime_function chained; /* valid with CHAININFO; site is its own place */
};

/* Parses one UNWIND_INFO.  MALFORMED when it is cut off, its version is not 1
 * or 2, or CHAININFO stands together with a handler. */
enum status unwind_info_read(const struct image *image, struct rva rva,
			     struct unwind_info *ret_info, struct diag *diag);

/* Bytes of stack that the prolog takes: pushed registers and allocations, without the
 * return address.  UNSUPPORTED when there is a code that is not known. */
enum status unwind_info_frame_size(const struct image *image,
				   const struct unwind_info *info, uint64_t *ret_size,
				   struct diag *diag);

#endif
