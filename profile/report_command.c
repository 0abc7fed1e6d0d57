/* appulse-profile report: what runs touched of each image, as text, JSON or a page.
 *
 * What is counted, and how, is in report_subject.c.  The page runs of `pages` count
 * what really was touched, parts of functions and all else in the code included.
 */
#include "commands.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/human.h"
#include "cli/options.h"
#include "cli/table.h"
#include "report_differences.h"
#include "report_json.h"
#include "report_page.h"
#include "report_terminal.h"
#include "run_options.h"

enum { MIN_HASH_DIGITS = 6 };

struct report {
	struct tool *tool;
	const char *database;
	const char *image; /* name, pattern or hash; NULL: all */
	const char *html;  /* where the page goes; NULL: none */
	const char *other; /* database to compare with; NULL: none */
	uint64_t from_run; /* to compare with; 0: the newest one of `other` */
	bool force;
	uint64_t run;      /* 0: all */
	uint64_t limit;    /* of the list of first touches */

	struct arena arena; /* owns what follows */
	struct db *db;
	struct db_run_row *runs;
	uint32_t run_count;
	struct db_image_row *images;
	uint32_t image_count;
	bool matched; /* whether an image was reported */
	bool compared; /* whether the runs of an image were compared */
	json_t *differences; /* borrowed from the result; NULL: not asked for */
	bool text;    /* text goes to stdout, when all of it is known */
	FILE *out;    /* where it is collected; NULL without text */
	char *collected; /* owned */
	size_t collected_size;
	struct page page;
	struct db *other_db;
	struct db_image_row *other_images;
	uint32_t other_count;
};

/* ---- runs of an image ---- */

static void put_touched(struct result *r, json_t *object, const struct touched *t)
{
	result_put_count(r, object, "functions_touched", t->functions);
	result_put_count(r, object, "bytes_touched", t->bytes);
	result_put_count(r, object, "unknown_touched", t->unknown);
	result_put_count(r, object, "floor_pages", t->floor_pages);
	result_put_count(r, object, "linked_pages", t->linked_pages);
}

static const struct db_run_row *run_row(const struct report *r, int64_t run)
{
	for (uint32_t i = 0; i < r->run_count; i++)
		if (r->runs[i].run == run)
			return &r->runs[i];
	return NULL;
}

static void put_run(struct report *r, json_t *runs, const struct db_profile_run *run,
		    const struct touched *t, const struct db_run_counts *counts)
{
	struct result *result = &r->tool->result;
	json_t *object = result_add_object(result, runs);

	result_put_count(result, object, "run", (uint64_t)run->run);
	result_put_text(result, object, "kind", db_run_kind_name(run->kind));
	result_put_text(result, object, "scenario", run->scenario);
	result_put_real(result, object, "weight", run->weight);
	result_put_count(result, object, "processes", counts->processes);
	result_put_count(result, object, "threads", counts->threads);
	result_put_flag(result, object, "incomplete", counts->incomplete);
	put_touched(result, object, t);
}

static enum status report_runs(struct report *r, struct subject *s, json_t *object,
			       struct diag *diag)
{
	static const struct table_column columns[] = {
		{"run", TABLE_RIGHT},     {"scenario", TABLE_LEFT},
		{"weight", TABLE_RIGHT},  {"functions", TABLE_RIGHT},
		{"bytes", TABLE_RIGHT},   {"pages as linked", TABLE_RIGHT},
		{"floor", TABLE_RIGHT},   {"processes", TABLE_RIGHT},
		{"threads", TABLE_RIGHT},
	};
	struct table table;
	json_t *runs = result_put_array(&r->tool->result, object, "runs");
	enum status status = STATUS_OK;

	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < s->profile.count && status == STATUS_OK; i++) {
		const struct db_profile_run *run = &s->profile.runs[i];
		struct touched t = subject_count_run(s, run);
		struct db_run_counts counts = {0};

		status = db_count_run(r->db, run->run, s->row->image, &counts, diag);
		put_run(r, runs, run, &t, &counts);
		table_cell(&table, "%" PRId64, run->run);
		table_cell(&table, "%s", run->scenario);
		table_cell(&table, "%g", run->weight);
		table_cell(&table, "%s", human_count(t.functions).text);
		table_cell(&table, "%s", human_count(t.bytes).text);
		table_cell(&table, "%s", human_count(t.linked_pages).text);
		table_cell(&table, "%s", human_count(t.floor_pages).text);
		table_cell(&table, "%s", human_count(counts.processes).text);
		table_cell(&table, "%s", human_count(counts.threads).text);
	}
	if (status == STATUS_OK && r->text && s->profile.count) {
		fputc('\n', r->out);
		status = table_print(&table, r->out, diag);
	}
	table_release(&table);
	return status;
}

