/* What runs touched of an image.
 *
 * The floor is what the touched functions would need if they lay together: their
 * bytes in pages of 4096, rounded up.  "As linked" is what they lie on now: the
 * pages that hold any byte of a touched function.
 *
 * Numbers over several runs are of the functions that any of them touched.
 */
#include "report_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

uint32_t function_at(const struct db_image_functions *image, struct rva rva)
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

/* ---- counting ---- */

static void add_function(struct subject *s, struct touched *t, struct rva rva, uint32_t size)
{
	uint32_t first = rva.v / FAULT_PAGE;
	uint64_t last = size ? ((uint64_t)rva.v + size - 1) / FAULT_PAGE : first;

	t->functions++;
	t->bytes += size;
	for (uint64_t page = first; page <= last && page < s->page_count; page++) {
		t->linked_pages += !s->pages[page];
		s->pages[page] = 1;
	}
}

static void finish_count(struct touched *t)
{
	t->floor_pages = (t->bytes + FAULT_PAGE - 1) / FAULT_PAGE;
}

struct touched subject_count_run(struct subject *s, const struct db_profile_run *run)
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
		add_function(s, &t, run->rvas[i], s->image.functions[f].size);
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

/* What the functions that any run has touched amount to where they stand. */
static struct touched count_standing(struct subject *s, const struct standing *standing)
{
	struct touched t = {0};

	memset(s->pages, 0, s->page_count);
	for (uint32_t f = 0; f < s->image.count; f++)
		if (s->seen[f])
			add_function(s, &t, standing->rvas[f], s->image.functions[f].size);
	finish_count(&t);
	return t;
}

static bool count_all(struct subject *s)
{
	uint64_t unknown;

	if (!count_unknown(s, &unknown))
		return false;
	for (uint32_t i = 0; i < s->profile.count; i++)
		(void)subject_count_run(s, &s->profile.runs[i]);
	for (uint32_t i = 0; i < s->standing_count; i++) {
		struct touched t = count_standing(s, &s->standings[i]);

		s->standings[i].linked_pages = t.linked_pages;
		if (i == 0)
			s->all = t;
	}
	s->all.unknown = unknown;
	return true;
}

/* ---- where functions stand ---- */

void standing_name(const struct standing *standing, char *ret_name, size_t size)
{
	const struct db_relink_row *relink = standing->relink;

	if (!relink)
		snprintf(ret_name, size, "as linked");
	else if (relink->seed)
		snprintf(ret_name, size, "%s %s, %s", relink->order, relink->seed,
			 relink->placement);
	else
		snprintf(ret_name, size, "%s, %s", relink->order, relink->placement);
}

/* Where a function stands after the moves: functions and moves both ascend. */
static void apply_moves(const struct subject *s, struct standing *standing)
{
	const struct db_relink_row *relink = standing->relink;
	uint32_t m = 0;

	for (uint32_t f = 0; f < s->image.count; f++) {
		struct rva rva = s->image.functions[f].rva;

		standing->rvas[f] = rva;
		if (!relink)
			continue;
		while (m < relink->move_count &&
		       (uint64_t)relink->moves[m].old_rva.v + relink->moves[m].size <= rva.v)
			m++;
		if (m < relink->move_count && relink->moves[m].old_rva.v <= rva.v)
			standing->rvas[f].v =
				relink->moves[m].new_rva.v + (rva.v - relink->moves[m].old_rva.v);
	}
}

static uint64_t end_of(const struct subject *s, const struct standing *standing, uint32_t f)
{
	uint64_t end = (uint64_t)standing->rvas[f].v + s->image.functions[f].size;

	return end > UINT32_MAX ? UINT32_MAX : end;
}

/* Pages with code that lie near each other are one section. */
static bool find_sections(struct subject *s, struct standing *standing)
{
	VEC(struct fault_section) sections = {0};
	bool ok = true;

	memset(s->pages, 0, s->page_count);
	for (uint32_t f = 0; f < s->image.count; f++) {
		struct touched unused = {0};

		add_function(s, &unused, standing->rvas[f], s->image.functions[f].size);
	}
	for (uint32_t page = 0; page < s->page_count && ok; page++) {
		struct fault_section *last =
			sections.len ? &sections.data[sections.len - 1] : NULL;
		uint32_t begin = page * FAULT_PAGE;

		if (!s->pages[page])
			continue;
		if (last && begin - (last->begin.v + last->size) < SECTION_GAP * FAULT_PAGE)
			last->size = begin + FAULT_PAGE - last->begin.v;
		else
			ok = vec_push(&sections,
				      ((struct fault_section){rva_of(begin), FAULT_PAGE}));
	}
	standing->sections = sections.data;
	standing->section_count = sections.len;
	standing->image_size = s->page_count * FAULT_PAGE;
	return ok;
}

static enum status load_standings(struct db *db, struct subject *s, struct diag *diag)
{
	struct db_relink_row *relinks;
	uint32_t count;
	uint64_t end = 0;
	enum status status =
		db_list_relinks(db, s->row->image, &s->arena, &relinks, &count, diag);

