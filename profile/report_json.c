/* What report's JSON says of layouts. */
#include "report_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

const uint32_t report_clusters[REPORT_CLUSTER_COUNT] = {1, 4, FAULT_CLUSTER, 16};

/* ---- pins ---- */

struct pin_count {
	const char *name; /* of `length` bytes, in the function's text */
	size_t length;
	uint64_t functions, bytes;
};

struct pin_counts {
	struct pin_count *data; /* owned */
	uint32_t len, cap;
};

static bool count_pin(struct pin_counts *counts, const char *name, size_t length,
		      uint64_t bytes)
{
	struct pin_count one = {name, length, 1, bytes};

	for (uint32_t i = 0; i < counts->len; i++) {
		struct pin_count *c = &counts->data[i];

		if (c->length == length && memcmp(c->name, name, length) == 0) {
			c->functions++;
			c->bytes += bytes;
			return true;
		}
	}
	return vec_push(counts, one);
}

static int by_bytes(const void *a, const void *b)
{
	const struct pin_count *x = a, *y = b;
	size_t common = x->length < y->length ? x->length : y->length;
	int order;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	order = memcmp(x->name, y->name, common);
	return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

/* A function with several reasons counts at each. */
static enum status put_pins(struct result *r, json_t *object, const struct subject *s,
			    struct diag *diag)
{
	struct pin_counts counts = {0};
	json_t *array = result_put_array(r, object, "pins");
	bool ok = true;

	for (uint32_t f = 0; f < s->image.count && ok; f++) {
		const char *name = s->image.functions[f].pins;

		while (ok && name && *name) {
			size_t length = strcspn(name, ",");

			ok = count_pin(&counts, name, length, s->image.functions[f].size);
			name += length + (name[length] == ',');
		}
	}
	if (counts.len)
		qsort(counts.data, counts.len, sizeof(*counts.data), by_bytes);
	for (uint32_t i = 0; i < counts.len && ok; i++) {
		json_t *one = result_add_object(r, array);
		char *name = strndup(counts.data[i].name, counts.data[i].length);

		ok = name != NULL;
		result_put_text(r, one, "reason", name);
		result_put_count(r, one, "functions", counts.data[i].functions);
		result_put_count(r, one, "bytes", counts.data[i].bytes);
		free(name);
	}
	vec_release(&counts);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

/* ---- measured pages ---- */

/* What the newest page run of an image has seen executed; null without one. */
static enum status put_executed(struct result *r, json_t *object, struct db *db,
				const struct db_run_row *runs, uint32_t run_count,
				int64_t image, struct diag *diag)
{
	for (uint32_t i = run_count; i-- > 0;) {
		struct db_run_counts counts;
		enum status status;

		if (runs[i].page_touches == 0)
			continue;
		status = db_count_run(db, runs[i].run, image, &counts, diag);
		if (status != STATUS_OK)
			return status;
		if (counts.pages == 0)
			continue;
		result_put_count(r, object, "executed_pages", counts.executed_pages);
		return STATUS_OK;
	}
	result_put_null(r, object, "executed_pages");
	return STATUS_OK;
}

static void put_size(struct result *r, json_t *object, uint64_t size)
{
	if (size)
		result_put_count(r, object, "size", size);
	else
		result_put_null(r, object, "size");
}

/* ---- relinks and faults ---- */

static void put_relink(struct result *r, json_t *one, const struct standing *standing)
{
	const struct db_relink_row *relink = standing->relink;

	result_put_count(r, one, "relink", (uint64_t)relink->relink);
	result_put_text(r, one, "order", relink->order);
	result_put_text(r, one, "seed", relink->seed);
	result_put_text(r, one, "placement", relink->placement);
	result_put_text(r, one, "output", relink->output_name);
	result_put_text(r, one, "sha256", relink->output_hash);
	put_size(r, one, relink->output_size);
	result_put_count(r, one, "moves", relink->move_count);
	result_put_count(r, one, "linked_pages", standing->linked_pages);
}

static enum status put_prediction(struct result *r, json_t *array, const struct subject *s,
				  const struct standing *standing,
				  const struct db_profile_run *run, uint32_t cluster,
				  struct diag *diag)
{
	struct fault_result faults;
	json_t *one;
	enum status status = subject_predict(s, standing, run, cluster, &faults, diag);

	if (status != STATUS_OK)
		return status;
	one = result_add_object(r, array);
	result_put_count(r, one, "run", (uint64_t)run->run);
	if (standing->relink)
		result_put_count(r, one, "relink", (uint64_t)standing->relink->relink);
	else
		result_put_null(r, one, "relink");
	result_put_count(r, one, "cluster", cluster);
	result_put_count(r, one, "pages", faults.pages);
	result_put_count(r, one, "faults", faults.faults);
	result_put_real(r, one, "area", faults.area);
	fault_result_release(&faults);
	return STATUS_OK;
}

static enum status put_predictions(struct result *r, json_t *object,
				   const struct subject *s, struct diag *diag)
{
	json_t *array = result_put_array(r, object, "predictions");
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < s->profile.count; i++)
		for (uint32_t k = 0; k < s->standing_count; k++)
			for (unsigned c = 0; c < REPORT_CLUSTER_COUNT; c++) {
				status = put_prediction(r, array, s, &s->standings[k],
							&s->profile.runs[i],
							report_clusters[c], diag);
				if (status != STATUS_OK)
					return status;
			}
	return status;
}

enum status report_put_layouts(struct result *r, json_t *object, struct db *db,
			       const struct db_run_row *runs, uint32_t run_count,
			       const struct subject *s, struct diag *diag)
{
	json_t *relinks;
	enum status status;

	put_size(r, object, s->row->size);
	result_put_count(r, object, "movable_functions", s->row->movable_functions);
	status = put_executed(r, object, db, runs, run_count, s->row->image, diag);
	if (status == STATUS_OK)
		status = put_pins(r, object, s, diag);
	relinks = result_put_array(r, object, "relinks");
	for (uint32_t i = 1; i < s->standing_count && status == STATUS_OK; i++) {
		json_t *one = result_add_object(r, relinks);

		put_relink(r, one, &s->standings[i]);
		status = put_executed(r, one, db, runs, run_count,
				      s->standings[i].relink->output, diag);
	}
	if (status == STATUS_OK)
		status = put_predictions(r, object, s, diag);
	return status;
}
