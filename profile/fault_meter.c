/* Measuring the hard page faults that a command takes on images.
 *
 * Three things are put together here: where the image lies (cold_disk.c, or where it
 * is), that it is out of memory when the command starts (page_cache.c), and who tells
 * of the faults (fault_counter.c).
 */
#include "fault_meter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cold_disk.h"
#include "fault_counter.h"
#include "image_pages.h"
#include "page_cache.h"
#include "pe/image.h"
#include "wine_server.h"

/* How long a Wine server of an earlier run may take to end: without programs it stays
 * for three seconds. */
#define SERVER_SECONDS 5.0

struct meter_image {
	const char *path, *place;  /* borrowed */
	uint64_t size;             /* bytes */
	struct image_pages pages;
	int fd;                    /* of what is in place: the copy, or the file itself */
	uint32_t copy;             /* LOOP: number of the copy */
	bool laid;
	uint8_t *before, *after;   /* owned: a byte for each page of the file */
};

struct fault_meter {
	struct fault_options options;
	enum fault_method method;
	enum fault_counter_kind counter_kind;
	struct meter_image *images;
	uint32_t count;
	struct cold_disk disk;
	struct fault_counter *counter; /* PERF */
	char reason[2048];
};

const char *fault_method_name(enum fault_method method)
{
	static const char *const names[] = {
#define X(id, name) [FAULT_METHOD_##id] = name,
		FAULT_METHOD_LIST(X)
#undef X
	};

	return names[method];
}

const char *fault_counter_kind_name(enum fault_counter_kind counter)
{
	static const char *const names[] = {
#define X(id, name) [FAULT_COUNTER_##id] = name,
		FAULT_COUNTER_LIST(X)
#undef X
	};

	return names[counter];
}

enum fault_method fault_meter_method(const struct fault_meter *meter)
{
	return meter->method;
}

enum fault_counter_kind fault_meter_counter(const struct fault_meter *meter)
{
	return meter->counter_kind;
}

const char *fault_meter_reason(const struct fault_meter *meter)
{
	return meter->reason;
}

/* ---- opening ---- */

static enum status open_image(struct meter_image *m, const struct fault_image *image,
			      struct diag *diag)
{
	struct image parsed;
	enum status status = image_open(&parsed, image->path, diag);

	if (status != STATUS_OK)
		return status;
	m->path = image->path;
	m->place = image->place ? image->place : image->path;
	m->size = parsed.size;
	status = image_pages_init(&m->pages, &parsed, diag);
	/* Now, since what is mapped cannot be evicted. */
	image_release(&parsed);
	if (status != STATUS_OK)
		return status;
	m->before = calloc(m->pages.count ? m->pages.count : 1, 1);
	m->after = calloc(m->pages.count ? m->pages.count : 1, 1);
	return m->before && m->after ? STATUS_OK : diag_no_memory(diag);
}

