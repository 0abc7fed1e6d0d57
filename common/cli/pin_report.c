#include "cli/pin_report.h"

#include <inttypes.h>
#include <string.h>

#include "cli/human.h"

static const char joined_name[] = "joined";

static void count(struct pin_count *to, const struct graph *graph, uint32_t id)
{
	const struct function *functions = graph->functions.data;
	uint32_t held = to->functions < PIN_LARGEST ? to->functions : PIN_LARGEST,
		 at = held;

	to->functions++;
	to->bytes += functions[id].size;
	while (at > 0 && functions[to->largest[at - 1]].size < functions[id].size)
		at--;
	if (at == PIN_LARGEST)
		return;
	if (held == PIN_LARGEST)
		held--;
	memmove(to->largest + at + 1, to->largest + at, (held - at) * sizeof(*to->largest));
	to->largest[at] = id;
}

void pin_report_make(const struct graph *graph, struct pin_report *ret_report)
{
	memset(ret_report, 0, sizeof(*ret_report));
	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];

		ret_report->bytes += f->size;
		if (f->kind == FUNCTION_BYTES) {
			count(&ret_report->unknown, graph, i);
			continue;
		}
		ret_report->functions++;
		for (unsigned r = 0; r < PIN_REASON_COUNT; r++)
			if (f->pins >> r & 1)
				count(&ret_report->reasons[r], graph, i);
		if (!graph->blocks.data[f->block].pins) {
			ret_report->movable_functions++;
			ret_report->movable_bytes += f->size;
		} else if (!f->pins) {
			count(&ret_report->joined, graph, i);
		}
	}
}

const struct pin_count *pin_report_row(const struct pin_report *report, unsigned index,
				       const char **ret_name)
{
	for (unsigned r = 0; r <= PIN_REASON_COUNT; r++) {
		bool last = r == PIN_REASON_COUNT;
		const struct pin_count *row = last ? &report->joined : &report->reasons[r];

		if (row->functions == 0 || index-- > 0)
			continue;
		*ret_name = last ? joined_name : pin_reason_name((enum pin_reason)r);
		return row;
	}
	return NULL;
}

void pin_report_put(const struct pin_report *report, struct result *result, json_t *object)
{
	const struct pin_count *row;
	const char *name;
	json_t *array;

	result_put_count(result, object, "functions", report->functions);
	result_put_count(result, object, "movable_functions", report->movable_functions);
	result_put_count(result, object, "bytes", report->bytes);
	result_put_count(result, object, "movable_bytes", report->movable_bytes);
	result_put_count(result, object, "unknown_places", report->unknown.functions);
	result_put_count(result, object, "unknown_bytes", report->unknown.bytes);
	array = result_put_array(result, object, "pins");
	for (unsigned i = 0; (row = pin_report_row(report, i, &name)); i++) {
		json_t *pin = result_add_object(result, array);

		result_put_text(result, pin, "reason", name);
		result_put_count(result, pin, "functions", row->functions);
		result_put_count(result, pin, "bytes", row->bytes);
	}
}

void pin_report_put_largest(const struct pin_report *report, const struct graph *graph,
			    struct result *result, json_t *object)
{
	json_t *array = result_put_array(result, object, "largest_pinned");
	const struct pin_count *row;
	const char *name;

	for (unsigned i = 0; (row = pin_report_row(report, i, &name)); i++)
		for (unsigned l = 0; l < PIN_LARGEST && l < row->functions; l++) {
			const struct function *f = &graph->functions.data[row->largest[l]];
			json_t *place = result_add_object(result, array);

			result_put_text(result, place, "reason", name);
			result_put_count(result, place, "rva", f->begin.v);
			result_put_count(result, place, "size", f->size);
			result_put_text(result, place, "function", f->name);
		}
}

void pin_report_print(const struct pin_report *report, FILE *to)
{
	const struct pin_count *row;
	const char *name;

	fprintf(to, "movable: %s of %s (%s), %s of %s code bytes (%s)\n",
		human_count(report->movable_functions).text,
		human_things(report->functions, "function").text,
		human_percent(report->movable_functions, report->functions).text,
		human_count(report->movable_bytes).text, human_count(report->bytes).text,
		human_percent(report->movable_bytes, report->bytes).text);
	for (unsigned i = 0; (row = pin_report_row(report, i, &name)); i++)
		fprintf(to, "  pinned, %s: %s, %s\n", name,
			human_things(row->functions, "function").text,
			human_things(row->bytes, "byte").text);
	if (report->unknown.functions)
		fprintf(to, "  not understood: %s, %s\n",
			human_things(report->unknown.functions, "place").text,
			human_things(report->unknown.bytes, "byte").text);
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
