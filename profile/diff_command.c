/* appulse-profile diff: what became of an image's functions in another build. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/human.h"
#include "cli/options.h"
#include "cli/table.h"
#include "layout/function_match.h"
#include "report_subject.h"

struct diff_options {
	const char *database, *builds[2];
	bool list, touched_only;
};

/* What became of a function. */
#define FATE_LIST(X)         \
	X(SAME, "same")      \
	X(UNKNOWN, "unknown") /* matched, but a content is not known */ \
	X(CHANGED, "changed") \
	X(GONE, "gone")      \
	X(ADDED, "added")

enum fate {
#define X(id, name) FATE_##id,
	FATE_LIST(X)
#undef X
	FATE_COUNT
};

static const char *const fate_names[FATE_COUNT] = {
#define X(id, name) [FATE_##id] = name,
	FATE_LIST(X)
#undef X
};

struct count {
	uint64_t functions, bytes, touched, touched_bytes;
};

struct diff {
	struct tool *tool;
	const struct diff_options *options;
	struct arena arena; /* the rows */
	struct subject before, after;
	struct function_match match; /* of `before` in `after` */
	struct count counts[FATE_COUNT];
	uint32_t ways[MATCH_WAY_COUNT];
	bool *found; /* owned: functions of `after` that are matched */
};

/* ---- loading ---- */

enum { PREFIX_MIN = 8 }; /* digits of a hash that name a build */

static bool names_build(const struct db_image_row *row, const char *word)
{
	size_t length = strlen(word);

	return row->functions &&
	       (strcasecmp(row->name, word) == 0 ||
		(length >= PREFIX_MIN && strncasecmp(row->hash, word, length) == 0));
}

static enum status find_build(const struct diff *d, const char *word,
			      const struct db_image_row *rows, uint32_t count,
			      const struct db_image_row **ret_row, struct diag *diag)
{
	const struct db_image_row *found = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (!names_build(&rows[i], word))
			continue;
		if (found)
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' names several builds, %.12s and %.12s among them: "
					 "say the begin of a hash ('appulse-profile list' shows "
					 "them)",
					 word, found->hash, rows[i].hash);
		found = &rows[i];
	}
	if (!found)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "'%s' has no build '%s' whose functions are known",
				 d->options->database, word);
	*ret_row = found;
	return STATUS_OK;
}

static enum status load(struct diff *d, struct diag *diag)
{
	struct subject *const builds[] = {&d->before, &d->after};
	struct db_image_row *rows = NULL;
	const struct db_image_row *row = NULL;
	struct db *db = NULL;
	uint32_t count = 0;
	enum status status = db_open(d->options->database, DB_READONLY, &db, diag);

	if (status == STATUS_OK)
		status = db_list_images(db, &d->arena, &rows, &count, diag);
	for (unsigned i = 0; i < 2 && status == STATUS_OK; i++) {
		status = find_build(d, d->options->builds[i], rows, count, &row, diag);
		if (status == STATUS_OK)
			status = subject_load(db, row, DB_RUN_TRACE, 0, builds[i], diag);
	}
	db_close(db);
	return status;
}

/* ---- comparing ---- */

static enum fate fate_of(const struct diff *d, uint32_t before)
{
	uint32_t to = d->match.to[before];
	uint64_t was, is;

	if (to == NO_FUNCTION)
		return FATE_GONE;
	was = d->before.identities.functions.list[before].content;
	is = d->after.identities.functions.list[to].content;
	if (!was || !is)
		return FATE_UNKNOWN;
	return was == is ? FATE_SAME : FATE_CHANGED;
}

static void count_one(struct count *count, const struct subject *build, uint32_t function)
{
	uint32_t size = build->image.functions[function].size;

	count->functions++;
	count->bytes += size;
	if (!build->seen[function])
		return;
	count->touched++;
	count->touched_bytes += size;
}

static enum status compare(struct diff *d, struct diag *diag)
{
	enum status status = function_match_make(&d->before.identities.functions,
						 &d->after.identities.functions, &d->match,
						 diag);

