/* appulse-reorder translate: RVAs of the original into those of the relinked
 * image, and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

static void report(struct tool *tool, json_t *rows, struct rva from, struct rva to, bool gone)
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

static enum status translate(struct tool *tool, const char *map_path, bool back,
			     const struct string_list *addresses, struct diag *diag)
{
	struct move_map map = {0};
	json_t *rows = result_put_array(&tool->result, tool->result.root, "addresses");
	enum status status = move_map_read(&map, map_path, diag);

	for (uint32_t i = 0; i < addresses->len && status == STATUS_OK; i++) {
		struct rva from = {0}, to;
		bool gone = false;

		status = parse_rva(addresses->data[i], &from, diag);
		if (status != STATUS_OK)
			break;
		to = back ? move_map_backward(&map, from, &gone) : move_map_forward(&map, from);
		report(tool, rows, from, to, gone);
	}
	move_map_release(&map);
	return status;
}

enum status translate_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const char *map = NULL;
	bool back = false;
	const struct option_spec options[] = {
		OPTION_STRING("map", 0, "FILE", &map, "the relink's map", .required = true),
		OPTION_FLAG("back", 0, &back,
			    "from the relinked image to the original, as for a crash address"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description = "Translates RVAs, given in hexadecimal, between the original and "
			       "the relinked image.",
		.arguments = "RVA...", .min = 1, .max = ARGUMENTS_ANY,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = translate(tool, map, back, &line.arguments, diag);
	command_line_release(&line);
	return status;
}
