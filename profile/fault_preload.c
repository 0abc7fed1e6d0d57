/* The library that marks images as read at random in a command's processes.
 *
 * It is told which files are meant through shared memory.  What it does is in
 * preload/random_reads.c.
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

#include "page_cache.h"
#include "preload/page_tracking.h"
#include "preload/random_share.h"

enum { PAGE_BYTES = 4096 };

_Static_assert((int)FAULT_PRELOAD_FILES == (int)RANDOM_SHARE_FILES, "one limit");

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
	static const struct companion companion = {"appulse-preload.so", "APPULSE_PRELOAD",
						   "preload"};
	size_t size = sizeof(struct random_share) + pages / 8 + RANDOM_SHARE_FILES;
	struct fault_preload p = FAULT_PRELOAD_NONE;
	enum status status = preload_library_open(&companion, size, &p.library, diag);

	if (status != STATUS_OK)
		return status;
	p.share = p.library.share;
	*preload = p;
	return STATUS_OK;
}

void fault_preload_close(struct fault_preload *preload)
{
	preload_library_close(&preload->library);
	*preload = FAULT_PRELOAD_NONE;
}

enum status fault_preload_set(struct fault_preload *preload,
			      const struct fault_preload_file *files, uint32_t count,
			      bool evict, struct diag *diag)
{
	struct random_share *share = preload->share;
	size_t at = sizeof(*share);

	assert(count <= FAULT_PRELOAD_FILES);
	memset(share, 0, preload->library.size);
	for (uint32_t i = 0; i < count; i++) {
		struct stat st;

		if (fstat(files[i].fd, &st) != 0)
			return diag_fail_errno(diag, STATUS_IO, errno, "cannot see a file");
		share->files[i].device = st.st_dev;
		share->files[i].inode = st.st_ino;
		share->files[i].pages = files[i].pages;
		share->files[i].touched_at = (uint32_t)at;
		at += files[i].pages / 8 + 1;
		assert(at <= preload->library.size);
	}
	share->count = count;
	share->evict = evict;
	share->magic = RANDOM_SHARE_MAGIC;
	return STATUS_OK;
}

void fault_preload_join(const struct fault_preload *preload, struct child *child)
{
	preload_library_join(&preload->library, RANDOM_SHARE_VARIABLE, child);
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
