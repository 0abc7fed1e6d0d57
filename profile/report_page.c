/* The report as a web page.
 *
 * The page is made of a frame, which embed.py joins from the files in profile/report
 * at build time, and of one block of JSON in its middle: what --json prints, the shape
 * of the columns, and the columns themselves, packed (report_pack.h).  All figures
 * were made by the same code as those of the text; the page draws, sorts and searches.
 *
 * Names come from images and may hold anything.  jansson escapes what is no ASCII,
 * and every '<' is escaped here, so that no text ends the script element or opens a
 * comment in it (HTML, "Restrictions for contents of script elements").
 */
#include "report_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/tool.h"
#include "report_differences.h"
#include "report_frame.h"
#include "report_json.h"

enum {
	THREADS_MAX = 256, /* colours and names for more are of no use */
	PIN_SETS_MAX = 1024,
};

void page_init(struct page *page)
{
	*page = (struct page){.images = json_array()};
	page->failed = !page->images;
}

void page_release(struct page *page)
{
	json_decref(page->images);
	pack_release(&page->pack);
}

static json_t *add_object(struct page *page, json_t *array)
{
	json_t *object = json_object();

	if (json_array_append_new(array, object) == 0)
		return object;
	page->failed = true;
	return NULL;
}

static json_t *put_array(struct page *page, json_t *object, const char *key)
{
	json_t *array = json_array();

	if (json_object_set_new(object, key, array) == 0)
		return array;
	page->failed = true;
	return NULL;
}

static void put_value(struct page *page, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) != 0)
		page->failed = true;
}

/* The text, with '?' for what is no UTF-8. */
static json_t *clean_text(const char *text)
{
	char *copy = strdup(text);
	json_t *value = NULL;

	if (copy) {
		utf8_clean(copy, true);
		value = json_string(copy);
	}
	free(copy);
	return value;
}

/* ---- functions ---- */

/* The place of a function's reasons in the list of distinct ones; 0: it may move. */
static uint32_t pin_set(struct page *page, json_t *sets, const char *pins)
{
	size_t count = json_array_size(sets);

	if (!pins)
		return 0;
	for (size_t i = 1; i < count; i++)
		if (strcmp(json_string_value(json_array_get(sets, i)), pins) == 0)
			return (uint32_t)i;
	if (count > PIN_SETS_MAX)
		return (uint32_t)count - 1;
	if (json_array_append_new(sets, clean_text(pins)) != 0)
		page->failed = true;
	return (uint32_t)count;
}

