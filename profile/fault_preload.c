/* The library that marks images as read at random in a command's processes.
 *
 * It is told which files are meant through a page of shared memory, which it finds by
 * a path into our own descriptors: nothing has to be made in the file tree, and nothing
 * is left when we are gone.  What it does is in preload/random_reads.c.
 */
#include "fault_preload.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/companion.h"
#include "page_cache.h"
#include "preload/page_tracking.h"
#include "preload/random_share.h"

enum { PAGE_BYTES = 4096 };

_Static_assert((int)FAULT_PRELOAD_FILES == (int)RANDOM_SHARE_FILES, "one limit");

/* Behind a library that is preloaded already. */
static char *preload_words(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *words;

	/* A second meter finds the first one's. */
	if (old && strstr(old, library))
		return strdup(old);
	if (asprintf(&words, "%s%s%s", old ? old : "", old && old[0] ? ":" : "", library) < 0)
		return NULL;
	return words;
}

/* Whether a fault on code of the file reads just its page. */
static bool reads_one_page(int fd, uint32_t pages)
{
	size_t size = (size_t)pages * PAGE_BYTES;
	uint8_t *resident = malloc((size_t)pages + 1);
	volatile uint8_t *map = MAP_FAILED;
	uint32_t count = 0;

	if (resident && page_cache_evict(fd, "", pages, NULL) == STATUS_OK)
		map = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map != MAP_FAILED) {
		madvise((void *)map, size, MADV_RANDOM);
		(void)map[size / 2];
		if (page_cache_look(fd, pages, resident, NULL) == STATUS_OK)
			for (uint32_t i = 0; i < pages; i++)
				count += resident[i];
		munmap((void *)map, size);
	}
	free(resident);
	return count == 1;
}

void fault_preload_try(int fd, uint32_t pages, struct fault_preload_powers *ret_powers)
{
	struct fault_preload_powers powers = {0};
	int tracking = page_tracking_open();
	void *map;

	if (tracking < 0) {
		snprintf(powers.why, sizeof(powers.why),
			 "userfaultfd cannot be used, which it needs from Linux 6.16 on: %s",
			 strerror(errno));
	} else {
		map = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
		powers.tracks = map != MAP_FAILED &&
				page_tracking_add(tracking, map, PAGE_BYTES) == 0;
		if (!powers.tracks)
			snprintf(powers.why, sizeof(powers.why),
				 "userfaultfd does not take files: %s", strerror(errno));
		if (map != MAP_FAILED)
			munmap(map, PAGE_BYTES);
		close(tracking);
	}
	powers.random = pages > 1 && reads_one_page(fd, pages);
	*ret_powers = powers;
}

enum status fault_preload_open(struct fault_preload *preload, uint64_t pages,
			       struct diag *diag)
{
	static const struct companion library = {"appulse-preload.so", "APPULSE_PRELOAD",
						 "preload"};
	struct fault_preload p = FAULT_PRELOAD_NONE;
	char *path;
	void *page;
	enum status status = companion_find(&library, &path, diag);

	if (status != STATUS_OK)
		return status;
	p.words = preload_words(path);
	free(path);
	if (!p.words)
		return diag_no_memory(diag);
	p.size = sizeof(struct random_share) + pages / 8 + RANDOM_SHARE_FILES;
	p.fd = memfd_create("appulse-random", MFD_CLOEXEC);
	page = p.fd >= 0 && ftruncate(p.fd, (off_t)p.size) == 0
		       ? mmap(NULL, p.size, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0)
		       : MAP_FAILED;
	if (page == MAP_FAILED) {
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot make shared memory");
		fault_preload_close(&p);
		return status;
	}
	p.share = page;
	snprintf(p.path, sizeof(p.path), "/proc/%d/fd/%d", (int)getpid(), p.fd);
	*preload = p;
	return STATUS_OK;
}

void fault_preload_close(struct fault_preload *preload)
{
	if (preload->share)
		munmap(preload->share, preload->size);
	if (preload->fd >= 0)
		close(preload->fd);
	free(preload->words);
	*preload = FAULT_PRELOAD_NONE;
}

enum status fault_preload_set(struct fault_preload *preload,
			      const struct fault_preload_file *files, uint32_t count,
			      bool evict, struct diag *diag)
{
	struct random_share *share = preload->share;
	size_t at = sizeof(*share);

	assert(count <= FAULT_PRELOAD_FILES);
	memset(share, 0, preload->size);
	for (uint32_t i = 0; i < count; i++) {
		struct stat st;

		if (fstat(files[i].fd, &st) != 0)
			return diag_fail_errno(diag, STATUS_IO, errno, "cannot see a file");
		share->files[i].device = st.st_dev;
		share->files[i].inode = st.st_ino;
		share->files[i].pages = files[i].pages;
		share->files[i].touched_at = (uint32_t)at;
		at += files[i].pages / 8 + 1;
		assert(at <= preload->size);
	}
	share->count = count;
	share->evict = evict;
	share->magic = RANDOM_SHARE_MAGIC;
	return STATUS_OK;
}

void fault_preload_join(const struct fault_preload *preload, struct child *child)
{
	enum { MOST = sizeof(child->variables) / sizeof(child->variables[0]) - 1 };
	unsigned n = 0;

	while (n < MOST && child->variables[n].name)
		n++;
	assert(n + 2 <= MOST);
	child->variables[n].name = "LD_PRELOAD";
	child->variables[n].value = preload->words;
	child->variables[n + 1].name = RANDOM_SHARE_VARIABLE;
	child->variables[n + 1].value = preload->path;
}

const _Atomic uint32_t *fault_preload_mappings(const struct fault_preload *preload,
					       uint32_t file)
{
	return &preload->share->files[file].mappings;
}

bool fault_preload_touched(const struct fault_preload *preload, uint32_t file, uint32_t page)
{
	const struct random_file *f = &preload->share->files[file];
	const uint8_t *bits = (const uint8_t *)preload->share + f->touched_at;

	return page < f->pages && bits[page / 8] >> page % 8 & 1;
}

uint64_t fault_preload_untold(const struct fault_preload *preload)
{
	return atomic_load(&preload->share->tracked) + atomic_load(&preload->share->missed);
}
