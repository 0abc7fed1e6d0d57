/* Files that the tools bring along: the agent DLL, the debugger program. */
#ifndef APPULSE_CLI_COMPANION_H
#define APPULSE_CLI_COMPANION_H

#include "base/diag.h"

struct companion {
	const char *name;     /* file name, "appulse-agent.dll" */
	const char *variable; /* the environment variable that may name the file instead */
	const char *folder;   /* where it is in a build folder, from the tool's own folder */
};

/* The file's path, on the heap, the caller frees.  The environment variable
 * rules when it is set: NOT_FOUND when its file cannot be read.  Otherwise the file is
 * looked for from the tool's own place: in `folder`, as in a build folder; in the libexec
 * folder, as installed; beside the tool.  NOT_FOUND names the variable and the last
 * place; NO_MEMORY. */
enum status companion_find(const struct companion *companion, char **ret_path,
			   struct diag *diag);

#endif