static void add_functions(struct page *page, json_t *object,
			  const struct db_image_functions *image)
{
	uint32_t count = image->count;
	uint32_t *values = calloc((size_t)count + 1, sizeof(*values));
	const char **names = calloc((size_t)count + 1, sizeof(*names));
	json_t *sets = put_array(page, object, "pin_sets");

	if (!values || !names || json_array_append_new(sets, json_string("")) != 0) {
		page->failed = true;
		free(values);
		free(names);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		values[i] = image->functions[i].rva.v;
	pack_deltas(&page->pack, object, "rva", values, count);
	for (uint32_t i = 0; i < count; i++)
		values[i] = image->functions[i].size;
	pack_numbers(&page->pack, object, "size", values, count);
	for (uint32_t i = 0; i < count; i++)
		values[i] = pin_set(page, sets, image->functions[i].pins);
	pack_numbers(&page->pack, object, "pin", values, count);
	for (uint32_t i = 0; i < count; i++)
		names[i] = image->functions[i].name;
	pack_texts(&page->pack, object, "names", names, count);
	free(values);
	free(names);
}

/* How far each relink moved each function. */
static void add_standings(struct page *page, json_t *object, const struct subject *s)
{
	json_t *array = put_array(page, object, "standings");
	uint32_t *shift = calloc((size_t)s->image.count + 1, sizeof(*shift));

	if (!shift)
		page->failed = true;
	for (uint32_t i = 0; shift && i < s->standing_count; i++) {
		const struct standing *standing = &s->standings[i];
		json_t *one = add_object(page, array);
		char name[96];

		standing_name(standing, name, sizeof(name));
		put_value(page, one, "name", json_string(name));
		for (uint32_t f = 0; f < s->image.count; f++)
			shift[f] = standing->rvas[f].v - s->image.functions[f].rva.v;
		if (standing->relink)
			pack_numbers(&page->pack, one, "shift", shift, s->image.count);
	}
	free(shift);
}

/* ---- runs ---- */

/* The first touch of each function in a run. */
struct moments {
	bool *known;
	uint32_t *thread; /* place in the list of threads */
	int64_t *time_ns;
};

static void moments_release(struct moments *m)
{
	free(m->known);
	free(m->thread);
	free(m->time_ns);
}

static uint32_t thread_at(struct page *page, json_t *threads, const struct db_run_touch *t)
{
	size_t count = json_array_size(threads);

	for (size_t i = 0; i < count; i++) {
		json_t *one = json_array_get(threads, i);

		if (json_integer_value(json_array_get(one, 0)) == t->process &&
		    json_integer_value(json_array_get(one, 1)) == t->thread)
			return (uint32_t)i;
	}
	if (count >= THREADS_MAX)
		return THREADS_MAX - 1;
	if (json_array_append_new(threads, json_pack("[I, I]", (json_int_t)t->process,
						     (json_int_t)t->thread)) != 0)
		page->failed = true;
	return (uint32_t)count;
}

static enum status find_moments(struct page *page, struct db *db, const struct subject *s,
				const struct db_profile_run *run, json_t *threads,
				struct moments *m, struct diag *diag)
{
	struct db_run_touch *touches;
	struct arena arena;
	uint32_t count;
	size_t n = (size_t)s->image.count + 1;
	enum status status;

	arena_init(&arena);
	m->known = calloc(n, sizeof(*m->known));
	m->thread = calloc(n, sizeof(*m->thread));
	m->time_ns = calloc(n, sizeof(*m->time_ns));
	status = m->known && m->thread && m->time_ns ? STATUS_OK : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = db_list_run_touches(db, run->run, s->row->image, &arena, &touches,
					     &count, diag);
	for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
		uint32_t f = function_at(&s->image, touches[i].rva);

		if (f == s->image.count || m->known[f])
			continue;
		m->known[f] = true;
		m->thread[f] = thread_at(page, threads, &touches[i]);
		m->time_ns[f] = touches[i].time_ns;
	}
	arena_release(&arena);
	return status;
}

/* Where the page finds a function: functions of another database follow ours. */
static uint32_t page_index(const uint32_t *translated, uint32_t f)
{
	return translated ? translated[f] : f;
}

/* Nanoseconds; a database may hold any times, below 0 too. */
static uint64_t time_between(int64_t from, int64_t to)
{
	return (uint64_t)to - (uint64_t)from;
}

static void pack_run(struct page *page, json_t *object, const struct subject *s,
		     const struct db_profile_run *run, const struct moments *m,
		     const uint32_t *translated, uint32_t *values)
{
	int64_t first = INT64_MAX, last = INT64_MIN, unit = 1000;
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);

		if (f == s->image.count)
			continue;
		values[n++] = page_index(translated, f);
		first = m->time_ns[f] < first ? m->time_ns[f] : first;
		last = m->time_ns[f] > last ? m->time_ns[f] : last;
	}
	if (n == 0)
		first = last = 0;
	/* Microseconds, or coarser when the run is longer than an hour. */
	while (time_between(first, last) / (uint64_t)unit > UINT32_MAX)
		unit *= 10;
	pack_deltas(&page->pack, object, "touched", values, n);
	for (uint32_t i = n = 0; i < run->count; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);

		if (f != s->image.count)
			values[n++] = (uint32_t)(time_between(first, m->time_ns[f]) /
						 (uint64_t)unit);
	}
	pack_deltas(&page->pack, object, "time", values, n);
	for (uint32_t i = n = 0; i < run->count; i++) {
		uint32_t f = function_at(&s->image, run->rvas[i]);

		if (f != s->image.count)
			values[n++] = m->thread[f];
	}
	pack_numbers(&page->pack, object, "thread", values, n);
	put_value(page, object, "unit_ns", json_integer(unit));
	put_value(page, object, "first_ns", json_integer(first));
}