	if (status != STATUS_OK)
		return status;
	d->found = calloc((size_t)d->after.image.count + 1, sizeof(*d->found));
	if (!d->found)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < d->before.image.count; i++) {
		count_one(&d->counts[fate_of(d, i)], &d->before, i);
		d->ways[d->match.way[i]]++;
		if (d->match.to[i] != NO_FUNCTION)
			d->found[d->match.to[i]] = true;
	}
	for (uint32_t i = 0; i < d->after.image.count; i++)
		if (!d->found[i])
			count_one(&d->counts[FATE_ADDED], &d->after, i);
	return STATUS_OK;
}

/* ---- telling ---- */

static void print_build(const char *word, const struct subject *build)
{
	printf("%-6s  %s, %.12s: %s, %s\n", word, build->row->name, build->row->hash,
	       human_things(build->image.count, "function").text,
	       human_things(build->profile.count, "run").text);
}

static enum status print_counts(const struct diff *d, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"", TABLE_LEFT},          {"functions", TABLE_RIGHT}, {"bytes", TABLE_RIGHT},
		{"touched", TABLE_RIGHT},  {"bytes", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (unsigned fate = 0; fate < FATE_COUNT; fate++) {
		const struct count *c = &d->counts[fate];

		if (!c->functions && fate == FATE_UNKNOWN)
			continue;
		table_cell(&table, "%s", fate_names[fate]);
		table_cell(&table, "%s", human_count(c->functions).text);
		table_cell(&table, "%s", human_count(c->bytes).text);
		table_cell(&table, "%s", human_count(c->touched).text);
		table_cell(&table, "%s", human_count(c->touched_bytes).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

/* "0x1234 name", the name cut off when there is none. */
static void place_cell(struct table *table, const struct subject *build, uint32_t function)
{
	const struct db_function *f = &build->image.functions[function];

	table_cell(table, "0x%x%s%s", f->rva.v, f->name ? " " : "", f->name ? f->name : "");
}

/* One row for each function whose code is another. */
static enum status print_list(const struct diff *d, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"", TABLE_LEFT},       {"before", TABLE_LEFT}, {"bytes", TABLE_RIGHT},
		{"after", TABLE_LEFT},  {"bytes", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (uint32_t i = 0; i < d->before.image.count; i++) {
		enum fate fate = fate_of(d, i);
		uint32_t to = d->match.to[i];

		if (fate == FATE_SAME || (d->options->touched_only && !d->before.seen[i]))
			continue;
		table_cell(&table, "%s", fate_names[fate]);
		place_cell(&table, &d->before, i);
		table_cell(&table, "%s", human_count(d->before.image.functions[i].size).text);
		if (to != NO_FUNCTION) {
			place_cell(&table, &d->after, to);
			table_cell(&table, "%s",
				   human_count(d->after.image.functions[to].size).text);
		} else {
			table_cell(&table, "-");
			table_cell(&table, "-");
		}
	}
	for (uint32_t i = 0; i < d->after.image.count; i++) {
		if (d->found[i] || (d->options->touched_only && !d->after.seen[i]))
			continue;
		table_cell(&table, "%s", fate_names[FATE_ADDED]);
		table_cell(&table, "-");
		table_cell(&table, "-");
		place_cell(&table, &d->after, i);
		table_cell(&table, "%s", human_count(d->after.image.functions[i].size).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static enum status print(const struct diff *d, struct diag *diag)
{
	enum status status;

	print_build("before", &d->before);
	print_build("after", &d->after);
	printf("\n");
	status = print_counts(d, diag);
	if (status != STATUS_OK)
		return status;
	printf("\nfound again: by name %s, by content %s, by neighbours %s\n",
	       human_count(d->ways[MATCH_NAME]).text,
	       human_count(d->ways[MATCH_CONTENT]).text,
	       human_count(d->ways[MATCH_NEIGHBOUR]).text);
	if (!d->options->list)
		return STATUS_OK;
	printf("\n");
	return print_list(d, diag);
}

static void put_build(const struct diff *d, const char *key, const struct subject *build)
{
	struct result *r = &d->tool->result;
	json_t *object = result_put_object(r, r->root, key);

	result_put_text(r, object, "name", build->row->name);
	result_put_text(r, object, "sha256", build->row->hash);
	result_put_count(r, object, "functions", build->image.count);
	result_put_count(r, object, "runs", build->profile.count);
}

static void put_side(struct result *r, json_t *row, const char *key,
		     const struct subject *build, uint32_t function)
{
	const struct db_function *f;
	json_t *side;

	if (function == NO_FUNCTION) {
		result_put_text(r, row, key, NULL);
		return;
	}
	f = &build->image.functions[function];
	side = result_put_object(r, row, key);
	result_put_count(r, side, "rva", f->rva.v);
	result_put_count(r, side, "size", f->size);
	result_put_text(r, side, "name", f->name);
	result_put_flag(r, side, "touched", build->seen[function]);
}

static void put_row(const struct diff *d, json_t *array, enum fate fate, uint32_t before,
		    uint32_t after)
{
	struct result *r = &d->tool->result;
	json_t *row = result_add_object(r, array);

	result_put_text(r, row, "fate", fate_names[fate]);
	result_put_text(r, row, "way",
			before != NO_FUNCTION && after != NO_FUNCTION
				? match_way_names[d->match.way[before]]
				: NULL);
	put_side(r, row, "before", &d->before, before);
	put_side(r, row, "after", &d->after, after);
}

static void put(const struct diff *d)
{
	struct result *r = &d->tool->result;
	json_t *object;

	put_build(d, "before", &d->before);
	put_build(d, "after", &d->after);
	object = result_put_object(r, r->root, "counts");
	for (unsigned fate = 0; fate < FATE_COUNT; fate++) {
		const struct count *c = &d->counts[fate];
		json_t *part = result_put_object(r, object, fate_names[fate]);

		result_put_count(r, part, "functions", c->functions);
		result_put_count(r, part, "bytes", c->bytes);
		result_put_count(r, part, "touched_functions", c->touched);
		result_put_count(r, part, "touched_bytes", c->touched_bytes);
	}
	object = result_put_array(r, r->root, "functions");
	for (uint32_t i = 0; i < d->before.image.count; i++)
		put_row(d, object, fate_of(d, i), i, d->match.to[i]);
	for (uint32_t i = 0; i < d->after.image.count; i++)
		if (!d->found[i])
			put_row(d, object, FATE_ADDED, NO_FUNCTION, i);
}

static enum status diff(struct tool *tool, const struct diff_options *options,
			struct diag *diag)
{
	struct diff d = {.tool = tool, .options = options};
	enum status status;

	arena_init(&d.arena);
	arena_init(&d.before.arena);
	arena_init(&d.after.arena);
	status = load(&d, diag);
	if (status == STATUS_OK)
		status = compare(&d, diag);
	if (status == STATUS_OK && tool->json)
		put(&d);
	else if (status == STATUS_OK)
		status = print(&d, diag);
	free(d.found);
	function_match_release(&d.match);
	subject_release(&d.before);
	subject_release(&d.after);
	arena_release(&d.arena);
	return status;
}

enum status diff_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct diff_options o = {0};
	const struct option_spec options[] = {
		OPTION_STRING("db", 'd', "FILE", &o.database, "the trace database",
			      .required = true),
		OPTION_FLAG("list", 'l', &o.list,
			    "list each function whose code is not the same"),
		OPTION_FLAG("touched", 't', &o.touched_only,
			    "list only those that a run touched"),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Says what became of an image's functions from the build BEFORE to the "
			"build AFTER: the same but for addresses, changed, gone, or added. "
			"Builds that appulse-instrument has put into the database are named by "
			"their file name or by eight digits or more of their SHA-256.",
		.arguments = "BEFORE AFTER",
		.min = 2,
		.max = 2,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		o.builds[0] = line.arguments.data[0];
		o.builds[1] = line.arguments.data[1];
		status = diff(tool, &o, diag);
	}
	command_line_release(&line);
	return status;
}
