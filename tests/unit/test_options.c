#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/options.h"

#include "outcome.h"

enum order { ORDER_TOUCH, ORDER_RANDOM, ORDER_FILE };

/* What all tests parse into. */
struct wanted {
	bool force, runs_given;
	const char *output;
	uint64_t runs, seed;
	enum order order;
	struct string_list skip;
	struct command_line line;
	struct tool tool;
	struct diag diag;
};

static const char *const orders[] = {"first-touch", "random", "file", NULL};

/* Parses the words of `text`, separated by single spaces, as arguments. */
static enum status parse_with(struct wanted *w, const char *text, unsigned min,
			      unsigned max, bool takes_command)
{
	static char words[1024];
	static char *argv[64];
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &w->output, "write to FILE"),
		OPTION_FLAG("force", 'f', &w->force, "replace it"),
		OPTION_NUMBER("runs", 'n', "N", &w->runs, 2, 100, "run N times",
			      .given = &w->runs_given),
		OPTION_NUMBER("seed", 0, "N", &w->seed, 0, UINT64_MAX, "shuffle"),
		OPTION_CHOICE("order", 0, "ORDER", &w->order, orders, "sort"),
		OPTION_LIST("skip", 's', "GLOB", &w->skip, "leave alone"),
		OPTIONS_COMMON(&w->tool),
	};
	const struct command_spec spec = {
		.description = "Does it.",
		.arguments = "IMAGE [OTHER]",
		.min = min,
		.max = max,
		.takes_command = takes_command,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	int argc = 0;

	memset(w, 0, sizeof(*w));
	w->tool.name = "tool";
	w->runs = 3;
	argv[argc++] = (char *)"tool";
	snprintf(words, sizeof(words), "%s", text);
	for (char *word = words; *text && word; argc++)
		argv[argc] = strsep(&word, " ");
	argv[argc] = NULL;
	return command_line_parse(&w->tool, &spec, argc, argv, &w->line, &w->diag);
}

static enum status parse(struct wanted *w, const char *text)
{
	return parse_with(w, text, 0, ARGUMENTS_ANY, false);
}

static void release(struct wanted *w)
{
	vec_release(&w->skip);
	command_line_release(&w->line);
}

/* Expects a usage fault with this message in front of the hint. */
static void check_fault(const char *text, const char *message)
{
	struct wanted w;
	char expected[512];

	assert_int_equal(parse_with(&w, text, 1, 2, false), STATUS_USAGE);
	snprintf(expected, sizeof(expected), "%s, try 'tool --help'", message);
	assert_string_equal(w.diag.message, expected);
	release(&w);
}

static void nothing_given_changes_nothing(void **state)
{
	struct wanted w;

	(void)state;
	assert_int_equal(parse(&w, ""), STATUS_OK);
	assert_false(w.force);
	assert_false(w.runs_given);
	assert_null(w.output);
	assert_int_equal(w.runs, 3);
	assert_int_equal(w.skip.len, 0);
	assert_int_equal(w.line.arguments.len, 0);
	assert_null(w.line.command);
	assert_false(w.line.answered);
	release(&w);
}

static void long_and_short_forms(void **state)
{
	static const char *const forms[] = {
		"a --output x --force --runs 7 b",
		"--output=x a b --runs=7 --force",
		"-o x -f -n 7 a b",
		"-fox -n7 a -- b",
		"a -fn7 -ox b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct wanted w;

		assert_int_equal(parse(&w, forms[i]), STATUS_OK);
		assert_string_equal(w.output, "x");
		assert_true(w.force);
		assert_true(w.runs_given);
		assert_int_equal(w.runs, 7);
		assert_int_equal(w.line.arguments.len, 2);
		assert_string_equal(w.line.arguments.data[0], "a");
		assert_string_equal(w.line.arguments.data[1], "b");
		release(&w);
	}
}

static void lists_take_all_and_others_the_last(void **state)
{
	struct wanted w;

	(void)state;
	assert_int_equal(parse(&w, "-s a --skip b* -s c -o x -o y"), STATUS_OK);
	assert_int_equal(w.skip.len, 3);
	assert_string_equal(w.skip.data[0], "a");
	assert_string_equal(w.skip.data[1], "b*");
	assert_string_equal(w.skip.data[2], "c");
	assert_string_equal(w.output, "y");
	release(&w);
}

static void choices_give_their_index(void **state)
{
	struct wanted w;

	(void)state;
	assert_int_equal(parse(&w, "--order random"), STATUS_OK);
	assert_int_equal(w.order, ORDER_RANDOM);
	release(&w);
	check_fault("x --order rand",
		    "option '--order' needs 'first-touch', 'random' or 'file', not 'rand'");
}

