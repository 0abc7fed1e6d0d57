/* The prefetch plan.
 *
 * A loader hands the ranges to the system in one call, which reads them before the first
 * of them is needed.  Sequence matters little inside that call and much for a loader that
 * makes several: so ranges stand as they are needed, by the first touch of any of their
 * pages.
 *
 * Pages that lie near each other are one range, since reading a few pages too many costs
 * less than another request.
 */
#include "prefetch_plan.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- making it ---- */

/* A range with the touch that needs it first. */
struct group {
	uint32_t first, last; /* pages */
	uint32_t touch;
};

typedef VEC(struct group) group_list;

static int by_touch(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->touch != y->touch)
		return x->touch < y->touch ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Adds the groups of touched pages from `first` to `last`. */
static bool group_pages(const struct fault_result *result, uint32_t first, uint32_t last,
			uint32_t gap, group_list *groups)
{
	struct group *open = NULL;

	for (uint32_t page = first; page <= last; page++) {
		uint32_t touch = result->touched_by[page];
		struct group group = {page, page, touch};

		if (touch == NO_TOUCH)
			continue;
		if (open && page - open->last - 1 <= gap) {
			open->last = page;
			if (touch < open->touch)
				open->touch = touch;
			continue;
		}
		if (!vec_push(groups, group))
			return false;
		open = &groups->data[groups->len - 1];
	}
	return true;
}

/* Sections may share a page: then it is the first one's. */
static bool group_sections(const struct fault_input *input,
			   const struct fault_result *result, uint32_t gap,
			   group_list *groups)
{
	uint32_t free_page = 0;

	for (uint32_t s = 0; s < input->section_count; s++) {
		const struct fault_section *section = &input->sections[s];
		uint32_t first = section->begin.v / FAULT_PAGE;
		uint32_t last = (section->begin.v + (section->size - 1)) / FAULT_PAGE;

		if (first < free_page)
			first = free_page;
		if (!group_pages(result, first, last, gap, groups))
			return false;
		free_page = last + 1;
	}
	return true;
}

enum status prefetch_plan_make(const struct fault_input *input,
			       const struct fault_result *result, uint32_t gap,
			       struct prefetch_plan *ret_plan, struct diag *diag)
{
	struct prefetch_plan plan = {.needed_pages = result->pages};
	group_list groups = {0};
	bool ok = group_sections(input, result, gap, &groups);

	if (ok && groups.len)
		qsort(groups.data, groups.len, sizeof(*groups.data), by_touch);
	for (uint32_t i = 0; ok && i < groups.len; i++) {
		uint32_t pages = groups.data[i].last - groups.data[i].first + 1;
		struct plan_range range = {rva_of(groups.data[i].first * FAULT_PAGE),
					   pages * FAULT_PAGE};

		plan.pages += pages;
		ok = vec_push(&plan.ranges, range);
	}
	vec_release(&groups);
	if (!ok) {
		prefetch_plan_release(&plan);
		return diag_no_memory(diag);
	}
	*ret_plan = plan;
	return STATUS_OK;
}

void prefetch_plan_release(struct prefetch_plan *plan)
{
	vec_release(&plan->ranges);
	memset(plan, 0, sizeof(*plan));
}

/* ---- writing it ---- */

/* What open_memstream has collected; NULL when anything failed. */
static char *close_text(FILE *file, char **text)
{
	bool failed = ferror(file);

	if (fclose(file) == 0 && !failed)
		return *text;
	free(*text);
	return NULL;
}

/* The name as a JSON string, to be freed. */
static char *json_name(const char *name)
{
	char *clean = strdup(name), *text;
	json_t *string;

	if (!clean)
		return NULL;
	utf8_clean(clean, true);
	string = json_string(clean);
	text = json_dumps(string, JSON_ENCODE_ANY);
	json_decref(string);
	free(clean);
	return text;
}

