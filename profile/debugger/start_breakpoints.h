/* Mode `breakpoints`: a one-shot int3 at every function start. */
#ifndef APPULSE_DEBUGGER_START_BREAKPOINTS_H
#define APPULSE_DEBUGGER_START_BREAKPOINTS_H

#include "debuggee.h"
#include "event_log.h"

/* The function starts of one build of an image, ascending by RVA. */
struct start {
	uint32_t rva;
	uint8_t byte; /* the file's byte there */
};

struct start_list {
	struct start *starts; /* owned */
	uint32_t count;
	uint32_t size, time_stamp, checksum; /* of the image's headers */
};

/* Reads a file of starts (docs/page-runs.md); false when it cannot be read or
 * is no such file. */
bool start_list_load(struct start_list *list, const wchar_t *path);
void start_list_release(struct start_list *list);

/* Plants the breakpoints when the module is the build that the list was made
 * for; logs how many, or that it is another. */
void start_breakpoints_set(struct debuggee *debuggee, struct module *module,
			   struct event_log *log);

/* Whether the exception came from a breakpoint of ours: then the thread stands
 * at the function's start again and is to go on. */
bool start_breakpoints_take(struct debuggee *debuggee, DWORD thread,
			    const EXCEPTION_RECORD *exception, struct event_log *log);

#endif
