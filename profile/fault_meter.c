/* Choosing a way to measure faults, and preparing it.
 *
 * Three things come together: where the image lies (cold_disk.c, or where it is), that
 * nothing is read ahead (the disk's, or fault_preload.c), and who tells of the faults
 * (fault_counter.c, or residency_watch.c).  What does not work here is remembered with
 * its reason, and the next way is tried.
 */
#include "fault_meter_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page_cache.h"
#include "pe/image.h"
#include "wine_server.h"

/* How long a Wine server of an earlier run may take to end: without programs it stays
 * for three seconds. */
#define SERVER_SECONDS 5.0

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

uint64_t fault_meter_size(const struct fault_meter *meter, uint32_t image)
{
	return meter->images[image].size;
}

bool fault_meter_lays_copies(const struct fault_meter *meter)
{
	return meter->method == FAULT_METHOD_LOOP;
}

/* ---- opening ---- */

static void add_reason(struct fault_meter *meter, const char *what, const char *why)
{
	size_t used = strlen(meter->reason);

	snprintf(meter->reason + used, sizeof(meter->reason) - used, "%s%s: %s",
		 used ? "; " : "", what, why);
}

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
	fault_preload_close(&meter->preload);
	cold_disk_close(&meter->disk);
	debugger_run_release(&meter->debugger);
}

static enum status copy_images(struct fault_meter *meter, struct diag *diag)
{
	for (uint32_t i = 0; i < meter->count; i++) {
		struct meter_image *m = &meter->images[i];
		enum status status =
			cold_disk_copy(&meter->disk, m->path, &m->copy, &m->fd, diag);

		if (status == STATUS_OK && meter->options.cold)
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

	if (meter->options.no_perf)
		return diag_fail(diag, STATUS_COMMAND, "it needs perf events");
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

/* The owner alone can evict, and see that it worked. */
static enum status check_owner(const struct fault_meter *meter, struct diag *diag)
{
	for (uint32_t i = 0; i < meter->count; i++) {
		const char *place = meter->images[i].place;
		int fd = open(place, O_RDONLY | O_CLOEXEC);
		bool can;

		if (fd < 0)
			return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'",
					       place);
		can = page_cache_can_look(fd);
		close(fd);
		if (!can)
			return diag_fail(diag, STATUS_COMMAND,
					 "only the owner of '%s' can see what of it is in "
					 "memory, measure a copy of yours", place);
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
	return status == STATUS_OK ? check_owner(meter, diag) : status;
}

static enum status try_preload(const struct fault_meter *meter,
			       struct fault_preload_powers *ret_powers, struct diag *diag)
{
	const struct meter_image *m = &meter->images[0];
	int fd = open(m->place, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", m->place);
	fault_preload_try(fd, m->pages.count, ret_powers);
	close(fd);
	return STATUS_OK;
}

/* What works in this kernel decides who can count. */
static enum status pick_counter(struct fault_meter *meter, struct diag *diag)
{
	struct fault_preload_powers powers;
	struct diag why;
	enum status status = try_preload(meter, &powers, diag);

	if (status != STATUS_OK)
		return status;
	if (!powers.tracks && !powers.random)
		return diag_fail(diag, STATUS_COMMAND, "%s", powers.why);
	diag_init(&why);
	meter->counter_kind = FAULT_COUNTER_PERF;
	/* With the soft ones, of which some stand for hard ones. */
	status = meter->options.no_perf
			 ? diag_fail(&why, STATUS_COMMAND, "perf events are not wanted")
			 : fault_counter_open(true, &meter->counter, &why);
	if (status == STATUS_OK)
		return STATUS_OK;
	if (status != STATUS_COMMAND) {
		if (diag)
			*diag = why;
		return status;
	}
	meter->counter_kind = powers.tracks ? FAULT_COUNTER_PAGEMAP : FAULT_COUNTER_MINCORE;
	add_reason(meter, fault_counter_kind_name(FAULT_COUNTER_PERF), why.message);
	return STATUS_OK;
}

static enum status open_preload(struct fault_meter *meter, struct diag *diag)
{
	uint64_t pages = 0;
	enum status status;

	if (meter->options.read_ahead_kib != 0)
		return diag_fail(diag, STATUS_COMMAND, "it knows no read-ahead but none");
	if (meter->count > FAULT_PRELOAD_FILES)
		return diag_fail(diag, STATUS_COMMAND, "it takes at most %d images",
				 FAULT_PRELOAD_FILES);
	for (uint32_t i = 0; i < meter->count; i++)
		pages += meter->images[i].pages.count;
	status = check_owner(meter, diag);
	if (status == STATUS_OK)
		status = fault_preload_open(&meter->preload, pages, diag);
	if (status == STATUS_NOT_FOUND)
		return STATUS_COMMAND; /* with its message */
	return status == STATUS_OK ? pick_counter(meter, diag) : status;
}

static enum status open_working_set(struct fault_meter *meter, struct diag *diag)
{
	enum status status;

	if (meter->options.read_ahead_kib > 0)
		return diag_fail(diag, STATUS_COMMAND, "it sees no read-ahead");
	meter->counter_kind = FAULT_COUNTER_QUERY;
	status = check_owner(meter, diag);
	if (status == STATUS_OK)
		status = debugger_run_init(&meter->debugger, diag);
	return status == STATUS_NOT_FOUND ? STATUS_COMMAND : status; /* with its message */
}

static enum status open_method(struct fault_meter *meter, enum fault_method method,
			       struct diag *diag)
{
	static enum status (*const openers[])(struct fault_meter *, struct diag *) = {
		[FAULT_METHOD_LOOP] = open_loop,
		[FAULT_METHOD_PRELOAD] = open_preload,
		[FAULT_METHOD_IN_PLACE] = open_in_place,
		[FAULT_METHOD_WORKING_SET] = open_working_set,
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
	for (unsigned method = 0; method < FAULT_METHOD_COUNT; method++) {
		struct diag why;
		enum status status;

		if (method == FAULT_METHOD_WORKING_SET && !meter->options.resident_will_do)
			continue;
		diag_init(&why);
		status = open_method(meter, (enum fault_method)method, &why);
		if (status == STATUS_OK)
			return STATUS_OK;
		if (status != STATUS_COMMAND) {
			if (diag)
				*diag = why;
			return status;
		}
		add_reason(meter, fault_method_name((enum fault_method)method), why.message);
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
	meter->preload = FAULT_PRELOAD_NONE;
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

