/* The runs of a comparison.
 *
 * Each run gets its image the same way, A's too: the file is written anew into A's place
 * (base/swap.h), and flushed, before the run begins, and A itself comes back after it.
 * Were A taken as it lies, its pages would be in memory in other pieces than those of a
 * file that was just written, and A would differ from a copy of itself.
 *
 * Counting is no part of a timed run: a count that is exact needs each first touch of a
 * page to be a fault (fault_meter.h), which takes time for each page, and so would make
 * the image with fewer pages look faster than it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "compare.h"
#include "output_watch.h"
#include "page_cache.h"
#include "wine_server.h"

/* How long to wait for what outlives the command. */
#define PATIENCE_SECONDS 10.0

/* Counts of cold runs hardly differ, so the fewest pairs that can show something do. */
enum { COUNTED_PAIRS = PAIRED_MIN };

/* Tries of one run. */
enum { STARTS = 3 };

/* A disk reads up to 128 KiB ahead, so that the headers of a small file bring in all of
 * it. */
enum { LOOK_BYTES = 512 << 10 };

static const char *const side_names[] = {"A", "B"};

/* ---- whatever is run ---- */

/* Takes signals that came while nothing ran. */
static enum status check_signals(const struct compare *c, struct diag *diag)
{
	const struct timespec none = {0};
	int sent;

	while ((sent = sigtimedwait(&c->held, NULL, &none)) > 0)
		if (sent != SIGCHLD)
			return diag_fail(diag, STATUS_COMMAND, "interrupted by signal %d (%s)",
					 sent, strsignal(sent));
	return STATUS_OK;
}

static enum status put_in(struct compare *c, enum compare_side side, struct diag *diag)
{
	enum status status = check_signals(c, diag);

	if (status == STATUS_OK)
		status = swap_folder_add(&c->swap, c->name, c->images[side].content, false,
					 diag);
	if (status == STATUS_OK && memcmp(&c->swap.entries.data[0].hash, &c->images[side].hash,
					  sizeof(c->images[side].hash)) != 0)
		status = diag_fail(diag, STATUS_COMMAND,
				   "'%s' has been changed since the comparison began",
				   c->images[side].path);
	return status == STATUS_OK ? swap_in(&c->swap, diag) : status;
}

/* Whatever came before, which `status` tells. */
static enum status put_back(struct compare *c, enum status status, struct diag *diag)
{
	enum status back = swap_out(&c->swap, status == STATUS_OK ? diag : NULL);

	return status == STATUS_OK ? back : status;
}

/* What outlives the comparison is noticed, not caused: a server that starts within a run
 * takes time of that run. */
static void note_server(struct compare *c)
{
	int server = wine_server_pid();

	c->server_starts += c->server && server && server != c->server;
	c->server = server;
}

/* Wine 8.0 itself ends a program with 1, once in some thousand starts, when the
 * kernel has put its heap where Windows has the shared user data (observed: Linux 6.18,
 * "failed to map the shared user data").  A run that ended otherwise than all others and
 * never mapped the image measures nothing, and is made again. */
static bool never_began(struct compare *c, const struct child_exit *exit, bool mapped)
{
	bool never = !mapped && c->has_code && !exit->interrupted &&
		     exit->exit == DB_EXIT_EXITED && exit->code != c->code;

	c->again += never;
	return never;
}

/* Every run must end as the first one did. */
static enum status check_exit(struct compare *c, enum compare_side side,
			      const struct child_exit *exit, struct diag *diag)
{
	note_server(c);
	if (exit->interrupted)
		return diag_fail(diag, STATUS_COMMAND, "interrupted by signal %d (%s)",
				 exit->interrupted, strsignal(exit->interrupted));
	if (exit->exit != DB_EXIT_EXITED)
		return child_status(exit, c->command[0], diag);
	if (!c->has_code) {
		c->has_code = true;
		c->code = exit->code;
	}
	if (exit->code != c->code)
		return diag_fail(diag, STATUS_COMMAND,
				 "'%s' ended with exit code %d with %s, '%s', and with %d in "
				 "its first run, with A",
				 c->command[0], exit->code, side_names[side],
				 c->images[side].path, c->code);
	return STATUS_OK;
}