char *prefetch_plan_json(const struct prefetch_plan *plan, const struct plan_image *image,
			 uint32_t gap, size_t *ret_size)
{
	char hash[SHA256_HEX_SIZE], *text = NULL, *name = json_name(image->name);
	FILE *file = name ? open_memstream(&text, ret_size) : NULL;

	if (!file) {
		free(name);
		return NULL;
	}
	sha256_hex(&image->hash, hash);
	fprintf(file,
		"{\n"
		" \"format\": \"appulse-prefetch-plan\",\n"
		" \"schema\": %d,\n"
		" \"image\": {\n"
		"  \"name\": %s,\n"
		"  \"sha256\": \"%s\",\n"
		"  \"size_of_image\": %u,\n"
		"  \"time_date_stamp\": %u,\n"
		"  \"checksum\": %u\n"
		" },\n"
		" \"page_size\": %d,\n"
		" \"gap_pages\": %u,\n"
		" \"needed_pages\": %u,\n"
		" \"ranges\": [",
		(int)PLAN_SCHEMA, name, hash, image->size_of_image, image->time_date_stamp,
		image->checksum, (int)FAULT_PAGE, gap, plan->needed_pages);
	for (uint32_t i = 0; i < plan->ranges.len; i++)
		fprintf(file, "%s\n  [%u, %u]", i ? "," : "", plan->ranges.data[i].begin.v,
			plan->ranges.data[i].size);
	fprintf(file, "\n ]\n}\n");
	free(name);
	return close_text(file, &text);
}

/* The name as the inside of a C string; octal digits cannot run on into what follows. */
static void put_c_string(FILE *file, const char *name)
{
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		if (*c < 0x20 || *c >= 0x7f || strchr("\"\\?", *c))
			fprintf(file, "\\%03o", *c);
		else
			fputc(*c, file);
	}
}

static void put_upper(FILE *file, const char *word)
{
	for (; *word; word++)
		fputc(toupper((unsigned char)*word), file);
}

static void put_define(FILE *file, const char *prefix, const char *name, uint32_t value)
{
	fputs("#define ", file);
	put_upper(file, prefix);
	fprintf(file, "_%s 0x%xu\n", name, value);
}

char *prefetch_plan_header(const struct prefetch_plan *plan, const struct plan_image *image,
			   const char *prefix, size_t *ret_size)
{
	char hash[SHA256_HEX_SIZE], *text = NULL;
	FILE *file = open_memstream(&text, ret_size);

	if (!file)
		return NULL;
	sha256_hex(&image->hash, hash);
	fprintf(file,
		"/* Which pages a start-up needs of the image with the SHA-256\n"
		" * %s,\n"
		" * in order.  Made by appulse-reorder prefetch-plan, schema %d. */\n"
		"#ifndef ",
		hash, (int)PLAN_SCHEMA);
	put_upper(file, prefix);
	fputs("_H\n#define ", file);
	put_upper(file, prefix);
	fputs("_H\n\n/* Fields of the image's headers, to tell it from another build. */\n",
	      file);
	put_define(file, prefix, "SIZE_OF_IMAGE", image->size_of_image);
	put_define(file, prefix, "TIME_DATE_STAMP", image->time_date_stamp);
	put_define(file, prefix, "CHECKSUM", image->checksum);
	fputs("\n#define ", file);
	put_upper(file, prefix);
	fputs("_NAME \"", file);
	put_c_string(file, image->name);
	fputs("\"\n#define ", file);
	put_upper(file, prefix);
	fprintf(file,
		"_COUNT %uu\n\n"
		"/* Bytes from the start of the loaded image. */\n"
		"static const struct {\n\tunsigned int rva, size;\n} %s_ranges[] = {\n",
		plan->ranges.len, prefix);
	for (uint32_t i = 0; i < plan->ranges.len; i++)
		fprintf(file, "\t{0x%xu, 0x%xu},\n", plan->ranges.data[i].begin.v,
			plan->ranges.data[i].size);
	fputs("};\n\n#endif\n", file);
	return close_text(file, &text);
}
