/* The faults of this thread's children, from the kernel's perf events.
 *
 * The events are opened on the calling thread and inherited by whatever it starts,
 * so no process is missed between its start and ours of counting.  Inheritance
 * needs one event, and one ring buffer, for each processor.  One kind of event
 * counts page faults that needed the disk, with their addresses, and also tells of
 * mappings, forks and execs; a second one, for faults that needed no disk, writes
 * into the same buffers.
 *
 * A thread empties the buffers while the command runs.  What found no room is
 * counted, never passed over in silence.
 *
 * Rejected: `perf trace -F maj` (a program more, and its text has no mapping for
 * what was unloaded); reading /proc/PID/maps (gone when the process is).
 *
 * Sources: perf_event_open(2); the layout of records is that of its section "MMAP
 * layout", with sample_id_all and PERF_SAMPLE_IDENTIFIER.
 */
#include "fault_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "quiet_thread.h"

enum { PAGE_BYTES = 4096, POLL_MS = 10, RING_PAGES_MAX = 512, RING_PAGES_MIN = 8 };

/* How mapping records name a file. */
struct file_name {
	uint32_t file;
	uint32_t major, minor;
	uint64_t inode, generation;
};

struct ring {
	int hard, soft; /* event descriptors, -1: none */
	struct perf_event_mmap_page *page; /* NULL: none */
	size_t size;    /* bytes of data behind `page` */
};

struct fault_counter {
	struct ring *rings;
	uint32_t ring_count;
	uint64_t *soft_ids; /* for each ring, of its soft event */
	bool sees_kernel;
	VEC(struct file_name) names;
	struct fault_event_list events;
	uint64_t lost;
	bool no_memory;
	uint64_t watched;       /* an address of ours: its mapping's name goes to `seen` */
	struct file_name seen;
	bool has_seen;
	pthread_t thread;
	bool running;
	atomic_bool stop;
};

/* ---- opening ---- */

static int open_event(uint64_t config, int cpu, bool kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.inherit = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = RING_PAGES_MIN * PAGE_BYTES / 2,
	};

	if (config == PERF_COUNT_SW_PAGE_FAULTS_MAJ)
		attr.mmap = attr.mmap2 = attr.mmap_data = attr.task = attr.comm =
			attr.comm_exec = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* As big as the user's limit allows (/proc/sys/kernel/perf_event_mlock_kb). */
static bool map_ring(struct ring *ring)
{
	for (size_t pages = RING_PAGES_MAX; pages >= RING_PAGES_MIN; pages /= 2) {
		void *map = mmap(NULL, (pages + 1) * PAGE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_SHARED, ring->hard, 0);

		if (map == MAP_FAILED)
			continue;
		ring->page = map;
		ring->size = pages * PAGE_BYTES;
		return true;
	}
	return false;
}

/* Opens the events of one processor; 0 or an errno. */
static int open_ring(struct fault_counter *c, uint32_t index, int cpu, bool soft)
{
	struct ring *ring = &c->rings[index];

	*ring = (struct ring){.hard = -1, .soft = -1};
	ring->hard = open_event(PERF_COUNT_SW_PAGE_FAULTS_MAJ, cpu, c->sees_kernel);
	if (ring->hard < 0)
		return errno;
	if (!map_ring(ring))
		return errno;
	if (!soft)
		return 0;
	ring->soft = open_event(PERF_COUNT_SW_PAGE_FAULTS_MIN, cpu, c->sees_kernel);
	if (ring->soft < 0 || ioctl(ring->soft, PERF_EVENT_IOC_SET_OUTPUT, ring->hard) != 0 ||
	    ioctl(ring->soft, PERF_EVENT_IOC_ID, &c->soft_ids[index]) != 0)
		return errno;
	return 0;
}

static void close_rings(struct fault_counter *c)
{
	for (uint32_t i = 0; i < c->ring_count; i++) {
		struct ring *ring = &c->rings[i];

		if (ring->page)
			munmap(ring->page, ring->size + PAGE_BYTES);
		if (ring->soft >= 0)
			close(ring->soft);
		if (ring->hard >= 0)
			close(ring->hard);
	}
	c->ring_count = 0;
}

