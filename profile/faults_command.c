/* appulse-profile faults: which pages of an image a run has to read from the disk.
 *
 * How that is measured is fault_meter.h's; here it is described on the command line, and
 * stored.  The database is written after the run: a run is over in seconds, and what was
 * not counted to its end says nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/human.h"
#include "cli/table.h"
#include "commands.h"
#include "fault_meter.h"
#include "run_options.h"

/* How long to wait for what outlives the command. */
#define PATIENCE_SECONDS 10.0

/* Of --method; the same order as enum fault_method, behind the first. */
static const char *const method_words[] = {"auto",     "loop",        "preload",
					   "in-place", "working-set", NULL};

struct faults_options {
	struct run_options run;
	struct string_list images;
	bool cold, soft, no_perf;
	unsigned method;
	uint64_t read_ahead; /* KiB */
	bool has_read_ahead;
};

struct faults_session {
	struct tool *tool;
	const struct faults_options *options;
	struct sha256 *hashes; /* owned: of each image */
	struct fault_meter *meter;
	struct fault_run faults;
	struct run_description description;
	int64_t run; /* in the database, once stored */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- before ---- */

static enum status hash_images(struct faults_session *s, struct diag *diag)
{
	const struct string_list *paths = &s->options->images;

	s->hashes = calloc((size_t)paths->len + 1, sizeof(*s->hashes));
	if (!s->hashes)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < paths->len; i++) {
		struct mapped_file file;
		enum status status = mapped_file_open(&file, paths->data[i], diag);

		if (status != STATUS_OK)
			return status;
		s->hashes[i] = sha256_of(file.data, file.size);
		mapped_file_close(&file);
		for (uint32_t k = 0; k < i; k++)
			if (paths_meet(paths->data[k], paths->data[i]) ||
			    !memcmp(&s->hashes[k], &s->hashes[i], sizeof(s->hashes[i])))
				return diag_fail(diag, STATUS_USAGE,
						 "'%s' and '%s' are the same image",
						 paths->data[k], paths->data[i]);
	}
	return STATUS_OK;
}

static enum status open_meter(struct faults_session *s, struct diag *diag)
{
	const struct faults_options *o = s->options;
	struct fault_image *images = calloc(o->images.len, sizeof(*images));
	struct fault_options options = {
		.method = o->method == 0 ? FAULT_METHOD_ANY
					 : (enum fault_method)(o->method - 1),
		.read_ahead_kib = (int)o->read_ahead, .cold = o->cold, .soft = o->soft,
		.no_perf = o->no_perf, .resident_will_do = true,
	};
	enum status status;

	if (!images)
		return diag_no_memory(diag);
	if (options.method == FAULT_METHOD_IN_PLACE)
		options.read_ahead_kib = FAULT_READ_AHEAD_DISK;
	for (uint32_t i = 0; i < o->images.len; i++)
		images[i].path = o->images.data[i];
	status = fault_meter_open(&options, images, o->images.len, &s->meter, diag);
	free(images);
	return status;
}

/* Whether the disk's own read-ahead is at work. */
static bool reads_ahead_itself(const struct faults_session *s)
{
	enum fault_method method = fault_meter_method(s->meter);

	return method == FAULT_METHOD_IN_PLACE || method == FAULT_METHOD_WORKING_SET;
}

/* Whether faults are known, and not what was in memory alone. */
static bool knows_faults(const struct faults_session *s)
{
	return fault_meter_method(s->meter) != FAULT_METHOD_WORKING_SET;
}

/* ---- storing ---- */

static enum status put_image(const struct faults_session *s, struct db *db, uint32_t index,
			     int64_t *ret_id, struct diag *diag)
{
	struct db_image row = {.hash = s->hashes[index],
			       .name = base_name(s->options->images.data[index]),
			       .size = fault_meter_size(s->meter, index)};
	enum status status = db_find_image(db, &row.hash, ret_id, NULL);

	if (status != STATUS_NOT_FOUND)
		return status;
	return db_put_image(db, &row, NULL, 0, ret_id, diag);
}

static enum status put_processes(struct faults_session *s, struct db *db, int64_t *ret_ids,
				 struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < s->faults.processes.len && status == STATUS_OK; i++) {
		const struct fault_process *p = &s->faults.processes.data[i];
		struct db_process row = {.run = s->run, .pid = p->pid,
					 .started_ns = p->started_ns};

		status = db_put_process(db, &row, &ret_ids[i], diag);
	}
	return status;
}

