#include "cli/pin_report.h"

#include <inttypes.h>
#include <string.h>

#include "cli/human.h"

static const char joined_name[] = "joined";

void pin_report_make(const struct graph *graph, struct pin_report *ret_report)
{
	memset(ret_report, 0, sizeof(*ret_report));
	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];

		ret_report->bytes += f->size;
		if (f->kind == FUNCTION_BYTES) {
			ret_report->unknown.functions++;
			ret_report->unknown.bytes += f->size;
			continue;
		}
		ret_report->functions++;
		for (unsigned r = 0; r < PIN_REASON_COUNT; r++) {
			if (!(f->pins >> r & 1))
				continue;
			ret_report->reasons[r].functions++;
			ret_report->reasons[r].bytes += f->size;
		}
		if (!graph->blocks.data[f->block].pins) {
			ret_report->movable_functions++;
			ret_report->movable_bytes += f->size;
		} else if (!f->pins) {
			ret_report->joined.functions++;
			ret_report->joined.bytes += f->size;
		}
	}
}

static void put_count(struct result *result, json_t *array, const char *name,
		      const struct pin_count *count)
{
	json_t *row;

	if (count->functions == 0)
		return;
	row = result_add_object(result, array);
	result_put_text(result, row, "reason", name);
	result_put_count(result, row, "functions", count->functions);
	result_put_count(result, row, "bytes", count->bytes);
}

void pin_report_put(const struct pin_report *report, struct result *result, json_t *object)
{
	json_t *array;

	result_put_count(result, object, "functions", report->functions);
	result_put_count(result, object, "movable_functions", report->movable_functions);
	result_put_count(result, object, "bytes", report->bytes);
	result_put_count(result, object, "movable_bytes", report->movable_bytes);
	result_put_count(result, object, "unknown_places", report->unknown.functions);
	result_put_count(result, object, "unknown_bytes", report->unknown.bytes);
	array = result_put_array(result, object, "pins");
	for (unsigned r = 0; r < PIN_REASON_COUNT; r++)
		put_count(result, array, pin_reason_name(r), &report->reasons[r]);
	put_count(result, array, joined_name, &report->joined);
}

static void print_count(FILE *to, const char *name, const struct pin_count *count)
{
	if (count->functions)
		fprintf(to, "  pinned, %s: %s functions, %s bytes\n", name,
			human_count(count->functions).text, human_count(count->bytes).text);
}

void pin_report_print(const struct pin_report *report, FILE *to)
{
	fprintf(to, "movable: %s of %s functions (%s), %s of %s code bytes (%s)\n",
		human_count(report->movable_functions).text,
		human_count(report->functions).text,
		human_percent(report->movable_functions, report->functions).text,
		human_count(report->movable_bytes).text, human_count(report->bytes).text,
		human_percent(report->movable_bytes, report->bytes).text);
	for (unsigned r = 0; r < PIN_REASON_COUNT; r++)
		print_count(to, pin_reason_name(r), &report->reasons[r]);
	print_count(to, joined_name, &report->joined);
	if (report->unknown.functions)
		fprintf(to, "  not understood: %s places, %s bytes\n",
			human_count(report->unknown.functions).text,
			human_count(report->unknown.bytes).text);
}

void pin_names(const struct graph *graph, uint32_t function, char *ret_text, unsigned size)
{
	const struct function *f = &graph->functions.data[function];
	unsigned used = 0;

	ret_text[0] = '\0';
	for (unsigned r = 0; r < PIN_REASON_COUNT && used < size; r++)
		if (f->pins >> r & 1)
			used += (unsigned)snprintf(ret_text + used, size - used, "%s%s",
						   used ? "," : "", pin_reason_name(r));
	if (!f->pins && graph->blocks.data[f->block].pins)
		snprintf(ret_text, size, "%s", joined_name);
}
