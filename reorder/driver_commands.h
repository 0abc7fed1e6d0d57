/* The subcommands of appulse, each in a file of its name. */
#ifndef APPULSE_REORDER_DRIVER_COMMANDS_H
#define APPULSE_REORDER_DRIVER_COMMANDS_H

#include "cli/tool.h"

enum status optimize_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status doctor_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status restore_command(struct tool *tool, int argc, char **argv, struct diag *diag);

/* Becomes the tool that the subcommand names; returns only in failure. */
enum status front_command(struct tool *tool, int argc, char **argv, struct diag *diag);

#endif
