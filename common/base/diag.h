/* The one message of a failure.
 *
 * A library function that fails fills the caller's struct diag and returns its
 * status; it never prints.  The party that first sees the failure writes the
 * message; parties further out may add the file or the function, never replace
 * the message.  The tool prints it once.  Messages are lower case, name their
 * subject in single quotes and have no full stop.
 */
#ifndef APPULSE_BASE_DIAG_H
#define APPULSE_BASE_DIAG_H

#include <stdbool.h>

#include "base/address.h"
#include "base/status.h"

/* All strings are NUL-terminated, empty when unknown, cut when too long. */
struct diag {
	enum status status;
	char file[1024];    /* the file that the failure is about */
	bool has_rva;       /* whether `rva` is valid */
	struct rva rva;     /* where in the image */
	char function[256]; /* the function's name or RVA */
	char message[1024]; /* what happened */
	char expected[128]; /* what was expected */
	char found[128];    /* what was found */
};

/* Starts afresh; `diag` holds STATUS_OK. */
void diag_init(struct diag *diag);

/* Records the failure and returns `status`, so that callers can write
 * `return diag_fail(...)`.  `diag` may be NULL: then only the status counts. */
enum status diag_fail(struct diag *diag, enum status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As diag_fail, and says where in the image. */
enum status diag_fail_at(struct diag *diag, enum status status, struct rva rva,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Adds a system error: ": " and strerror(err) to the message. */
enum status diag_fail_errno(struct diag *diag, enum status status, int err,
			    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* STATUS_NO_MEMORY with its fixed message. */
enum status diag_no_memory(struct diag *diag);

/* Adds to a recorded failure; each keeps what an inner party has set. */
void diag_set_file(struct diag *diag, const char *path);
void diag_set_function(struct diag *diag, const char *name);
void diag_set_values(struct diag *diag, const char *expected, const char *found);

/* Writes the failure as one line without newline into `ret_text`, at most
 * `size` bytes with the NUL: "file: message (at RVA 0x..., expected ..., found ...)",
 * without the file when the message has it. */
void diag_format(const struct diag *diag, char *ret_text, unsigned size);

#endif
