#include "cli/name_report.h"

#include "cli/human.h"

static const char *const conflict_keys[NAME_CONFLICT_COUNT] = {
	[NAME_NO_INSTRUCTION] = "no_instruction",
	[NAME_INSIDE] = "inside_a_function",
	[NAME_ENDS_INSIDE] = "ends_in_an_instruction",
};

static void warn_of_conflicts(struct tool *tool, const struct name_report *report)
{
	const struct symbol *first = report->examples[0];

	if (report->conflict_count)
		tool_warn(
			tool,
			"names that contradict the code: %u; '%s' at RVA 0x%x is the first",
			report->conflict_count, first->name, first->rva.v);
}

void name_report_warn(struct tool *tool, const struct file_names *names,
		      const struct name_report *report)
{
	for (uint32_t i = 0; i < names->refused_count; i++) {
		char text[sizeof(struct diag)];

		diag_format(&names->refused[i], text, sizeof(text));
		tool_warn(tool, "names are not used: %s", text);
	}
	if (report)
		warn_of_conflicts(tool, report);
}

void name_report_put(const struct file_names *names, const struct name_report *report,
		     struct result *result, json_t *object)
{
	json_t *part, *conflicts;

	if (names->used_count == 0) {
		result_put_null(result, object, "names");
		return;
	}
	part = result_put_object(result, object, "names");
	result_put_count(result, part, "functions", report->functions);
	result_put_count(result, part, "own", report->own);
	result_put_count(result, part, "added", report->added);
	conflicts = result_put_object(result, part, "contradictions");
	for (int i = 0; i < NAME_CONFLICT_COUNT; i++)
		result_put_count(result, conflicts, conflict_keys[i], report->conflicts[i]);
}

void name_report_print(const struct file_names *names, const struct name_report *report,
		       FILE *to)
{
	uint32_t named = report->own + report->added;

	if (names->used_count)
		fprintf(to, "named: %s of %s (%s)\n", human_count(named).text,
			human_things(report->functions, "function").text,
			human_percent(named, report->functions).text);
}
