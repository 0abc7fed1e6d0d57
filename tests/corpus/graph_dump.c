/* Prints what discovery finds in an image, a line a fact, for graph_oracle.py and
 * for people.  Numbers are hexadecimal without a prefix, addresses are RVAs.
 *
 *     range BEGIN SIZE
 *     function BEGIN SIZE KIND PINS NAME     block BEGIN SIZE PINS
 *     ref SITE TARGET KIND SIZE TAIL BASE    table TABLE BASE JUMP COUNT
 *     instruction RVA SIZE                   (with --instructions)
 *
 * PINS are names with commas between them, "-" when there are none. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "graph/analysis.h"

static const char *const function_kinds[] = {"table", "chained", "leaf", "island", "bytes"};
static const char *const ref_kinds[] = {"branch", "address", "memory", "rva", "rva-end",
					"va64",   "va32",    "table",  "self",
					"state",  "displacement"};

static void print_pins(uint32_t pins)
{
	const char *separator = "";

	for (unsigned i = 0; i < PIN_REASON_COUNT; i++) {
		if (!(pins >> i & 1))
			continue;
		printf("%s%s", separator, pin_reason_name((enum pin_reason)i));
		separator = ",";
	}
	printf("%s", *separator ? "" : "-");
}

static void print_code(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->range_count; i++)
		printf("range %x %x\n", graph->ranges[i].begin.v, graph->ranges[i].size);
	for (uint32_t i = 0; i < graph->functions.len; i++) {
		const struct function *f = &graph->functions.data[i];

		printf("function %x %x %s ", f->begin.v, f->size, function_kinds[f->kind]);
		print_pins(f->pins);
		printf(" %s\n", f->name ? f->name : "-");
	}
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];

		printf("block %x %x ", block->begin.v, block->size);
		print_pins(block->pins);
		printf("\n");
	}
}

static void print_refs(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->refs.len; i++) {
		const struct ref *ref = &graph->refs.data[i];

		printf("ref %x %x %s %x %x %x\n", ref->site.v, ref->target.v,
		       ref_kinds[ref->kind], ref->size, ref->tail, ref->base.v);
	}
	for (uint32_t i = 0; i < graph->jump_tables.len; i++) {
		const struct jump_table *table = &graph->jump_tables.data[i];

		printf("table %x %x %x %x\n", table->table.v, table->base.v, table->jump.v,
		       table->count);
	}
}

static void print_instructions(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->range_count; i++) {
		const struct code_range *range = &graph->ranges[i];

		for (uint32_t at = 0, end; at < range->size; at = end) {
			end = at + 1;
			if ((range->map[at] & CODE_STATE) != CODE_START)
				continue;
			while (end < range->size &&
			       (range->map[end] & CODE_STATE) == CODE_INSIDE)
				end++;
			printf("instruction %x %x\n", range->begin.v + at, end - at);
		}
	}
}

static void print_conflicts(const struct name_report *report)
{
	for (uint32_t i = 0; i < report->example_count; i++)
		printf("conflict %x %s, of %u\n", report->examples[i]->rva.v,
		       report->examples[i]->name, report->conflict_count);
}

static void print_refused(const struct file_names *names)
{
	for (uint32_t i = 0; i < names->refused_count; i++)
		fprintf(stderr, "%s\n", names->refused[i].message);
}

/* The options before the image; whether they are right. */
static bool read_options(int argc, char **argv, struct analysis_request *request,
			 bool *instructions)
{
	int i = 1;

	for (; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--instructions") == 0)
			*instructions = true;
		else if (strcmp(argv[i], "--pdb") == 0)
			request->names.pdb = argv[++i];
		else if (strcmp(argv[i], "--linker-map") == 0)
			request->names.linker_map = argv[++i];
		else
			return false;
	}
	return i == argc - 1;
}

int main(int argc, char **argv)
{
	struct analysis_request request = {0};
	struct analysis analysis;
	struct diag diag;
	bool instructions = false;
	char text[2048];

	if (!read_options(argc, argv, &request, &instructions)) {
		fprintf(stderr, "usage: graph_dump [--instructions] [--pdb FILE] "
				"[--linker-map FILE] IMAGE\n");
		return 2;
	}
	diag_init(&diag);
	if (analysis_open(&analysis, argv[argc - 1], &request, &diag) != STATUS_OK) {
		diag_format(&diag, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return status_exit_code(diag.status);
	}
	print_code(&analysis.graph);
	print_refs(&analysis.graph);
	if (instructions)
		print_instructions(&analysis.graph);
	print_conflicts(&analysis.named);
	print_refused(&analysis.names);
	analysis_close(&analysis);
	return 0;
}