static struct child child_of(const struct compare *c)
{
	return (struct child){.command = c->command, .output_fd = c->null,
			      .mask = &c->before, .patience = PATIENCE_SECONDS};
}

static enum status series_init(struct compare_series *series, uint32_t pairs,
			       struct diag *diag)
{
	for (unsigned side = 0; side < SIDE_COUNT; side++) {
		series->values[side] = calloc(pairs, sizeof(*series->values[side]));
		if (!series->values[side])
			return diag_no_memory(diag);
	}
	series->pairs = pairs;
	return STATUS_OK;
}

static enum status series_compare(struct compare *c, enum compare_metric metric,
				  struct diag *diag)
{
	struct compare_series *s = &c->series[metric];

	/* Each metric draws its own samples, whatever else was measured. */
	if (s->pairs && !paired_compare(s->values[SIDE_A], s->values[SIDE_B], s->pairs,
					c->options->seed + metric, &s->result))
		return diag_no_memory(diag);
	return STATUS_OK;
}

typedef enum status run_fn(struct compare *c, enum compare_side side, uint32_t pair,
			   struct diag *diag);

/* Both of each pair, which of them first as the seed says. */
static enum status run_pairs(struct compare *c, uint32_t pairs, run_fn *run,
			     struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t pair = 0; pair < pairs && status == STATUS_OK; pair++) {
		enum compare_side first = random_next(&c->random) >> 63 ? SIDE_B : SIDE_A;

		progress_fraction(&c->tool->progress, pair, pairs);
		status = run(c, first, pair, diag);
		if (status == STATUS_OK)
			status = run(c, first == SIDE_A ? SIDE_B : SIDE_A, pair, diag);
	}
	return status;
}

/* ---- counted runs ---- */

static enum status run_counted(struct compare *c, enum compare_side side,
			       struct fault_run *ret_run, struct diag *diag)
{
	struct child child = child_of(c);
	bool swap = !fault_meter_lays_copies(c->meter);
	enum status status = swap ? put_in(c, side, diag) : check_signals(c, diag);

	if (status == STATUS_OK)
		status = fault_meter_run(c->meter, side, 1, &child, ret_run, diag);
	return swap ? put_back(c, status, diag) : status;
}

/* A count that is too small would be taken for a difference. */
static bool lost_events(struct compare *c, const struct fault_run *run)
{
	bool lost = run->lost > 0 && !run->exit.interrupted;

	c->lost_again += lost;
	return lost;
}

static enum status count_run(struct compare *c, enum compare_side side, uint32_t pair,
			     struct diag *diag)
{
	struct fault_run run = {0};
	enum status status = run_counted(c, side, &run, diag);

	for (int i = 1; i < STARTS && status == STATUS_OK &&
			(never_began(c, &run.exit, run.counts[side].mappings > 0) ||
			 lost_events(c, &run));
	     i++) {
		fault_run_release(&run);
		status = run_counted(c, side, &run, diag);
	}
	if (status != STATUS_OK) {
		fault_run_release(&run);
		return status;
	}
	status = check_exit(c, side, &run.exit, diag);
	if (status == STATUS_OK && run.counts[side].mappings == 0)
		status = diag_fail(diag, STATUS_NOT_FOUND, "the program did not load '%s'",
				   c->images[SIDE_A].path);
	if (status == STATUS_OK && run.lost)
		status = diag_fail(diag, STATUS_COMMAND,
				   "faults of %s, '%s', could not be counted to their end in %d "
				   "runs: '--times-only' leaves them out", side_names[side],
				   c->images[side].path, STARTS);
	c->series[COMPARE_FAULTS].values[side][pair] = (double)run.counts[side].hard;
	c->series[COMPARE_CODE_PAGES].values[side][pair] = run.counts[side].hard_code_pages;
	fault_run_release(&run);
	return status;
}

static enum status open_meter(struct compare *c, struct diag *diag)
{
	const struct fault_options options = {.method = FAULT_METHOD_ANY, .cold = true};
	struct fault_image images[SIDE_COUNT];

	for (unsigned side = 0; side < SIDE_COUNT; side++)
		images[side] = (struct fault_image){.path = c->images[side].content,
						    .place = c->images[SIDE_A].path};
	return fault_meter_open(&options, images, SIDE_COUNT, &c->meter, diag);
}

