/* Drawing in a terminal.
 *
 * A page map has a cell for each page with code, or for several pages when they are
 * more than fit; a cell shows its earliest touch.  Characters carry all of it, so that
 * it can be copied, read aloud and seen without colours; a locale without UTF-8 gets
 * ASCII.
 */
#include "report_terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/human.h"

enum {
	USUAL_WIDTH = 80,
	LEAST_WIDTH = 40,
	MOST_WIDTH = 160,
	MAP_ROWS = 12,
	CURVE_ROWS = 12,
	LABEL_WIDTH = 8, /* of the curve's axis, with its line */
	LEVELS = 4,      /* of a touch's time */
};

struct drawing {
	const struct subject *s;
	FILE *out;                /* borrowed */
	const struct db_profile_run *run;
	uint32_t width;           /* columns */
	const char *const *cells; /* untouched, then the levels from early to late */
	const char *line;         /* of the axis */
	struct fault_result *results; /* owned: of each standing */
};

static const char *const unicode_cells[] = {"\u00b7", "\u2588", "\u2593", "\u2592", "\u2591"};
static const char *const ascii_cells[] = {".", "#", "*", "+", "-"};
static const char marks[] = "ox+*%@";

bool report_terminal_wanted(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* As the locale's variables say, in their order (POSIX, "Environment Variables"). */
static bool is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static uint32_t terminal_width(void)
{
	struct winsize size;
	uint32_t width = USUAL_WIDTH;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		width = size.ws_col;
	if (width < LEAST_WIDTH)
		return LEAST_WIDTH;
	return width > MOST_WIDTH ? MOST_WIDTH : width;
}

/* ---- the page map ---- */

/* The earliest touch of `count` pages of the sections from the `first` one, counted
 * without what lies between the sections. */
static uint32_t earliest(const struct standing *standing, const struct fault_result *result,
			 uint64_t first, uint64_t count)
{
	uint32_t touch = NO_TOUCH;
	uint64_t at = 0;

	for (uint32_t i = 0; i < standing->section_count; i++) {
		uint32_t page = standing->sections[i].begin.v / FAULT_PAGE;
		uint32_t end = page + standing->sections[i].size / FAULT_PAGE;

		for (; page < end; page++, at++)
			if (at >= first && at < first + count && page < result->page_count &&
			    result->touched_by[page] < touch)
				touch = result->touched_by[page];
	}
	return touch;
}

static uint64_t code_pages(const struct standing *standing)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < standing->section_count; i++)
		pages += standing->sections[i].size / FAULT_PAGE;
	return pages;
}

static void draw_map(const struct drawing *d, uint32_t k, uint64_t per_cell)
{
	const struct standing *standing = &d->s->standings[k];
	uint64_t pages = code_pages(standing);
	uint32_t column = 0;
	char name[96];

	standing_name(standing, name, sizeof(name));
	fprintf(d->out, "%s, %s of %s pages\n", name, human_count(d->results[k].pages).text,
		human_count(pages).text);
	for (uint64_t page = 0; page < pages; page += per_cell) {
		uint32_t touch = earliest(standing, &d->results[k], page, per_cell);
		uint64_t level = 0;

		if (touch != NO_TOUCH)
			level = 1 + (uint64_t)touch * LEVELS / d->run->count;
		fputs(d->cells[level], d->out);
		if (++column == d->width) {
			fputc('\n', d->out);
			column = 0;
		}
	}
	if (column)
		fputc('\n', d->out);
}

static void draw_maps(const struct drawing *d)
{
	uint64_t most = 0, per_cell, room = (uint64_t)d->width * MAP_ROWS;

	for (uint32_t k = 0; k < d->s->standing_count; k++)
		if (code_pages(&d->s->standings[k]) > most)
			most = code_pages(&d->s->standings[k]);
	per_cell = most > room ? (most + room - 1) / room : 1;
	fprintf(d->out, "\npages of run %" PRId64 ", ", d->run->run);
	if (per_cell == 1)
		fprintf(d->out, "one a cell: ");
	else
		fprintf(d->out, "%s a cell: ", human_count(per_cell).text);
	fprintf(d->out, "%s untouched, touched %s early to late %s\n", d->cells[0], d->cells[1],
	       d->cells[LEVELS]);
	for (uint32_t k = 0; k < d->s->standing_count; k++)
		draw_map(d, k, per_cell);
}

