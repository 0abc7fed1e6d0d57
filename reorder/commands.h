/* The subcommands of appulse-reorder, each in a file of its name. */
#ifndef APPULSE_REORDER_COMMANDS_H
#define APPULSE_REORDER_COMMANDS_H

#include "cli/tool.h"

enum status order_file_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status prefetch_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status reorder_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status simulate_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status verify_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status translate_command(struct tool *tool, int argc, char **argv, struct diag *diag);

#endif
