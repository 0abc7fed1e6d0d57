/* Looking again and again at which pages of files are in memory.
 *
 * Without perf events nobody tells of a fault, but the page that it brought stays in
 * the page cache, and its file's owner may ask for that.  Asking every few milliseconds
 * gives the order of arrivals as far as that resolution goes, and the last look, when
 * all programs have ended, gives all pages.
 */
#include "residency_watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "page_cache.h"
#include "quiet_thread.h"

enum { PAUSE_NS = 2000000 };

struct residency_watch {
	const struct watched_file *files;
	uint32_t count;
	uint8_t **seen;  /* for each file a byte for each page */
	uint8_t *now;    /* of the file that is being looked at */
	struct arrival_list arrivals;
	enum status status;
	struct diag diag;
	pthread_t thread;
	atomic_bool stop;
};

static void look_at(struct residency_watch *w, uint32_t index, int64_t time_ns)
{
	const struct watched_file *file = &w->files[index];

	if (atomic_load(file->live) == 0)
		return;
	w->status = page_cache_look(file->fd, file->pages, w->now, &w->diag);
	for (uint32_t i = 0; i < file->pages && w->status == STATUS_OK; i++) {
		if (!w->now[i] || w->seen[index][i])
			continue;
		w->seen[index][i] = 1;
		if (!vec_push(&w->arrivals, ((struct page_arrival){index, i, time_ns})))
			w->status = diag_no_memory(&w->diag);
	}
}

static void look(struct residency_watch *w)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (uint32_t i = 0; i < w->count && w->status == STATUS_OK; i++)
		look_at(w, i, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}

static void *keep_looking(void *watch)
{
	struct residency_watch *w = watch;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	while (!atomic_load(&w->stop)) {
		look(w);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void watch_free(struct residency_watch *w)
{
	for (uint32_t i = 0; w->seen && i < w->count; i++)
		free(w->seen[i]);
	free(w->seen);
	free(w->now);
	vec_release(&w->arrivals);
	free(w);
}

static struct residency_watch *watch_new(const struct watched_file *files, uint32_t count)
{
	struct residency_watch *w = calloc(1, sizeof(*w));
	uint32_t most = 0;
	bool ok;

	if (!w)
		return NULL;
	w->files = files;
	w->count = count;
	w->seen = calloc((size_t)count + 1, sizeof(*w->seen));
	ok = w->seen != NULL;
	for (uint32_t i = 0; i < count && ok; i++) {
		w->seen[i] = calloc((size_t)files[i].pages + 1, 1);
		ok = w->seen[i] != NULL;
		most = files[i].pages > most ? files[i].pages : most;
	}
	w->now = malloc((size_t)most + 1);
	if (ok && w->now)
		return w;
	watch_free(w);
	return NULL;
}

enum status residency_watch_start(const struct watched_file *files, uint32_t count,
				  struct residency_watch **ret_watch, struct diag *diag)
{
	struct residency_watch *w = watch_new(files, count);
	int err;

	if (!w)
		return diag_no_memory(diag);
	diag_init(&w->diag);
	err = quiet_thread_start(&w->thread, keep_looking, w);
	if (err) {
		watch_free(w);
		return diag_fail_errno(diag, STATUS_IO, err, "cannot start a thread");
	}
	*ret_watch = w;
	return STATUS_OK;
}

enum status residency_watch_stop(struct residency_watch *watch,
				 struct arrival_list *ret_arrivals, struct diag *diag)
{
	enum status status;

	atomic_store(&watch->stop, true);
	pthread_join(watch->thread, NULL);
	look(watch);
	status = watch->status;
	if (status == STATUS_OK) {
		*ret_arrivals = watch->arrivals;
		watch->arrivals = (struct arrival_list){0};
	} else if (diag) {
		*diag = watch->diag;
	}
	watch_free(watch);
	return status;
}
