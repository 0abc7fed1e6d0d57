#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/tool.h"

#include "outcome.h"

/* A command that can do all that commands do: each argument is one deed. */
static enum status deed_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const struct option_spec options[] = {OPTIONS_COMMON(tool)};
	const struct command_spec spec = {.description = "Does deeds.",
					  .arguments = "DEED...",
					  .min = 0,
					  .max = ARGUMENTS_ANY,
					  .options = options,
					  .option_count = OPTION_COUNT(options)};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	for (uint32_t i = 0; status == STATUS_OK && i < line.arguments.len; i++) {
		const char *deed = line.arguments.data[i];

		if (strcmp(deed, "say") == 0)
			printf("said by %s\n", argv[0]);
		else if (strcmp(deed, "note") == 0)
			tool_note(tool, "%d remarks", 2);
		else if (strcmp(deed, "warn") == 0)
			tool_warn(tool, "name '%s'", "a\033[m\xff");
		else if (strcmp(deed, "step") == 0)
			progress_step(&tool->progress, "stepping");
		else if (strcmp(deed, "put") == 0)
			result_put_count(&tool->result, tool->result.root, "pages", 87);
		else if (strcmp(deed, "fail") == 0)
			status = diag_fail(diag, STATUS_NO_ROOM, "no room");
		else if (strcmp(deed, "refuse") == 0)
			status = diag_fail_at(diag, STATUS_MALFORMED, rva_of(0x1000),
					      "bad\nrow");
	}
	if (strcmp(argv[0], "silent") == 0)
		status = STATUS_VERIFY;
	if (status == STATUS_MALFORMED) {
		diag_set_file(diag, "x.dll");
		diag_set_function(diag, "f");
		diag_set_values(diag, "1", "2");
	}
	command_line_release(&line);
	return status;
}

static const struct subcommand subcommands[] = {
	{NULL, "do deeds", deed_command},
	{"other", "do others", deed_command},
	{"silent", "fail without a word", deed_command},
};

/* Runs `tool` with the words, with or without its default command. */
static struct outcome run(bool has_default, char **argv)
{
	struct tool tool = {.name = "tool",
			    .description = "A tool.",
			    .subcommands = subcommands + !has_default,
			    .subcommand_count = 3 - !has_default};

	return outcome_of(&tool, argv, NULL);
}

#define RUN(...) run(true, (char *[]){"tool", __VA_ARGS__, NULL})
#define RUN_WITHOUT_DEFAULT(...) run(false, (char *[]){"tool", __VA_ARGS__, NULL})

static json_t *parsed(const struct outcome *outcome)
{
	json_t *object = json_loads(outcome->out, 0, NULL);

	if (!object)
		fail_msg("no JSON: %s", outcome->out);
	return object;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "(no text)";
}

static void the_first_word_chooses_the_command(void **state)
{
	struct outcome o;

	(void)state;
	o = RUN("say");
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(o.out, "said by tool\n");
	o = RUN("other", "say");
	assert_string_equal(o.out, "said by other\n");
	/* Elsewhere the word is an argument. */
	o = RUN("say", "other");
	assert_string_equal(o.out, "said by tool\n");
	o = RUN_WITHOUT_DEFAULT("other", "say");
	assert_string_equal(o.out, "said by other\n");
}

static void without_default_the_first_word_must_be_one(void **state)
{
	struct outcome o;

	(void)state;
	o = run(false, (char *[]){"tool", NULL});
	assert_int_equal(o.exit_code, 2);
	assert_string_equal(o.err, "tool: no subcommand given, try 'tool --help'\n");
	o = RUN_WITHOUT_DEFAULT("say");
	assert_int_equal(o.exit_code, 2);
	assert_string_equal(o.err, "tool: unknown subcommand 'say', try 'tool --help'\n");
	o = RUN_WITHOUT_DEFAULT("-q", "other");
	assert_int_equal(o.exit_code, 2);
	assert_string_equal(
		o.err,
		"tool: option '-q' stands before the subcommand, try 'tool --help'\n");
	o = RUN_WITHOUT_DEFAULT("--help");
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(o.err, "");
	assert_non_null(strstr(o.out, "usage: tool SUBCOMMAND"));
	assert_non_null(strstr(o.out, "A tool.\n"));
	assert_non_null(strstr(o.out, "  other                   do others\n"));
	o = RUN_WITHOUT_DEFAULT("--version");
	assert_int_equal(o.exit_code, 0);
	assert_non_null(strstr(o.out, "jansson"));
}

static void a_subcommand_names_itself_in_hints(void **state)
{
	struct outcome o = RUN("other", "--bad");

	(void)state;
	assert_int_equal(o.exit_code, 2);
	assert_string_equal(o.err,
			    "tool: unknown option '--bad', try 'tool other --help'\n");
	assert_string_equal(o.out, "");
}

static void a_failure_is_told_once(void **state)
{
	struct outcome o;

	(void)state;
	o = RUN("fail");
	assert_int_equal(o.exit_code, 1);
	assert_string_equal(o.out, "");
	assert_string_equal(o.err, "tool: no room\n");
	/* A refusal has its reason; no name from an image breaks the line. */
	o = RUN("refuse");
	assert_int_equal(o.exit_code, 3);
	assert_string_equal(o.err,
			    "tool: 'x.dll': bad?row (in 'f', at RVA 0x1000, expected "
			    "1, found 2) [malformed]\n");
	/* A failure without a message has its status at least. */
	o = RUN("silent");
	assert_int_equal(o.exit_code, 4);
	assert_string_equal(o.err, "tool: verification-failed\n");
}

