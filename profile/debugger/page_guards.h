/* Mode `pages`: guarded code pages tell their first touch. */
#ifndef APPULSE_DEBUGGER_PAGE_GUARDS_H
#define APPULSE_DEBUGGER_PAGE_GUARDS_H

#include "debuggee.h"
#include "event_log.h"

/* Guards every code page of the module, and logs how many. */
void page_guards_set(struct debuggee *debuggee, struct module *module,
		     struct event_log *log);

/* Whether the exception came from a guard of ours: then the program is to go
 * on as if nothing had been. */
bool page_guards_take(struct debuggee *debuggee, DWORD thread,
		      const EXCEPTION_RECORD *exception, struct event_log *log);

#endif