static enum status open_images(struct fault_meter *meter, const struct fault_image *images,
			       uint32_t count, struct diag *diag)
{
	meter->images = calloc(count ? count : 1, sizeof(*meter->images));
	if (!meter->images)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < count; i++)
		meter->images[i].fd = -1;
	meter->count = count;
	for (uint32_t i = 0; i < count; i++) {
		enum status status = open_image(&meter->images[i], &images[i], diag);

		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

static bool has_other_places(const struct fault_meter *meter)
{
	for (uint32_t i = 0; i < meter->count; i++)
		if (strcmp(meter->images[i].path, meter->images[i].place) != 0)
			return true;
	return false;
}

/* Forgets what a method that did not work has opened. */
static void close_method(struct fault_meter *meter)
{
	for (uint32_t i = 0; i < meter->count; i++) {
		if (meter->images[i].fd >= 0)
			close(meter->images[i].fd);
		meter->images[i].fd = -1;
	}
	fault_counter_close(meter->counter);
	meter->counter = NULL;
	cold_disk_close(&meter->disk);
}

static enum status copy_images(struct fault_meter *meter, struct diag *diag)
{
	for (uint32_t i = 0; i < meter->count; i++) {
		struct meter_image *m = &meter->images[i];
		enum status status =
			cold_disk_copy(&meter->disk, m->path, &m->copy, &m->fd, diag);

		if (status == STATUS_OK)
			status = page_cache_evict(m->fd, m->path, m->pages.count, diag);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

static enum status open_loop(struct fault_meter *meter, struct diag *diag)
{
	unsigned read_ahead = (unsigned)meter->options.read_ahead_kib;
	uint64_t bytes = 0;
	enum status status;
	int server;

	if (meter->options.read_ahead_kib < 0)
		return diag_fail(diag, STATUS_COMMAND,
				 "a disk of our own has no read-ahead but the one asked for");
	server = geteuid() == 0 ? wine_server_wait(SERVER_SECONDS) : 0;
	if (server)
		return diag_fail(diag, STATUS_COMMAND,
				 "the Wine server that runs already (process %d) would open "
				 "the file under the copy: end it by 'wineserver -k'", server);
	for (uint32_t i = 0; i < meter->count; i++)
		bytes += meter->images[i].size;
	status = fault_counter_open(meter->options.soft, &meter->counter, diag);
	if (status == STATUS_OK)
		status = cold_disk_open(&meter->disk, bytes, read_ahead, diag);
	return status == STATUS_OK ? copy_images(meter, diag) : status;
}

static enum status open_files(struct fault_meter *meter, struct diag *diag)
{
	if (has_other_places(meter))
		return diag_fail(diag, STATUS_COMMAND,
				 "only a disk of our own can stand in for a file elsewhere");
	for (uint32_t i = 0; i < meter->count; i++) {
		struct meter_image *m = &meter->images[i];

		m->fd = open(m->place, O_RDONLY | O_CLOEXEC);
		if (m->fd < 0)
			return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'",
					       m->place);
		if (!page_cache_can_look(m->fd))
			return diag_fail(diag, STATUS_COMMAND,
					 "only the owner of '%s' can see what of it is in "
					 "memory, measure a copy of yours", m->place);
	}
	return STATUS_OK;
}

static enum status open_in_place(struct fault_meter *meter, struct diag *diag)
{
	enum status status;

	if (meter->options.read_ahead_kib != FAULT_READ_AHEAD_DISK)
		return diag_fail(diag, STATUS_COMMAND,
				 "a file in place is read with its disk's own read-ahead");
	status = fault_counter_open(meter->options.soft, &meter->counter, diag);
	return status == STATUS_OK ? open_files(meter, diag) : status;
}

static enum status open_preload(struct fault_meter *meter, struct diag *diag)
{
	(void)meter;
	return diag_fail(diag, STATUS_COMMAND, "this build has no library for it");
}

static enum status open_method(struct fault_meter *meter, enum fault_method method,
			       struct diag *diag)
{
	static enum status (*const openers[])(struct fault_meter *, struct diag *) = {
		[FAULT_METHOD_LOOP] = open_loop,
		[FAULT_METHOD_PRELOAD] = open_preload,
		[FAULT_METHOD_IN_PLACE] = open_in_place,
	};
	enum status status = openers[method](meter, diag);

	if (status == STATUS_OK)
		meter->method = method;
	else
		close_method(meter);
	return status;
}

/* The first method that works; the reasons of those before it are kept. */
static enum status pick_method(struct fault_meter *meter, struct diag *diag)
{
	size_t used = 0;

	for (unsigned method = 0; method < FAULT_METHOD_COUNT; method++) {
		struct diag why;
		enum status status;

		diag_init(&why);
		status = open_method(meter, (enum fault_method)method, &why);
		if (status == STATUS_OK)
			return STATUS_OK;
		if (status != STATUS_COMMAND) {
			if (diag)
				*diag = why;
			return status;
		}
		if (used < sizeof(meter->reason))
			used += (size_t)snprintf(meter->reason + used,
						 sizeof(meter->reason) - used, "%s%s: %s",
						 used ? "; " : "",
						 fault_method_name((enum fault_method)method),
						 why.message);
	}
	return diag_fail(diag, STATUS_COMMAND, "faults cannot be measured here: %s",
			 meter->reason);
}

enum status fault_meter_open(const struct fault_options *options,
			     const struct fault_image *images, uint32_t count,
			     struct fault_meter **ret_meter, struct diag *diag)
{
	struct fault_meter *meter = calloc(1, sizeof(*meter));
	enum status status;

	if (!meter)
		return diag_no_memory(diag);
	meter->options = *options;
	meter->disk = (struct cold_disk){.loop.fd = -1, .root = -1};
	status = open_images(meter, images, count, diag);
	if (status == STATUS_OK)
		status = options->method == FAULT_METHOD_ANY
				 ? pick_method(meter, diag)
				 : open_method(meter, options->method, diag);
	if (status == STATUS_OK)
		*ret_meter = meter;
	else
		fault_meter_close(meter);
	return status;
}

void fault_meter_close(struct fault_meter *meter)
{
	if (!meter)
		return;
	if (meter->images)
		close_method(meter);
	for (uint32_t i = 0; i < meter->count; i++) {
		image_pages_release(&meter->images[i].pages);
		free(meter->images[i].before);
		free(meter->images[i].after);
	}
	free(meter->images);
	free(meter);
}

/* ---- before and after the command ---- */

static void lift(struct fault_meter *meter, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		if (meter->images[i].laid)
			cold_disk_lift(meter->images[i].place);
		meter->images[i].laid = false;
	}
}

/* Lays the copies over their places, and tells the counter the files' names: that of
 * what lies under a copy too, for a program that opens it must be noticed. */
static enum status put_in_place(struct fault_meter *meter, uint32_t first, uint32_t count,
				struct diag *diag)
{
	enum status status = STATUS_OK;

	if (meter->counter)
		fault_counter_forget(meter->counter);
	for (uint32_t i = first; i < first + count && status == STATUS_OK; i++) {
		struct meter_image *m = &meter->images[i];

		if (meter->method == FAULT_METHOD_LOOP) {
			status = fault_counter_name(meter->counter, m->place,
						    meter->count + i, diag);
			if (status == STATUS_OK)
				status = cold_disk_lay(&meter->disk, m->copy, m->place, diag);
			m->laid = status == STATUS_OK;
		}
		if (status == STATUS_OK && meter->counter)
			status = fault_counter_name(meter->counter, m->place, i, diag);
	}
	return status;
}

static enum status look(struct fault_meter *meter, uint32_t first, uint32_t count,
			bool before, struct diag *diag)
{
	enum status status = STATUS_OK;

	for (uint32_t i = first; i < first + count && status == STATUS_OK; i++) {
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

/* Counts, and adds what is in memory though no fault brought it. */
static enum status count_image(const struct fault_meter *meter, uint32_t index,
			       struct fault_run *run, struct diag *diag)
{
	const struct meter_image *m = &meter->images[index];
	struct fault_counts *counts = &run->counts[index];
	uint8_t *hard = calloc((size_t)m->pages.count + 1, 1);
	bool ok = hard != NULL;

	counts->pages = m->pages.mapped;
	counts->code_pages = m->pages.code;
	for (uint32_t i = 0; i < run->faults.len && ok; i++) {
		const struct page_fault *f = &run->faults.data[i];

		if (f->image != index)
			continue;
		counts->hard += f->kind == FAULT_HARD;
		counts->soft += f->kind == FAULT_SOFT;
		hard[image_pages_find(&m->pages, f->page)] |= f->kind == FAULT_HARD;
	}
	for (uint32_t i = 0; i < m->pages.count && ok; i++) {
		const struct image_page *page = &m->pages.pages[i];

		if (!page->mapped)
			continue;
		counts->before += m->before[i];
		counts->after += m->after[i];
		counts->hard_pages += hard[i];
		counts->hard_code_pages += hard[i] && page->code;
		if (m->after[i] && !m->before[i] && !hard[i])
			ok = vec_push(&run->faults,
				      ((struct page_fault){.image = index, .page = page->rva,
							   .kind = FAULT_RESIDENT,
							   .time_ns = -1}));
	}
	free(hard);
	return ok ? STATUS_OK : diag_no_memory(diag);
}

/* ---- a run ---- */

static enum status run_counted(struct fault_meter *meter, const struct child *child,
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
	vec_release(&events);
	return status;
}

enum status fault_meter_run(struct fault_meter *meter, uint32_t first, uint32_t count,
			    const struct child *child, struct fault_run *ret_run,
			    struct diag *diag)
{
	struct fault_run run = {.count = meter->count};
	enum status status;

	run.counts = calloc(meter->count ? meter->count : 1, sizeof(*run.counts));
	status = run.counts ? put_in_place(meter, first, count, diag) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = look(meter, first, count, true, diag);
	if (status == STATUS_OK)
		status = run_counted(meter, child, &run, diag);
	if (status == STATUS_OK)
		status = look(meter, first, count, false, diag);
	lift(meter, first, count);
	for (uint32_t i = first; i < first + count && status == STATUS_OK; i++)
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
