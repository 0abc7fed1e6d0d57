#include "run_clock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/clock_share.h"

enum status run_clock_open(struct run_clock *clock, struct diag *diag)
{
	static const struct companion companion = {"appulse-clock.so", "APPULSE_CLOCK",
						   "preload"};

	*clock = RUN_CLOCK_NONE;
	return preload_library_open(&companion, sizeof(struct clock_share), &clock->library,
				    diag);
}

void run_clock_close(struct run_clock *clock)
{
	preload_library_close(&clock->library);
}

enum status run_clock_set(struct run_clock *clock, int fd, bool look, struct diag *diag)
{
	struct clock_share *share = clock->library.share;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot see a file");
	memset(share, 0, sizeof(*share));
	share->device = st.st_dev;
	share->inode = st.st_ino;
	share->size = (uint64_t)st.st_size;
	share->look = look;
	share->magic = CLOCK_SHARE_MAGIC;
	return STATUS_OK;
}

void run_clock_join(const struct run_clock *clock, struct child *child)
{
	preload_library_join(&clock->library, CLOCK_SHARE_VARIABLE, child);
}

struct clock_reading run_clock_read(const struct run_clock *clock)
{
	const struct clock_share *share = clock->library.share;
	struct clock_reading reading = {0};
	uint32_t used = atomic_load(&share->used);

	for (uint32_t i = 0; i < used && i < CLOCK_PROCESSES; i++) {
		const struct clock_process *p = &share->processes[i];
		int64_t mapped = atomic_load(&p->mapped_ns);

		reading.read += atomic_load(&p->read);
		reading.whole |= atomic_load(&p->whole) != 0;
		if (mapped == 0 || (reading.mapped && mapped >= reading.mapped_ns))
			continue;
		reading.mapped = true;
		reading.mapped_ns = mapped;
		reading.ended_ns = atomic_load(&p->ended_ns);
		reading.peak = atomic_load(&p->peak);
	}
	return reading;
}
