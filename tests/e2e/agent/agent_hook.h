/* Puts functions in the place of those that the agent imports. */
#ifndef APPULSE_AGENT_HOOK_H
#define APPULSE_AGENT_HOOK_H

#include <windows.h>

/* Makes `module` call `function` for the import `name`; gives what it called before.
 * Ends the program when it imports no such function. */
void *agent_hook(HMODULE module, const char *name, void *function);

#endif