static void numbers_are_plain_and_in_range(void **state)
{
	static const char *const bad[] = {"1",
					  "101",
					  "",
					  "-5",
					  "+5",
					  "5x",
					  "0x",
					  "x5",
					  "5.5",
					  "1e1",
					  "99999999999999999999"};
	struct wanted w;

	(void)state;
	assert_int_equal(parse(&w, "--seed 18446744073709551615 -n 2"), STATUS_OK);
	assert_true(w.seed == UINT64_MAX);
	assert_int_equal(w.runs, 2);
	release(&w);
	assert_int_equal(parse(&w, "--seed 0xFf --runs 0100"), STATUS_OK);
	assert_int_equal(w.seed, 255);
	assert_int_equal(w.runs, 100); /* no octal */
	release(&w);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[64], message[128];

		snprintf(text, sizeof(text), "x --runs=%s", bad[i]);
		snprintf(message, sizeof(message),
			 "option '--runs' needs a number from 2 to 100, not '%s'", bad[i]);
		check_fault(text, message);
	}
	check_fault("x --seed 18446744073709551616",
		    "option '--seed' needs a number from 0 to 18446744073709551615, not "
		    "'18446744073709551616'");
}

static void faults_name_the_option(void **state)
{
	(void)state;
	check_fault("x --frce", "unknown option '--frce'");
	check_fault("x --frce=secret", "unknown option '--frce'");
	check_fault("x -z", "unknown option '-z'");
	check_fault("x -fz", "unknown option '-z'");
	check_fault("x --output", "option '--output' needs an argument FILE");
	check_fault("x -o", "option '-o' needs an argument FILE");
	check_fault("x -fo", "option '-o' needs an argument FILE");
	check_fault("x --force=yes", "option '--force' takes no argument");
	check_fault("x --help=me", "option '--help' takes no argument");
}

/* getopt_long would take all but the last. */
static void abbreviations_are_unknown(void **state)
{
	(void)state;
	check_fault("x --forc", "unknown option '--forc'");
	check_fault("x --out=y", "unknown option '--out'");
	check_fault("x --outpu", "unknown option '--outpu'");
	check_fault("x --hel", "unknown option '--hel'");
	check_fault("x --s", "unknown option '--s'"); /* ambiguous as well */
}

static void arguments_are_counted(void **state)
{
	struct wanted w;

	(void)state;
	check_fault("", "too few arguments: need IMAGE [OTHER]");
	check_fault("a b c d", "unexpected argument 'c'");
	assert_int_equal(parse_with(&w, "- b", 1, 2, false), STATUS_OK);
	assert_string_equal(w.line.arguments.data[0], "-");
	release(&w);
	assert_int_equal(parse_with(&w, "-- --force", 1, 2, false), STATUS_OK);
	assert_false(w.force);
	assert_string_equal(w.line.arguments.data[0], "--force");
	release(&w);
}

static void two_dashes_begin_the_command(void **state)
{
	struct wanted w;

	(void)state;
	assert_int_equal(parse_with(&w, "-f x -- wine -f -- y", 1, 2, true), STATUS_OK);
	assert_true(w.force);
	assert_int_equal(w.line.arguments.len, 1);
	assert_string_equal(w.line.command[0], "wine");
	assert_string_equal(w.line.command[1], "-f");
	assert_string_equal(w.line.command[2], "--");
	assert_string_equal(w.line.command[3], "y");
	assert_null(w.line.command[4]);
	release(&w);
	assert_int_equal(parse_with(&w, "x", 1, 2, true), STATUS_USAGE);
	assert_string_equal(w.diag.message, "no command given: need -- COMMAND [ARG...], "
					    "try 'tool --help'");
	release(&w);
	assert_int_equal(parse_with(&w, "x --", 1, 2, true), STATUS_USAGE);
	release(&w);
	/* Words in front of it are no command. */
	assert_int_equal(parse_with(&w, "wine y -- z", 0, 0, true), STATUS_USAGE);
	assert_string_equal(w.diag.message,
			    "unexpected argument 'wine', try 'tool --help'");
	release(&w);
}

/* The first fault is told, and a --json behind it is still seen. */
static void parsing_goes_on_after_a_fault(void **state)
{
	struct wanted w;

	(void)state;
	assert_int_equal(parse(&w, "--bad --worse -n x --json -q"), STATUS_USAGE);
	assert_string_equal(w.diag.message, "unknown option '--bad', try 'tool --help'");
	assert_true(w.tool.json);
	assert_true(w.tool.quiet);
	release(&w);
}

static void what_is_required_must_be_given(void **state)
{
	const char *database = NULL, *other = NULL;
	const struct option_spec options[] = {
		OPTION_STRING("other", 0, "X", &other, "not needed"),
		OPTION_STRING("db", 0, "FILE", &database, "needed", .required = true),
	};
	const struct command_spec spec = {.options = options,
					  .option_count = OPTION_COUNT(options)};
	struct tool tool = {.name = "tool", .subcommand = "run"};
	struct command_line line;
	struct diag diag;

	(void)state;
	assert_int_equal(command_line_parse(&tool, &spec, 3,
					    (char *[]){"run", "--other", "x", NULL}, &line,
					    &diag),
			 STATUS_USAGE);
	assert_string_equal(diag.message,
			    "option '--db FILE' is needed, try 'tool run --help'");
	command_line_release(&line);
	assert_int_equal(command_line_parse(&tool, &spec, 2,
					    (char *[]){"run", "--db=x", NULL}, &line,
					    &diag),
			 STATUS_OK);
	assert_string_equal(database, "x");
	command_line_release(&line);
}

