/* appulse-reorder translate: RVAs of the original into those of the relinked
 * image, and back; single ones, or those in a text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_filter.h"
#include "cli/options.h"
#include "commands.h"
#include "layout/map_file.h"

static enum status parse_rva(const char *text, struct rva *ret_rva, struct diag *diag)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 16);
	if (text[0] == '-' || end == text || *end || errno || value > UINT32_MAX)
		return diag_fail(diag, STATUS_USAGE, "'%s' is no RVA in hexadecimal", text);
	*ret_rva = rva_of((uint32_t)value);
	return STATUS_OK;
}

static void report(struct tool *tool, json_t *rows, struct rva from, struct rva to,
		   bool gone)
{
	json_t *row;

	if (!tool->json) {
		if (gone)
			printf("0x%x -> nothing\n", from.v);
		else
			printf("0x%x -> 0x%x\n", from.v, to.v);
		return;
	}
	row = result_add_object(&tool->result, rows);
	result_put_count(&tool->result, row, "from", from.v);
	if (gone)
		result_put_null(&tool->result, row, "to");
	else
		result_put_count(&tool->result, row, "to", to.v);
}

struct translate_options {
	const char *map;
	const char *module; /* NULL: as the map's file is called */
	bool back, filter;
};

/* ---- single addresses ---- */

static enum status translate(struct tool *tool, const struct move_map *map, bool back,
			     const struct string_list *addresses, struct diag *diag)
{
	json_t *rows = result_put_array(&tool->result, tool->result.root, "addresses");

	for (uint32_t i = 0; i < addresses->len; i++) {
		struct rva from = {0}, to;
		bool gone = false;
		enum status status = parse_rva(addresses->data[i], &from, diag);

		if (status != STATUS_OK)
			return status;
		to = back ? move_map_backward(map, from, &gone)
			  : move_map_forward(map, from);
		report(tool, rows, from, to, gone);
	}
	return STATUS_OK;
}

/* ---- a text ---- */

/* The image's name: that of the map's file without ".map.json".  On the heap. */
static char *module_of_map(const char *path)
{
	static const char ending[] = ".map.json";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name), end = sizeof(ending) - 1;

	if (length > end && strcmp(name + length - end, ending) == 0)
		length -= end;
	return strndup(name, length);
}

static enum status filter_lines(struct address_filter *filter, struct diag *diag)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;
	bool failed;

	errno = 0;
	while ((size = getline(&line, &capacity, stdin)) >= 0 && !ferror(stdout))
		address_filter_line(filter, line, (size_t)size, stdout);
	failed = !ferror(stdout) && !feof(stdin);
	free(line);
	if (failed)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot read the text");
	if (fflush(stdout) != 0 || ferror(stdout))
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot write the text");
	return STATUS_OK;
}

static enum status translate_text(struct tool *tool, const struct move_map *map,
				  const struct translate_options *options,
				  struct diag *diag)
{
	char *module =
		options->module ? strdup(options->module) : module_of_map(options->map);
	struct address_filter filter = {
		.map = map, .module = module, .back = options->back};
	enum status status = module ? filter_lines(&filter, diag) : diag_no_memory(diag);

	if (status == STATUS_OK && filter.gone)
		tool_warn(tool, "addresses without another, left as they are: %llu",
			  (unsigned long long)filter.gone);
	free(module);
	return status;
}

/* ---- the command line ---- */

static enum status check_options(const struct tool *tool, const struct translate_options *o,
				 const struct string_list *addresses, struct diag *diag)
{
	if (!o->filter && addresses->len == 0)
		return diag_fail(
			diag, STATUS_USAGE,
			"too few arguments: need RVA..., or '--filter' for a text");
	if (o->filter && addresses->len > 0)
		return diag_fail(
			diag, STATUS_USAGE,
			"option '--filter' takes the addresses from stdin, not from "
			"the command line");
	if (o->filter && tool->json)
		return diag_fail(diag, STATUS_USAGE,
				 "options '--filter' and '--json' exclude each other: the "
				 "text goes to stdout");
	if (o->module && (!o->filter || !*o->module))
		return diag_fail(diag, STATUS_USAGE,
				 "option '--module' needs '--filter' and a name");
	return STATUS_OK;
}

static enum status translate_all(struct tool *tool, const struct translate_options *o,
				 const struct string_list *addresses, struct diag *diag)
{
	struct move_map map = {0};
	enum status status = check_options(tool, o, addresses, diag);

	if (status == STATUS_OK)
		status = move_map_read(&map, o->map, diag);
	if (status != STATUS_OK)
		return status;
	status = o->filter ? translate_text(tool, &map, o, diag)
			   : translate(tool, &map, o->back, addresses, diag);
	move_map_release(&map);
	return status;
}

enum status translate_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct translate_options o = {0};
	const struct option_spec options[] = {
		OPTION_STRING("map", 0, "FILE", &o.map, "the relink's map",
			      .required = true),
		OPTION_FLAG(
			"back", 0, &o.back,
			"from the relinked image to the original, as for a crash address"),
		OPTION_FLAG("filter", 0, &o.filter,
			    "copy stdin to stdout, with each NAME+0xRVA translated"),
		OPTION_STRING(
			"module", 0, "NAME", &o.module,
			"for --filter: what the text calls the image (default: the map's "
			"name without .map.json)"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Translates RVAs, given in hexadecimal, between the original and "
			"the relinked image.",
		.arguments = "[RVA...]",
		.min = 0,
		.max = ARGUMENTS_ANY,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = translate_all(tool, &o, &line.arguments, diag);
	command_line_release(&line);
	return status;
}
