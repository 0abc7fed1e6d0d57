/* appulse-reorder IMAGE: analyse, order, place, write, verify, store. */
#include <stdio.h>
#include <string.h>

#include "base/output_task.h"
#include "chosen_order.h"
#include "cli/human.h"
#include "cli/name_report.h"
#include "cli/options.h"
#include "cli/pin_report.h"
#include "commands.h"
#include "graph/analysis.h"
#include "layout/map_file.h"
#include "layout/pdb_rewrite.h"
#include "layout/placement.h"
#include "layout/relink.h"
#include "layout/verify.h"
#include "cli/analysed_image.h"
#include "trace/probed_image.h"

static const char *const placement_names[] = {"exchange", "append", NULL};

struct reorder_options {
	const char *image, *output, *map;
	struct order_request order;
	unsigned placement;      /* enum placement */
	uint64_t file_alignment; /* 0: the image's own */
	struct string_list pins;
	struct name_files names;
	const char *pdb_out; /* NULL: no PDB is written */
	bool force, dry_run, no_verify;
};

/* Everything that the steps make, released at one place. */
struct reorder {
	struct tool *tool;
	const struct reorder_options *options;
	struct analysis analysis;
	struct order order;
	struct order_summary summary;
	struct layout layout;
	struct relinked relinked;
	struct output_task output; /* written while it is verified */
	struct output_file pdb;
	struct pdb_report pdb_report;
	struct verify_report verified;
	struct move_map map;
	char map_path[4096];
};

/* PE/COFF specification, "Optional Header Windows-Specific Fields", FileAlignment. */
static enum status check_alignment(const struct reorder *r, struct diag *diag)
{
	uint32_t limit = r->analysis.image.headers.section_alignment;

	if (r->options->file_alignment > limit)
		return diag_fail(diag, STATUS_USAGE,
				 "option '--file-alignment' is above the image's section alignment "
				 "of %u", limit);
	return STATUS_OK;
}

static enum status analyse(struct reorder *r, struct diag *diag)
{
	const struct analysis_request request = {
		.pins = {r->options->pins.data, r->options->pins.len},
		.names = r->options->names};
	enum status status;

	progress_step(&r->tool->progress, "finding functions");
	status = analysis_open(&r->analysis, r->options->image, &request, diag);
	if (status != STATUS_OK)
		return status;
	status = image_refuse_probed(&r->analysis.image, diag);
	if (status == STATUS_OK)
		status = check_alignment(r, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, r->options->image);
	return status;
}

static enum status lay_out(struct reorder *r, struct diag *diag)
{
	enum status status;

	progress_step(&r->tool->progress, "ordering");
	status = chosen_order_make(&r->analysis, &r->options->order, &r->order, &r->summary,
				   diag);
	if (status == STATUS_OK)
		status = layout_place(&r->analysis.graph, &r->order,
				      (enum placement)r->options->placement, &r->layout, diag);
	return status;
}

static enum status write_image(struct reorder *r, struct diag *diag)
{
	const struct relink_options options = {
		.file_alignment = (uint32_t)r->options->file_alignment,
		.original = r->analysis.hash,
	};

	enum status status;

	progress_step(&r->tool->progress, "writing the image");
	status = relink_write(&r->analysis.graph, &r->layout, &options, &r->relinked, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, r->options->image);
	else if (!r->options->dry_run)
		output_task_start(&r->output, r->options->output, r->options->force,
				  r->relinked.bytes, r->relinked.size, true);
	return status;
}

/* The relinked image as any other; one that cannot be read is a fault of our own. */
static enum status open_relinked(const struct reorder *r, struct image *ret_image,
				 struct diag *diag)
{
	enum status status = image_open_bytes(ret_image, r->relinked.bytes, r->relinked.size,
					      "output", diag);

	if (status == STATUS_OK)
		return STATUS_OK;
	diag->status = STATUS_VERIFY;
	return STATUS_VERIFY;
}

static enum status verify_image(struct reorder *r, struct diag *diag)
{
	struct image image;
	enum status status;

	if (r->options->no_verify)
		return STATUS_OK;
	progress_step(&r->tool->progress, "verifying");
	status = open_relinked(r, &image, diag);
	if (status != STATUS_OK)
		return status;
	status = verify_relink(&r->analysis.graph, &image, r->relinked.moves.data,
			       r->relinked.moves.len, &r->verified, diag);
	image_release(&image);
	return status;
}

static enum status make_map(struct reorder *r, struct diag *diag)
{
	struct move_map *map = &r->map;

	map->original = r->analysis.hash;
	map->relinked = r->output.hash;
	for (uint32_t i = 0; i < r->relinked.moves.len; i++)
		if (!vec_push(&map->moves, r->relinked.moves.data[i]))
			return diag_no_memory(diag);
	return move_map_finish(map, diag);
}