	if (status != STATUS_OK)
		return status;
	s->standings = calloc((size_t)count + 1, sizeof(*s->standings));
	if (!s->standings)
		return diag_no_memory(diag);
	s->standing_count = count + 1;
	for (uint32_t i = 0; i <= count; i++) {
		struct standing *standing = &s->standings[i];

		standing->relink = i ? &relinks[i - 1] : NULL;
		standing->rvas = calloc((size_t)s->image.count + 1, sizeof(*standing->rvas));
		if (!standing->rvas)
			return diag_no_memory(diag);
		apply_moves(s, standing);
		for (uint32_t f = 0; f < s->image.count; f++)
			if (end_of(s, standing, f) > end)
				end = end_of(s, standing, f);
	}
	/* One page less than 4 GiB, so that sizes in bytes fit. */
	s->page_count = (uint32_t)(end / FAULT_PAGE) + (end < UINT32_MAX - FAULT_PAGE);
	s->pages = calloc((size_t)s->page_count + 1, 1);
	for (uint32_t i = 0; i <= count; i++)
		if (!s->pages || !find_sections(s, &s->standings[i]))
			return diag_no_memory(diag);
	return STATUS_OK;
}

enum status subject_predict(const struct subject *s, const struct standing *standing,
			    const struct db_profile_run *run, uint32_t cluster,
			    struct fault_result *ret_result, struct diag *diag)
{
	VEC(struct fault_range) ranges = {0};
	struct fault_input input = {.image_size = standing->image_size,
				    .sections = standing->sections,
				    .section_count = standing->section_count,
				    .touch_count = run->count,
				    .cluster = cluster};
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < run->count && status == STATUS_OK; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);
		struct fault_range range = {.touch = i};

		if (f == s->image.count)
			continue;
		range.begin = standing->rvas[f];
		range.size = s->image.functions[f].size;
		if (!vec_push(&ranges, range))
			status = diag_no_memory(diag);
	}
	input.ranges = ranges.data;
	input.range_count = ranges.len;
	if (status == STATUS_OK)
		status = fault_model_run(&input, ret_result, diag);
	vec_release(&ranges);
	return status;
}

/* ---- loading ---- */

void subject_release(struct subject *s)
{
	for (uint32_t i = 0; i < s->standing_count; i++) {
		free(s->standings[i].rvas);
		free(s->standings[i].sections);
	}
	free(s->standings);
	db_image_release(&s->image);
	db_identities_release(&s->identities);
	db_profile_release(&s->profile);
	free(s->seen);
	free(s->pages);
	arena_release(&s->arena);
}

/* Keeps only the run that was asked for. */
static void select_run(struct db_profile *profile, int64_t run)
{
	struct db_profile kept = {0};
	struct db_profile others = *profile;

	for (uint32_t i = 0; i < profile->count; i++)
		if (profile->runs[i].run == run) {
			struct db_profile_run wanted = profile->runs[i];

			profile->runs[i] = profile->runs[0];
			profile->runs[0] = wanted;
			kept.count = 1;
		}
	/* What is behind the wanted run goes as a profile of its own. */
	others.count -= kept.count;
	others.runs = calloc((size_t)others.count + 1, sizeof(*others.runs));
	if (!others.runs)
		return;
	if (others.count)
		memcpy(others.runs, profile->runs + kept.count,
		       others.count * sizeof(*others.runs));
	db_profile_release(&others);
	profile->count = kept.count;
}

/* What is drawn and predicted goes page by page through each function, so sizes that no
 * image can have would take for ever. */
static enum status check_sizes(const struct subject *s, struct diag *diag)
{
	uint64_t limit = s->row->size && s->row->size < UINT32_MAX ? s->row->size : UINT32_MAX;
	uint64_t bytes = 0;

	for (uint32_t f = 0; f < s->image.count; f++)
		bytes += s->image.functions[f].size;
	if (bytes > limit)
		return diag_fail(diag, STATUS_BAD_DATABASE,
				 "the functions of '%s' have %llu bytes, more than the %llu "
				 "of its file: the database is damaged", s->row->name,
				 (unsigned long long)bytes, (unsigned long long)limit);
	return STATUS_OK;
}

enum status subject_load(struct db *db, const struct db_image_row *row,
			 enum db_run_kind kind, int64_t run, struct subject *s,
			 struct diag *diag)
{
	enum status status;

	*s = (struct subject){.row = row};
	arena_init(&s->arena);
	status = db_load_image(db, row->image, &s->image, diag);
	if (status == STATUS_OK)
		status = db_load_identities(db, row->image, &s->identities, diag);
	if (status == STATUS_OK)
		status = check_sizes(s, diag);
	if (status == STATUS_OK)
		status = db_load_profile(db, &s->image.image.hash, kind, &s->profile, diag);
	if (status == STATUS_OK && run)
		select_run(&s->profile, run);
	if (status == STATUS_OK)
		status = load_standings(db, s, diag);
	if (status != STATUS_OK)
		return status;
	s->seen = calloc((size_t)s->image.count + 1, 1);
	if (!s->seen || !count_all(s))
		return diag_no_memory(diag);
	return STATUS_OK;
}
