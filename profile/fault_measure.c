/* A run of a meter: images in place, out of memory, the command, what it faulted on. */
#include "fault_meter_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "page_cache.h"
#include "residency_watch.h"

/* ---- before and after the command ---- */

/* The images of one run. */
struct selection {
	uint32_t first, end;
};

static void lift(struct fault_meter *meter, struct selection in)
{
	for (uint32_t i = in.first; i < in.end; i++) {
		if (meter->images[i].laid)
			cold_disk_lift(meter->images[i].place);
		meter->images[i].laid = false;
	}
}

/* Lays a copy over its place.  That of what lies under it gets a number too: a program
 * that opens it must be noticed. */
static enum status lay(struct fault_meter *meter, uint32_t index, struct diag *diag)
{
	struct meter_image *m = &meter->images[index];
	enum status status = fault_counter_name(meter->counter, m->place,
						meter->count + index, diag);

	if (status == STATUS_OK)
		status = cold_disk_lay(&meter->disk, m->copy, m->place, diag);
	m->laid = status == STATUS_OK;
	return status;
}

/* The file may be another one than in the run before. */
static enum status reopen(struct meter_image *m, struct diag *diag)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = open(m->place, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", m->place);
	return STATUS_OK;
}

static enum status tell_preload(struct fault_meter *meter, struct selection in,
				struct diag *diag)
{
	struct fault_preload_file files[FAULT_PRELOAD_FILES];

	for (uint32_t i = in.first; i < in.end; i++)
		files[i - in.first] = (struct fault_preload_file){
			meter->images[i].fd, meter->images[i].pages.count};
	return fault_preload_set(&meter->preload, files, in.end - in.first,
				 meter->options.cold, diag);
}

/* Everything in its place, and the counter knows the files. */
static enum status put_in_place(struct fault_meter *meter, struct selection in,
				struct diag *diag)
{
	enum status status = STATUS_OK;

	if (meter->counter)
		fault_counter_forget(meter->counter);
	for (uint32_t i = in.first; i < in.end && status == STATUS_OK; i++) {
		struct meter_image *m = &meter->images[i];

		status = fault_meter_lays_copies(meter) ? lay(meter, i, diag)
							: reopen(m, diag);
		if (status == STATUS_OK && meter->counter)
			status = fault_counter_name(meter->counter, m->place, i, diag);
	}
	if (status == STATUS_OK && meter->method == FAULT_METHOD_PRELOAD)
		status = tell_preload(meter, in, diag);
	return status;
}

static enum status look(struct fault_meter *meter, struct selection in, bool before,
			struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t i = in.first; i < in.end && status == STATUS_OK; i++) {
		struct meter_image *m = &meter->images[i];

		if (before && meter->options.cold)
			status = page_cache_evict(m->fd, m->place, m->pages.count, diag);
		if (status == STATUS_OK)
			status = page_cache_look(m->fd, m->pages.count,
						 before ? m->before : m->after, diag);
	}
	return status;
}

/* ---- from events to faults ---- */

struct moment {
	int64_t monotonic_ns, realtime_ns;
};

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The program opened the file under a copy. */
static enum status check_files(const struct fault_meter *meter,
			       const struct file_faults *found, struct diag *diag)
{
	for (uint32_t i = 0; i < found->users.len; i++) {
		uint32_t file = found->users.data[i].file;

		if (file >= meter->count)
			return diag_fail(diag, STATUS_COMMAND,
					 "the program loaded the file '%s' itself and not the "
					 "copy over it: a Wine server that ran before opened "
					 "it, end it by 'wineserver -k'",
					 meter->images[file - meter->count].place);
	}
	return STATUS_OK;
}

static bool put_process(struct fault_run *run, uint32_t pid,
			const struct fault_event_list *events, const struct moment *start)
{
	struct fault_process process = {.pid = pid, .started_ns = start->realtime_ns};

	for (uint32_t i = 0; i < run->processes.len; i++)
		if (run->processes.data[i].pid == pid)
			return true;
	for (uint32_t i = 0; i < events->len; i++) {
		const struct fault_event *e = &events->data[i];

		if (e->type == FAULT_EVENT_FORK && e->pid == pid && e->parent != pid)
			process.started_ns = start->realtime_ns + e->time_ns -
					     start->monotonic_ns;
	}
	return vec_push(&run->processes, process);
}

static bool put_fault(const struct fault_meter *meter, const struct file_fault *fault,
		      const struct moment *start, struct fault_run *run)
{
	const struct image_pages *pages = &meter->images[fault->file].pages;
	uint64_t index = fault->page / FAULT_PAGE_BYTES;
	struct page_fault made = {
		.image = fault->file, .kind = fault->hard ? FAULT_HARD : FAULT_SOFT,
		.access = fault->execute ? FAULT_EXECUTE : FAULT_DATA,
		.process = fault->pid, .thread = fault->thread,
		.time_ns = fault->time_ns - start->monotonic_ns,
	};

	if (index >= pages->count || !pages->pages[index].mapped)
		return true; /* a mapping of the file that is not the image's */
	made.page = pages->pages[index].rva;
	made.code = pages->pages[index].code;
	return vec_push(&run->faults, made);
}