static struct db_fault fault_row(const struct faults_session *s, const struct page_fault *f,
				 const int64_t *processes)
{
	static const enum db_fault_kind kinds[] = {
		[FAULT_HARD] = DB_FAULT_HARD,
		[FAULT_SOFT] = DB_FAULT_SOFT,
		[FAULT_RESIDENT] = DB_FAULT_RESIDENT,
	};
	static const enum db_fault_access accesses[] = {
		[FAULT_UNKNOWN_ACCESS] = DB_FAULT_UNKNOWN,
		[FAULT_EXECUTE] = DB_FAULT_EXECUTE,
		[FAULT_DATA] = DB_FAULT_DATA,
	};
	struct db_fault row = {.page = f->page, .code = f->code, .kind = kinds[f->kind],
			       .access = accesses[f->access], .thread = f->thread,
			       .time_ns = f->time_ns};

	for (uint32_t i = 0; i < s->faults.processes.len; i++)
		if (f->process && s->faults.processes.data[i].pid == f->process)
			row.process = processes[i];
	return row;
}

static enum status put_image_faults(struct faults_session *s, struct db *db, uint32_t index,
				    const int64_t *processes, struct db_fault *rows,
				    struct diag *diag)
{
	const struct fault_counts *counts = &s->faults.counts[index];
	struct db_fault_run run = {
		.run = s->run, .method = fault_method_name(fault_meter_method(s->meter)),
		.counter = fault_counter_kind_name(fault_meter_counter(s->meter)),
		.read_ahead = reads_ahead_itself(s) ? -1 : (int64_t)s->options->read_ahead,
		.cold = s->options->cold, .pages = counts->pages,
		.code_pages = counts->code_pages, .before = counts->before,
		.after = counts->after, .lost = s->faults.lost, .faults = rows,
	};
	enum status status;

	for (uint32_t i = 0; i < s->faults.faults.len; i++)
		if (s->faults.faults.data[i].image == index)
			rows[run.count++] =
				fault_row(s, &s->faults.faults.data[i], processes);
	status = put_image(s, db, index, &run.image, diag);
	return status == STATUS_OK ? db_put_faults(db, &run, diag) : status;
}

static enum status put_run(struct faults_session *s, struct db *db, int64_t *processes,
			   struct db_fault *rows, struct diag *diag)
{
	const struct child_exit *exit = &s->faults.exit;
	enum status status = db_begin_run(db, &s->description.run, &s->run, diag);

	if (status == STATUS_OK)
		status = put_processes(s, db, processes, diag);
	for (uint32_t i = 0; i < s->options->images.len && status == STATUS_OK; i++)
		if (s->faults.counts[i].mappings > 0)
			status = put_image_faults(s, db, i, processes, rows, diag);
	if (status == STATUS_OK)
		status = db_finish_run(db, s->run, exit->exit, exit->code,
				       exit->wall_seconds, diag);
	return status;
}

static enum status store(struct faults_session *s, struct db *db, struct diag *diag)
{
	int64_t *processes = calloc((size_t)s->faults.processes.len + 1, sizeof(*processes));
	struct db_fault *rows = calloc((size_t)s->faults.faults.len + 1, sizeof(*rows));
	enum status status = processes && rows ? db_begin(db, diag) : diag_no_memory(diag);

	if (status == STATUS_OK)
		status = db_end(db, put_run(s, db, processes, rows, diag), diag);
	free(processes);
	free(rows);
	return status;
}

/* ---- telling ---- */

