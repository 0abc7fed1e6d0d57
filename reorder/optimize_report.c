/* What `appulse optimize` has brought. */
#include <stdio.h>

#include "cli/human.h"
#include "cli/table.h"
#include "optimize.h"

enum { COLUMNS = 80 };

/* Of the touched functions' bytes, in pages, as if nothing else lay between them. */
static uint64_t floor_pages(const struct image_figures *f)
{
	return (f->touched_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

/* ---- for programs ---- */

static void put_known_count(struct result *r, json_t *object, const char *key, uint64_t n)
{
	if (n == UNKNOWN_COUNT)
		result_put_null(r, object, key);
	else
		result_put_count(r, object, key, n);
}

static void put_image(const struct subject *s, struct result *r, json_t *images)
{
	json_t *object = result_add_object(r, images);
	const struct image_figures *f = &s->figures;

	result_put_text(r, object, "path", s->given);
	result_put_text(r, object, "output", s->output);
	result_put_text(r, object, "map", s->output_map);
	put_known_count(r, object, "code_pages", f->code_pages);
	put_known_count(r, object, "pages_before", f->pages_before);
	put_known_count(r, object, "pages_after", f->pages_after);
	result_put_count(r, object, "pages_floor", floor_pages(f));
	result_put_count(r, object, "size_before", f->size_before);
	result_put_count(r, object, "size_after", f->size_after);
	result_put_count(r, object, "runs", f->runs);
	result_put_count(r, object, "functions", f->functions);
	result_put_count(r, object, "touched_functions", f->touched_functions);
	result_put_count(r, object, "movable_functions", f->movable_functions);
	result_put_count(r, object, "bytes", f->bytes);
	result_put_count(r, object, "touched_bytes", f->touched_bytes);
	result_put_count(r, object, "movable_bytes", f->movable_bytes);
	if (json_object_set(object, "pins", s->pins) != 0)
		r->failed = true;
}

static void put_result(struct optimize *o)
{
	static const char *const matches[] = {[OUTPUT_SAME] = "same",
					      [OUTPUT_DIFFERS] = "differs",
					      [OUTPUT_VARIES] = "varies"};
	struct result *r = &o->tool->result;
	json_t *images;

	result_put_text(r, r->root, "db",
			o->database_output ? o->database_output : o->database);
	result_put_count(r, r->root, "runs", o->options->runs);
	result_put_text(r, r->root, "placement",
			optimize_placements[o->options->placement]);
	result_put_text(r, r->root, "command_stdout", matches[o->match]);
	images = result_put_array(r, r->root, "images");
	for (uint32_t i = 0; i < o->subject_count; i++)
		put_image(&o->subjects[i], r, images);
}

/* ---- for people ---- */

/* "-48.0 %", "+0.2 %", "0.0 %". */
static struct human human_change(uint64_t before, uint64_t after)
{
	struct human h = {"-"}, share;

	if (before == 0)
		return h;
	share = human_percent(after < before ? before - after : after - before, before);
	snprintf(h.text, sizeof(h.text), "%s%.40s",
		 after < before   ? "-"
		 : after > before ? "+"
				  : "",
		 share.text);
	return h;
}

static void add_row(struct table *table, const char *what, uint64_t before, uint64_t after)
{
	table_cell(table, "%s", what);
	table_cell(table, "%s", human_count(before).text);
	table_cell(table, "%s", human_count(after).text);
	table_cell(table, "%s", human_change(before, after).text);
}

static enum status print_change(const struct image_figures *f, struct diag *diag)
{
	static const struct table_column columns[] = {
		{"", TABLE_LEFT},        {"before", TABLE_RIGHT}, {"after", TABLE_RIGHT},
		{"change", TABLE_RIGHT}, {"floor", TABLE_RIGHT},
	};
	struct table table;
	char pages[80];
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	if (f->pages_before != UNKNOWN_COUNT) {
		snprintf(pages, sizeof(pages), "code pages touched, of %s",
			 human_count(f->code_pages).text);
		add_row(&table, pages, f->pages_before, f->pages_after);
		table_cell(&table, "%s", human_count(floor_pages(f)).text);
	}
	add_row(&table, "bytes of the file", f->size_before, f->size_after);
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static uint64_t functions_of(const json_t *pin)
{
	return (uint64_t)json_integer_value(json_object_get(pin, "functions"));
}

/* How many functions stay, and the reasons behind each other, wrapped. */
static void print_pins(const struct subject *s, uint64_t pinned)
{
	size_t count = json_array_size(s->pins);
	unsigned column = COLUMNS;
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += functions_of(json_array_get(s->pins, i));
	printf("  pinned   %s%s", human_count(pinned).text,
	       sum > pinned ? ", some for several reasons" : "");

	for (size_t i = 0; i < count; i++) {
		const json_t *pin = json_array_get(s->pins, i);
		const char *reason = json_string_value(json_object_get(pin, "reason"));
		uint64_t n = functions_of(pin);
		char text[128];
		unsigned length = (unsigned)snprintf(
			text, sizeof(text), "%.60s %s%s", reason ? reason : "-",
			human_count(n).text, i + 1 < count ? "," : "");

		if (column + 1 + length > COLUMNS)
			column = (unsigned)printf("\n    %s", text) - 1;
		else
			column += (unsigned)printf(" %s", text);
	}
	putchar('\n');
}

static enum status print_image(const struct subject *s, struct diag *diag)
{
	const struct image_figures *f = &s->figures;
	uint64_t pinned = f->functions - f->movable_functions;
	enum status status;

	printf("%s\n\n", s->name);
	status = print_change(f, diag);
	printf("\nfunctions  %s\n", human_count(f->functions).text);
	printf("  touched  %s (%s), %s, in %s\n", human_count(f->touched_functions).text,
	       human_percent(f->touched_functions, f->functions).text,
	       human_things(f->touched_bytes, "byte").text,
	       human_things(f->runs, "run").text);
	printf("  movable  %s (%s)\n", human_count(f->movable_functions).text,
	       human_percent(f->movable_functions, f->functions).text);
	if (pinned)
		print_pins(s, pinned);
	putchar('\n');
	return status;
}

static enum status print_steps(const struct progress *progress, struct diag *diag)
{
	static const struct table_column columns[] = {{"step", TABLE_LEFT},
						      {"time", TABLE_RIGHT}};
	struct table table;
	enum status status;

	table_init(&table, columns, 2);
	for (uint32_t i = 0; i < progress->len; i++) {
		table_cell(&table, "%s", progress->data[i].name);
		table_cell(&table, "%s", human_seconds(progress->data[i].seconds).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static void print_outputs(const struct optimize *o)
{
	static const char *const matches[] = {
		[OUTPUT_SAME] = "and prints the same",
		[OUTPUT_DIFFERS] = "but prints something else",
		[OUTPUT_VARIES] = "and prints something else, as it does each time",
	};

	putchar('\n');
	for (uint32_t i = 0; i < o->subject_count; i++)
		printf("wrote %s and its map\n", o->subjects[i].output);
	if (o->database_output)
		printf("wrote %s, the profile\n", o->database_output);
	printf("checked: the command works with what was relinked, %s\n",
	       matches[o->match]);
}

enum status optimize_report(struct optimize *o, struct diag *diag)
{
	enum status status = STATUS_OK;

	if (o->tool->json) {
		put_result(o);
		return STATUS_OK;
	}
	for (uint32_t i = 0; i < o->subject_count && status == STATUS_OK; i++)
		status = print_image(&o->subjects[i], diag);
	if (status == STATUS_OK)
		status = print_steps(&o->tool->progress, diag);
	print_outputs(o);
	return status;
}