static enum status put_faults(struct fault_meter *meter, struct fault_event_list *events,
			      const struct moment *start, struct fault_run *run,
			      struct diag *diag)
{
	struct file_faults found;
	enum status status = fault_events_resolve(events, &found, diag);
	bool ok = true;

	if (status != STATUS_OK)
		return status;
	status = check_files(meter, &found, diag);
	for (uint32_t i = 0; i < found.users.len && status == STATUS_OK && ok; i++) {
		const struct file_user *user = &found.users.data[i];

		run->counts[user->file].mappings += user->mappings;
		ok = put_process(run, user->pid, events, start);
	}
	for (uint32_t i = 0; i < found.faults.len && status == STATUS_OK && ok; i++)
		ok = put_fault(meter, &found.faults.data[i], start, run);
	file_faults_release(&found);
	return ok ? status : diag_no_memory(diag);
}

/* Where the kernel reads ahead in spite of all, the first fault on a page stands for the
 * one that would have read it.  What is soft then goes when nobody wants it. */
static void judge_first_faults(const struct fault_meter *meter, struct fault_run *run,
			       uint8_t *const *seen)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < run->faults.len; i++) {
		struct page_fault fault = run->faults.data[i];
		const struct meter_image *m = &meter->images[fault.image];
		uint32_t page = image_pages_find(&m->pages, fault.page);

		fault.kind = !m->before[page] && !seen[fault.image][page] ? FAULT_HARD
									   : FAULT_SOFT;
		seen[fault.image][page] = 1;
		if (fault.kind == FAULT_HARD || meter->options.soft)
			run->faults.data[kept++] = fault;
	}
	run->faults.len = kept;
}

static enum status judge(const struct fault_meter *meter, struct fault_run *run,
			 struct diag *diag)
{
	uint8_t **seen = calloc((size_t)meter->count + 1, sizeof(*seen));
	bool ok = seen != NULL;

	for (uint32_t i = 0; i < meter->count && ok; i++) {
		seen[i] = calloc((size_t)meter->images[i].pages.count + 1, 1);
		ok = seen[i] != NULL;
	}
	if (ok)
		judge_first_faults(meter, run, seen);
	for (uint32_t i = 0; i < meter->count && seen; i++)
		free(seen[i]);
	free(seen);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

/* Counts, and adds what is in memory though no fault brought it. */
static enum status count_image(const struct fault_meter *meter, uint32_t index,
			       struct fault_run *run, struct diag *diag)
{
	const struct meter_image *m = &meter->images[index];
	struct fault_counts *counts = &run->counts[index];
	enum { HARD = 1, RESIDENT = 2 };
	bool cached = meter->method != FAULT_METHOD_WORKING_SET;
	uint8_t *seen = calloc((size_t)m->pages.count + 1, 1);
	bool ok = seen != NULL;

	counts->pages = m->pages.mapped;
	counts->code_pages = m->pages.code;
	for (uint32_t i = 0; i < run->faults.len && ok; i++) {
		const struct page_fault *f = &run->faults.data[i];

		if (f->image != index)
			continue;
		counts->hard += f->kind == FAULT_HARD;
		counts->soft += f->kind == FAULT_SOFT;
		seen[image_pages_find(&m->pages, f->page)] |= f->kind == FAULT_HARD ? HARD
							      : f->kind == FAULT_RESIDENT
								      ? RESIDENT
								      : 0;
	}
	for (uint32_t i = 0; i < m->pages.count && ok; i++) {
		const struct image_page *page = &m->pages.pages[i];

		if (!page->mapped)
			continue;
		counts->before += m->before[i];
		counts->after += m->after[i];
		if (cached && m->after[i] && !m->before[i] && !seen[i]) {
			seen[i] = RESIDENT;
			ok = vec_push(&run->faults,
				      ((struct page_fault){.image = index, .page = page->rva,
							   .code = page->code,
							   .kind = FAULT_RESIDENT,
							   .time_ns = -1}));
		}
		counts->hard_pages += seen[i] & HARD;
		counts->hard_code_pages += (seen[i] & HARD) && page->code;
		counts->resident_pages += seen[i] == RESIDENT;
		counts->resident_code_pages += seen[i] == RESIDENT && page->code;
	}
	free(seen);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

/* ---- a run ---- */

static enum status run_with_perf(struct fault_meter *meter, const struct child *child,
				 struct fault_run *run, struct diag *diag)
{
	struct fault_event_list events = {0};
	struct moment start;
	enum status status = fault_counter_start(meter->counter, diag), stopped;

