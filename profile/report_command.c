/* appulse-profile report: what runs touched of each image.
 *
 * The floor is what the touched functions would need if they lay together: their
 * bytes in pages of 4096, rounded up.  "As linked" is what they lie on now: the
 * pages that hold any byte of a touched function.  The page runs of `pages` count
 * what really was touched, parts of functions and all else in the code included.
 *
 * Numbers over several runs are of the functions that any of them touched.
 */
#include "commands.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/human.h"
#include "cli/options.h"
#include "cli/table.h"
#include "run_options.h"
#include "trace/db_report.h"

enum { PAGE_BYTES = 4096, MIN_HASH_DIGITS = 6 };

struct report {
	struct tool *tool;
	const char *database;
	const char *image; /* name, pattern or hash; NULL: all */
	uint64_t run;      /* 0: all */
	uint64_t limit;    /* of the list of first touches */

	struct arena arena; /* owns what follows */
	struct db *db;
	struct db_run_row *runs;
	uint32_t run_count;
	struct db_image_row *images;
	uint32_t image_count;
	bool matched; /* whether an image was reported */
};

/* What a set of touched RVAs amounts to. */
struct touched {
	uint64_t functions, bytes; /* known functions */
	uint64_t unknown;          /* RVAs that are no known function's */
	uint64_t floor_pages, linked_pages;
};

/* An image being reported. */
struct subject {
	const struct db_image_row *row;
	struct db_image_functions image; /* owned */
	struct db_profile profile;       /* owned */
	uint8_t *seen;                   /* owned: per function, a touch in any run */
	uint8_t *pages; /* owned: per page of the image's functions, scratch */
	uint32_t page_count;
	struct touched all;
};

/* ---- counting ---- */

/* The index of the function that starts at `rva`, or the count. */
static uint32_t function_at(const struct db_image_functions *image, struct rva rva)
{
	uint32_t low = 0, high = image->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->functions[middle].rva.v < rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < image->count && image->functions[low].rva.v == rva.v)
		return low;
	return image->count;
}

static void add_function(struct subject *s, struct touched *t, const struct db_function *f)
{
	uint32_t first = f->rva.v / PAGE_BYTES;
	uint64_t last = f->size ? ((uint64_t)f->rva.v + f->size - 1) / PAGE_BYTES : first;

	t->functions++;
	t->bytes += f->size;
	for (uint64_t page = first; page <= last && page < s->page_count; page++) {
		t->linked_pages += !s->pages[page];
		s->pages[page] = 1;
	}
}

static void finish_count(struct touched *t)
{
	t->floor_pages = (t->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

static struct touched count_run(struct subject *s, const struct db_profile_run *run)
{
	struct touched t = {0};

	memset(s->pages, 0, s->page_count);
	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);

		if (f == s->image.count) {
			t.unknown++;
			continue;
		}
		s->seen[f] = 1;
		add_function(s, &t, &s->image.functions[f]);
	}
	finish_count(&t);
	return t;
}

static int by_value(const void *a, const void *b)
{
	const struct rva *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

/* Distinct RVAs over all runs that are no known function's. */
static bool count_unknown(const struct subject *s, uint64_t *ret_count)
{
	VEC(struct rva) unknown = {0};
	bool ok = true;

	*ret_count = 0;
	for (uint32_t r = 0; r < s->profile.count && ok; r++)
		for (uint32_t i = 0; i < s->profile.runs[r].count && ok; i++) {
			struct rva rva = s->profile.runs[r].rvas[i];

			if (function_at(&s->image, rva) == s->image.count)
				ok = vec_push(&unknown, rva);
		}
	if (unknown.len)
		qsort(unknown.data, unknown.len, sizeof(*unknown.data), by_value);
	for (uint32_t i = 0; i < unknown.len; i++)
		*ret_count += i == 0 || unknown.data[i].v != unknown.data[i - 1].v;
	vec_release(&unknown);
	return ok;
}

static void count_all(struct subject *s)
{
	struct touched t = {0};

	memset(s->pages, 0, s->page_count);
	for (uint32_t f = 0; f < s->image.count; f++)
		if (s->seen[f])
			add_function(s, &t, &s->image.functions[f]);
	finish_count(&t);
	t.unknown = s->all.unknown;
	s->all = t;
}

/* ---- one image ---- */

static void subject_release(struct subject *s)
{
	db_image_release(&s->image);
	db_profile_release(&s->profile);
	free(s->seen);
	free(s->pages);
}

/* Keeps only the run that was asked for. */
static void select_run(struct db_profile *profile, int64_t run)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < profile->count; i++) {
		struct db_profile_run *r = &profile->runs[i];

		if (r->run == run) {
			profile->runs[kept++] = *r;
		} else {
			free(r->scenario);
			free(r->rvas);
		}
	}
	profile->count = kept;
}

/* The runs of both kinds; breakpoint runs only when one is asked for, as they
 * repeat what a trace says. */
static enum status load_profile(struct report *r, struct subject *s, struct diag *diag)
{
	enum db_run_kind kind = DB_RUN_TRACE;
	enum status status;

