/* The command line of one command, declared as a table.
 *
 *     struct thing_options {
 *             bool force;
 *             const char *output;
 *             uint64_t runs;
 *             unsigned order;
 *             struct string_list skip;
 *     } o = {.runs = 3};
 *     static const char *const orders[] = {"first-touch", "original", NULL};
 *     const struct option_spec options[] = {
 *             OPTION_STRING("output", 'o', "FILE", &o.output, "write the image to FILE"),
 *             OPTION_FLAG("force", 'f', &o.force, "replace an existing output"),
 *             OPTION_NUMBER("runs", 0, "N", &o.runs, 1, 100, "profile N times"),
 *             OPTION_CHOICE("order", 0, "ORDER", &o.order, orders, "how to sort"),
 *             OPTION_LIST("skip", 0, "GLOB", &o.skip, "leave these functions alone"),
 *             OPTIONS_COMMON(tool),
 *     };
 *     const struct command_spec spec = {
 *             .description = "Relinks IMAGE.",
 *             .arguments = "IMAGE", .min = 1, .max = 1,
 *             .options = options, .option_count = OPTION_COUNT(options),
 *     };
 *     struct command_line line;
 *     enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);
 *
 *     if (status != STATUS_OK || line.answered)
 *             goto out;
 *     image = line.arguments.data[0];
 *     ...
 * out:
 *     vec_release(&o.skip);
 *     command_line_release(&line);
 *
 * The conventions: GNU long options, never abbreviated (a script must not change
 * its meaning when an option is added); options and arguments in any order; a
 * repeated option takes the last value, a list takes all; `--` ends the options.
 * --help and --version need no declaration.
 */
#ifndef APPULSE_CLI_OPTIONS_H
#define APPULSE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/vec.h"
#include "cli/tool.h"

/* Strings that stand in argv.  Released by vec_release. */
struct string_list {
	const char **data; /* the array is owned, the strings are not */
	uint32_t len, cap;
};

enum option_kind {
	OPTION_IS_FLAG,
	OPTION_IS_STRING,
	OPTION_IS_NUMBER, /* decimal, or hexadecimal with 0x */
	OPTION_IS_CHOICE, /* one of a list of words */
	OPTION_IS_LIST,   /* a string each time it is given */
};

/* Made by the macros below, which check the type of the destination. */
struct option_spec {
	const char *name;     /* long name, without dashes */
	char letter;          /* short name, 0 for none */
	enum option_kind kind;
	const char *argument; /* how help names the argument; NULL for a flag */
	union {
		bool *flag;
		const char **string;
		uint64_t *number;
		unsigned *choice; /* index into `choices` */
		struct string_list *list;
	} to;
	uint64_t min, max;          /* of a number, inclusive */
	const char *const *choices; /* NULL-terminated; the first is the default */
	const char *help;           /* one or two phrases; help adds the choices */
	bool *given;                /* set when the option is given; may be NULL */
	bool required;              /* leaving it out is a USAGE failure */
};

/* What follows the destination may end in `, .given = &flag, .required = true`. */
#define OPTION_FLAG(name_, letter_, to_, ...)                                      \
	{                                                                          \
		.name = (name_), .letter = (letter_), .kind = OPTION_IS_FLAG,      \
		.to.flag = (to_), .help = __VA_ARGS__                              \
	}
#define OPTION_STRING(name_, letter_, argument_, to_, ...)                         \
	{                                                                          \
		.name = (name_), .letter = (letter_), .kind = OPTION_IS_STRING,    \
		.argument = (argument_), .to.string = (to_), .help = __VA_ARGS__   \
	}
#define OPTION_NUMBER(name_, letter_, argument_, to_, min_, max_, ...)             \
	{                                                                          \
		.name = (name_), .letter = (letter_), .kind = OPTION_IS_NUMBER,    \
		.argument = (argument_), .to.number = (to_), .min = (min_),        \
		.max = (max_), .help = __VA_ARGS__                                 \
	}
#define OPTION_CHOICE(name_, letter_, argument_, to_, choices_, ...)               \
	{                                                                          \
		.name = (name_), .letter = (letter_), .kind = OPTION_IS_CHOICE,    \
		.argument = (argument_), .to.choice = (to_),                       \
		.choices = (choices_), .help = __VA_ARGS__                         \
	}
#define OPTION_LIST(name_, letter_, argument_, to_, ...)                           \
	{                                                                          \
		.name = (name_), .letter = (letter_), .kind = OPTION_IS_LIST,      \
		.argument = (argument_), .to.list = (to_), .help = __VA_ARGS__     \
	}

/* What every command has. */
#define OPTIONS_COMMON(tool_)                                                      \
	OPTION_FLAG("json", 0, &(tool_)->json,                                     \
		    "print the result as one JSON object"),                        \
		OPTION_FLAG("quiet", 'q', &(tool_)->quiet,                         \
			    "no progress and no remarks on stderr")

#define OPTION_COUNT(options_) ((unsigned)(sizeof(options_) / sizeof((options_)[0])))

enum { OPTIONS_MAX = 48, ARGUMENTS_ANY = 0x7fffffff };

struct command_spec {
	const char *description; /* paragraphs separated by an empty line */
	const char *arguments;   /* as usage names them, "OLD NEW"; NULL when there are none */
	unsigned min, max;       /* how many arguments; max may be ARGUMENTS_ANY */
	bool takes_command;      /* whether `-- COMMAND [ARG...]` must end the line */
	const struct option_spec *options;
	unsigned option_count;   /* at most OPTIONS_MAX */
};

struct command_line {
	bool answered;                /* --help or --version has been printed: be done */
	struct string_list arguments; /* owned list of strings in argv */
	char **command;               /* NULL-terminated, in argv; NULL unless takes_command */
};

/* Parses argv, whose first word is skipped, into the destinations.  A USAGE
 * failure names the option and says how to get help; the options behind the fault
 * are still read, so that a late --json is obeyed.  Also IO (help could not be
 * printed) and NO_MEMORY.  `ret_line` needs command_line_release either way. */
enum status command_line_parse(struct tool *tool, const struct command_spec *spec,
			       int argc, char **argv, struct command_line *ret_line,
			       struct diag *diag);
void command_line_release(struct command_line *line);

#endif
