/* The subcommands of appulse-profile, each in a file of its name. */
#ifndef APPULSE_PROFILE_COMMANDS_H
#define APPULSE_PROFILE_COMMANDS_H

#include "cli/tool.h"

enum status run_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status import_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status list_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status merge_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status diff_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status report_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status query_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status pages_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status faults_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status compare_command(struct tool *tool, int argc, char **argv, struct diag *diag);
enum status breakpoints_command(struct tool *tool, int argc, char **argv,
				struct diag *diag);

#endif
