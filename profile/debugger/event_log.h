/* The log of the debugger program: lines of text, one for each event, written
 * at once, so that a kill at any moment loses nothing.  docs/page-runs.md has
 * the format; its fields are separated by tabs.
 */
#ifndef APPULSE_DEBUGGER_EVENT_LOG_H
#define APPULSE_DEBUGGER_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

enum { EVENT_LOG_VERSION = 1 };

struct event_log {
	HANDLE file;   /* owned; not inherited by the program */
	uint64_t next; /* the next touch's order number */
	bool failed;   /* sticky: a line could not be written */
};

/* Creates (or empties) the file and writes the header line. */
bool event_log_open(struct event_log *log, const wchar_t *path, const wchar_t *mode);
void event_log_close(struct event_log *log);

/* A line: the formatted fields, then `path` unless it is NULL, as UTF-8 with
 * control characters and '%' written as %XX. */
void event_log_line(struct event_log *log, const wchar_t *path, const char *fmt, ...)
	__attribute__((format(gnu_printf, 3, 4)));

/* The performance counter now, in ticks of the header line's frequency. */
uint64_t event_log_now(void);

#endif
