#include "cli/tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/vec.h"
#include "cli/help.h"
#include "base/utf8.h"
#include "cli/version.h"

const char *tool_version(void)
{
	return APPULSE_VERSION;
}

/* One line on stderr; `text` may come from an untrusted image. */
static void say(struct tool *tool, const char *kind, char *text)
{
	utf8_clean(text, false);
	progress_erase(&tool->progress);
	fprintf(stderr, "%s: %s%s\n", tool->name, kind, text);
}

void tool_note(struct tool *tool, const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	if (tool->quiet)
		return;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	say(tool, "", text);
	free(text);
}

void tool_warn(struct tool *tool, const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		tool->result.failed = true;
		return;
	}
	say(tool, "warning: ", text);
	if (!vec_push(tool, text)) {
		tool->result.failed = true;
		free(text);
	}
}

/* Help or version of a tool without default command; anything else is wrong. */
static enum status answer_without_command(struct tool *tool, int argc, char **argv,
					  struct diag *diag)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word)
		return diag_fail(diag, STATUS_USAGE, "no subcommand given, try '%s --help'",
				 tool->name);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		help_print_tool(tool, stdout);
	else if (strcmp(word, "--version") == 0)
		version_print(tool, stdout);
	else if (word[0] == '-')
		return diag_fail(
			diag, STATUS_USAGE,
			"option '%s' stands before the subcommand, try '%s --help'", word,
			tool->name);
	else
		return diag_fail(diag, STATUS_USAGE,
				 "unknown subcommand '%s', try '%s --help'", word,
				 tool->name);
	return STATUS_OK;
}

static enum status dispatch(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const struct subcommand *subs = tool->subcommands;

	assert(tool->subcommand_count > 0);
	for (unsigned i = 0; argc > 1 && i < tool->subcommand_count; i++) {
		if (!subs[i].name || strcmp(subs[i].name, argv[1]) != 0)
			continue;
		tool->subcommand = subs[i].name;
		return subs[i].run(tool, argc - 1, argv + 1, diag);
	}
	if (!subs[0].name)
		return subs[0].run(tool, argc, argv, diag);
	return answer_without_command(tool, argc, argv, diag);
}

static void put_known(struct result *r, json_t *object, const char *key, const char *text)
{
	if (text[0])
		result_put_text(r, object, key, text);
}

static void put_error(struct result *r, json_t *root, const struct diag *diag)
{
	json_t *error = result_put_object(r, root, "error");

	result_put_text(r, error, "message", diag->message);
	put_known(r, error, "file", diag->file);
	put_known(r, error, "function", diag->function);
	if (diag->has_rva)
		result_put_count(r, error, "rva", diag->rva.v);
	put_known(r, error, "expected", diag->expected);
	put_known(r, error, "found", diag->found);
}

/* To a tenth of a millisecond: more would be noise. */
static double rounded(double seconds)
{
	return (double)(uint64_t)(seconds * 1e4 + 0.5) / 1e4;
}

/* The whole object: head, what the command has put, warnings and steps. */
static enum status print_result(struct tool *tool, enum status status,
				const struct diag *failure, struct diag *diag)
{
	struct result r;
	json_t *array;
	enum status printed;

	result_init(&r);
	r.failed |= tool->result.failed;
	result_put_text(&r, r.root, "tool", tool->name);
	if (tool->subcommand)
		result_put_text(&r, r.root, "command", tool->subcommand);
	result_put_text(&r, r.root, "version", tool_version());
	result_put_count(&r, r.root, "schema", RESULT_SCHEMA);
	result_put_text(&r, r.root, "status", status_name(status));
	result_put_count(&r, r.root, "exit_code", (uint64_t)status_exit_code(status));
	if (status != STATUS_OK)
		put_error(&r, r.root, failure);
	if (json_object_update(r.root, tool->result.root) != 0)
		r.failed = true;
	array = result_put_array(&r, r.root, "warnings");
	for (uint32_t i = 0; i < tool->len; i++)
		result_add_text(&r, array, tool->data[i]);
	array = result_put_array(&r, r.root, "steps");
	for (uint32_t i = 0; i < tool->progress.len; i++) {
		json_t *step = result_add_object(&r, array);

		result_put_text(&r, step, "name", tool->progress.data[i].name);
		result_put_real(&r, step, "seconds",
				rounded(tool->progress.data[i].seconds));
	}
	printed = result_print(&r, stdout, diag);
	result_release(&r);
	return printed;
}

/* The one report of a failure. */
static void report(struct tool *tool, enum status status, const struct diag *diag)
{
	char text[sizeof(struct diag)];
	const char *reason = status_name(status);

	diag_format(diag, text, sizeof(text));
	utf8_clean(text, false);
	progress_erase(&tool->progress);
	if (status_exit_code(status) == 3)
		fprintf(stderr, "%s: %s [%s]\n", tool->name, text, reason);
	else
		fprintf(stderr, "%s: %s\n", tool->name, text[0] ? text : reason);
}

/* Flushes stdout, reports, and releases what the run holds. */
static int finish(struct tool *tool, enum status status, struct diag *diag)
{
	struct diag late;
	enum status written = STATUS_OK;

	diag_init(&late);
	progress_end(&tool->progress);
	if (tool->json)
		written = print_result(tool, status, diag, &late);
	if (written == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout)))
		written = diag_fail_errno(&late, STATUS_IO, errno ? errno : EIO,
					  "cannot write to the standard output");
	if (status == STATUS_OK && written != STATUS_OK) {
		status = written;
		*diag = late;
	}
	if (status != STATUS_OK)
		report(tool, status, diag);
	for (uint32_t i = 0; i < tool->len; i++)
		free(tool->data[i]);
	vec_release(tool);
	result_release(&tool->result);
	progress_release(&tool->progress);
	return status_exit_code(status);
}

/* A file that is opened while one of the three is closed would get its number, and what is
 * meant for the one would go into the other.  Reading and writing still fail. */
static void open_standard_files(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", modes[fd]);
}

int tool_main(struct tool *tool, int argc, char **argv)
{
	struct diag diag;
	enum status status;

	open_standard_files();
	memory_keep_freed();
	diag_init(&diag);
	result_init(&tool->result);
	status = dispatch(tool, argc, argv, &diag);
	return finish(tool, status, &diag);
}