	for (uint32_t i = 0; i < r->run_count; i++)
		if (r->run && r->runs[i].run == (int64_t)r->run && r->runs[i].kind &&
		    strcmp(r->runs[i].kind, db_run_kind_name(DB_RUN_BREAKPOINTS)) == 0)
			kind = DB_RUN_BREAKPOINTS;
	status = db_load_profile(r->db, &s->image.image.hash, kind, &s->profile, diag);
	if (status == STATUS_OK && r->run)
		select_run(&s->profile, (int64_t)r->run);
	return status;
}

static enum status subject_load(struct report *r, struct subject *s, struct diag *diag)
{
	enum status status = db_load_image(r->db, s->row->image, &s->image, diag);
	uint64_t end = 0;

	if (status == STATUS_OK)
		status = load_profile(r, s, diag);
	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; i < s->image.count; i++) {
		const struct db_function *f = &s->image.functions[i];

		if ((uint64_t)f->rva.v + f->size > end)
			end = (uint64_t)f->rva.v + f->size;
	}
	s->page_count = (uint32_t)(end / PAGE_BYTES + 1);
	s->seen = calloc((size_t)s->image.count + 1, 1);
	s->pages = calloc(s->page_count, 1);
	if (!s->seen || !s->pages || !count_unknown(s, &s->all.unknown))
		return diag_no_memory(diag);
	return STATUS_OK;
}

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
		struct touched t = count_run(s, run);
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
	if (status == STATUS_OK && !r->tool->json && s->profile.count) {
		putchar('\n');
		status = table_print(&table, stdout, diag);
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
	if (status == STATUS_OK && !r->tool->json && any) {
		putchar('\n');
		status = table_print(&table, stdout, diag);
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
	if (!r->tool->json && r->limit) {
		putchar('\n');
		status = table_print(&table, stdout, diag);
		if (run->count > r->limit)
			printf("... %s more in run %" PRId64 "\n",
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

static void print_totals(const struct subject *s)
{
	const struct touched *t = &s->all;
	const struct db_image_row *row = s->row;

	printf("functions touched  %s of %s (%s), never %s\n",
	       human_count(t->functions).text, human_count(row->functions).text,
	       human_percent(t->functions, row->functions).text,
	       human_count(row->functions - t->functions).text);
	printf("bytes touched      %s of %s (%s)\n", human_count(t->bytes).text,
	       human_count(row->function_bytes).text,
	       human_percent(t->bytes, row->function_bytes).text);
	printf("pages as linked    %s\n", human_count(t->linked_pages).text);
	printf("pages at the floor %s\n", human_count(t->floor_pages).text);
	if (t->unknown)
		printf("unknown places     %s\n", human_count(t->unknown).text);
}

static enum status report_subject(struct report *r, struct subject *s, json_t *images,
				  struct diag *diag)
{
	struct result *result = &r->tool->result;
	json_t *object = result_add_object(result, images);
	enum status status;

	put_image(r, s, object);
	for (uint32_t i = 0; i < s->profile.count; i++)
		(void)count_run(s, &s->profile.runs[i]);
	count_all(s);
	put_touched(result, object, &s->all);
	result_put_count(result, object, "functions_never_touched",
			 s->image.count - s->all.functions);
	if (!r->tool->json) {
		printf("%s%s (%.12s%s)\n", r->matched ? "\n" : "", s->row->name,
		       s->row->hash, s->row->relinked_from ? ", relinked" : "");
		if (s->profile.count)
			print_totals(s);
		else
			puts("no traces");
	}
	status = report_runs(r, s, object, diag);
	if (status == STATUS_OK)
		status = report_page_runs(r, s, object, diag);
	if (status == STATUS_OK)
		status = report_first(r, s, object, diag);
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

static enum status report_images(struct report *r, struct diag *diag)
{
	json_t *images = result_put_array(&r->tool->result, r->tool->result.root, "images");
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < r->image_count && status == STATUS_OK; i++) {
		struct subject s = {.row = &r->images[i]};

		if (!is_wanted(r, s.row))
			continue;
		status = subject_load(r, &s, diag);
		if (status == STATUS_OK)
			status = report_subject(r, &s, images, diag);
		r->matched = true;
		subject_release(&s);
	}
	if (status == STATUS_OK && !r->matched && r->image)
		status =
			diag_fail(diag, STATUS_NOT_FOUND, "database '%s' has no image '%s'",
				  r->database, r->image);
	if (status == STATUS_OK && !r->matched && !r->tool->json)
		puts("no images");
	return status;
}

static enum status report(struct report *r, struct diag *diag)
{
	enum status status = database_option_check(r->database, diag);

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
	if (status == STATUS_OK)
		status = report_images(r, diag);
	return status;
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
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Shows for each image what was touched: functions, their bytes, "
			"the pages that they lie on as linked, and the floor, which is the "
			"pages that they would fill if they lay together. The list at the "
			"end is of the newest run.",
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	arena_init(&r.arena);
	if (status == STATUS_OK && !line.answered)
		status = report(&r, diag);
	db_close(r.db);
	arena_release(&r.arena);
	command_line_release(&line);
	return status;
}
