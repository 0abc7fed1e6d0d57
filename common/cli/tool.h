/* What the mains of all tools share: finding the subcommand, remarks, the
 * result, the one report of a failure, the exit code.
 *
 *     static const struct subcommand subcommands[] = {
 *             {NULL, "relink an image", relink_command},
 *             {"verify", "check a relinked image against its original", verify_command},
 *     };
 *
 *     int main(int argc, char **argv)
 *     {
 *             const struct library libraries[] = {{"LIEF", lief_version()}};
 *             struct tool tool = {
 *                     .name = "appulse-reorder",
 *                     .description = "Relinks Windows images so that ...",
 *                     .libraries = libraries, .library_count = 1,
 *                     .subcommands = subcommands, .subcommand_count = 2,
 *             };
 *
 *             return tool_main(&tool, argc, argv);
 *     }
 *
 * A command parses its own command line (options.h), works, fills tool->result
 * (result.h) or, without --json, prints text on stdout, and returns its status.
 * It prints no failure: tool_main does, once.
 */
#ifndef APPULSE_CLI_TOOL_H
#define APPULSE_CLI_TOOL_H

#include <stdbool.h>

#include "base/diag.h"
#include "cli/progress.h"
#include "cli/result.h"

struct tool;

struct library {
	const char *name, *version;
};

/* argv[0] is the subcommand's name, or the program's for the default one. */
typedef enum status command_fn(struct tool *tool, int argc, char **argv,
			       struct diag *diag);

struct subcommand {
	const char *name;    /* NULL, first in the list only: runs without a subcommand's name */
	const char *summary; /* for the list in help */
	command_fn *run;
};

struct tool {
	const char *name;        /* "appulse-reorder" */
	const char *description; /* paragraphs separated by an empty line */
	const struct library *libraries; /* for --version; jansson and libmd are added */
	unsigned library_count;
	const struct subcommand *subcommands; /* at least one */
	unsigned subcommand_count;

	/* The run; zero at first. */
	const char *subcommand; /* the chosen one's name, NULL for the default */
	bool quiet, json;       /* set by the common options */
	struct progress progress;
	struct result result;   /* printed by tool_main when `json` */
	char **data;            /* owned: the warnings so far */
	uint32_t len, cap;
};

/* Runs the command that argv names and returns the process exit code.  With
 * `--help` or `--version` as the first word and no default command it answers
 * that.  A failure is printed on stderr as "TOOL: message", with the reason's
 * name in brackets when the input was refused; with --json an object that holds
 * the error too goes to stdout.  An stdout that cannot be written is a failure. */
int tool_main(struct tool *tool, int argc, char **argv);

/* A remark on stderr, "TOOL: text"; not with --quiet. */
void tool_note(struct tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "TOOL: warning: text" on stderr, also with --quiet; stands in the JSON too. */
void tool_warn(struct tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The version of all tools, "0.1.0". */
const char *tool_version(void);

#endif