static void tell_json_pages(const struct faults_session *s, json_t *object,
			    const struct fault_counts *c)
{
	const struct {
		const char *name;
		uint64_t count;
		bool of_faults;
	} figures[] = {
		{"hard_faults", c->hard, true},
		{"hard_pages", c->hard_pages, true},
		{"hard_code_pages", c->hard_code_pages, true},
		{"soft_faults", c->soft, true},
		{"working_set_pages", c->resident_pages, false},
		{"working_set_code_pages", c->resident_code_pages, false},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		if (figures[i].of_faults == knows_faults(s))
			result_put_count(&s->tool->result, object, figures[i].name,
					 figures[i].count);
		else
			result_put_null(&s->tool->result, object, figures[i].name);
}

static void tell_json(const struct faults_session *s)
{
	struct result *r = &s->tool->result;
	const struct child_exit *exit = &s->faults.exit;
	json_t *object, *images;

	result_put_text(r, r->root, "db", s->options->run.database);
	result_put_count(r, r->root, "run", (uint64_t)s->run);
	result_put_text(r, r->root, "kind", db_run_kind_name(DB_RUN_FAULTS));
	object = result_put_object(r, r->root, "command_exit");
	result_put_text(r, object, "class", db_exit_name(exit->exit));
	result_put_count(r, object, "code", (uint32_t)exit->code);
	result_put_real(r, object, "wall_seconds", exit->wall_seconds);
	result_put_text(r, r->root, "method",
			fault_method_name(fault_meter_method(s->meter)));
	result_put_text(r, r->root, "counter",
			fault_counter_kind_name(fault_meter_counter(s->meter)));
	result_put_text(r, r->root, "not_taken", fault_meter_reason(s->meter));
	if (reads_ahead_itself(s))
		result_put_null(r, r->root, "read_ahead_kib");
	else
		result_put_count(r, r->root, "read_ahead_kib", s->options->read_ahead);
	result_put_flag(r, r->root, "cold", s->options->cold);
	result_put_count(r, r->root, "processes", s->faults.processes.len);
	result_put_count(r, r->root, "lost_events", s->faults.lost);
	if (s->faults.page_faults)
		result_put_count(r, r->root, "page_faults", s->faults.page_faults);
	else
		result_put_null(r, r->root, "page_faults");
	images = result_put_array(r, r->root, "images");
	for (uint32_t i = 0; i < s->options->images.len; i++) {
		const struct fault_counts *c = &s->faults.counts[i];
		char hash[SHA256_HEX_SIZE];

		sha256_hex(&s->hashes[i], hash);
		object = result_add_object(r, images);
		result_put_text(r, object, "path", s->options->images.data[i]);
		result_put_text(r, object, "sha256", hash);
		result_put_count(r, object, "mappings", c->mappings);
		result_put_count(r, object, "pages", c->pages);
		result_put_count(r, object, "code_pages", c->code_pages);
		result_put_count(r, object, "resident_before", c->before);
		result_put_count(r, object, "resident_after", c->after);
		tell_json_pages(s, object, c);
	}
}

static enum status tell_people(const struct faults_session *s, struct diag *diag)
{
	bool faults = knows_faults(s);
	const struct table_column columns[] = {
		{"image", TABLE_LEFT}, {"code pages", TABLE_RIGHT},
		{faults ? "hard faults in code" : "in the working set", TABLE_RIGHT},
		{"share", TABLE_RIGHT}, {"elsewhere", TABLE_RIGHT},
		{"in memory after", TABLE_RIGHT},
	};
	struct table table;
	enum status status;

	table_init(&table, columns, sizeof(columns) / sizeof(*columns));
	for (uint32_t i = 0; i < s->options->images.len; i++) {
		const struct fault_counts *c = &s->faults.counts[i];
		uint32_t pages = faults ? c->hard_pages : c->resident_pages;
		uint32_t code = faults ? c->hard_code_pages : c->resident_code_pages;

		table_cell(&table, "%s", base_name(s->options->images.data[i]));
		table_cell(&table, "%s", human_count(c->code_pages).text);
		table_cell(&table, "%s", human_count(code).text);
		table_cell(&table, "%s", human_percent(code, c->code_pages).text);
		table_cell(&table, "%s", human_count(pages - code).text);
		table_cell(&table, "%s of %s", human_count(c->after).text,
			   human_count(c->pages).text);
	}
	status = table_print(&table, stdout, diag);
	table_release(&table);
	return status;
}

static void say_method(const struct faults_session *s)
{
	const char *reason = fault_meter_reason(s->meter);
	char read_ahead[48] = "the disk's own read-ahead";

	if (!reads_ahead_itself(s))
		snprintf(read_ahead, sizeof(read_ahead), "read-ahead %llu KiB",
			 (unsigned long long)s->options->read_ahead);
	tool_note(s->tool, "measured by method '%s' with %s, counted by '%s'%s%s",
		  fault_method_name(fault_meter_method(s->meter)), read_ahead,
		  fault_counter_kind_name(fault_meter_counter(s->meter)),
		  reason[0] ? "; not taken: " : "", reason);
}

static enum status say_result(const struct faults_session *s, struct diag *diag)
{
	const struct string_list *paths = &s->options->images;
	uint32_t loaded = 0;

	if (s->faults.lost && !knows_faults(s))
		tool_warn(s->tool, "of %llu loads the working set is not known: the process was killed "
			  "or crashed, or did not tell",
			  (unsigned long long)s->faults.lost);
	else if (s->faults.lost)
		tool_warn(s->tool, "%llu events found no room: faults are missing",
			  (unsigned long long)s->faults.lost);
	for (uint32_t i = 0; i < paths->len; i++)
		loaded += s->faults.counts[i].mappings > 0;
	if (loaded == 0)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "the program did not load '%s', and ended with exit code %d",
				 paths->data[0], s->faults.exit.code);
	for (uint32_t i = 0; i < paths->len; i++)
		if (s->faults.counts[i].mappings == 0)
			tool_warn(s->tool, "the program did not load '%s'", paths->data[i]);
	tool_note(s->tool, "run %lld: %s, stored in '%s'", (long long)s->run,
		  human_seconds(s->faults.exit.wall_seconds).text, s->options->run.database);
	return STATUS_OK;
}