static enum status report_page_runs(struct report *r, struct subject *s, json_t *object,
				    struct diag *diag)
{
	static const struct table_column columns[] = {
		{"page run", TABLE_RIGHT},
		{"scenario", TABLE_LEFT},
		{"code pages executed", TABLE_RIGHT},
		{"touched", TABLE_RIGHT},
	};
	struct result *result = &r->tool->result;
	struct table table;
	json_t *runs = result_put_array(result, object, "page_runs");
	enum status status = STATUS_OK;
	bool any = false;

	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < r->run_count && status == STATUS_OK; i++) {
		const struct db_run_row *row = &r->runs[i];
		struct db_run_counts counts = {0};
		json_t *run;

		if (r->run && row->run != (int64_t)r->run)
			continue;
		if (row->page_touches)
			status =
				db_count_run(r->db, row->run, s->row->image, &counts, diag);
		if (counts.pages == 0)
			continue;
		any = true;
		run = result_add_object(result, runs);
		result_put_count(result, run, "run", (uint64_t)row->run);
		result_put_text(result, run, "scenario", row->scenario);
		result_put_count(result, run, "executed_pages", counts.executed_pages);
		result_put_count(result, run, "pages", counts.pages);
		table_cell(&table, "%" PRId64, row->run);
		table_cell(&table, "%s", row->scenario);
		table_cell(&table, "%s", human_count(counts.executed_pages).text);
		table_cell(&table, "%s", human_count(counts.pages).text);
	}
	if (status == STATUS_OK && r->text && any) {
		fputc('\n', r->out);
		status = table_print(&table, r->out, diag);
	}
	table_release(&table);
	return status;
}

/* ---- first touches ---- */

/* The first touches of the newest run that is reported. */
static enum status report_first(struct report *r, struct subject *s, json_t *object,
				struct diag *diag)
{
	static const struct table_column columns[] = {
		{"first touches", TABLE_RIGHT},
		{"rva", TABLE_LEFT},
		{"size", TABLE_RIGHT},
		{"function", TABLE_LEFT},
	};
	struct result *result = &r->tool->result;
	const struct db_profile_run *run;
	json_t *array = result_put_array(result, object, "first_touches");
	struct table table;
	enum status status = STATUS_OK;

	if (s->profile.count == 0)
		return STATUS_OK;
	run = &s->profile.runs[s->profile.count - 1];
	result_put_count(result, object, "first_touches_of_run", (uint64_t)run->run);
	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < run->count && i < r->limit; i++) {
		uint32_t index = function_at(&s->image, run->rvas[i]);
		const struct db_function *f =
			index < s->image.count ? &s->image.functions[index] : NULL;
		json_t *touch = result_add_object(result, array);

		result_put_count(result, touch, "rva", run->rvas[i].v);
		result_put_text(result, touch, "function", f ? f->name : NULL);
		if (f)
			result_put_count(result, touch, "size", f->size);
		else
			result_put_null(result, touch, "size");
		table_cell(&table, "%" PRIu32, i + 1);
		table_cell(&table, "0x%" PRIx32, run->rvas[i].v);
		table_cell(&table, "%s", f ? human_count(f->size).text : "-");
		table_cell(&table, "%s", !f ? "(unknown)" : f->name ? f->name : "-");
	}
	if (r->text && r->limit) {
		fputc('\n', r->out);
		status = table_print(&table, r->out, diag);
		if (run->count > r->limit)
			fprintf(r->out, "... %s more in run %" PRId64 "\n",
			       human_count(run->count - r->limit).text, run->run);
	}
	table_release(&table);
	return status;
}

/* ---- the whole ---- */

