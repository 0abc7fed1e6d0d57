/* appulse optimize: instrument, profile and reorder a program's images in one command,
 * and show what it brought.
 *
 * The images are swapped where they stand, and put back (swap.c), rather than run from a
 * private copy of the program's folder.  Only that works for every command: one that
 * names its program by an absolute path, a script that does, a DLL that is found through
 * PATH or a registry entry, a program of many gigabytes.  A copy would look safe and
 * silently profile the wrong file.
 *
 * The originals are back between the steps too: they are what is analysed, and they are
 * absent only while the command runs.  Nothing is written to the output folder before
 * everything has worked.
 */
#include "cli/options.h"
#include "driver_commands.h"
#include "optimize.h"

static enum status optimize(struct optimize *o, struct diag *diag)
{
	/* Locks, and puts right what a killed run left. */
	enum status status = optimize_prepare(o, diag);

	/* An image that cannot be optimized is refused before anything runs. */
	if (status == STATUS_OK)
		status = optimize_instrument(o, diag);

	/* The command must work as it is; what it touches now is the measure. */
	if (status == STATUS_OK)
		status = optimize_measure(o, diag);

	/* What it touches first, some runs together: threads race. */
	if (status == STATUS_OK)
		status = optimize_profile(o, diag);

	/* The tool verifies what it writes. */
	if (status == STATUS_OK)
		status = optimize_relink(o, diag);

	/* The proof of the pudding. */
	if (status == STATUS_OK)
		status = optimize_check(o, diag);
	if (status == STATUS_OK)
		status = optimize_publish(o, diag);
	progress_end(&o->tool->progress);
	if (status == STATUS_OK)
		status = optimize_report(o, diag);
	return status;
}

static enum status run(struct tool *tool, const struct optimize_options *options,
		       struct diag *diag)
{
	struct optimize o = {.tool = tool, .options = options, .output.fd = -1};
	enum status status = optimize(&o, diag);
	enum status released = optimize_release(&o, status == STATUS_OK ? diag : NULL);

	return status == STATUS_OK ? released : status;
}

enum status optimize_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct optimize_options o = {.runs = 3};
	const struct option_spec options[] = {
		OPTION_LIST("image", 'i', "FILE", &o.images,
			    "optimize this image; may be given more than once",
			    .required = true),
		OPTION_LIST("pin", 0, "WHAT", &o.pins,
			    "leave this code alone: a range of RVAs (0xLO-0xHI), the "
			    "function at an RVA, or one by its name; with several images "
			    "IMAGE=WHAT; may be given more than once"),
		OPTION_STRING("output", 'o', "DIR", &o.output,
			      "put the relinked images into DIR (default: " OPTIMIZE_FOLDER
			      ")"),
		OPTION_NUMBER("runs", 0, "N", &o.runs, 1, 1000,
			      "profile N runs of COMMAND (default: 3)"),
		OPTION_STRING(
			"db", 'd', "FILE", &o.database,
			"keep the profile in this trace database, and use what it has "
			"already (default: a new one, DIR/" OPTIMIZE_DATABASE ")"),
		OPTION_STRING("scenario", 0, "NAME", &o.scenario,
			      "what the runs stand for (default: default)"),
		OPTION_NUMBER("exit-code", 0, "N", &o.exit_code, 0, UINT32_MAX,
			      "what COMMAND ends with when all is well (default: 0)"),
		OPTION_NUMBER("wait", 0, "SECONDS", &o.wait, 0, 86400,
			      "in profiled runs, wait no longer for what outlives COMMAND "
			      "(default: until all has ended)",
			      .given = &o.has_wait),
		OPTION_CHOICE("placement", 0, "WAY", &o.placement, optimize_placements,
			      "where the hot code goes"),
		OPTION_FLAG("no-pages", 0, &o.no_pages,
			    "do not measure code pages: COMMAND need not start its program "
			    "by a word like 'wine' then"),
		OPTION_FLAG("force", 'f', &o.force, "replace existing outputs"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Relinks images so that what COMMAND touches of them lies "
			"together: runs "
			"it as it is, N times with probes in the images, relinks, "
			"verifies, and "
			"runs it once more with the relinked images. COMMAND is run N + 2 "
			"times, "
			"without input.\n\n"
			"During the runs the images are swapped where they stand; the "
			"originals "
			"are put back afterwards, also after a failure or a signal. Should "
			"even "
			"that be killed, the next run or 'appulse restore' puts them "
			"back.\n\n"
			"The exit code is 1 when COMMAND fails, 3 when an image is "
			"refused, and 4 "
			"when a relinked image does not verify or COMMAND fails with it.",
		.takes_command = true,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.command = line.command;
		status = run(tool, &o, diag);
	}
	vec_release(&o.images);
	vec_release(&o.pins);
	command_line_release(&line);
	return status;
}
