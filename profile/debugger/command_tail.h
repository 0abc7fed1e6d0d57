/* The program's own command line, taken from ours as it stands.
 *
 * All that follows "--" is handed on without a change, so that no quoting is
 * lost; only the program's name is looked at.
 */
#ifndef APPULSE_DEBUGGER_COMMAND_TAIL_H
#define APPULSE_DEBUGGER_COMMAND_TAIL_H

#include <stdbool.h>
#include <stddef.h>

struct command_tail {
	wchar_t *program; /* owned: the EXE's full path; NULL when it was not found */
	wchar_t *line;    /* owned: the command line for the program */
};

/* Parses `line`, a command line of ours, and finds the program.  False when
 * there is no "--" with a program behind it, or memory is out. */
bool command_tail_init(struct command_tail *tail, const wchar_t *line);
void command_tail_release(struct command_tail *tail);

/* `path` as a Windows path: an absolute Unix path is translated when Wine runs
 * us, all else is copied.  On the heap; NULL when memory is out. */
wchar_t *path_to_windows(const wchar_t *path);

/* `path`, a Windows path, as those name it who read the log: under Wine the
 * Unix path.  On the heap; NULL when memory is out. */
wchar_t *path_to_host(const wchar_t *path);

#endif