static void put_image(struct report *r, const struct subject *s, json_t *object)
{
	struct result *result = &r->tool->result;
	const struct db_image_row *row = s->row;

	result_put_count(result, object, "image", (uint64_t)row->image);
	result_put_text(result, object, "name", row->name);
	result_put_text(result, object, "sha256", row->hash);
	result_put_count(result, object, "functions", row->functions);
	result_put_count(result, object, "function_bytes", row->function_bytes);
	if (row->relinked_from)
		result_put_count(result, object, "relinked_from",
				 (uint64_t)row->relinked_from);
	else
		result_put_null(result, object, "relinked_from");
}

static void print_totals(const struct report *r, const struct subject *s)
{
	const struct touched *t = &s->all;
	const struct db_image_row *row = s->row;

	fprintf(r->out, "functions touched  %s of %s (%s), never %s\n",
	       human_count(t->functions).text, human_count(row->functions).text,
	       human_percent(t->functions, row->functions).text,
	       human_count(row->functions - t->functions).text);
	fprintf(r->out, "bytes touched      %s of %s (%s)\n", human_count(t->bytes).text,
	       human_count(row->function_bytes).text,
	       human_percent(t->bytes, row->function_bytes).text);
	fprintf(r->out, "pages as linked    %s\n", human_count(t->linked_pages).text);
	fprintf(r->out, "pages at the floor %s\n", human_count(t->floor_pages).text);
	if (t->unknown)
		fprintf(r->out, "unknown places     %s\n", human_count(t->unknown).text);
}

static enum status report_subject(struct report *r, struct subject *s, json_t *images,
				  struct diag *diag)
{
	struct result *result = &r->tool->result;
	json_t *object = result_add_object(result, images);
	enum status status;

	put_image(r, s, object);
	put_touched(result, object, &s->all);
	result_put_count(result, object, "functions_never_touched",
			 s->image.count - s->all.functions);
	if (r->text) {
		fprintf(r->out, "%s%s (%.12s%s)\n", r->matched ? "\n" : "", s->row->name,
		       s->row->hash, s->row->relinked_from ? ", relinked" : "");
		if (s->profile.count)
			print_totals(r, s);
		else
			fputs("no traces\n", r->out);
	}
	status = report_runs(r, s, object, diag);
	if (status == STATUS_OK)
		status = report_page_runs(r, s, object, diag);
	if (status == STATUS_OK)
		status = report_first(r, s, object, diag);
	if (status == STATUS_OK && !r->text)
		status = report_put_layouts(result, object, r->db, r->runs, r->run_count, s,
					    diag);
	if (status == STATUS_OK && r->text && report_terminal_wanted())
		status = report_terminal_draw(s, r->out, diag);
	return status;
}

/* Whether the image is asked for: by name or pattern, in any case, or by the
 * first digits of its hash. */
static bool is_wanted(const struct report *r, const struct db_image_row *row)
{
	size_t length;

	if (!r->image)
		return true;
	length = strlen(r->image);
	return fnmatch(r->image, row->name, FNM_CASEFOLD) == 0 ||
	       (length >= MIN_HASH_DIGITS && strncasecmp(row->hash, r->image, length) == 0);
}

/* Breakpoint runs only when one is asked for, as they repeat what a trace says. */
static enum db_run_kind kind_of_runs(const struct report *r)
{
	const struct db_run_row *row = r->run ? run_row(r, (int64_t)r->run) : NULL;

	if (row && row->kind &&
	    strcmp(row->kind, db_run_kind_name(DB_RUN_BREAKPOINTS)) == 0)
		return DB_RUN_BREAKPOINTS;
	return DB_RUN_TRACE;
}

/* The same image in the other database, or another build of it: of that name. */
static const struct db_image_row *other_image(const struct report *r,
					      const struct db_image_row *row)
{
	const struct db_image_row *found = NULL;

	for (uint32_t i = 0; i < r->other_count; i++) {
		const struct db_image_row *o = &r->other_images[i];

		if (o->functions == 0)
			continue;
		if (strcmp(o->hash, row->hash) == 0)
			return o;
		if (!found && strcasecmp(o->name, row->name) == 0)
			found = o;
	}
	return found;
}