static void quiet_keeps_warnings_only(void **state)
{
	struct outcome o;

	(void)state;
	o = RUN("note", "warn");
	assert_string_equal(o.err, "tool: 2 remarks\ntool: warning: name 'a?[m?'\n");
	o = RUN("--quiet", "note", "warn");
	assert_string_equal(o.err, "tool: warning: name 'a?[m?'\n");
	assert_int_equal(o.exit_code, 0);
}

static void json_tells_the_whole_run(void **state)
{
	struct outcome o = RUN("other", "--json", "put", "warn", "step", "step");
	json_t *object = parsed(&o), *steps, *warnings;

	(void)state;
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(text_of(object, "tool"), "tool");
	assert_string_equal(text_of(object, "command"), "other");
	assert_string_equal(text_of(object, "version"), tool_version());
	assert_int_equal(json_integer_value(json_object_get(object, "schema")), 1);
	assert_string_equal(text_of(object, "status"), "ok");
	assert_int_equal(json_integer_value(json_object_get(object, "exit_code")), 0);
	assert_true(json_is_integer(json_object_get(object, "exit_code")));
	assert_null(json_object_get(object, "error"));
	assert_int_equal(json_integer_value(json_object_get(object, "pages")), 87);
	warnings = json_object_get(object, "warnings");
	assert_int_equal(json_array_size(warnings), 1);
	assert_string_equal(json_string_value(json_array_get(warnings, 0)), "name 'a?[m?'");
	steps = json_object_get(object, "steps");
	assert_int_equal(json_array_size(steps), 2);
	assert_string_equal(text_of(json_array_get(steps, 1), "name"), "stepping");
	assert_true(json_is_number(json_object_get(json_array_get(steps, 1), "seconds")));
	json_decref(object);
}

static void json_tells_a_failure_as_stderr_does(void **state)
{
	struct outcome o = RUN("--json", "put", "refuse");
	json_t *object = parsed(&o), *error = json_object_get(object, "error");

	(void)state;
	assert_int_equal(o.exit_code, 3);
	assert_non_null(strstr(o.err, "[malformed]"));
	assert_string_equal(text_of(object, "status"), "malformed");
	assert_int_equal(json_integer_value(json_object_get(object, "exit_code")), 3);
	assert_null(json_object_get(object, "command"));
	assert_string_equal(text_of(error, "message"), "bad\nrow");
	assert_string_equal(text_of(error, "file"), "x.dll");
	assert_string_equal(text_of(error, "function"), "f");
	assert_int_equal(json_integer_value(json_object_get(error, "rva")), 0x1000);
	assert_string_equal(text_of(error, "expected"), "1");
	assert_string_equal(text_of(error, "found"), "2");
	/* What was done until then stands there too. */
	assert_int_equal(json_integer_value(json_object_get(object, "pages")), 87);
	json_decref(object);

	o = RUN("--bad", "--json");
	object = parsed(&o);
	assert_int_equal(o.exit_code, 2);
	assert_string_equal(text_of(object, "status"), "usage");
	error = json_object_get(object, "error");
	assert_null(json_object_get(error, "rva"));
	assert_null(json_object_get(error, "file"));
	json_decref(object);
}

/* Whatever is printed: text, help, an object. */
static void an_stdout_that_is_full_is_a_failure(void **state)
{
	static char *const lines[][4] = {{"tool", "say", NULL},
					 {"tool", "--help", NULL},
					 {"tool", "--version", NULL},
					 {"tool", "--json", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct tool tool = {
			.name = "tool", .subcommands = subcommands, .subcommand_count = 1};
		char *argv[4];
		struct outcome o;

		memcpy(argv, lines[i], sizeof(argv));
		o = outcome_of(&tool, argv, "/dev/full");
		assert_int_equal(o.exit_code, 1);
		assert_non_null(strstr(o.err, ": No space left on device\n"));
	}
}

/* The first failure counts, not that it could not be printed as JSON. */
static void a_failure_is_not_replaced_by_a_full_stdout(void **state)
{
	struct tool tool = {
		.name = "tool", .subcommands = subcommands, .subcommand_count = 1};
	struct outcome o = outcome_of(&tool, (char *[]){"tool", "--json", "refuse", NULL},
				      "/dev/full");

	(void)state;
	assert_int_equal(o.exit_code, 3);
	assert_non_null(strstr(o.err, "[malformed]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_word_chooses_the_command),
		cmocka_unit_test(without_default_the_first_word_must_be_one),
		cmocka_unit_test(a_subcommand_names_itself_in_hints),
		cmocka_unit_test(a_failure_is_told_once),
		cmocka_unit_test(quiet_keeps_warnings_only),
		cmocka_unit_test(json_tells_the_whole_run),
		cmocka_unit_test(json_tells_a_failure_as_stderr_does),
		cmocka_unit_test(an_stdout_that_is_full_is_a_failure),
		cmocka_unit_test(a_failure_is_not_replaced_by_a_full_stdout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