	if (status != STATUS_OK)
		return status;
	start = (struct moment){now(CLOCK_MONOTONIC), now(CLOCK_REALTIME)};
	status = child_run(child, &run->exit, diag);
	stopped = fault_counter_stop(meter->counter, &events, &run->lost,
				     status == STATUS_OK ? diag : NULL);
	if (status == STATUS_OK)
		status = stopped;
	if (status == STATUS_OK)
		status = put_faults(meter, &events, &start, run, diag);
	if (status == STATUS_OK && meter->method == FAULT_METHOD_PRELOAD)
		status = judge(meter, run, diag);
	vec_release(&events);
	return status;
}

static enum status put_arrivals(const struct fault_meter *meter, struct selection in,
				const struct arrival_list *arrivals, int64_t start_ns,
				struct fault_run *run, struct diag *diag)
{
	for (uint32_t i = 0; i < arrivals->len; i++) {
		const struct page_arrival *a = &arrivals->data[i];
		const struct meter_image *m = &meter->images[in.first + a->file];
		const struct image_page *page = &m->pages.pages[a->page];
		struct page_fault fault = {
			.image = in.first + a->file, .page = page->rva, .code = page->code,
			.kind = FAULT_HARD,
			.time_ns = a->time_ns > start_ns ? a->time_ns - start_ns : 0,
		};

		if (page->mapped && !m->before[a->page] && !vec_push(&run->faults, fault))
			return diag_no_memory(diag);
	}
	return STATUS_OK;
}

static enum status run_with_pagemap(struct fault_meter *meter, struct selection in,
				    const struct child *child, struct fault_run *run,
				    struct diag *diag)
{
	enum status status = child_run(child, &run->exit, diag);

	for (uint32_t i = in.first; i < in.end && status == STATUS_OK; i++) {
		const struct meter_image *m = &meter->images[i];

		for (uint32_t k = 0; k < m->pages.count; k++) {
			const struct image_page *page = &m->pages.pages[k];
			struct page_fault fault = {.image = i, .page = page->rva,
						   .code = page->code, .kind = FAULT_HARD,
						   .time_ns = -1};

			if (page->mapped && !m->before[k] &&
			    fault_preload_touched(&meter->preload, i - in.first, k) &&
			    !vec_push(&run->faults, fault))
				return diag_no_memory(diag);
		}
	}
	run->lost = fault_preload_untold(&meter->preload);
	return status;
}

static enum status run_with_mincore(struct fault_meter *meter, struct selection in,
				    const struct child *child, struct fault_run *run,
				    struct diag *diag)
{
	struct watched_file files[FAULT_PRELOAD_FILES];
	struct arrival_list arrivals = {0};
	struct residency_watch *watch;
	int64_t start_ns = now(CLOCK_MONOTONIC);
	enum status status, stopped;

	for (uint32_t i = in.first; i < in.end; i++)
		files[i - in.first] = (struct watched_file){
			meter->images[i].fd, meter->images[i].pages.count,
			fault_preload_mappings(&meter->preload, i - in.first)};
	status = residency_watch_start(files, in.end - in.first, &watch, diag);
	if (status != STATUS_OK)
		return status;
	status = child_run(child, &run->exit, diag);
	stopped = residency_watch_stop(watch, &arrivals, status == STATUS_OK ? diag : NULL);
	if (status == STATUS_OK)
		status = stopped;
	if (status == STATUS_OK)
		status = put_arrivals(meter, in, &arrivals, start_ns, run, diag);
	vec_release(&arrivals);
	return status;
}

static enum status run_prepared(struct fault_meter *meter, struct selection in,
				const struct child *child, struct fault_run *run,
				struct diag *diag)
{
	struct child with = *child;
	enum status status;

	if (meter->method == FAULT_METHOD_PRELOAD)
		fault_preload_join(&meter->preload, &with);
	if (meter->counter_kind == FAULT_COUNTER_QUERY)
		return fault_working_set_run(meter, in.first, in.end, child, run, diag);
	if (meter->counter_kind == FAULT_COUNTER_PERF)
		return run_with_perf(meter, &with, run, diag);
	status = meter->counter_kind == FAULT_COUNTER_PAGEMAP
			 ? run_with_pagemap(meter, in, &with, run, diag)
			 : run_with_mincore(meter, in, &with, run, diag);
	for (uint32_t i = in.first; i < in.end && status == STATUS_OK; i++)
		run->counts[i].mappings =
			atomic_load(fault_preload_mappings(&meter->preload, i - in.first));
	return status;
}

enum status fault_meter_run(struct fault_meter *meter, uint32_t first, uint32_t count,
			    const struct child *child, struct fault_run *ret_run,
			    struct diag *diag)
{
	struct fault_run run = {.count = meter->count};
	struct selection in = {first, first + count};
	enum status status;

	run.counts = calloc((size_t)meter->count + 1, sizeof(*run.counts));
	status = run.counts ? put_in_place(meter, in, diag) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = look(meter, in, true, diag);
	if (status == STATUS_OK)
		status = run_prepared(meter, in, child, &run, diag);
	if (status == STATUS_OK)
		status = look(meter, in, false, diag);
	lift(meter, in);
	for (uint32_t i = in.first; i < in.end && status == STATUS_OK; i++)
		status = count_image(meter, i, &run, diag);
	if (status == STATUS_OK)
		*ret_run = run;
	else
		fault_run_release(&run);
	return status;
}

void fault_run_release(struct fault_run *run)
{
	vec_release(&run->processes);
	vec_release(&run->faults);
	free(run->counts);
	memset(run, 0, sizeof(*run));
}
