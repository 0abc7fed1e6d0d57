/* appulse doctor IMAGE: what an image is made of, and what can be done with it. */
#include "cli/name_report.h"
#include "cli/options.h"
#include "doctor.h"
#include "driver_commands.h"
#include "layout/image_file.h"
#include "trace/probed_image.h"

/* Whether the file can be written anew, which both do: it has no bytes that would get
 * lost. */
static enum status check_file(const struct image *image, struct diag *diag)
{
	struct image_file file;
	enum status status = image_file_init(&file, image, diag);

	if (status == STATUS_OK)
		image_file_release(&file);
	return status;
}

/* What must hold for reordering, and for instrumenting too. */
static enum status check_both(struct doctor *d, struct diag *diag)
{
	enum status status = image_refuse_probed(&d->image, diag);

	if (status == STATUS_OK)
		status = image_check_supported(&d->image, diag);
	if (status == STATUS_OK)
		status = check_file(&d->image, diag);
	if (status == STATUS_OK) {
		progress_step(&d->tool->progress, "finding functions");
		status = analysis_discover(&d->graph, &d->image, &d->pin_words, &d->names.set,
					   diag);
		d->discovered = status == STATUS_OK;
	}
	return status;
}

static enum status judge(struct doctor *d, struct diag *diag)
{
	struct doctor_verdict *instrument = &d->instrument, *reorder = &d->reorder;

	diag_init(&reorder->diag);
	diag_init(&instrument->diag);
	reorder->status = check_both(d, &reorder->diag);
	if (reorder->status == STATUS_NO_MEMORY || reorder->status == STATUS_USAGE) {
		*diag = reorder->diag;
		return reorder->status;
	}
	instrument->status = reorder->status;
	instrument->diag = reorder->diag;
	if (instrument->status == STATUS_OK)
		instrument->status = image_check_instrumentable(
			&d->image, &d->contents.exports, &instrument->diag);
	if (d->discovered) {
		function_names_add(&d->graph, &d->names.set, &d->named);
		pin_report_make(&d->graph, &d->pins);
	}
	return STATUS_OK;
}

static enum status examine(struct doctor *d, struct diag *diag)
{
	enum status status;

	progress_step(&d->tool->progress, "reading");
	status = image_open(&d->image, d->path, diag);
	if (status != STATUS_OK) {
		diag_set_file(diag, d->path);
		return status;
	}
	d->open = true;
	d->hash = sha256_of(d->image.bytes, d->image.size);
	status = doctor_read_contents(d, diag);
	if (status == STATUS_OK)
		status = file_names_read(&d->names, &d->name_files, &d->image, diag);
	if (status == STATUS_OK)
		status = judge(d, diag);
	return status;
}

static enum status doctor(struct tool *tool, const char *path,
			  const struct string_list *pins, const struct name_files *names,
			  struct diag *diag)
{
	struct doctor d = {.tool = tool,
			   .path = path,
			   .pin_words = {pins->data, pins->len},
			   .name_files = *names};
	enum status status = examine(&d, diag);

	progress_end(&tool->progress);
	if (status == STATUS_OK) {
		name_report_warn(tool, &d.names, d.discovered ? &d.named : NULL);
		if (tool->json)
			doctor_put(&d);
		else
			doctor_print(&d);
		/* Whoever asks by script hears of the refusal by the exit code. */
		status = d.reorder.status;
		if (status != STATUS_OK)
			*diag = d.reorder.diag;
		diag_set_file(diag, path);
	}
	if (d.discovered)
		graph_release(&d.graph);
	file_names_release(&d.names);
	if (d.open)
		image_release(&d.image);
	return status;
}

enum status doctor_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct string_list pins = {0};
	struct name_files names = {0};
	const struct option_spec options[] = {
		OPTION_LIST("pin", 0, "WHAT", &pins,
			    "pin this code, to see what that costs: as in "
			    "'appulse-reorder --help'"),
		OPTIONS_NAMES(&names),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Tells what IMAGE is made of: who linked and compiled it, which "
			"tables it has, whether it can be instrumented and reordered, how "
			"much of its code may move, what holds the rest, and what can be "
			"done about it. Nothing is written.\n\n"
			"The exit code is 3 when the image is refused; what could be "
			"learnt is printed all the same.",
		.arguments = "IMAGE", .min = 1, .max = 1,
		.options = options, .option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = doctor(tool, line.arguments.data[0], &pins, &names, diag);
	vec_release(&pins);
	command_line_release(&line);
	return status;
}