/* ---- the command ---- */

static enum status measure(struct faults_session *s, char **command, struct diag *diag)
{
	struct child child = {.command = command, .output = s->options->run.output,
			      .output_to_stderr = s->tool->json,
			      .patience = PATIENCE_SECONDS};
	struct db *db = NULL;
	enum status status = run_describe(&s->options->run, DB_RUN_FAULTS, command,
					  &s->description, diag);

	if (status == STATUS_OK)
		status = hash_images(s, diag);
	if (status == STATUS_OK)
		status = open_meter(s, diag);
	if (status == STATUS_OK)
		status = db_open(s->options->run.database, DB_CREATE, &db, diag);
	if (status == STATUS_OK) {
		say_method(s);
		status = fault_meter_run(s->meter, 0, s->options->images.len, &child,
					 &s->faults, diag);
	}
	if (status == STATUS_OK && s->faults.exit.exit == DB_EXIT_NOT_STARTED)
		status = child_status(&s->faults.exit, command[0], diag);
	if (status == STATUS_OK)
		status = store(s, db, diag);
	db_close(db);
	if (status == STATUS_OK) {
		tell_json(s);
		status = say_result(s, diag);
	}
	if (status == STATUS_OK && !s->tool->json)
		status = tell_people(s, diag);
	return status == STATUS_OK ? child_status(&s->faults.exit, command[0], diag) : status;
}

static enum status check_options(const struct faults_options *o, struct diag *diag)
{
	double weight;

	if (o->has_read_ahead && o->method != 0 &&
	    o->method - 1 >= (unsigned)FAULT_METHOD_IN_PLACE)
		return diag_fail(diag, STATUS_USAGE,
				 "'--read-ahead' is not for '--method %s', where the disk's own "
				 "counts", method_words[o->method]);
	return run_options_check(&o->run, &weight, diag);
}

enum status faults_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	struct faults_options o = {0};
	struct faults_session s = {.tool = tool, .options = &o};
	const struct option_spec options[] = {
		OPTION_LIST("image", 'i', "FILE", &o.images,
			    "count for this image, the very file that the program loads; may "
			    "be given more than once",
			    .required = true),
		OPTIONS_RUN(&o.run),
		OPTION_FLAG("cold", 0, &o.cold, "put the images out of memory first"),
		OPTION_NUMBER("read-ahead", 0, "KIB", &o.read_ahead, 0, 16384,
			      "what the disk reads at a fault (default: 0, one page)",
			      .given = &o.has_read_ahead),
		OPTION_CHOICE("method", 0, "METHOD", &o.method, method_words,
			      "how to measure"),
		OPTION_FLAG("soft", 0, &o.soft,
			    "store faults on pages that were in memory too"),
		OPTION_FLAG("no-perf", 0, &o.no_perf,
			    "do without perf events: no order finer than some "
			    "milliseconds, no threads"),
		OPTION_COMMAND_OUTPUT(&o.run),
		OPTIONS_COMMON(tool),
	};
	const struct command_spec spec = {
		.description =
			"Runs COMMAND and stores which pages of each image had to be read from "
			"the disk, as a run of kind 'faults'.\n\n"
			"METHOD loop copies the image to a disk of its own and lays the copy "
			"over its place, seen by COMMAND alone; it needs root. METHOD preload "
			"loads a library into COMMAND that turns read-ahead off for the image. "
			"METHOD in-place takes the image's disk as it is. METHOD "
			"working-set runs COMMAND under a debugger that asks, as each process "
			"ends, which pages are in its working set, and knows no faults. By "
			"itself the tool takes the first of 'loop', 'preload' and "
			"'working-set' that works, and says so.",
		.takes_command = true,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered)
		status = check_options(&o, diag);
	if (status == STATUS_OK && !line.answered)
		status = measure(&s, line.command, diag);
	fault_meter_close(s.meter);
	fault_run_release(&s.faults);
	run_description_release(&s.description);
	free(s.hashes);
	vec_release(&o.images);
	command_line_release(&line);
	return status;
}