static enum status help_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct wanted w = {0};
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &w.output,
			      "write the image to FILE, which must not exist unless the "
			      "next option is given too"),
		OPTION_NUMBER("a-name-that-is-rather-long", 0, "NUMBER", &w.seed, 0, 1, "x",
			      .required = true),
		OPTION_CHOICE("order", 0, "ORDER", &w.order, orders, "sort by it"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description = "Does it, at some length, so that the line must be broken "
			       "somewhere before its end.\n\nThen more.",
		.arguments = "IMAGE",
		.min = 1,
		.max = 1,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	enum status status = command_line_parse(tool, &spec, argc, argv, &w.line, diag);

	if (status == STATUS_OK && !w.line.answered)
		puts("worked");
	command_line_release(&w.line);
	return status;
}

static const struct subcommand help_subcommands[] = {
	{NULL, "do it", help_command},
	{"verify", "check it", help_command},
};

static void help_fits_80_columns(void **state)
{
	static const char expected[] =
		"usage: tool verify [OPTION...] IMAGE\n"
		"\n"
		"Does it, at some length, so that the line must be broken somewhere before "
		"its\n"
		"end.\n"
		"\n"
		"Then more.\n"
		"\n"
		"Options:\n"
		"  -o, --output FILE       write the image to FILE, which must not exist "
		"unless\n"
		"                          the next option is given too\n"
		"      --a-name-that-is-rather-long NUMBER\n"
		"                          x (needed)\n"
		"      --order ORDER       sort by it (one of first-touch, random, file; default:\n"
		"                          first-touch)\n"
		"      --json              print the result as one JSON object\n"
		"  -q, --quiet             no progress and no remarks on stderr\n"
		"  -h, --help              print this help\n"
		"      --version           print the version and those of the libraries\n";
	struct tool tool = {
		.name = "tool", .subcommands = help_subcommands, .subcommand_count = 2};
	struct outcome outcome =
		outcome_of(&tool, (char *[]){"tool", "verify", "--help", NULL}, NULL);

	(void)state;
	assert_int_equal(outcome.exit_code, 0);
	assert_string_equal(outcome.err, "");
	assert_string_equal(outcome.out, expected);
	for (char *line = strtok(outcome.out, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
}

/* Help is the whole answer: no arguments needed, nothing done, no JSON. */
static void help_and_version_answer_alone(void **state)
{
	static const char usage[] = "usage: tool [OPTION...] IMAGE\n"
				    "       tool SUBCOMMAND ...\n";
	static const struct library libraries[] = {{"LIEF", "0.9.0"}};
	static char *const lines[][4] = {
		{"tool", "--help", NULL},
		{"tool", "-h", "x", NULL},
		{"tool", "x", "--json", "--help"},
		{"tool", "--bad", "--help", NULL},
	};
	struct tool tool = {.name = "tool",
			    .subcommands = help_subcommands,
			    .subcommand_count = 2,
			    .libraries = libraries,
			    .library_count = 1};
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *argv[5] = {0};

		memcpy(argv, lines[i], sizeof(lines[i]));
		outcome = outcome_of(&tool, argv, NULL);
		assert_int_equal(outcome.exit_code, 0);
		assert_memory_equal(outcome.out, usage, strlen(usage));
		assert_non_null(
			strstr(outcome.out, "\n  verify                  check it\n"));
		assert_null(strchr(outcome.out, '{'));
		assert_null(strstr(outcome.out, "worked"));
	}
	outcome = outcome_of(&tool, (char *[]){"tool", "--version", NULL}, NULL);
	assert_int_equal(outcome.exit_code, 0);
	assert_memory_equal(outcome.out, "tool ", 5);
	assert_non_null(strstr(outcome.out, "\nLIEF 0.9.0\n"));
	assert_non_null(strstr(outcome.out, "\njansson "));
	assert_non_null(strstr(outcome.out, "\nlibmd "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_given_changes_nothing),
		cmocka_unit_test(long_and_short_forms),
		cmocka_unit_test(lists_take_all_and_others_the_last),
		cmocka_unit_test(choices_give_their_index),
		cmocka_unit_test(numbers_are_plain_and_in_range),
		cmocka_unit_test(faults_name_the_option),
		cmocka_unit_test(abbreviations_are_unknown),
		cmocka_unit_test(arguments_are_counted),
		cmocka_unit_test(two_dashes_begin_the_command),
		cmocka_unit_test(parsing_goes_on_after_a_fault),
		cmocka_unit_test(what_is_required_must_be_given),
		cmocka_unit_test(help_fits_80_columns),
		cmocka_unit_test(help_and_version_answer_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
