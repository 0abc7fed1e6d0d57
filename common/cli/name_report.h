/* Names from files beside the image: the options that give them, and what came of them. */
#ifndef APPULSE_CLI_NAME_REPORT_H
#define APPULSE_CLI_NAME_REPORT_H

#include "cli/options.h"
#include "graph/function_names.h"
#include "symbols/name_files.h"

/* The options of every command that takes names; `files_` is a struct name_files. */
#define OPTIONS_NAMES(files_)                                                              \
	OPTION_STRING("pdb", 0, "FILE", &(files_)->pdb,                                    \
		      "take names of functions from this PDB of IMAGE"),                   \
		OPTION_STRING("linker-map", 0, "FILE", &(files_)->linker_map,              \
			      "take names of functions from this map, written by /MAP of " \
			      "MSVC's linker or lld")

/* Warns of files that were not used, and of names that contradict the code.  `report` is
 * NULL when there is no graph. */
void name_report_warn(struct tool *tool, const struct file_names *names,
		      const struct name_report *report);

/* Puts "names" into `object`: functions, own, added, and contradictions by kind; null when
 * no file was used. */
void name_report_put(const struct file_names *names, const struct name_report *report,
		     struct result *result, json_t *object);

/* Prints a line for people; nothing when no file was used. */
void name_report_print(const struct file_names *names, const struct name_report *report,
		       FILE *to);

#endif
