/* A library that is loaded into a command's processes (LD_PRELOAD, ld.so(8)) and marks
 * the mappings of named files, so that the faults on them show which pages are needed.
 *
 * - They are read at random (madvise(2), MADV_RANDOM): a fault reads its one page, as on
 *   a disk without read-ahead.  Linux obeys for code up to 6.15 only.
 * - Their pages are tracked (page_tracking.h, from Linux 6.7 on): each first touch in a
 *   process is a fault, and the page table holds just the touched pages.  When a mapping
 *   ends, and when the process does, they are read from /proc/self/pagemap.
 *
 * Neither needs a privilege.  Wine maps images by mmap from a descriptor that its server
 * opened (observed: Wine 8.0), through the C library, so standing in for mmap and munmap
 * is enough.  Before that the server has read the headers from the same file, with the
 * disk's read-ahead: the pages behind the headers are in memory.  So the first mapping
 * of all evicts what came in so far.
 *
 * It works without memory of its own, keeps errno, and leaves all else as it was.  A
 * process that is killed does not tell what it touched: the count of tracked mappings
 * shows that.
 *
 * Rejected: guard pages and a signal handler (Wine owns the signals); userfaultfd's
 * events for missing pages (not for files).
 */
/* With 64 it would rename the one function to the other. */
#undef _FILE_OFFSET_BITS

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "page_tracking.h"
#include "random_share.h"

enum { PAGE_BYTES = 4096, TRACKED_MAX = 1024, ENTRIES = 256 };

/* pagemap: "Bit 62 page swapped, bit 63 page present" (Linux, admin-guide/mm/pagemap). */
#define PAGEMAP_HERE (3ull << 62)

struct tracked {
	uintptr_t begin, end; /* both 0: free */
	uint64_t first;       /* page of the file at `begin` */
	struct random_file *file;
};

static struct random_share *share; /* NULL: nothing to do */
static int tracking = -1;
static struct tracked list[TRACKED_MAX];
static unsigned used; /* entries of the list that were ever in use */
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void *map_system(void *address, size_t size, int protection, int flags, int fd,
			off_t offset)
{
	long got = syscall(SYS_mmap, address, size, protection, flags, fd, offset);

	return got == -1 ? MAP_FAILED : (void *)got;
}

static void take_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		;
}

static void give_lock(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* ---- touched pages ---- */

static void set_touched(const struct random_file *file, uint64_t page)
{
	_Atomic uint8_t *bits = (_Atomic uint8_t *)share + file->touched_at;

	if (page < file->pages)
		atomic_fetch_or(&bits[page / 8], (uint8_t)(1 << page % 8));
}

/* Tells what was touched of a tracked mapping. */
static void tell(const struct tracked *t)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[ENTRIES], pages = (t->end - t->begin) / PAGE_BYTES;

	for (uint64_t i = 0; i < pages && fd >= 0;) {
		ssize_t n = pread(fd, entries, sizeof(entries),
				  (off_t)((t->begin / PAGE_BYTES + i) * sizeof(*entries)));

		if (n < (ssize_t)sizeof(*entries))
			break;
		for (uint64_t k = 0; k < (uint64_t)n / sizeof(*entries) && i < pages; k++, i++)
			if (entries[k] & PAGEMAP_HERE)
				set_touched(t->file, t->first + i);
		if (i == pages) {
			close(fd);
			atomic_fetch_sub(&share->tracked, 1);
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* Tells of all that lies in [begin, end) and forgets it; what is cut is told whole, for
 * its rest, and tracked no more: Wine unmaps images as a whole. */
static void tell_range(uintptr_t begin, uintptr_t end)
{
	int kept = errno;

	take_lock();
	for (unsigned i = 0; i < used; i++) {
		struct tracked *t = &list[i];

		if (t->begin == t->end || t->begin >= end || t->end <= begin)
			continue;
		tell(t);
		if (t->begin < begin || t->end > end)
			atomic_fetch_add(&share->missed, 1);
		t->begin = t->end = 0;
	}
	give_lock();
	errno = kept;
}

static void track(struct random_file *file, void *map, size_t size, off_t offset)
{
	struct tracked made = {(uintptr_t)map, (uintptr_t)map + ((size + 4095) & ~4095ull),
			       (uint64_t)offset / PAGE_BYTES, file};
	unsigned i = 0;

	if (tracking < 0 || page_tracking_add(tracking, map, size) != 0) {
		atomic_fetch_add(&share->missed, 1);
		return;
	}
	take_lock();
	while (i < used && list[i].begin != list[i].end)
		i++;
	if (i < TRACKED_MAX) {
		list[i] = made;
		used = i == used ? used + 1 : used;
		atomic_fetch_add(&share->tracked, 1);
	} else {
		atomic_fetch_add(&share->missed, 1);
	}
	give_lock();
}

/* ---- begin and end ---- */

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv(RANDOM_SHARE_VARIABLE);
	int kept = errno, fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct random_share *page;
	struct stat st;

	if (fd < 0) {
		errno = kept;
		return;
	}
	page = fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*page)
		       ? map_system(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, 0)
		       : MAP_FAILED;
	close(fd);
	if (page != MAP_FAILED && page->magic == RANDOM_SHARE_MAGIC &&
	    page->count <= RANDOM_SHARE_FILES) {
		tracking = page_tracking_open();
		share = page;
	}
	errno = kept;
}

__attribute__((destructor)) static void finish(void)
{
	if (share)
		tell_range(0, UINTPTR_MAX);
}

/* ---- standing in ---- */

/* The named file behind `fd`, or NULL. */
static struct random_file *find_file(int fd)
{
	struct stat st;

	if (!share || fd < 0 || fstat(fd, &st) != 0)
		return NULL;
	for (uint32_t i = 0; i < share->count; i++)
		if (share->files[i].device == (uint64_t)st.st_dev &&
		    share->files[i].inode == (uint64_t)st.st_ino)
			return &share->files[i];
	return NULL;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	int kept = errno;
	struct random_file *file = flags & MAP_ANONYMOUS ? NULL : find_file(fd);
	void *map;

	if (file && share->evict && atomic_exchange(&file->evicted, 1) == 0)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (share && flags & MAP_FIXED)
		tell_range((uintptr_t)address, (uintptr_t)address + size);
	errno = kept;
	map = map_system(address, size, protection, flags, fd, offset);
	if (file && map != MAP_FAILED) {
		madvise(map, size, MADV_RANDOM);
		track(file, map, size, offset);
		atomic_fetch_add(&file->mappings, 1);
		errno = kept;
	}
	return map;
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

int munmap(void *address, size_t size)
{
	if (share)
		tell_range((uintptr_t)address, (uintptr_t)address + size);
	return (int)syscall(SYS_munmap, address, size);
}
