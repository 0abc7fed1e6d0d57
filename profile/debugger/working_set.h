/* Which pages of the wanted images are in a process's working set when it ends. */
#ifndef APPULSE_DEBUGGER_WORKING_SET_H
#define APPULSE_DEBUGGER_WORKING_SET_H

#include "debuggee.h"
#include "event_log.h"

/* A process has loaded its ntdll: plants the breakpoint at the system call that ends
 * processes.  Nothing, where that does not begin as it must: then the process tells
 * nothing. */
void working_set_watch_end(struct debuggee *debuggee);

/* A wanted image was loaded: under Wine, keeps Linux from mapping the neighbours of
 * each page that is touched. */
void working_set_part_pages(struct debuggee *debuggee, struct module *module);

/* Takes an exception that is the breakpoint or the end of an inquiry; false when it is
 * the program's. */
bool working_set_take(struct debuggee *debuggee, DWORD thread,
		      const EXCEPTION_RECORD *exception, struct event_log *log);

#endif
