/* Puts the debugger program into a command. */
#ifndef APPULSE_PROFILE_DEBUG_COMMAND_H
#define APPULSE_PROFILE_DEBUG_COMMAND_H

#include "base/diag.h"

/* `command` (NULL-terminated) with the words of `debugger` (likewise) in front of
 * the program: behind the first word that is Wine's loader, or at the front when
 * none is and the first word is a Windows program, which the system then knows how
 * to run.  `ret_command` is on the heap, its words are borrowed.  USAGE when the
 * command has no such place; NO_MEMORY. */
enum status debug_command_make(char **command, char **debugger, char ***ret_command,
			       struct diag *diag);

#endif
