/* The command-line parser: a declarative table in front of getopt_long(3).
 *
 * getopt_long gives bundled letters, `--name=value`, and `--`.  It is run in its
 * "return in order" mode, so argv is never permuted and a positional argument is
 * seen where it stands.  Two of its habits are undone here: abbreviated long names
 * are refused, and its own messages are replaced by ours.
 *
 * After a fault parsing goes on, with the first fault kept: `tool --bad --json`
 * must still report as JSON.
 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"

/* What getopt_long returns for long names: beyond all letters. */
enum { LONG_BASE = 256, LONG_HELP = LONG_BASE + OPTIONS_MAX, LONG_VERSION };

struct parser {
	struct tool *tool;
	const struct command_spec *spec;
	struct command_line *line;
	struct diag *diag;
	enum status status;	/* of the first fault */
	bool help, version;	/* were asked for */
	bool seen[OPTIONS_MAX]; /* which options were given */
};

/* Keeps the first fault, and says how to get help. */
static void __attribute__((format(printf, 2, 3)))
fault(struct parser *p, const char *fmt, ...)
{
	const char *sub = p->tool->subcommand;
	char text[512];
	va_list args;

	if (p->status != STATUS_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	p->status = diag_fail(p->diag, STATUS_USAGE, "%s, try '%s%s%s --help'", text,
			      p->tool->name, sub ? " " : "", sub ? sub : "");
}

static void out_of_memory(struct parser *p)
{
	if (p->status == STATUS_OK)
		p->status = diag_no_memory(p->diag);
}

/* No sign, no space, nothing behind: strtoull alone would take them. */
static bool is_number(const char *digits, bool hex)
{
	size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

	return n > 0 && digits[n] == '\0';
}

static void set_number(struct parser *p, const struct option_spec *option, const char *text)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	uint64_t value;

	errno = 0;
	value = strtoull(digits, NULL, hex ? 16 : 10);
	if (!is_number(digits, hex) || errno == ERANGE || value < option->min ||
	    value > option->max)
		fault(p,
		      "option '--%s' needs a number from %" PRIu64 " to %" PRIu64
		      ", not '%s'",
		      option->name, option->min, option->max, text);
	else
		*option->to.number = value;
}

static void set_choice(struct parser *p, const struct option_spec *option, const char *text)
{
	char words[256] = "";

	for (unsigned i = 0; option->choices[i]; i++) {
		size_t used = strlen(words);

		if (strcmp(option->choices[i], text) == 0) {
			*option->to.choice = i;
			return;
		}
		snprintf(words + used, sizeof(words) - used, "%s'%s'",
			 i == 0			  ? ""
			 : option->choices[i + 1] ? ", "
						  : " or ",
			 option->choices[i]);
	}
	fault(p, "option '--%s' needs %s, not '%s'", option->name, words, text);
}

static void set_option(struct parser *p, const struct option_spec *option, const char *text)
{
	p->seen[option - p->spec->options] = true;
	if (option->given)
		*option->given = true;
	switch (option->kind) {
	case OPTION_IS_FLAG:
		*option->to.flag = true;
		break;
	case OPTION_IS_STRING:
		*option->to.string = text;
		break;
	case OPTION_IS_NUMBER:
		set_number(p, option, text);
		break;
	case OPTION_IS_CHOICE:
		set_choice(p, option, text);
		break;
	case OPTION_IS_LIST:
		if (!vec_push(option->to.list, text))
			out_of_memory(p);
		break;
	}
}

/* The option that getopt_long means by `code`, or NULL for help and version. */
static const struct option_spec *option_of(const struct command_spec *spec, int code)
{
	if (code >= LONG_HELP)
		return NULL;
	if (code >= LONG_BASE)
		return &spec->options[code - LONG_BASE];
	for (unsigned i = 0; i < spec->option_count; i++)
		if (spec->options[i].letter == code)
			return &spec->options[i];
	return NULL;
}

/* Whether `word` is a long option spelt shorter than `name`. */
static bool is_abbreviated(const char *word, const char *name)
{
	size_t length = strcspn(word + 2, "=");

	return strncmp(word, "--", 2) == 0 && length < strlen(name);
}

static void refuse_word(struct parser *p, const char *word)
{
	fault(p, "unknown option '%.*s'", (int)strcspn(word, "="), word);
}

