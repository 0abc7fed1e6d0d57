#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

static const double REDRAW_SECONDS = 0.1;

static struct timespec now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t;
}

static double seconds_between(struct timespec from, struct timespec to)
{
	return (double)(to.tv_sec - from.tv_sec) +
	       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

void progress_init(struct progress *progress)
{
	memset(progress, 0, sizeof(*progress));
}

void progress_show_on(struct progress *progress, FILE *stream)
{
	const char *term = getenv("TERM");

	if (isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0)
		progress->terminal = stream;
}

static void draw(struct progress *progress, const char *name, int percent)
{
	if (!progress->terminal)
		return;
	if (percent < 0)
		fprintf(progress->terminal, "\r\033[K%s ...", name);
	else
		fprintf(progress->terminal, "\r\033[K%s ... %d %%", name, percent);
	fflush(progress->terminal);
	progress->shown = true;
	progress->drawn = now();
}

void progress_step(struct progress *progress, const char *name)
{
	progress_end(progress);
	/* Out of memory: the step goes unrecorded, which harms nothing. */
	if (!vec_push(progress, ((struct step){.name = name})))
		return;
	progress->running = true;
	progress->begin = now();
	draw(progress, name, -1);
}

void progress_fraction(struct progress *progress, uint64_t done, uint64_t total)
{
	if (!progress->terminal || !progress->running || total == 0)
		return;
	if (seconds_between(progress->drawn, now()) < REDRAW_SECONDS)
		return;
	draw(progress, progress->data[progress->len - 1].name,
	     done >= total ? 100 : (int)(100.0 * (double)done / (double)total));
}

void progress_end(struct progress *progress)
{
	progress_erase(progress);
	if (!progress->running)
		return;
	progress->running = false;
	progress->data[progress->len - 1].seconds = seconds_between(progress->begin, now());
}

void progress_erase(struct progress *progress)
{
	if (!progress->shown)
		return;
	fputs("\r\033[K", progress->terminal);
	fflush(progress->terminal);
	progress->shown = false;
}

void progress_release(struct progress *progress)
{
	progress_erase(progress);
	vec_release(progress);
	progress_init(progress);
}
