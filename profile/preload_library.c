#include "preload_library.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Behind a library that is preloaded already. */
static char *preload_words(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *words;

	if (asprintf(&words, "%s%s%s", old ? old : "", old && old[0] ? ":" : "", library) < 0)
		return NULL;
	return words;
}

enum status preload_library_open(const struct companion *companion, size_t size,
				 struct preload_library *ret_library, struct diag *diag)
{
	struct preload_library l = PRELOAD_LIBRARY_NONE;
	char *path;
	enum status status = companion_find(companion, &path, diag);

	if (status != STATUS_OK)
		return status;
	l.words = preload_words(path);
	free(path);
	if (!l.words)
		return diag_no_memory(diag);
	l.size = size;
	l.fd = memfd_create("appulse-share", MFD_CLOEXEC);
	l.share = l.fd >= 0 && ftruncate(l.fd, (off_t)size) == 0
			  ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0)
			  : MAP_FAILED;
	if (l.share == MAP_FAILED) {
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot make shared memory");
		l.share = NULL;
		preload_library_close(&l);
		return status;
	}
	snprintf(l.path, sizeof(l.path), "/proc/%d/fd/%d", (int)getpid(), l.fd);
	*ret_library = l;
	return STATUS_OK;
}

void preload_library_close(struct preload_library *library)
{
	if (library->share)
		munmap(library->share, library->size);
	if (library->fd >= 0)
		close(library->fd);
	free(library->words);
	*library = PRELOAD_LIBRARY_NONE;
}

void preload_library_join(const struct preload_library *library, const char *variable,
			  struct child *child)
{
	enum { MOST = sizeof(child->variables) / sizeof(child->variables[0]) - 1 };
	unsigned n = 0;

	while (n < MOST && child->variables[n].name)
		n++;
	assert(n + 2 <= MOST);
	child->variables[n].name = "LD_PRELOAD";
	child->variables[n].value = library->words;
	child->variables[n + 1].name = variable;
	child->variables[n + 1].value = library->path;
}