/* The PDB of the original, for the relinked image. */
static enum status rewrite_pdb(struct reorder *r, struct image *relinked, struct diag *diag)
{
	const char *path = r->options->names.pdb;
	struct image *original = &r->analysis.image;
	struct pdb pdb;
	enum status status = pdb_open(&pdb, path, diag);

	if (status != STATUS_OK)
		return status;
	status = pdb_check_image(&pdb, original, diag);
	if (status == STATUS_OK)
		status = pdb_rewrite(&pdb, original, relinked, &r->map, &r->pdb, &r->pdb_report,
				     diag);
	pdb_close(&pdb);
	if (status != STATUS_OK)
		diag_set_file(diag, path);
	return status;
}

/* Writes the PDB beside its target; it appears together with the image. */
static enum status write_pdb(struct reorder *r, struct diag *diag)
{
	const struct reorder_options *o = r->options;
	struct image relinked;
	enum status status;

	if (!o->pdb_out)
		return STATUS_OK;
	progress_step(&r->tool->progress, "writing the PDB");
	status = open_relinked(r, &relinked, diag);
	if (status != STATUS_OK)
		return status;
	status = output_file_open(&r->pdb, o->pdb_out, o->force, diag);
	if (status == STATUS_OK)
		status = rewrite_pdb(r, &relinked, diag);
	image_release(&relinked);
	return status;
}

/* The profile was another build's: this one is not known, or known without runs. */
static enum status put_image(const struct reorder *r, struct db *db, int64_t *ret_id,
			     struct diag *diag)
{
	if (db_find_image(db, &r->analysis.hash, ret_id, NULL) == STATUS_OK)
		return STATUS_OK;
	return db_put_analysed(db, &r->analysis, basename(r->options->image), NULL, ret_id,
			       diag);
}

/* Records the relink in the database that the profile came from. */
static enum status store_relink(struct reorder *r, struct diag *diag)
{
	const struct order_request *order = &r->options->order;
	struct db_relink relink = {
		.output = r->output.hash,
		.output_name = basename(r->options->output), .output_size = r->relinked.size,
		.order = order_names[order->name], .seed = order->seed,
		.placement = placement_names[r->options->placement],
		.move_count = r->relinked.moves.len,
	};
	struct db_move *moves = calloc((size_t)relink.move_count + 1, sizeof(*moves));
	struct db *db = NULL;
	int64_t output;
	enum status status;

	if (!moves)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < relink.move_count; i++)
		moves[i] = (struct db_move){r->relinked.moves.data[i].from,
					    r->relinked.moves.data[i].to,
					    r->relinked.moves.data[i].size};
	relink.moves = moves;
	status = db_open(order->runs.database, DB_READWRITE, &db, diag);
	if (status == STATUS_OK)
		status = r->summary.match.other_build
				 ? put_image(r, db, &relink.image, diag)
				 : db_find_image(db, &r->analysis.hash, &relink.image, diag);
	if (status == STATUS_OK)
		status = db_put_relink(db, &relink, &output, diag);
	db_close(db);
	free(moves);
	return status;
}

/* The image appears last, so that whoever sees it finds its map and PDB too. */
static enum status store(struct reorder *r, struct diag *diag)
{
	enum status status;

	progress_step(&r->tool->progress, "storing");
	status = output_task_wait(&r->output, diag);
	if (status == STATUS_OK)
		status = make_map(r, diag);
	if (status == STATUS_OK)
		status = write_pdb(r, diag);
	if (status == STATUS_OK)
		status = move_map_write(&r->map, r->map_path, r->options->force, diag);
	if (status == STATUS_OK && r->options->order.runs.database)
		status = store_relink(r, diag);
	if (status == STATUS_OK && r->options->pdb_out)
		status = output_file_commit(&r->pdb, 0, diag);
	if (status == STATUS_OK)
		status = output_file_commit(&r->output.file, 0, diag);
	return status;
}

