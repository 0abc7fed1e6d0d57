/* What of a file is in memory, and putting it out of it.
 *
 * POSIX_FADV_DONTNEED drops clean pages that nobody has mapped.  Pages on their way
 * to the disk, or on a processor's own list, are passed over, so it is tried again
 * for a moment.  That it worked is checked: a page that stayed would later look as
 * if the program had not needed it.
 *
 * Rejected: /proc/sys/vm/drop_caches, which needs root and takes everything else on
 * the machine along.
 */
#include "page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, TRIES = 40, PAUSE_NS = 25000000 };

bool page_cache_can_look(int fd)
{
	char path[64];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if (geteuid() == 0 || st.st_uid == geteuid())
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return access(path, W_OK) == 0;
}

enum status page_cache_look(int fd, uint32_t count, uint8_t *ret_resident,
			    struct diag *diag)
{
	size_t size = (size_t)count * PAGE_BYTES;
	enum status status = STATUS_OK;
	void *map;

	if (count == 0)
		return STATUS_OK;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot map a file");
	if (mincore(map, size, ret_resident) != 0)
		status = diag_fail_errno(diag, STATUS_IO, errno,
					 "cannot see what of a file is in memory");
	munmap(map, size);
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
		ret_resident[i] &= 1;
	return status;
}

enum status page_cache_evict(int fd, const char *path, uint32_t count, struct diag *diag)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint8_t *resident = malloc(count ? count : 1);
	uint32_t left = count;
	enum status status = resident ? STATUS_OK : diag_no_memory(diag);

	if (status == STATUS_OK && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot flush '%s'", path);
	for (int i = 0; i < TRIES && status == STATUS_OK && left > 0; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		status = page_cache_look(fd, count, resident, diag);
		left = 0;
		for (uint32_t k = 0; k < count && status == STATUS_OK; k++)
			left += resident[k];
	}
	free(resident);
	if (status == STATUS_OK && left > 0)
		return diag_fail(diag, STATUS_COMMAND,
				 "%u of %u pages of '%s' stay in memory: another program uses "
				 "it, or its file system lives in memory",
				 left, count, path);
	return status;
}
