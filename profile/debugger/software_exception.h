/* Handing an exception that the program has raised itself on to the program, where
 * Wine does not do it right. */
#ifndef APPULSE_DEBUGGER_SOFTWARE_EXCEPTION_H
#define APPULSE_DEBUGGER_SOFTWARE_EXCEPTION_H

#include "debuggee.h"

/* Makes the thread stand at the start of the program's own exception dispatch, if
 * that is needed and possible: then the thread is to go on as from an exception
 * that was handled. */
bool software_exception_deliver(const struct debuggee *debuggee, DWORD thread,
				const EXCEPTION_DEBUG_INFO *info);

#endif