static int open_rings(struct fault_counter *c, long cpus, bool soft)
{
	int err = 0;

	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		err = open_ring(c, c->ring_count++, cpu, soft);
		if (err == ENODEV) { /* the processor is off */
			c->ring_count--;
			err = 0;
		}
	}
	if (err)
		close_rings(c);
	return err;
}

static const char *hint(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
		return " (see /proc/sys/kernel/perf_event_paranoid: it must be 2 or less, or "
		       "the user must have CAP_PERFMON)";
	case ENOSYS:
		return " (the kernel was built without it)";
	default:
		return "";
	}
}

enum status fault_counter_open(bool soft, struct fault_counter **ret_counter,
			       struct diag *diag)
{
	struct fault_counter *c = calloc(1, sizeof(*c));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	if (!c)
		return diag_no_memory(diag);
	c->rings = calloc((size_t)cpus, sizeof(*c->rings));
	c->soft_ids = calloc((size_t)cpus, sizeof(*c->soft_ids));
	if (!c->rings || !c->soft_ids) {
		fault_counter_close(c);
		return diag_no_memory(diag);
	}
	c->sees_kernel = true;
	err = open_rings(c, cpus, soft);
	if (err == EACCES || err == EPERM) {
		c->sees_kernel = false;
		err = open_rings(c, cpus, soft);
	}
	if (err) {
		fault_counter_close(c);
		return diag_fail(diag, STATUS_COMMAND, "perf events cannot be used: %s%s",
				 strerror(err), hint(err));
	}
	*ret_counter = c;
	return STATUS_OK;
}

void fault_counter_close(struct fault_counter *counter)
{
	if (!counter)
		return;
	if (counter->running) {
		atomic_store(&counter->stop, true);
		pthread_join(counter->thread, NULL);
	}
	if (counter->rings)
		close_rings(counter);
	free(counter->rings);
	free(counter->soft_ids);
	vec_release(&counter->names);
	vec_release(&counter->events);
	free(counter);
}

bool fault_counter_sees_kernel(const struct fault_counter *counter)
{
	return counter->sees_kernel;
}

/* ---- reading records ---- */

/* Follows the header of PERF_RECORD_MMAP2. */
struct mmap2_record {
	uint32_t pid, thread;
	uint64_t address, size, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
};

struct sample_record {
	uint64_t id, code;
	uint32_t pid, thread;
	uint64_t time, address;
};

/* Ends every record that is no sample. */
struct record_end {
	uint32_t pid, thread;
	uint64_t time, id;
};

/* FORK and EXIT. */
struct task_record {
	uint32_t pid, parent, thread, parent_thread;
	uint64_t time;
};

static void put(struct fault_counter *c, struct fault_event event)
{
	if (event.pid == (uint32_t)getpid())
		return;
	event.order = c->events.len;
	if (!vec_push(&c->events, event))
		c->no_memory = true;
}

static uint32_t number_of(const struct fault_counter *c, const struct mmap2_record *r)
{
	for (uint32_t i = 0; i < c->names.len; i++) {
		const struct file_name *n = &c->names.data[i];

		if (n->inode == r->inode && n->major == r->major && n->minor == r->minor &&
		    n->generation == r->generation)
			return n->file;
	}
	return FAULT_NO_FILE;
}

static void take_mapping(struct fault_counter *c, const struct mmap2_record *r,
			 const struct record_end *end)
{
	if (r->pid == (uint32_t)getpid() && r->address == c->watched && c->watched) {
		c->seen = (struct file_name){0, r->major, r->minor, r->inode, r->generation};
		c->has_seen = true;
	}
	put(c, (struct fault_event){.type = FAULT_EVENT_MAP, .pid = r->pid,
				    .thread = r->thread, .file = number_of(c, r),
				    .time_ns = (int64_t)end->time, .address = r->address,
				    .size = r->size, .offset = r->offset});
}

static void take_sample(struct fault_counter *c, uint32_t ring,
			const struct sample_record *r)
{
	bool soft = c->rings[ring].soft >= 0 && r->id == c->soft_ids[ring];

	put(c, (struct fault_event){.type = soft ? FAULT_EVENT_SOFT : FAULT_EVENT_HARD,
				    .pid = r->pid, .thread = r->thread,
				    .time_ns = (int64_t)r->time, .address = r->address,
				    .code = r->code});
}