/* getopt_long answered '?' or ':' for `word`. */
static void refuse(struct parser *p, int code, const char *word)
{
	const struct option_spec *option = optopt ? option_of(p->spec, optopt) : NULL;
	bool long_form = strncmp(word, "--", 2) == 0;
	char letter[3] = {'-', (char)optopt, '\0'};

	if (code == ':' && !(long_form && is_abbreviated(word, option->name)))
		fault(p, "option '%s' needs an argument %s", long_form ? word : letter,
		      option->argument);
	else if (code == '?' && long_form && optopt)
		fault(p, "option '%.*s' takes no argument", (int)strcspn(word, "="), word);
	else if (long_form)
		refuse_word(p, word);
	else
		fault(p, "unknown option '%s'", letter);
}

/* Handles one answer of getopt_long about `word`. */
static void take(struct parser *p, int code, const char *word)
{
	const struct option_spec *option;
	const char *name;

	if (code == 1) {
		if (!vec_push(&p->line->arguments, optarg))
			out_of_memory(p);
		return;
	}
	if (code == '?' || code == ':') {
		refuse(p, code, word);
		return;
	}
	option = option_of(p->spec, code);
	name = option ? option->name : code == LONG_VERSION ? "version" : "help";
	if (code >= LONG_BASE && is_abbreviated(word, name))
		refuse_word(p, word);
	else if (option)
		set_option(p, option, optarg);
	else if (code == LONG_VERSION)
		p->version = true;
	else
		p->help = true;
}

/* Translates the table for getopt_long; `ret_short` holds 2 * OPTIONS_MAX + 4. */
static void translate(const struct command_spec *spec, struct option *ret_long,
		      char *ret_short)
{
	unsigned n = spec->option_count;

	assert(n <= OPTIONS_MAX);
	/* '-': positional arguments in order; ':': tell missing arguments apart. */
	ret_short = stpcpy(ret_short, "-:h");
	for (unsigned i = 0; i < n; i++) {
		const struct option_spec *option = &spec->options[i];
		bool takes = option->kind != OPTION_IS_FLAG;

		ret_long[i] =
			(struct option){option->name, takes, NULL, LONG_BASE + (int)i};
		if (option->letter) {
			*ret_short++ = option->letter;
			if (takes)
				*ret_short++ = ':';
		}
	}
	*ret_short = '\0';
	ret_long[n] = (struct option){"help", 0, NULL, LONG_HELP};
	ret_long[n + 1] = (struct option){"version", 0, NULL, LONG_VERSION};
	ret_long[n + 2] = (struct option){0};
}

static void parse_words(struct parser *p, int argc, char **argv)
{
	struct option long_options[OPTIONS_MAX + 3];
	char letters[2 * OPTIONS_MAX + 4];
	int at = 1, code;

	translate(p->spec, long_options, letters);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	while ((code = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		take(p, code, argv[at]);
		at = optind;
	}
	for (int i = optind; i < argc; i++)
		if (!vec_push(&p->line->arguments, argv[i]))
			out_of_memory(p);
}

/* How many words stand before the `--` that begins the command. */
static int find_command(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

/* Whether all that must be given is, and no more. */
static void check_complete(struct parser *p)
{
	const struct string_list *arguments = &p->line->arguments;

	for (unsigned i = 0; i < p->spec->option_count; i++) {
		const struct option_spec *option = &p->spec->options[i];

		if (option->required && !p->seen[i])
			fault(p, "option '--%s %s' is needed", option->name,
			      option->argument);
	}
	if (arguments->len < p->spec->min)
		fault(p, "too few arguments: need %s", p->spec->arguments);
	else if (arguments->len > p->spec->max)
		fault(p, "unexpected argument '%s'", arguments->data[p->spec->max]);
	if (p->spec->takes_command && !p->line->command)
		fault(p, "no command given: need -- COMMAND [ARG...]");
}

static enum status answer(struct parser *p)
{
	p->line->answered = true;
	p->tool->json = false; /* help is text, and all of the answer */
	if (p->help)
		help_print_command(p->tool, p->spec, stdout);
	else
		version_print(p->tool, stdout);
	return STATUS_OK;
}

enum status command_line_parse(struct tool *tool, const struct command_spec *spec, int argc,
			       char **argv, struct command_line *ret_line,
			       struct diag *diag)
{
	struct parser p = {.tool = tool, .spec = spec, .line = ret_line, .diag = diag};
	int words = argc;

	*ret_line = (struct command_line){0};
	if (spec->takes_command) {
		words = find_command(argc, argv);
		if (words + 1 < argc)
			ret_line->command = argv + words + 1;
	}
	parse_words(&p, words, argv);
	if (p.help || p.version)
		return answer(&p);
	check_complete(&p);
	if (!tool->quiet)
		progress_show_on(&tool->progress, stderr);
	return p.status;
}

void command_line_release(struct command_line *line)
{
	vec_release(&line->arguments);
}