static enum status add_run(struct page *page, json_t *array, struct db *db,
			   const struct subject *s, const struct db_profile_run *run,
			   const uint32_t *translated, struct diag *diag)
{
	struct moments m = {0};
	json_t *object = add_object(page, array);
	json_t *threads = put_array(page, object, "threads");
	uint32_t *values = calloc((size_t)run->count + 1, sizeof(*values));
	enum status status = values ? find_moments(page, db, s, run, threads, &m, diag)
				    : diag_no_memory(diag);

	put_value(page, object, "run", json_integer(run->run));
	if (status == STATUS_OK)
		pack_run(page, object, s, run, &m, translated, values);
	free(values);
	moments_release(&m);
	return status;
}

/* ---- faults ---- */

/* The touches at which faults happen: a curve in its shortest form. */
static enum status add_curve(struct page *page, json_t *array, const struct subject *s,
			     uint32_t run, uint32_t standing, uint32_t cluster,
			     struct diag *diag)
{
	struct fault_result result;
	json_t *object;
	uint32_t *at, n = 0;
	enum status status = subject_predict(s, &s->standings[standing],
					     &s->profile.runs[run], cluster, &result, diag);

	if (status != STATUS_OK)
		return status;
	at = calloc((size_t)result.faults + 1, sizeof(*at));
	if (!at) {
		fault_result_release(&result);
		return diag_no_memory(diag);
	}
	for (uint32_t i = 0; i < result.touch_count; i++)
		while (n < result.curve[i] && n < result.faults)
			at[n++] = i;
	object = add_object(page, array);
	put_value(page, object, "run", json_integer(run));
	put_value(page, object, "standing", json_integer(standing));
	put_value(page, object, "cluster", json_integer(cluster));
	put_value(page, object, "touches", json_integer(result.touch_count));
	pack_deltas(&page->pack, object, "at", at, n);
	free(at);
	fault_result_release(&result);
	return STATUS_OK;
}

static enum status add_curves(struct page *page, json_t *object, const struct subject *s,
			      struct diag *diag)
{
	json_t *array = put_array(page, object, "curves");
	enum status status = STATUS_OK;

	for (uint32_t r = 0; r < s->profile.count; r++)
		for (uint32_t k = 0; k < s->standing_count; k++)
			for (unsigned c = 0; c < REPORT_CLUSTER_COUNT; c++) {
				status = add_curve(page, array, s, r, k,
						   report_clusters[c], diag);
				if (status != STATUS_OK)
					return status;
			}
	return status;
}

/* ---- another database ---- */

static void add_extra(struct page *page, json_t *object, const struct subject *s,
		      const struct subject *other, const uint32_t *translated, uint32_t count)
{
	uint32_t *rva = calloc((size_t)count + 1, sizeof(*rva));
	uint32_t *size = calloc((size_t)count + 1, sizeof(*size));
	const char **names = calloc((size_t)count + 1, sizeof(*names));

	if (rva && size && names) {
		for (uint32_t i = 0; i < other->image.count; i++) {
			const struct db_function *f = &other->image.functions[i];
			uint32_t at = translated[i];

			if (at < s->image.count)
				continue;
			rva[at - s->image.count] = f->rva.v;
			size[at - s->image.count] = f->size;
			names[at - s->image.count] = f->name;
		}
		pack_deltas(&page->pack, object, "rva", rva, count);
		pack_numbers(&page->pack, object, "size", size, count);
		pack_texts(&page->pack, object, "names", names, count);
	} else {
		page->failed = true;
	}
	free(rva);
	free(size);
	free(names);
}

