/* The command of appulse-instrument. */
#ifndef APPULSE_INSTRUMENT_COMMANDS_H
#define APPULSE_INSTRUMENT_COMMANDS_H

#include "cli/tool.h"

enum status instrument_command(struct tool *tool, int argc, char **argv, struct diag *diag);

#endif
