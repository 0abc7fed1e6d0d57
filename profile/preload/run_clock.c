/* A library that is loaded into a command's processes (LD_PRELOAD, ld.so(8)) and notes
 * when one of them maps a named file, and when that process ends.
 *
 * Wine maps images by mmap from a descriptor that its server opened, through the C
 * library, and ends a process by exit (observed: Wine 8.0): standing in for mmap, and a
 * destructor, are enough.  What it costs a process is one fstat(2) for each mapping of a
 * file and each large read, some microseconds in a start.
 *
 * A program that reads its image into memory by itself, before or after it loads it, is
 * noticed in two ways: by what it reads of the file, and by what is in memory when it is
 * mapped, the first two times.  Later ones say nothing: by then the program has worked
 * with the image.
 *
 * Rejected: perf events and ptrace, which not everybody may use or which slow down what
 * is measured; looking into /proc from outside, which is late by the time between looks.
 */
/* With 64 it would rename the one function to the other. */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock_share.h"

/* Reads below this do not bring in a file, and Wine does many: its server's answers. */
enum { LARGE_READ = 4096 };

enum { PAGE_BYTES = 4096, LOOK_PAGES = 4096, LOOKS = 2 };

static struct clock_share *share; /* NULL: nothing to do */
static struct clock_process *own; /* NULL: not needed yet */
static _Atomic unsigned looks;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void *map_system(void *address, size_t size, int protection, int flags, int fd,
			off_t offset)
{
	long got = syscall(SYS_mmap, address, size, protection, flags, fd, offset);

	return got == -1 ? MAP_FAILED : (void *)got;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* This process's entry; NULL when there are too many.  A process that was made by fork
 * and went on without exec has its parent's until it needs one. */
static struct clock_process *entry(void)
{
	struct clock_process *found;

	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		;
	if (!own || own->pid != (uint32_t)getpid()) {
		uint32_t i = atomic_fetch_add(&share->used, 1);

		own = i < CLOCK_PROCESSES ? &share->processes[i] : NULL;
		if (own)
			own->pid = (uint32_t)getpid();
	}
	found = own;
	atomic_flag_clear_explicit(&lock, memory_order_release);
	return found;
}

static bool is_meant(int fd)
{
	struct stat st;

	return share && fd >= 0 && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_dev == share->device && (uint64_t)st.st_ino == share->inode;
}

/* ---- begin and end ---- */

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv(CLOCK_SHARE_VARIABLE);
	int kept = errno, fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct clock_share *found;

	if (fd >= 0) {
		found = map_system(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   0);
		close(fd);
		if (found != MAP_FAILED && found->magic == CLOCK_SHARE_MAGIC)
			share = found;
	}
	errno = kept;
}

/* "VmHWM:	   12345 kB" of /proc/self/status (proc(5)), bytes; 0: cannot be told. */
static uint64_t peak_bytes(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? syscall(SYS_read, fd, text, sizeof(text) - 1) : -1;
	const char *line;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	line = strstr(text, "VmHWM:");
	return line ? strtoull(line + 6, NULL, 10) * 1024 : 0;
}

__attribute__((destructor)) static void finish(void)
{
	int64_t time = now();

	if (!own || own->pid != (uint32_t)getpid())
		return;
	atomic_store(&own->peak, peak_bytes());
	atomic_store(&own->ended_ns, time);
}

/* ---- standing in ---- */

/* Whether every page of the file is in memory. */
static bool is_whole(int fd)
{
	size_t pages = (share->size + PAGE_BYTES - 1) / PAGE_BYTES;
	uint8_t *map = map_system(NULL, pages * PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char resident[LOOK_PAGES];
	bool whole = map != MAP_FAILED;

	for (size_t at = 0; at < pages && whole; at += LOOK_PAGES) {
		size_t n = pages - at < LOOK_PAGES ? pages - at : LOOK_PAGES;

		whole = mincore(map + at * PAGE_BYTES, n * PAGE_BYTES, resident) == 0;
		for (size_t i = 0; i < n && whole; i++)
			whole = resident[i] & 1;
	}
	if (map != MAP_FAILED)
		syscall(SYS_munmap, map, pages * PAGE_BYTES);
	return whole;
}

static void note_mapping(int fd, off_t offset)
{
	int64_t time = now(), none = 0;
	struct clock_process *process = entry();

	if (!process)
		return;
	atomic_compare_exchange_strong(&process->mapped_ns, &none, time);
	/* An image begins to be mapped with its headers. */
	if (share->look && offset == 0 && atomic_fetch_add(&looks, 1) < LOOKS && is_whole(fd))
		atomic_store(&process->whole, 1);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	int kept = errno;

	if (!(flags & MAP_ANONYMOUS) && is_meant(fd))
		note_mapping(fd, offset);
	errno = kept;
	return map_system(address, size, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

static void note_read(int fd, size_t asked, ssize_t got)
{
	int kept = errno;

	if (got > 0 && asked >= LARGE_READ && is_meant(fd)) {
		struct clock_process *process = entry();

		if (process)
			atomic_fetch_add(&process->read, (uint64_t)got);
	}
	errno = kept;
}

/* The C library's own are called, and no system calls of ours: they are cancellation
 * points (pthreads(7)). */
typedef ssize_t read_fn(int fd, void *to, size_t size);
typedef ssize_t pread_fn(int fd, void *to, size_t size, off_t offset);

static read_fn *_Atomic library_read;
static pread_fn *_Atomic library_pread;

/* Before any thread; a constructor of another library may read before that. */
__attribute__((constructor)) static void find_library(void)
{
	void *found = dlsym(RTLD_NEXT, "read");
	read_fn *own_read;
	pread_fn *own_pread;

	memcpy(&own_read, &found, sizeof(own_read));
	found = dlsym(RTLD_NEXT, "pread64");
	memcpy(&own_pread, &found, sizeof(own_pread));
	library_read = own_read;
	library_pread = own_pread;
}

ssize_t read(int fd, void *to, size_t size)
{
	ssize_t got;

	if (!library_read)
		find_library();
	got = library_read(fd, to, size);
	note_read(fd, size, got);
	return got;
}

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	ssize_t got;

	if (!library_pread)
		find_library();
	got = library_pread(fd, to, size, offset);
	note_read(fd, size, got);
	return got;
}

ssize_t pread64(int fd, void *to, size_t size, off_t offset)
	__attribute__((alias("pread")));
