/* appulse-profile compare: whether a program starts faster with one image or another.
 *
 * How runs are made and what is measured of them is compare_runs.c's, what follows from
 * it base/paired.h's; here it is described on the command line, and all that is needed is
 * opened first and released last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/options.h"
#include "cli/swap_tell.h"
#include "commands.h"
#include "compare.h"
#include "image_pages.h"

enum { RUNS = 20, SEED = 1 };

/* ---- before ---- */

/* The command reads nothing: what the first run reads, the next ones would miss. */
static enum status close_input(struct compare *c, struct diag *diag)
{
	c->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (c->null < 0 || dup2(c->null, STDIN_FILENO) < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '/dev/null'");
	return STATUS_OK;
}

/* Signals wait while images are swapped; child_run takes them in a run, and
 * check_signals between two. */
static void hold_signals(struct compare *c)
{
	static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	sigemptyset(&c->held);
	for (unsigned i = 0; i < sizeof(held) / sizeof(*held); i++) {
		struct sigaction action;

		/* What our parent wants ignored (nohup) stays ignored. */
		if (sigaction(held[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&c->held, held[i]);
	}
	sigprocmask(SIG_BLOCK, &c->held, &c->before);
}

/* A is put aside and another file gets its name, which must not be that of a link: the
 * file it leads to would stay, and may be what the program loads. */
static enum status check_place(const struct compare *c, const char *path, struct diag *diag)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	if (S_ISLNK(st.st_mode))
		return diag_fail(diag, STATUS_USAGE,
				 "'%s' is a symbolic link and cannot be swapped, name the file "
				 "that it leads to", path);
	if (!S_ISREG(st.st_mode))
		return diag_fail(diag, STATUS_USAGE, "'%s' is not a regular file", path);
	if (access(c->folder, W_OK) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno,
				       "cannot write in '%s', where '%s' is swapped: compare in "
				       "a copy of the folder", c->folder, c->name);
	return STATUS_OK;
}

static enum status open_folder(struct compare *c, const char *path, struct diag *diag)
{
	const char *slash = strrchr(path, '/');
	enum status status;

	c->name = strdup(slash ? slash + 1 : path);
	c->folder = !slash          ? strdup(".")
		    : slash == path ? strdup("/")
				    : strndup(path, (size_t)(slash - path));
	if (!c->name || !c->folder)
		return diag_no_memory(diag);
	status = check_place(c, path, diag);
	if (status != STATUS_OK)
		return status;
	return swap_folder_open(&c->swap, c->folder, SWAP_WAIT, swap_tell, c->tool, diag);
}

/* Whether Wine can map it; only a cold run needs that. */
static enum status check_pages(struct compare *c, struct compare_image *image,
			       const struct image *parsed, struct diag *diag)
{
	struct image_pages pages;
	struct diag why;
	enum status status;

	diag_init(&why);
	status = image_pages_init(&pages, parsed, &why);
	if (status == STATUS_OK)
		image_pages_release(&pages);
	image->mappable = status == STATUS_OK;
	if (status == STATUS_UNSUPPORTED && !c->options->cold) {
		free(c->not_counted);
		c->not_counted = strdup(why.message);
		return c->not_counted ? STATUS_OK : diag_no_memory(diag);
	}
	if (status != STATUS_OK && diag)
		*diag = why;
	return status;
}

static enum status open_image(struct compare *c, enum compare_side side, const char *path,
			      struct diag *diag)
{
	struct compare_image *image = &c->images[side];
	struct image parsed;
	enum status status = image_open(&parsed, path, diag);

	if (status != STATUS_OK)
		return status;
	image->path = path;
	image->size = parsed.size;
	image->file_pages = (uint32_t)((parsed.size + IMAGE_PAGE_SIZE - 1) / IMAGE_PAGE_SIZE);
	image->hash = sha256_of(parsed.bytes, parsed.size);
	status = check_pages(c, image, &parsed, diag);
	image_release(&parsed);
	if (status != STATUS_OK)
		return status;
	image->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (image->fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	snprintf(image->content, sizeof(image->content), "/proc/%d/fd/%d", (int)getpid(),
		 image->fd);
	return STATUS_OK;
}

static enum status begin(struct compare *c, const struct command_line *line,
			 struct diag *diag)
{
	enum status status = close_input(c, diag);

	c->command = line->command;
	c->random = c->options->seed;
	/* A signal ends the tool while it waits for the folder. */
	if (status == STATUS_OK)
		status = open_folder(c, line->arguments.data[0], diag);
	hold_signals(c);
	for (unsigned side = 0; side < SIDE_COUNT && status == STATUS_OK; side++)
		status = open_image(c, (enum compare_side)side, line->arguments.data[side],
				    diag);
	return status == STATUS_OK ? run_clock_open(&c->clock, diag) : status;
}

/* ---- after ---- */

static void warn(const struct compare *c)
{
	for (unsigned side = 0; side < SIDE_COUNT; side++) {
		const struct compare_image *image = &c->images[side];

		if (compare_read_whole(image))
			tool_warn(c->tool,
				  "the program itself reads all of '%s': where functions lie in "
				  "it hardly matters then, and pages and faults mislead",
				  image->path);
		else if (compare_resident_at_first(image))
			tool_warn(c->tool,
				  "all of '%s' is in memory already when the program loads it: "
				  "where functions lie in it hardly matters then, and pages and "
				  "faults mislead", image->path);
	}
	if (c->again)
		tool_warn(c->tool,
			  "runs made again, as the program ended with another exit code before "
			  "it loaded the image: %u", c->again);
	if (c->lost_again)
		tool_warn(c->tool, "runs made again, as events were lost: %u", c->lost_again);
	if (c->server_starts)
		tool_warn(c->tool,
			  "Wine's server was started anew %u times between runs, which takes "
			  "time of a run: keep one by 'wineserver -p'", c->server_starts);
}

static void end(struct compare *c)
{
	fault_meter_close(c->meter);
	run_clock_close(&c->clock);
	swap_folder_close(&c->swap);
	for (unsigned side = 0; side < SIDE_COUNT; side++) {
		if (c->images[side].fd >= 0)
			close(c->images[side].fd);
		for (unsigned i = 0; i < COMPARE_METRIC_COUNT; i++)
			free(c->series[i].values[side]);
	}
	if (c->null >= 0)
		close(c->null);
	free(c->folder);
	free(c->name);
	free(c->not_counted);
}

static enum status compare(struct compare *c, const struct command_line *line,
			   struct diag *diag)
{
	enum status status = begin(c, line, diag);

	if (status == STATUS_OK && !c->options->times_only && !c->not_counted)
		status = compare_count(c, diag);
	if (status == STATUS_OK)
		status = compare_time(c, diag);
	progress_end(&c->tool->progress);
	if (status == STATUS_OK) {
		warn(c);
		compare_tell_json(c);
	}
	if (status == STATUS_OK && !c->tool->json)
		status = compare_tell_people(c, diag);
	end(c);
	return status;
}

/* ---- the command ---- */

static enum status check_options(const struct compare_options *o, struct diag *diag)
{
	if (o->marker && (!o->marker[0] || strchr(o->marker, '\n')))
		return diag_fail(diag, STATUS_USAGE,
				 "'--marker' needs a text that can stand in one line");
	return STATUS_OK;
}

enum status compare_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct compare_options o = {.runs = RUNS, .seed = SEED};
	struct compare c = {.tool = tool, .options = &o, .clock = RUN_CLOCK_NONE,
			    .swap = {.fd = -1}, .null = -1,
			    .images = {{.fd = -1}, {.fd = -1}}};
	const struct option_spec options[] = {
		OPTION_NUMBER("runs", 0, "N", &o.runs, PAIRED_MIN, PAIRED_MAX,
			      "time N runs with each image (default: 20)"),
		OPTION_NUMBER("seed", 0, "SEED", &o.seed, 0, UINT64_MAX,
			      "decides which image comes first in each pair of runs, and "
			      "what the intervals' samples are (default: 1)"),
		OPTION_FLAG("cold", 0, &o.cold,
			    "put the image out of memory before each timed run"),
		OPTION_STRING("marker", 0, "TEXT", &o.marker,
			      "the run phase ends with the first line on stdout that holds "
			      "TEXT"),
		OPTION_FLAG("times-only", 0, &o.times_only, "do not count hard faults"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Runs COMMAND with two images in turn, and says whether it is faster "
			"with B than with A. A is the file that the program loads. Each run "
			"finds a fresh copy of A or of B in its place; A itself comes back "
			"after each run. Should this be killed, 'appulse restore A' puts it "
			"back, as does another comparison.\n\n"
			"Timed are whole runs, and the run phase: from the first mapping of "
			"the image to the end of the process that loaded it. Before, hard "
			"faults are counted in seven pairs of cold runs without read-ahead. "
			"Every run must end with the exit code of the first one. COMMAND "
			"reads nothing on stdin, and what it prints on stdout is thrown away.",
		.arguments = "A B",
		.min = 2,
		.max = 2,
		.takes_command = true,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = check_options(&o, diag);
	if (status == STATUS_OK && !line.answered)
		status = compare(&c, &line, diag);
	command_line_release(&line);
	return status;
}
