/* What happens while files are swapped, for people. */
#ifndef APPULSE_CLI_SWAP_TELL_H
#define APPULSE_CLI_SWAP_TELL_H

#include "base/swap.h"

/* For swap_folder_open: says it as remarks of the struct tool `with`. */
void swap_tell(void *with, enum swap_event event, const char *path);

#endif