/* `record` is whole, `size` bytes with its header. */
static void take_record(struct fault_counter *c, uint32_t ring, const uint8_t *record,
			size_t size)
{
	struct perf_event_header header;
	const uint8_t *body = record + sizeof(header);
	struct record_end end = {0};
	union {
		struct mmap2_record mapping;
		struct sample_record sample;
		struct task_record task;
		uint64_t lost[2]; /* id, count */
	} r = {0};
	size_t length = size - sizeof(header);

	memcpy(&header, record, sizeof(header));
	memcpy(&r, body, length < sizeof(r) ? length : sizeof(r));
	if (length >= sizeof(end))
		memcpy(&end, record + size - sizeof(end), sizeof(end));
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		take_mapping(c, &r.mapping, &end);
		break;
	case PERF_RECORD_SAMPLE:
		take_sample(c, ring, &r.sample);
		break;
	case PERF_RECORD_FORK:
		put(c, (struct fault_event){.type = FAULT_EVENT_FORK, .pid = r.task.pid,
					    .parent = r.task.parent,
					    .time_ns = (int64_t)end.time});
		break;
	case PERF_RECORD_COMM:
		if (header.misc & PERF_RECORD_MISC_COMM_EXEC)
			put(c, (struct fault_event){.type = FAULT_EVENT_EXEC,
						    .pid = end.pid,
						    .time_ns = (int64_t)end.time});
		break;
	case PERF_RECORD_LOST:
		c->lost += r.lost[1];
		break;
	default:
		break;
	}
}

/* Takes what is in the ring; a record may run over its end. */
static void drain_ring(struct fault_counter *c, uint32_t index)
{
	struct ring *ring = &c->rings[index];
	const uint8_t *data = (const uint8_t *)ring->page + PAGE_BYTES;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	uint8_t whole[UINT16_MAX];

	while (tail < head) {
		size_t at = tail % ring->size;
		struct perf_event_header header;

		/* Records are multiples of 8 bytes: a header never runs over the end. */
		memcpy(&header, data + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		if (at + header.size > ring->size) {
			size_t first = ring->size - at;

			memcpy(whole, data + at, first);
			memcpy(whole + first, data, header.size - first);
			take_record(c, index, whole, header.size);
		} else {
			take_record(c, index, data + at, header.size);
		}
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static void drain(struct fault_counter *c)
{
	for (uint32_t i = 0; i < c->ring_count; i++)
		drain_ring(c, i);
}

/* ---- names of files ---- */

enum status fault_counter_name(struct fault_counter *counter, const char *path,
			       uint32_t file, struct diag *diag)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file_name name;
	void *map;

	if (fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	drain(counter);
	counter->has_seen = false;
	map = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot map '%s'", path);
	counter->watched = (uint64_t)(uintptr_t)map;
	drain(counter);
	munmap(map, PAGE_BYTES);
	counter->watched = 0;
	if (!counter->has_seen)
		return diag_fail(diag, STATUS_COMMAND,
				 "perf events cannot be used: the kernel did not tell of the "
				 "mapping of '%s'", path);
	name = counter->seen;
	name.file = file;
	return vec_push(&counter->names, name) ? STATUS_OK : diag_no_memory(diag);
}

void fault_counter_forget(struct fault_counter *counter)
{
	counter->names.len = 0;
}

/* ---- collecting ---- */

static void *collect(void *counter)
{
	struct fault_counter *c = counter;
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

	while (!atomic_load(&c->stop)) {
		drain(c);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

enum status fault_counter_start(struct fault_counter *counter, struct diag *diag)
{
	int err;

	drain(counter);
	counter->events.len = 0;
	counter->lost = 0;
	counter->no_memory = false;
	atomic_store(&counter->stop, false);
	err = quiet_thread_start(&counter->thread, collect, counter);
	if (err)
		return diag_fail_errno(diag, STATUS_IO, err, "cannot start a thread");
	counter->running = true;
	return STATUS_OK;
}

enum status fault_counter_stop(struct fault_counter *counter,
			       struct fault_event_list *ret_events, uint64_t *ret_lost,
			       struct diag *diag)
{
	atomic_store(&counter->stop, true);
	pthread_join(counter->thread, NULL);
	counter->running = false;
	drain(counter);
	if (counter->no_memory)
		return diag_no_memory(diag);
	*ret_events = counter->events;
	*ret_lost = counter->lost;
	counter->events = (struct fault_event_list){0};
	return STATUS_OK;
}
