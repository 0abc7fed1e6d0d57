/* Asking the kernel to show page by page what is touched of a mapping. */
#ifndef APPULSE_PROFILE_PAGE_TRACKING_H
#define APPULSE_PROFILE_PAGE_TRACKING_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in the headers of older kernels (linux/userfaultfd.h, Linux 5.11 and 6.7). */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

/* A descriptor that page_tracking_add takes, or -1 with errno.  With it nothing is ever
 * delivered to us: asynchronous write protection is resolved by the kernel, and we
 * protect nothing. */
static inline int page_tracking_open(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* From now on each page of the mapping is put into the page table only when it is
 * touched: elsewhere the kernel adds up to 15 neighbours that are in memory
 * (uffd_disable_fault_around, observed: Linux 6.18).  0, or -1 with errno. */
static inline int page_tracking_add(int fd, void *begin, uint64_t size)
{
	struct uffdio_register range = {
		.range = {.start = (uint64_t)(uintptr_t)begin, .len = (size + 4095) & ~4095ull},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &range);
}

#endif