/* The run to compare with; NULL: the image has none. */
static const struct db_profile_run *run_before(const struct report *r,
					       const struct subject *other)
{
	for (uint32_t i = other->profile.count; i-- > 0;)
		if (r->from_run == 0 || other->profile.runs[i].run == (int64_t)r->from_run)
			return &other->profile.runs[i];
	return NULL;
}

static enum status report_differences(struct report *r, const struct subject *s,
				      const struct subject *other, struct diag *diag)
{
	struct result *result = &r->tool->result;
	const struct db_profile_run *from = run_before(r, other), *to;
	struct difference_counts counts;
	json_t *object;
	enum status status;

	if (!from || s->profile.count == 0)
		return STATUS_OK;
	to = &s->profile.runs[s->profile.count - 1];
	object = result_add_object(result, r->differences);
	result_put_count(result, object, "image", (uint64_t)s->row->image);
	status = differences_put(result, object, s, to, other, from, &counts, diag);
	r->compared = true;
	if (status == STATUS_OK && r->text)
		fprintf(r->out, "\nfrom run %" PRId64 "%s to run %" PRId64 ": %s new, %s gone, "
		       "%s moved, %s in both\n",
		       from->run, r->other ? " of the other database" : "", to->run,
		       human_count(counts.added).text, human_count(counts.gone).text,
		       human_count(counts.moved).text, human_count(counts.common).text);
	return status;
}

/* What needs another database or an earlier run: the differences and the page. */
static enum status report_compared(struct report *r, const struct subject *s,
				   struct diag *diag)
{
	const struct db_image_row *row = r->other ? other_image(r, s->row) : s->row;
	struct db *db = r->other ? r->other_db : r->db;
	struct subject other = {.row = row};
	enum status status = STATUS_OK;
	bool wanted = row && (r->other || r->from_run);

	if (wanted)
		status = subject_load(db, row, DB_RUN_TRACE, 0, &other, diag);
	if (status == STATUS_OK && wanted)
		status = report_differences(r, s, &other, diag);
	if (status == STATUS_OK && r->html && s->image.count)
		status = page_add(&r->page, r->db, s, db, r->other && row ? &other : NULL,
				  (int64_t)r->from_run, diag);
	if (wanted)
		subject_release(&other);
	return status;
}

static enum status report_images(struct report *r, struct diag *diag)
{
	json_t *images = result_put_array(&r->tool->result, r->tool->result.root, "images");
	enum status status = STATUS_OK;

	if (r->other || r->from_run)
		r->differences = result_put_array(&r->tool->result, r->tool->result.root,
						  "differences");
	for (uint32_t i = 0; i < r->image_count && status == STATUS_OK; i++) {
		struct subject s = {.row = &r->images[i]};

		if (!is_wanted(r, s.row))
			continue;
		status = subject_load(r->db, s.row, kind_of_runs(r), (int64_t)r->run, &s,
				      diag);
		if (status == STATUS_OK)
			status = report_subject(r, &s, images, diag);
		if (status == STATUS_OK)
			status = report_compared(r, &s, diag);
		r->matched = true;
		subject_release(&s);
	}
	if (status == STATUS_OK && !r->matched && r->image)
		status =
			diag_fail(diag, STATUS_NOT_FOUND, "database '%s' has no image '%s'",
				  r->database, r->image);
	if (status == STATUS_OK && r->from_run && !r->compared)
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "database '%s' has no traces of run %" PRIu64
				   " to compare with",
				   r->other ? r->other : r->database, r->from_run);
	if (status == STATUS_OK && !r->matched && r->text)
		fputs("no images\n", r->out);
	return status;
}

static enum status open_other(struct report *r, struct diag *diag)
{
	enum status status = db_open(r->other, DB_READONLY, &r->other_db, diag);

	if (status == STATUS_OK)
		status = db_list_images(r->other_db, &r->arena, &r->other_images,
					&r->other_count, diag);
	return status;
}

/* Images without functions have nothing to draw. */
static enum status write_page(struct report *r, struct diag *diag)
{
	struct result *result = &r->tool->result;
	json_t *html;
	uint64_t size;
	enum status status;