/* Without counts there still are times. */
static enum status do_without(struct compare *c, const struct diag *why, struct diag *diag)
{
	c->not_counted = strdup(why->message);
	return c->not_counted ? STATUS_OK : diag_no_memory(diag);
}

enum status compare_count(struct compare *c, struct diag *diag)
{
	struct diag why;
	enum status status;

	diag_init(&why);
	status = open_meter(c, &why);
	if (status == STATUS_COMMAND || (status == STATUS_UNSUPPORTED && !c->options->cold))
		return do_without(c, &why, diag);
	if (status != STATUS_OK) {
		if (diag)
			*diag = why;
		return status;
	}
	c->fault_method = fault_method_name(fault_meter_method(c->meter));
	c->fault_counter = fault_counter_kind_name(fault_meter_counter(c->meter));
	tool_note(c->tool, "hard faults of %d cold runs each are counted by '%s', method '%s'",
		  COUNTED_PAIRS, c->fault_counter, c->fault_method);
	progress_step(&c->tool->progress, "counting faults");
	status = series_init(&c->series[COMPARE_FAULTS], COUNTED_PAIRS, diag);
	if (status == STATUS_OK)
		status = series_init(&c->series[COMPARE_CODE_PAGES], COUNTED_PAIRS, diag);
	/* The first run is A's: its exit code is the one to meet. */
	if (status == STATUS_OK)
		status = count_run(c, SIDE_A, 0, diag);
	if (status == STATUS_OK)
		status = run_pairs(c, COUNTED_PAIRS, count_run, diag);
	/* Its events would go on in all that this process starts. */
	fault_meter_close(c->meter);
	c->meter = NULL;
	if (status == STATUS_OK)
		status = series_compare(c, COMPARE_FAULTS, diag);
	return status == STATUS_OK ? series_compare(c, COMPARE_CODE_PAGES, diag) : status;
}

/* ---- timed runs ---- */

struct timing {
	int64_t begin_ns; /* CLOCK_MONOTONIC */
	struct child_exit exit;
	struct clock_reading clock;
	int64_t marker_ns; /* 0: not seen */
	uint32_t resident; /* pages in memory afterwards */
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static enum status count_resident(int fd, uint32_t pages, uint32_t *ret_count,
				  struct diag *diag)
{
	uint8_t *resident = calloc(pages ? pages : 1, 1);
	enum status status = resident ? page_cache_look(fd, pages, resident, diag)
				      : diag_no_memory(diag);

	*ret_count = 0;
	for (uint32_t i = 0; i < pages && status == STATUS_OK; i++)
		*ret_count += resident[i];
	free(resident);
	return status;
}

/* Runs the command, whose output is read when there is a marker. */
static enum status run_child(struct compare *c, struct timing *t, struct diag *diag)
{
	struct child child = child_of(c);
	struct output_watch *watch = NULL;
	enum status status = STATUS_OK;

	run_clock_join(&c->clock, &child);
	if (c->options->marker)
		status = output_watch_start(c->options->marker, &watch, &child.output_fd,
					    diag);
	t->begin_ns = now();
	if (status == STATUS_OK)
		status = child_run(&child, &t->exit, diag);
	if (watch)
		t->marker_ns = output_watch_stop(watch);
	t->clock = run_clock_read(&c->clock);
	return status;
}

/* With the image in place. */
static enum status measure(struct compare *c, const struct compare_image *image,
			   struct timing *t, struct diag *diag)
{
	const char *place = c->images[SIDE_A].path;
	bool cold = c->options->cold;
	int fd = open(place, O_RDONLY | O_CLOEXEC);
	enum status status = STATUS_OK;

