/* The texts of --help and --version. */
#ifndef APPULSE_CLI_HELP_H
#define APPULSE_CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"
#include "cli/tool.h"

/* Help lines have at most this many columns. */
enum { HELP_COLUMNS = 80 };

/* Help of one command; for a default command with the list of subcommands. */
void help_print_command(const struct tool *tool, const struct command_spec *spec, FILE *to);

/* Help of a tool without default command. */
void help_print_tool(const struct tool *tool, FILE *to);

/* The tool's version and each library's, one a line. */
void version_print(const struct tool *tool, FILE *to);

#endif