static enum status add_other(struct page *page, json_t *object, struct db *db,
			     const struct subject *s, const struct subject *other,
			     struct diag *diag)
{
	json_t *against = json_object();
	json_t *runs;
	uint32_t *translated = NULL, extra = 0;
	enum status status = functions_match(s, other, &translated, &extra, diag);

	put_value(page, object, "against", against);
	runs = put_array(page, against, "runs");
	if (status == STATUS_OK)
		add_extra(page, against, s, other, translated, extra);
	for (uint32_t r = 0; r < other->profile.count && status == STATUS_OK; r++) {
		const struct db_profile_run *run = &other->profile.runs[r];

		status = add_run(page, runs, db, other, run, translated, diag);
		put_value(page, json_array_get(runs, r), "scenario",
			  clean_text(run->scenario));
	}
	free(translated);
	return status;
}

/* ---- the whole ---- */

enum status page_add(struct page *page, struct db *db, const struct subject *s,
		     struct db *other_db, const struct subject *other, int64_t from_run,
		     struct diag *diag)
{
	json_t *object = add_object(page, page->images);
	json_t *runs;
	enum status status = STATUS_OK;

	put_value(page, object, "image", json_integer(s->row->image));
	put_value(page, object, "from_run", from_run ? json_integer(from_run) : json_null());
	add_functions(page, object, &s->image);
	add_standings(page, object, s);
	runs = put_array(page, object, "runs");
	for (uint32_t r = 0; r < s->profile.count && status == STATUS_OK; r++)
		status = add_run(page, runs, db, s, &s->profile.runs[r], NULL, diag);
	if (status == STATUS_OK)
		status = add_curves(page, object, s, diag);
	if (status == STATUS_OK && other)
		status = add_other(page, object, other_db, s, other, diag);
	if (status == STATUS_OK && page->failed)
		status = diag_no_memory(diag);
	return status;
}

struct bytes {
	char *data; /* owned */
	uint32_t len, cap;
};

static bool append(struct bytes *to, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!vec_push(to, text[i]))
			return false;
	return true;
}

/* JSON with every '<' escaped: it stands in strings only. */
static bool append_json(struct bytes *to, const char *json)
{
	for (;; json++) {
		size_t plain = strcspn(json, "<");

		if (!append(to, json, plain))
			return false;
		json += plain;
		if (*json == '\0')
			return true;
		if (!append(to, "\\u003c", 6))
			return false;
	}
}

enum status page_write(struct page *page, json_t *images, const char *path,
		       bool force, uint64_t *ret_size, struct diag *diag)
{
	struct bytes bytes = {0};
	char *columns = NULL, *json = NULL;
	json_t *all = NULL;
	enum status status = pack_finish(&page->pack, &columns, diag);

	if (status == STATUS_OK)
		all = json_pack("{s:{s:s, s:s, s:O}, s:O, s:s}", "report", "tool",
				"appulse-profile", "version", tool_version(), "images", images,
				"images", page->images, "columns", columns);
	if (all)
		json = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII |
					       JSON_REAL_PRECISION(15));
	if (status == STATUS_OK &&
	    (!json || !append(&bytes, report_frame_head, report_frame_head_size) ||
	     !append_json(&bytes, json) ||
	     !append(&bytes, report_frame_tail, report_frame_tail_size)))
		status = diag_no_memory(diag);
	if (status == STATUS_OK)
		status = file_write(path, bytes.data, bytes.len, force, diag);
	if (status == STATUS_OK)
		*ret_size = bytes.len;
	json_decref(all);
	free(json);
	free(columns);
	vec_release(&bytes);
	return status;
}
