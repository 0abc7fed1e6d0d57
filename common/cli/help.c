#include "cli/help.h"

#include <string.h>

#include "cli/version.h"

enum { HELP_INDENT = 26 };

/* Prints words from `*column` on, wrapped, with later lines indented. */
static void wrap(const char *text, size_t length, unsigned indent, unsigned *column,
		 FILE *to)
{
	const char *end = text + length;

	while (text < end) {
		size_t word = 0;

		while (text + word < end && text[word] != ' ' && text[word] != '\n')
			word++;
		if (word > 0) {
			if (*column > indent && *column + 1 + word > HELP_COLUMNS) {
				fprintf(to, "\n%*s", (int)indent, "");
				*column = indent;
			} else if (*column > indent) {
				putc(' ', to);
				++*column;
			}
			fwrite(text, 1, word, to);
			*column += (unsigned)word;
		}
		text += word + (text + word < end);
	}
}

/* Paragraphs separated by empty lines, each followed by one. */
static void print_description(const char *text, FILE *to)
{
	while (text && *text) {
		const char *gap = strstr(text, "\n\n");
		size_t length = gap ? (size_t)(gap - text) : strlen(text);
		unsigned column = 0;

		wrap(text, length, 0, &column, to);
		fputs("\n\n", to);
		text += length + (gap ? 2 : 0);
	}
}

/* "(one of a, b, c; default: a)" behind a help text. */
static void print_choices(const char *const *choices, unsigned *column, FILE *to)
{
	const char *first = choices[0];
	char word[64];

	wrap("(one of", strlen("(one of"), HELP_INDENT, column, to);
	for (; *choices; choices++) {
		snprintf(word, sizeof(word), "%s%s", *choices, choices[1] ? "," : ";");
		wrap(word, strlen(word), HELP_INDENT, column, to);
	}
	snprintf(word, sizeof(word), "default: %s)", first);
	wrap(word, strlen(word), HELP_INDENT, column, to);
}

/* The left half of a row, then its text from HELP_INDENT on, which is left open. */
static unsigned begin_row(const char *left, const char *text, FILE *to)
{
	unsigned column = (unsigned)strlen(left);

	fputs(left, to);
	if (column + 2 > HELP_INDENT) {
		putc('\n', to);
		column = 0;
	}
	fprintf(to, "%*s", (int)(HELP_INDENT - column), "");
	column = HELP_INDENT;
	wrap(text, strlen(text), HELP_INDENT, &column, to);
	return column;
}

static void print_row(const char *left, const char *text, FILE *to)
{
	begin_row(left, text, to);
	putc('\n', to);
}

static void print_option(const struct option_spec *option, FILE *to)
{
	char letter[8] = "    ";
	char left[128];
	unsigned column;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, option->name,
		 option->argument ? " " : "", option->argument ? option->argument : "");
	column = begin_row(left, option->help, to);
	if (option->required)
		wrap("(needed)", strlen("(needed)"), HELP_INDENT, &column, to);
	if (option->choices)
		print_choices(option->choices, &column, to);
	putc('\n', to);
}

static void print_options(const struct option_spec *options, unsigned count, FILE *to)
{
	fputs("Options:\n", to);
	for (unsigned i = 0; i < count; i++)
		print_option(&options[i], to);
	print_row("  -h, --help", "print this help", to);
	print_row("      --version", "print the version and those of the libraries", to);
}

static void print_subcommands(const struct tool *tool, FILE *to)
{
	fputs("Subcommands:\n", to);
	for (unsigned i = 0; i < tool->subcommand_count; i++) {
		char left[128];

		if (!tool->subcommands[i].name)
			continue;
		snprintf(left, sizeof(left), "  %s", tool->subcommands[i].name);
		print_row(left, tool->subcommands[i].summary, to);
	}
	fprintf(to, "\n'%s SUBCOMMAND --help' tells more about each.\n", tool->name);
}

void help_print_command(const struct tool *tool, const struct command_spec *spec, FILE *to)
{
	fprintf(to, "usage: %s%s%s [OPTION...]", tool->name, tool->subcommand ? " " : "",
		tool->subcommand ? tool->subcommand : "");
	if (spec->arguments)
		fprintf(to, " %s", spec->arguments);
	if (spec->takes_command)
		fputs(" -- COMMAND [ARG...]", to);
	putc('\n', to);
	if (!tool->subcommand && tool->subcommand_count > 1)
		fprintf(to, "       %s SUBCOMMAND ...\n", tool->name);
	putc('\n', to);
	print_description(spec->description, to);
	print_options(spec->options, spec->option_count, to);
	if (!tool->subcommand && tool->subcommand_count > 1) {
		putc('\n', to);
		print_subcommands(tool, to);
	}
}

void help_print_tool(const struct tool *tool, FILE *to)
{
	fprintf(to, "usage: %s SUBCOMMAND [OPTION...] [ARG...]\n\n", tool->name);
	print_description(tool->description, to);
	print_subcommands(tool, to);
	putc('\n', to);
	print_options(NULL, 0, to);
}

void version_print(const struct tool *tool, FILE *to)
{
	fprintf(to, "%s %s\n", tool->name, tool_version());
	for (unsigned i = 0; i < tool->library_count; i++)
		fprintf(to, "%s %s\n", tool->libraries[i].name, tool->libraries[i].version);
	fprintf(to, "jansson %s\nlibmd %s\n", jansson_version_str(), LIBMD_VERSION);
}
