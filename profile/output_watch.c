/* A pipe instead of the command's stdout.  It is no end of file that ends the reading:
 * what outlives the command, Wine's server above all, keeps the pipe open. */
#include "output_watch.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "quiet_thread.h"

enum { PIECE = 65536 };

struct output_watch {
	const char *marker;
	size_t length; /* of the marker */
	char *text;    /* owned: the last `length` - 1 bytes at most, and room for PIECE */
	size_t held;   /* bytes of it */
	int from, to;  /* the pipe */
	int stop;      /* an event */
	int64_t seen_ns; /* 0: not seen */
	pthread_t thread;
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reads once what is there. */
static void take(struct output_watch *w)
{
	ssize_t n = read(w->from, w->text + w->held, PIECE);
	int64_t time = now();

	if (n <= 0)
		return;
	w->held += (size_t)n;
	if (!w->seen_ns && memmem(w->text, w->held, w->marker, w->length))
		w->seen_ns = time;
	/* The marker may stand across two pieces. */
	if (w->held >= w->length) {
		memmove(w->text, w->text + w->held - (w->length - 1), w->length - 1);
		w->held = w->length - 1;
	}
}

static void *work(void *with)
{
	struct output_watch *w = with;
	struct pollfd fds[] = {{.fd = w->from, .events = POLLIN},
			       {.fd = w->stop, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		/* At the end that is all: a pipe holds no more than a piece (pipe(7)). */
		take(w);
		if (fds[1].revents)
			return NULL;
	}
}

static void release(struct output_watch *w)
{
	const int fds[] = {w->from, w->to, w->stop};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(w->text);
	free(w);
}

enum status output_watch_start(const char *marker, struct output_watch **ret_watch,
			       int *ret_fd, struct diag *diag)
{
	struct output_watch *w = calloc(1, sizeof(*w));
	int fds[2] = {-1, -1};
	bool ready = false;

	if (!w)
		return diag_no_memory(diag);
	assert(marker[0] && !strchr(marker, '\n'));
	w->marker = marker;
	w->length = strlen(marker);
	w->text = malloc(w->length + PIECE);
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (pipe2(fds, O_CLOEXEC) == 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0)
		ready = true;
	w->from = fds[0];
	w->to = fds[1];
	if (!w->text || w->stop < 0 || !ready ||
	    quiet_thread_start(&w->thread, work, w) != 0) {
		bool full = !w->text;

		release(w);
		return full ? diag_no_memory(diag)
			    : diag_fail(diag, STATUS_IO,
					"cannot read the command's output");
	}
	*ret_watch = w;
	*ret_fd = w->to;
	return STATUS_OK;
}

int64_t output_watch_stop(struct output_watch *watch)
{
	int64_t seen;

	eventfd_write(watch->stop, 1);
	pthread_join(watch->thread, NULL);
	seen = watch->seen_ns;
	release(watch);
	return seen;
}