	if (json_array_size(r->page.images) == 0)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "database '%s' has no image with known functions, "
				 "appulse-instrument notes them",
				 r->database);
	status = page_write(&r->page, json_object_get(result->root, "images"), r->html,
			    r->force, &size, diag);
	if (status != STATUS_OK)
		return status;
	html = result_put_object(result, result->root, "html");
	result_put_text(result, html, "path", r->html);
	result_put_count(result, html, "bytes", size);
	if (!r->tool->json)
		printf("%s: %s\n", r->html, human_bytes(size).text);
	return STATUS_OK;
}

/* The page may not take the place of what it is made from. */
static enum status check_paths(const struct report *r, struct diag *diag)
{
	if (db_uses_path(r->database, r->html) || db_uses_path(r->other, r->html))
		return diag_fail(diag, STATUS_USAGE,
				 "'%s' is a file of a database, the page needs a place of its "
				 "own", r->html);
	return STATUS_OK;
}

/* Half a report would be taken for a whole one, where a failure is not seen. */
static enum status print_collected(struct report *r, struct diag *diag)
{
	bool failed = fflush(r->out) != 0 || ferror(r->out);

	if (failed)
		return diag_no_memory(diag);
	fwrite(r->collected, 1, r->collected_size, stdout);
	return STATUS_OK;
}

static enum status report(struct report *r, struct diag *diag)
{
	enum status status = database_option_check(r->database, diag);

	if (status == STATUS_OK && r->text) {
		r->out = open_memstream(&r->collected, &r->collected_size);
		status = r->out ? STATUS_OK : diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		status = check_paths(r, diag);
	if (status == STATUS_OK)
		status = db_open(r->database, DB_READONLY, &r->db, diag);
	if (status == STATUS_OK)
		status = db_list_runs(r->db, &r->arena, &r->runs, &r->run_count, diag);
	if (status == STATUS_OK)
		status =
			db_list_images(r->db, &r->arena, &r->images, &r->image_count, diag);
	if (status == STATUS_OK && r->run && !run_row(r, (int64_t)r->run))
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "database '%s' has no run %" PRIu64 ", 'list' shows them",
				 r->database, r->run);
	if (status == STATUS_OK && r->other)
		status = open_other(r, diag);
	if (status == STATUS_OK)
		status = report_images(r, diag);
	if (status == STATUS_OK && r->html)
		status = write_page(r, diag);
	return status == STATUS_OK && r->text ? print_collected(r, diag) : status;
}

enum status report_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct report r = {.tool = tool, .limit = 10};
	const struct option_spec options[] = {
		OPTION_DATABASE(&r.database),
		OPTION_STRING(
			"image", 0, "IMAGE", &r.image,
			"only this image: its name, a pattern, or the first digits of "
			"its hash"),
		OPTION_NUMBER("run", 0, "N", &r.run, 1, INT64_MAX, "only this run"),
		OPTION_NUMBER("limit", 0, "N", &r.limit, 0, UINT32_MAX,
			      "list the N functions touched first (default: 10)"),
		OPTION_STRING("html", 0, "FILE", &r.html,
			      "write a page that a browser shows, complete in one file"),
		OPTION_STRING("against", 0, "DB", &r.other,
			      "compare with the newest run of another database, on the page "
			      "with any of its runs"),
		OPTION_NUMBER("from-run", 0, "N", &r.from_run, 1, INT64_MAX,
			      "compare with run N, of the other database if one is given"),
		OPTION_FLAG("force", 'f', &r.force, "replace an existing page"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Shows for each image what was touched: functions, their bytes, "
			"the pages that they lie on as linked, and the floor, which is the "
			"pages that they would fill if they lay together. The list at the "
			"end is of the newest run."
			"\n\n"
			"On a terminal the pages of that run and the faults that it is "
			"predicted to cost are drawn, as linked and for each relink that the "
			"database knows. The page of --html has all of it to look at, search "
			"and compare (docs/report.md).",
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	arena_init(&r.arena);
	page_init(&r.page);
	r.text = !tool->json && !r.html;
	if (status == STATUS_OK && !line.answered)
		status = report(&r, diag);
	page_release(&r.page);
	if (r.out)
		fclose(r.out);
	free(r.collected);
	db_close(r.other_db);
	db_close(r.db);
	arena_release(&r.arena);
	command_line_release(&line);
	return status;
}
