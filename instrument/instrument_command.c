/* appulse-instrument IMAGE: analyse, plan the probes, write, check, store. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/output_task.h"
#include "cli/companion.h"
#include "cli/human.h"
#include "cli/name_report.h"
#include "cli/options.h"
#include "cli/pin_report.h"
#include "commands.h"
#include "graph/analysis.h"
#include "pe/image_kind.h"
#include "pe/relocations.h"
#include "pe/unwind_info.h"
#include "probe_plan.h"
#include "probe_writer.h"
#include "cli/analysed_image.h"
#include "trace/probe.h"
#include "trace/probed_image.h"

enum { AGENT_NAME_LIMIT = 63, PATH_LIMIT = 4096 };

struct instrument_options {
	const char *image, *output, *database, *agent_name;
	struct string_list only, skip, pins;
	struct name_files names;
	bool force;
};

/* Everything that the steps make, released at one place. */
struct instrument {
	struct tool *tool;
	const struct instrument_options *options;
	struct analysis analysis;
	struct probe_plan plan;
	struct probed probed;
	struct output_task output; /* written while it is checked */
	char *agent;                 /* owned: the path of the agent to lay beside the output */
	char agent_path[PATH_LIMIT]; /* where it goes */
};

/* Whether nothing but the agent itself may carry the agent's name. */
static enum status check_agent_name(const struct instrument *in, struct diag *diag)
{
	const struct image *image = &in->analysis.image;
	const char *agent = in->options->agent_name;

	for (uint32_t i = 0; i < image->import_count; i++)
		if (strcasecmp(image->imports[i].dll, agent) == 0)
			return diag_fail(diag, STATUS_USAGE,
					 "the image imports a '%s' of its own, choose another "
					 "--agent-name", agent);
	return STATUS_OK;
}

static enum status analyse(struct instrument *in, struct diag *diag)
{
	const struct analysis_request request = {
		.pins = {in->options->pins.data, in->options->pins.len},
		.names = in->options->names};
	const struct image *image = &in->analysis.image;
	enum status status;

	progress_step(&in->tool->progress, "finding functions");
	status = analysis_open(&in->analysis, in->options->image, &request, diag);
	if (status != STATUS_OK)
		return status;
	status = image_refuse_probed(image, diag);
	if (status == STATUS_OK)
		status = image_check_instrumentable(
			image, &in->analysis.graph.tables.exports, diag);
	if (status == STATUS_OK)
		status = check_agent_name(in, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, in->options->image);
	return status;
}

static enum status plan_probes(struct instrument *in, struct diag *diag)
{
	const struct probe_filter filter = {
		.only = in->options->only.data, .only_count = in->options->only.len,
		.skip = in->options->skip.data, .skip_count = in->options->skip.len,
	};
	enum status status = probe_plan_make(&in->analysis.graph, &filter, &in->plan, diag);

	if (status == STATUS_OK && in->plan.functions.len == 0) {
		status = diag_fail(diag, STATUS_NOT_FOUND, "no function to put a probe on");
		diag_set_file(diag, in->options->image);
	}
	return status;
}

static enum status write_image(struct instrument *in, struct diag *diag)
{
	const struct probe_options options = {.agent = in->options->agent_name,
					      .name = basename(in->options->image),
					      .hash = in->analysis.hash};

	enum status status;

	progress_step(&in->tool->progress, "adding probes");
	status = probe_write(&in->analysis.graph, &in->plan, &options, &in->probed, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, in->options->image);
	else
		output_task_start(&in->output, in->options->output, in->options->force,
				  in->probed.bytes, in->probed.size, false);
	return status;
}

/* Reads the output as a loader would: its tables must be whole and in order. */
static enum status check_image(struct instrument *in, struct diag *diag)
{
	struct image image;
	struct relocations relocations;
	struct function_table functions;
	enum status status;

	progress_step(&in->tool->progress, "checking");
	status = image_open_bytes(&image, in->probed.bytes, in->probed.size, "output", diag);
	if (status == STATUS_OK) {
		status = relocations_read(&image, &relocations, diag);
		if (status == STATUS_OK)
			status = function_table_read(&image, &functions, diag);
		image_release(&image);
	}
	if (status != STATUS_OK && status != STATUS_NO_MEMORY)
		diag->status = status = STATUS_VERIFY;
	return status;
}

/* The image and its functions, so that traces can be read. */
static enum status store_image(struct instrument *in, struct diag *diag)
{
	struct db *db = NULL;
	int64_t id;
	enum status status = db_open(in->options->database, DB_CREATE, &db, diag);

	if (status == STATUS_OK)
		status = db_put_analysed(db, &in->analysis, basename(in->options->image),
					 in->plan.probe_of, &id, diag);
	db_close(db);
	return status;
}