static void report_json(const struct reorder *r, const struct pin_report *pins)
{
	struct result *result = &r->tool->result;
	json_t *image = result_put_object(result, result->root, "image"), *part;
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&r->analysis.hash, hash);
	result_put_text(result, image, "path", r->options->image);
	result_put_text(result, image, "sha256", hash);
	result_put_count(result, image, "size", r->analysis.image.size);
	pin_report_put(pins, result, image);
	name_report_put(&r->analysis.names, &r->analysis.named, result, image);
	part = result_put_object(result, result->root, "order");
	result_put_text(result, part, "name", order_names[r->options->order.name]);
	if (r->options->order.name == ORDER_RANDOM)
		result_put_count(result, part, "seed", r->options->order.seed);
	result_put_count(result, part, "runs", r->summary.runs);
	result_put_count(result, part, "touched_functions", r->summary.touched);
	result_put_count(result, part, "touched_bytes", r->summary.touched_bytes);
	result_put_count(result, part, "unmatched", r->order.unmatched);
	run_match_put(&r->summary.match, result, part);
	result_put_text(result, part, "placement", placement_names[r->options->placement]);
	part = result_put_object(result, result->root, "output");
	result_put_text(result, part, "path", r->options->dry_run ? NULL : r->options->output);
	result_put_text(result, part, "map", r->options->dry_run ? NULL : r->map_path);
	result_put_text(result, part, "pdb", r->options->dry_run ? NULL : r->options->pdb_out);
	result_put_count(result, part, "pdb_fragments", r->pdb_report.fragments);
	result_put_count(result, part, "pdb_ranges", r->pdb_report.ranges);
	result_put_count(result, part, "pdb_old_lines", r->pdb_report.old_lines);
	result_put_count(result, part, "size", r->relinked.size);
	result_put_count(result, part, "moved_blocks", r->relinked.moves.len);
	result_put_count(result, part, "added_code", r->layout.added_size);
	result_put_flag(result, part, "dropped_signature", r->relinked.dropped_signature);
	result_put_flag(result, part, "verified", !r->options->no_verify);
	result_put_count(result, part, "verified_instructions", r->verified.instructions);
	result_put_count(result, part, "verified_references", r->verified.references);
}

static void report_text(const struct reorder *r, const struct pin_report *pins)
{
	pin_report_print(pins, stdout);
	name_report_print(&r->analysis.names, &r->analysis.named, stdout);
	printf("order: %s", order_names[r->options->order.name]);
	if (r->options->order.name == ORDER_RANDOM)
		printf(", seed %llu", (unsigned long long)r->options->order.seed);
	if (r->options->order.name == ORDER_FIRST_TOUCH)
		printf(", %s of %s touched in %s",
		       human_things(r->summary.touched, "function").text,
		       human_things(r->summary.touched_bytes, "byte").text,
		       human_things(r->summary.runs, "run").text);
	printf("\n");
	run_match_print(&r->summary.match);
	printf("moved: %s, placement %s\n",
	       human_things(r->relinked.moves.len, "block").text,
	       placement_names[r->options->placement]);
	printf("size: %s bytes, was %s\n", human_count(r->relinked.size).text,
	       human_count(r->analysis.image.size).text);
	if (!r->options->no_verify)
		printf("verified: %s, %s\n",
		       human_things(r->verified.instructions, "instruction").text,
		       human_things(r->verified.references, "reference").text);
	if (r->options->dry_run)
		return;
	printf("wrote %s and %s\n", r->options->output, r->map_path);
	if (r->options->pdb_out)
		printf("wrote %s\n", r->options->pdb_out);
}

static void report(struct reorder *r)
{
	struct pin_report pins;

	pin_report_make(&r->analysis.graph, &pins);
	name_report_warn(r->tool, &r->analysis.names, &r->analysis.named);
	if (r->relinked.dropped_signature)
		tool_warn(r->tool, "the signature of '%s' was dropped, sign the output again",
			  r->options->image);
	if (r->pdb_report.fragments)
		tool_warn(r->tool, "parts of procedures that the PDB describes without variables "
			  "and inlined functions: %u; of '%s' is the first",
			  r->pdb_report.fragments, r->pdb_report.first);
	if (r->pdb_report.old_lines)
		tool_warn(r->tool, "modules with lines of an old form (C11), which the PDB keeps as "
			  "they were and which are wrong where code has moved: %u",
			  r->pdb_report.old_lines);
	if (r->order.unmatched)
		tool_warn(r->tool, "touched addresses that are no function's start: %u",
			  r->order.unmatched);
	if (r->tool->json)
		report_json(r, &pins);
	else
		report_text(r, &pins);
}

/* No output may take the place of another, or of an input; only the image itself may be
 * replaced by its relink. */
static enum status check_paths(const struct reorder *r, struct diag *diag)
{
	const struct reorder_options *o = r->options;
	const char *const pairs[][2] = {
		{r->map_path, o->image}, {r->map_path, o->output}, {r->map_path, o->order.file},
		{o->output, o->order.file}, {o->output, o->names.pdb},
		{o->output, o->names.linker_map}, {r->map_path, o->names.pdb},
		{r->map_path, o->names.linker_map}, {o->pdb_out, o->image},
		{o->pdb_out, o->output}, {o->pdb_out, r->map_path},
		{o->pdb_out, o->names.pdb}, {o->pdb_out, o->names.linker_map},
		{o->pdb_out, o->order.file},
	};
	const char *const outputs[] = {r->map_path, o->output, o->pdb_out};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && !o->dry_run; i++)
		if (paths_meet(pairs[i][0], pairs[i][1]))
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' and '%s' are one file, an output needs a place "
					 "of its own", pairs[i][0], pairs[i][1]);
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]) && !o->dry_run; i++)
		if (db_uses_path(o->order.runs.database, outputs[i]))
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' is a file of the database '%s', an output needs a "
					 "place of its own", outputs[i], o->order.runs.database);
	return STATUS_OK;
}