/* ---- the curve ---- */

/* The row of a standing's curve in a column, from the bottom. */
static uint32_t row_at(const struct fault_result *result, uint32_t column, uint32_t columns,
		       uint32_t most)
{
	uint64_t touch = (uint64_t)column * (result->touch_count - 1) / (columns - 1);

	return (uint32_t)((uint64_t)result->curve[touch] * (CURVE_ROWS - 1) / most);
}

static void draw_curves(const struct drawing *d, uint32_t most)
{
	uint32_t columns = d->width - LABEL_WIDTH - 1;

	for (uint32_t row = CURVE_ROWS; row-- > 0;) {
		char line[MOST_WIDTH + 1];
		uint32_t end = 0;

		memset(line, ' ', sizeof(line));
		/* The first one, as linked, is not covered by the others. */
		for (uint32_t k = d->s->standing_count; k-- > 0;)
			for (uint32_t c = 0; c < columns; c++)
				if (row_at(&d->results[k], c, columns, most) == row) {
					line[c] = marks[k % (sizeof(marks) - 1)];
					end = c + 1 > end ? c + 1 : end;
				}
		line[end] = '\0';
		if (row == CURVE_ROWS - 1 || row == 0)
			fprintf(d->out, "%*s %s%s%s\n", LABEL_WIDTH - 2,
			       human_count(row ? most : 0).text, d->line, end ? " " : "",
			       line);
		else
			fprintf(d->out, "%*s %s%s%s\n", LABEL_WIDTH - 2, "", d->line, end ? " " : "",
			       line);
	}
	fprintf(d->out, "%*s %s touches\n", LABEL_WIDTH - 1, "", human_count(d->run->count).text);
	for (uint32_t k = 0; k < d->s->standing_count; k++) {
		char name[96];

		standing_name(&d->s->standings[k], name, sizeof(name));
		fprintf(d->out, "%*s %c %s: %s\n", LABEL_WIDTH - 1, "",
		       marks[k % (sizeof(marks) - 1)], name,
		       human_things(d->results[k].faults, "fault").text);
	}
}

/* ---- the whole ---- */

enum status report_terminal_draw(const struct subject *s, FILE *out, struct diag *diag)
{
	bool utf8 = is_utf8();
	struct drawing d = {
		.s = s,
		.out = out,
		.width = terminal_width(),
		.cells = utf8 ? unicode_cells : ascii_cells,
		.line = utf8 ? "\u2502" : "|",
	};
	uint32_t most = 1, done = 0;
	enum status status = STATUS_OK;

	if (s->profile.count == 0 || s->image.count == 0)
		return STATUS_OK;
	d.run = &s->profile.runs[s->profile.count - 1];
	d.results = calloc(s->standing_count, sizeof(*d.results));
	if (!d.results)
		return diag_no_memory(diag);
	while (done < s->standing_count && status == STATUS_OK) {
		status = subject_predict(s, &s->standings[done], d.run, FAULT_CLUSTER,
					 &d.results[done], diag);
		if (status != STATUS_OK)
			break;
		if (d.results[done].faults > most)
			most = d.results[done].faults;
		done++;
	}
	if (status == STATUS_OK) {
		draw_maps(&d);
		fprintf(out, "\npredicted faults of run %" PRId64 ", each reading %d pages\n",
			d.run->run, FAULT_CLUSTER);
		draw_curves(&d, most);
	}
	for (uint32_t k = 0; k < done; k++)
		fault_result_release(&d.results[k]);
	free(d.results);
	return status;
}