/* Whether the file at `path` holds these bytes. */
static bool holds_bytes(const char *path, const struct mapped_file *bytes)
{
	struct mapped_file file;
	bool same;

	if (mapped_file_open(&file, path, NULL) != STATUS_OK)
		return false;
	same = file.size == bytes->size &&
	       (file.size == 0 || memcmp(file.data, bytes->data, file.size) == 0);
	mapped_file_close(&file);
	return same;
}

/* The agent that is there already is left alone when it is the same. */
static enum status store_agent(struct instrument *in, struct diag *diag)
{
	struct mapped_file agent;
	enum status status = mapped_file_open(&agent, in->agent, diag);

	if (status != STATUS_OK)
		return status;
	if (!holds_bytes(in->agent_path, &agent))
		status = file_write(in->agent_path, agent.data, agent.size, in->options->force,
				    diag);
	mapped_file_close(&agent);
	return status;
}

/* The image appears last: whoever sees it finds its agent and its functions. */
static enum status store(struct instrument *in, struct diag *diag)
{
	enum status status;

	progress_step(&in->tool->progress, "storing");
	status = output_task_wait(&in->output, diag);
	if (status == STATUS_OK)
		status = store_image(in, diag);
	if (status == STATUS_OK)
		status = store_agent(in, diag);
	if (status == STATUS_OK)
		status = output_file_commit(&in->output.file, 0, diag);
	return status;
}

static void report_json(const struct instrument *in, const struct pin_report *pins)
{
	struct result *result = &in->tool->result;
	json_t *image = result_put_object(result, result->root, "image"), *part;
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&in->analysis.hash, hash);
	result_put_text(result, image, "path", in->options->image);
	result_put_text(result, image, "sha256", hash);
	result_put_count(result, image, "size", in->analysis.image.size);
	pin_report_put(pins, result, image);
	name_report_put(&in->analysis.names, &in->analysis.named, result, image);
	part = result_put_object(result, result->root, "probes");
	result_put_count(result, part, "count", in->plan.functions.len);
	result_put_count(result, part, "unreachable", in->plan.unreachable);
	result_put_count(result, part, "doubtful", in->plan.doubtful);
	result_put_count(result, part, "filtered", in->plan.filtered);
	result_put_count(result, part, "pinned", in->plan.pinned);
	part = result_put_object(result, result->root, "output");
	result_put_text(result, part, "path", in->options->output);
	result_put_count(result, part, "size", in->probed.size);
	result_put_text(result, part, "agent", in->agent_path);
	result_put_text(result, part, "db", in->options->database);
	result_put_flag(result, part, "dropped_signature", in->probed.dropped_signature);
}

static void report_text(const struct instrument *in, const struct pin_report *pins)
{
	printf("probes: %s of %s\n", human_count(in->plan.functions.len).text,
	       human_things(pins->functions, "function").text);
	if (in->plan.unreachable)
		printf("  none, nothing refers to it: %s\n",
		       human_things(in->plan.unreachable, "function").text);
	if (in->plan.doubtful)
		printf("  none, perhaps no code: %s\n",
		       human_things(in->plan.doubtful, "function").text);
	if (in->plan.filtered)
		printf("  none, left out by --only and --skip: %s\n",
		       human_things(in->plan.filtered, "function").text);
	if (in->plan.pinned)
		printf("  none, named by --pin: %s\n",
		       human_things(in->plan.pinned, "function").text);
	pin_report_print(pins, stdout);
	name_report_print(&in->analysis.names, &in->analysis.named, stdout);
	printf("size: %s bytes, was %s\n", human_count(in->probed.size).text,
	       human_count(in->analysis.image.size).text);
	printf("wrote %s, %s and %s\n", in->options->output, in->agent_path,
	       in->options->database);
}

static void report(struct instrument *in)
{
	struct pin_report pins;

	pin_report_make(&in->analysis.graph, &pins);
	name_report_warn(in->tool, &in->analysis.names, &in->analysis.named);
	if (in->probed.dropped_signature)
		tool_warn(in->tool, "the signature of '%s' was dropped", in->options->image);
	if (in->tool->json)
		report_json(in, &pins);
	else
		report_text(in, &pins);
}

/* The agent's place: the output's folder. */
static enum status find_agent(struct instrument *in, struct diag *diag)
{
	static const struct companion agent = {
		.name = PROBE_AGENT_DLL, .variable = PROBE_AGENT_VARIABLE, .folder = "agent"};
	const char *output = in->options->output;
	int folder = (int)(basename(output) - output);
	int used = snprintf(in->agent_path, sizeof(in->agent_path), "%.*s%s", folder, output,
			    in->options->agent_name);