static enum status reorder(struct tool *tool, const struct reorder_options *options,
			   struct diag *diag)
{
	struct reorder r = {.tool = tool, .options = options, .pdb.fd = -1};
	enum status status;

	snprintf(r.map_path, sizeof(r.map_path), "%s",
		 options->map ? options->map : "");
	if (!options->map && options->output)
		snprintf(r.map_path, sizeof(r.map_path), "%s.map.json", options->output);
	status = check_paths(&r, diag);
	if (status == STATUS_OK)
		status = analyse(&r, diag);
	if (status == STATUS_OK)
		status = lay_out(&r, diag);
	if (status == STATUS_OK)
		status = write_image(&r, diag);
	if (status == STATUS_OK)
		status = verify_image(&r, diag);
	if (status == STATUS_OK && !options->dry_run)
		status = store(&r, diag);
	progress_end(&tool->progress);
	if (status == STATUS_OK)
		report(&r);
	output_task_discard(&r.output);
	output_file_discard(&r.pdb);
	move_map_release(&r.map);
	relinked_release(&r.relinked);
	layout_release(&r.layout);
	order_release(&r.order);
	analysis_close(&r.analysis);
	return status;
}

/* What the options say together. */
static enum status check_options(const struct reorder_options *o, struct diag *diag)
{
	uint64_t a = o->file_alignment;

	if (!o->output && !o->dry_run)
		return diag_fail(diag, STATUS_USAGE,
				 "no output, say --output FILE or --dry-run; try "
				 "'appulse-reorder --help'");
	if (o->pdb_out && !o->names.pdb)
		return diag_fail(diag, STATUS_USAGE,
				 "option '--pdb-out' needs '--pdb', the PDB of IMAGE; try "
				 "'appulse-reorder --help'");
	if (a && (a & (a - 1)))
		return diag_fail(diag, STATUS_USAGE,
				 "option '--file-alignment' needs a power of two; try "
				 "'appulse-reorder --help'");
	return STATUS_OK;
}

enum status reorder_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct reorder_options o = {
		.order = {.seed = 1, .runs.min_match = MIN_MATCH_DEFAULT}};
	unsigned order = ORDER_FIRST_TOUCH;
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &o.output, "write the relinked image to FILE"),
		OPTION_STRING("db", 'd', "FILE", &o.order.runs.database,
			      "take the profile from this trace database"),
		RUN_SOURCE_OPTIONS(&o.order.runs),
		OPTION_CHOICE("order", 0, "ORDER", &order, order_names,
			      "how the hot code is sorted"),
		OPTION_STRING("order-file", 0, "FILE", &o.order.file,
			      "for order 'file': functions, one a line, by RVA or name"),
		OPTION_NUMBER("seed", 0, "N", &o.order.seed, 0, INT64_MAX,
			      "for order 'random': where it starts (default: 1)"),
		OPTION_CHOICE("placement", 0, "WAY", &o.placement, placement_names,
			      "where the hot code goes"),
		OPTION_NUMBER("file-alignment", 0, "BYTES", &o.file_alignment, 512, 65536,
			      "align sections in the file to BYTES"),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "leave this code where it is: a range of RVAs (0xLO-0xHI), "
			    "the function at an RVA, or one by its name; may be given more "
			    "than once"),
		OPTIONS_NAMES(&o.names),
		OPTION_STRING("pdb-out", 0, "FILE", &o.pdb_out,
			      "write a PDB for the output to FILE, made of that of --pdb"),
		OPTION_STRING("map", 0, "FILE", &o.map,
			      "write the map to FILE (default: OUTPUT.map.json)"),
		OPTION_FLAG("dry-run", 'n', &o.dry_run, "do everything but write files"),
		OPTION_FLAG("no-verify", 0, &o.no_verify, "do not verify the output"),
		OPTION_FLAG("force", 'f', &o.force, "replace existing outputs"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Relinks IMAGE: finds its functions, lays the ones that the profile names "
			"out contiguously, writes the output and proves that it is the original, "
			"moved. No source, no symbols and no linker are needed.",
		.arguments = "IMAGE", .min = 1, .max = 1,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.order.name = (enum order_name)order;
		o.image = line.arguments.data[0];
		status = check_options(&o, diag);
		if (status == STATUS_OK)
			status = reorder(tool, &o, diag);
	}
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
