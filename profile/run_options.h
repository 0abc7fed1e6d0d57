/* What the subcommands that make runs have in common: how a run is described on
 * the command line and in the database. */
#ifndef APPULSE_PROFILE_RUN_OPTIONS_H
#define APPULSE_PROFILE_RUN_OPTIONS_H

#include "cli/options.h"
#include "trace/db.h"

struct run_options {
	const char *database, *scenario, *weight; /* NULL when not given */
	const char *output; /* where the command's stdout goes; NULL: stays */
};

#define OPTION_DATABASE(to_) \
	OPTION_STRING("db", 'd', "FILE", (to_), "the trace database (needed)")

#define OPTIONS_RUN(options_)                                                       \
	OPTION_DATABASE(&(options_)->database),                                     \
		OPTION_STRING("scenario", 0, "NAME", &(options_)->scenario,         \
			      "what the run stands for (default: default)"),        \
		OPTION_STRING("weight", 0, "W", &(options_)->weight,                \
			      "how much it counts among scenarios (default: 1)")

/* For those that start a command. */
#define OPTION_COMMAND_OUTPUT(options_)                                             \
	OPTION_STRING("stdout", 0, "FILE", &(options_)->output,                     \
		      "write what COMMAND prints to FILE, replaced when it exists")

/* A run that starts now. */
struct run_description {
	struct db_run run; /* borrows from what follows */
	char *command;     /* owned: as a shell would take it */
	char *host;        /* owned */
	char *identity;    /* owned */
};

/* USAGE when no database is named, the command's output would take a place of its, or the
 * weight is no number above 0. */
enum status run_options_check(const struct run_options *options, double *ret_weight,
			      struct diag *diag);

/* Describes a run of `command` (NULL-terminated) from the options. */
enum status run_describe(const struct run_options *options, enum db_run_kind kind,
			 char **command, struct run_description *ret_description,
			 struct diag *diag);
void run_description_release(struct run_description *description);

/* Refuses a missing --db with USAGE. */
enum status database_option_check(const char *database, struct diag *diag);

#endif