	if (used < 0 || (size_t)used >= sizeof(in->agent_path))
		return diag_fail(diag, STATUS_USAGE, "the path of '%s' is too long", output);
	return companion_find(&agent, &in->agent, diag);
}

/* No output may take the place of another, or of the input. */
static enum status check_paths(const struct instrument *in, struct diag *diag)
{
	const struct instrument_options *o = in->options;
	const char *const pairs[][2] = {
		{o->database, o->image}, {in->agent_path, o->image},
		{o->output, o->names.pdb}, {o->output, o->names.linker_map},
		{in->agent_path, o->names.pdb}, {in->agent_path, o->names.linker_map},
		{o->database, o->names.pdb}, {o->database, o->names.linker_map},
	};
	const char *const outputs[] = {o->output, in->agent_path};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (paths_meet(pairs[i][0], pairs[i][1]))
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' and '%s' are one file, an output needs a place "
					 "of its own", pairs[i][0], pairs[i][1]);
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (db_uses_path(o->database, outputs[i]))
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' is a file of the database '%s', an output needs a "
					 "place of its own", outputs[i], o->database);
	return STATUS_OK;
}

static enum status instrument(struct tool *tool, const struct instrument_options *options,
			      struct diag *diag)
{
	struct instrument in = {.tool = tool, .options = options};
	enum status status = find_agent(&in, diag);

	if (status == STATUS_OK)
		status = check_paths(&in, diag);
	if (status == STATUS_OK)
		status = analyse(&in, diag);
	if (status == STATUS_OK)
		status = plan_probes(&in, diag);
	if (status == STATUS_OK)
		status = write_image(&in, diag);
	if (status == STATUS_OK)
		status = check_image(&in, diag);
	if (status == STATUS_OK)
		status = store(&in, diag);
	progress_end(&tool->progress);
	if (status == STATUS_OK)
		report(&in);
	output_task_discard(&in.output);
	free(in.agent);
	probed_release(&in.probed);
	probe_plan_release(&in.plan);
	analysis_close(&in.analysis);
	return status;
}

/* What Windows' loader finds under the very name: it adds ".dll" to names without an
 * extension (Microsoft Learn, "LoadLibraryW function"). */
static bool is_dll_name(const char *name)
{
	size_t length = strlen(name);

	if (length <= 4 || length > AGENT_NAME_LIMIT || strcasecmp(name + length - 4, ".dll") != 0)
		return false;
	for (size_t i = 0; i < length; i++)
		if (name[i] < ' ' || name[i] > '~' || strchr("/\\:*?\"<>|", name[i]))
			return false;
	return true;
}

static enum status check_options(const struct instrument_options *o, struct diag *diag)
{
	if (!is_dll_name(o->agent_name))
		return diag_fail(diag, STATUS_USAGE,
				 "option '--agent-name' needs the file name of a DLL, of at most "
				 "%d plain characters; try 'appulse-instrument --help'",
				 AGENT_NAME_LIMIT);
	if (strcasecmp(basename(o->output), o->agent_name) == 0)
		return diag_fail(diag, STATUS_USAGE,
				 "the output '%s' has the name of the agent, choose another "
				 "--agent-name", o->output);
	return STATUS_OK;
}

enum status instrument_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct instrument_options o = {.agent_name = PROBE_AGENT_DLL};
	const struct option_spec options[] = {
		OPTION_STRING("output", 'o', "FILE", &o.output,
			      "write the instrumented image to FILE, the agent beside it",
			      .required = true),
		OPTION_STRING("db", 'd', "FILE", &o.database,
			      "note the image's functions in this trace database",
			      .required = true),
		OPTION_STRING("agent-name", 0, "NAME", &o.agent_name,
			      "file name of the agent DLL (default: " PROBE_AGENT_DLL ")"),
		OPTION_LIST("only", 0, "GLOB", &o.only,
			    "probe only functions whose name (or RVA) matches"),
		OPTION_LIST("skip", 0, "GLOB", &o.skip,
			    "leave out functions whose name (or RVA) matches"),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "leave this code alone, without probes: a range of RVAs "
			    "(0xLO-0xHI), the function at an RVA, or one by its name; may "
			    "be given more than once"),
		OPTIONS_NAMES(&o.names),
		OPTION_FLAG("force", 'f', &o.force, "replace existing outputs"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Adds a probe to every function of IMAGE: a run of the output records which "
			"functions it touches, and in which order. No function moves, and a "
			"program runs on as before when nobody records.",
		.arguments = "IMAGE", .min = 1, .max = 1,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.image = line.arguments.data[0];
		status = check_options(&o, diag);
		if (status == STATUS_OK)
			status = instrument(tool, &o, diag);
	}
	vec_release(&o.only);
	vec_release(&o.skip);
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
