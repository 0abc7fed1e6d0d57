/* appulse-reorder verify OLD NEW: the verifier on its own. */
#include <stdio.h>

#include "cli/human.h"
#include "cli/options.h"
#include "commands.h"
#include "graph/analysis.h"
#include "layout/map_file.h"
#include "layout/verify.h"

struct verify_options {
	const char *original, *relinked;
	char map_path[4096];
	struct string_list pins;
};

static enum status check_hash(const char *path, const struct sha256 *hash,
			      const struct sha256 *expected, struct diag *diag)
{
	if (memcmp(hash->bytes, expected->bytes, sizeof(hash->bytes)) != 0) {
		enum status status = diag_fail(diag, STATUS_OTHER_IMAGE,
					       "the map was made for another file");

		diag_set_file(diag, path);
		return status;
	}
	return STATUS_OK;
}

static void report(struct tool *tool, const struct verify_report *verified, uint32_t moves)
{
	struct result *result = &tool->result;

	if (!tool->json) {
		printf("verified: %s moved, %s, %s, %s, %s, %s\n",
		       human_things(moves, "block").text,
		       human_things(verified->functions, "function").text,
		       human_things(verified->instructions, "instruction").text,
		       human_things(verified->references, "reference").text,
		       human_things(verified->relocations, "relocation").text,
		       human_things(verified->table_entries, "table row").text);
		return;
	}
	result_put_count(result, result->root, "moved_blocks", moves);
	result_put_count(result, result->root, "functions", verified->functions);
	result_put_count(result, result->root, "instructions", verified->instructions);
	result_put_count(result, result->root, "references", verified->references);
	result_put_count(result, result->root, "relocations", verified->relocations);
	result_put_count(result, result->root, "table_entries", verified->table_entries);
}

static enum status verify(struct tool *tool, const struct verify_options *o, struct diag *diag)
{
	struct analysis original = {0};
	struct image relinked = {0};
	struct move_map map = {0};
	struct verify_report verified = {0};
	const struct pin_words pins = {o->pins.data, o->pins.len};
	struct sha256 hash;
	bool open = false;
	enum status status;

	progress_step(&tool->progress, "reading");
	status = move_map_read(&map, o->map_path, diag);
	if (status == STATUS_OK)
		status = analysis_open(&original, o->original, &pins, diag);
	if (status == STATUS_OK) {
		status = image_open(&relinked, o->relinked, diag);
		open = status == STATUS_OK;
	}
	if (status == STATUS_OK)
		status = check_hash(o->original, &original.hash, &map.original, diag);
	if (status == STATUS_OK) {
		hash = sha256_of(relinked.bytes, relinked.size);
		status = check_hash(o->relinked, &hash, &map.relinked, diag);
	}
	progress_step(&tool->progress, "verifying");
	if (status == STATUS_OK)
		status = verify_relink(&original.graph, &relinked, map.moves.data, map.moves.len,
				       &verified, diag);
	if (status == STATUS_VERIFY)
		diag_set_file(diag, o->relinked);
	progress_end(&tool->progress);
	if (status == STATUS_OK)
		report(tool, &verified, map.moves.len);
	if (open)
		image_release(&relinked);
	analysis_close(&original);
	move_map_release(&map);
	return status;
}

enum status verify_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct verify_options o = {0};
	const char *map = NULL;
	const struct option_spec options[] = {
		OPTION_STRING("map", 0, "FILE", &map,
			      "where each block went (default: NEW.map.json)"),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "prove that this code of OLD has not moved: as in "
			    "'appulse-reorder --help'"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Proves that NEW is OLD with its blocks moved as the map says: reads NEW "
			"afresh and compares every instruction, reference and table. Ends with "
			"exit code 4 and the first difference when it is not.",
		.arguments = "OLD NEW", .min = 2, .max = 2,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.original = line.arguments.data[0];
		o.relinked = line.arguments.data[1];
		snprintf(o.map_path, sizeof(o.map_path), map ? "%s" : "%s.map.json",
			 map ? map : o.relinked);
		status = verify(tool, &o, diag);
	}
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