	if (fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", place);
	if (cold && !page_cache_can_look(fd))
		status = diag_fail(diag, STATUS_COMMAND,
				   "only the owner of '%s' can see what of it is in memory, "
				   "compare copies of yours", place);
	if (status == STATUS_OK && cold)
		status = page_cache_evict(fd, place, image->file_pages, diag);
	if (status == STATUS_OK)
		status = run_clock_set(&c->clock, fd, cold && image->size >= LOOK_BYTES, diag);
	if (status == STATUS_OK)
		status = run_child(c, t, diag);
	if (status == STATUS_OK && cold)
		status = count_resident(fd, image->file_pages, &t->resident, diag);
	close(fd);
	return status;
}

static void note_preloading(struct compare_image *image, const struct timing *t)
{
	image->runs++;
	/* What Wine cannot map it reads. */
	image->whole_reads += image->mappable && t->clock.read >= image->size - image->size / 10;
	image->resident_at_first += t->clock.whole;
}

static void forget_preloading(struct compare_image *image)
{
	image->runs = image->whole_reads = image->resident_at_first = 0;
}

static enum status check_timing(const struct compare *c, const struct timing *t,
				struct diag *diag)
{
	if (!t->clock.mapped)
		return diag_fail(diag, STATUS_NOT_FOUND, "the program did not load '%s'",
				 c->images[SIDE_A].path);
	if (!c->options->marker)
		return STATUS_OK;
	if (!t->marker_ns)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "no line of the program's output holds '%s'",
				 c->options->marker);
	if (t->marker_ns < t->clock.mapped_ns)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "the program printed '%s' before it loaded '%s'",
				 c->options->marker, c->images[SIDE_A].path);
	return STATUS_OK;
}

/* A process that was killed does not tell its end. */
static int64_t end_of(const struct timing *t)
{
	if (t->clock.ended_ns)
		return t->clock.ended_ns;
	return t->begin_ns + (int64_t)(t->exit.wall_seconds * 1e9);
}

static void keep(struct compare *c, enum compare_side side, uint32_t pair,
		 const struct timing *t)
{
	int64_t end = t->marker_ns ? t->marker_ns : end_of(t);
	const double values[] = {
		[COMPARE_PHASE] = (double)(end - t->clock.mapped_ns) / 1e9,
		[COMPARE_WALL] = t->exit.wall_seconds,
		[COMPARE_MEMORY] = (double)t->clock.peak,
		[COMPARE_RESIDENT] = t->resident,
	};

	c->memory_untold |= t->clock.peak == 0;
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (c->series[i].pairs)
			c->series[i].values[side][pair] = values[i];
}

static enum status run_timed(struct compare *c, enum compare_side side,
			     struct timing *ret_timing, struct diag *diag)
{
	enum status status = put_in(c, side, diag);

	*ret_timing = (struct timing){0};
	if (status == STATUS_OK)
		status = measure(c, &c->images[side], ret_timing, diag);
	return put_back(c, status, diag);
}

static enum status time_run(struct compare *c, enum compare_side side, uint32_t pair,
			    struct diag *diag)
{
	struct timing t;
	enum status status = run_timed(c, side, &t, diag);

	for (int i = 1;
	     i < STARTS && status == STATUS_OK && never_began(c, &t.exit, t.clock.mapped);
	     i++)
		status = run_timed(c, side, &t, diag);
	if (status == STATUS_OK)
		status = check_exit(c, side, &t.exit, diag);
	if (status == STATUS_OK)
		status = check_timing(c, &t, diag);
	if (status == STATUS_OK) {
		note_preloading(&c->images[side], &t);
		keep(c, side, pair, &t);
	}
	return status;
}

enum status compare_time(struct compare *c, struct diag *diag)
{
	uint32_t runs = (uint32_t)c->options->runs;
	enum status status = STATUS_OK;

	progress_step(&c->tool->progress, "timing runs");
	for (unsigned i = 0; i <= COMPARE_RESIDENT && status == STATUS_OK; i++)
		if (i != COMPARE_RESIDENT || c->options->cold)
			status = series_init(&c->series[i], runs, diag);
	/* One of each to warm up, which the first pair's values replace. */
	for (unsigned side = 0; side < SIDE_COUNT && status == STATUS_OK; side++)
		status = time_run(c, (enum compare_side)side, 0, diag);
	c->server_starts = 0;
	for (unsigned side = 0; side < SIDE_COUNT; side++)
		forget_preloading(&c->images[side]);
	if (status == STATUS_OK)
		status = run_pairs(c, runs, time_run, diag);
	if (c->memory_untold) {
		tool_warn(c->tool, "the working set is left out: a process that was killed or "
				   "left by _exit does not tell it");
		c->series[COMPARE_MEMORY].pairs = 0;
	}
	for (unsigned i = 0; i <= COMPARE_RESIDENT && status == STATUS_OK; i++)
		status = series_compare(c, (enum compare_metric)i, diag);
	return status;
}
