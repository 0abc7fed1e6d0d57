/* Which pages of the wanted images are in a process's working set when it ends, or when
 * the image is unloaded. */
#ifndef APPULSE_DEBUGGER_WORKING_SET_H
#define APPULSE_DEBUGGER_WORKING_SET_H

#include "debuggee.h"
#include "event_log.h"

/* A process has loaded its ntdll: plants breakpoints at the system calls that end
 * processes and unmap images.  Not at one that does not begin as it must: then the
 * process tells nothing there. */
void working_set_watch(struct debuggee *debuggee);

/* A wanted image was loaded: under Wine, keeps Linux from mapping the neighbours of
 * each page that is touched. */
void working_set_part_pages(struct debuggee *debuggee, struct module *module);

/* Takes an exception that is one of the breakpoints; false when it is
 * the program's. */
bool working_set_take(struct debuggee *debuggee, DWORD thread,
		      const EXCEPTION_RECORD *exception, struct event_log *log);

/* A thread has ended.  One that asks may be ended by another, as all are when the process
 * ends: then who waits for it goes on. */
void working_set_thread_ended(struct debuggee *debuggee, DWORD thread);

#endif
