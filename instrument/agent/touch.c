/* The touch of a probe, and the images of the process.
 *
 * The first touch in an image makes its trace file.  One thread at a time does so,
 * for all images; others that come meanwhile wait until it is done.  Such a wait is
 * dangerous in a program that we know nothing about, so:
 * - The opener never takes a lock that a waiting thread may hold.  The loader lock
 *   is the one that counts: GetModuleFileName and the like are not called here, and
 *   the agent pins itself in its DllMain.
 * - A thread that comes here again while it is the opener itself (the program has
 *   hooked a system function) goes on untraced for this one function.
 * - An opener may be ended by TerminateThread, or by ExitProcess in another thread,
 *   which then touches functions in DLL_PROCESS_DETACH.  So what is waited for is the
 *   thread's own handle: it is signalled when the thread is gone, and the next in line
 *   takes its place.  Nothing half-done is visible, the registry counts what is done.
 * Rejected: a queue for touches that come meanwhile.  No waiting at all, but what is
 * in the queue dies with the process, and the trace should not lose what ran.
 *
 * After that a touch takes no lock.  A byte for each probe in the trace file, set by
 * an atomic exchange, decides who was first; so a function is recorded once in a
 * process even if its image is unloaded and loaded again, which the registry, found by
 * the original's hash, leads to the same file.  The record is complete before the
 * slot changes: a function that ran is in the trace, but for a thread that loses the
 * race for the byte and is through before the winner has stored its record.
 *
 * At the process's end there is nothing to do: the map is the file.
 */
#include <windows.h>

#include "agent.h"

enum { MAX_IMAGES = 1024 };

/* The images that were touched so far.  `image_count` is stored after the entry. */
static struct traced_image {
	struct trace_map map;
	uint32_t probes;
	uint8_t hash[PROBE_HASH_BYTES];
} images[MAX_IMAGES];
static uint32_t image_count;

/* What an image's state leads to when there is no entry left for it. */
static const struct trace_map no_map;

static uint64_t last_seq;   /* of all images of the process */
static uint32_t opener;     /* the thread that adds an image; 0: none */

/* The thread's last error, in its environment block (observed: Windows 10, Wine 8). */
enum { TEB_LAST_ERROR = 0x68 };

static uint32_t last_error(void)
{
	uint32_t error;

	__asm__ volatile("movl %%gs:%c1, %0" : "=r"(error) : "i"(TEB_LAST_ERROR));
	return error;
}

static void last_error_restore(uint32_t error)
{
	__asm__ volatile("movl %0, %%gs:%c1" : : "r"(error), "i"(TEB_LAST_ERROR));
}

/* Waits for the opener a little, or takes it off its duty when it is gone. */
static void wait_for_opener(uint32_t thread)
{
	HANDLE handle = OpenThread(SYNCHRONIZE, FALSE, thread);
	int gone;

	if (handle) {
		gone = WaitForSingleObject(handle, 1) == WAIT_OBJECT_0;
		CloseHandle(handle);
	} else {
		gone = GetLastError() == ERROR_INVALID_PARAMETER; /* no such thread */
		if (!gone)
			Sleep(1);
	}
	if (gone)
		__atomic_compare_exchange_n(&opener, &thread, 0, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/* Makes this thread the opener; 0 when it is already. */
static int become_opener(void)
{
	uint32_t me = GetCurrentThreadId();
	uint32_t other = 0;

	while (!__atomic_compare_exchange_n(&opener, &other, me, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE)) {
		if (other == me)
			return 0;
		wait_for_opener(other);
		other = 0;
	}
	return 1;
}

static struct traced_image *find_image(const struct probe_image *image)
{
	for (uint32_t i = 0; i < image_count; i++)
		if (images[i].probes == image->count &&
		    __builtin_memcmp(images[i].hash, image->hash, PROBE_HASH_BYTES) == 0)
			return &images[i];
	return NULL;
}

/* The image's entry, made if it is new; only for the opener. */
static const struct trace_map *enter_image(const struct probe_image *image,
					   enum untraced *ret_why, uint32_t *ret_error)
{
	struct traced_image *entry = find_image(image);

	*ret_why = TRACED;
	if (entry)
		return &entry->map;
	if (image_count == MAX_IMAGES) {
		*ret_why = UNTRACED_TOO_MANY;
		return &no_map;
	}
	entry = &images[image_count];
	*ret_why = trace_map_open(image, &entry->map, ret_error);
	entry->probes = image->count;
	__builtin_memcpy(entry->hash, image->hash, PROBE_HASH_BYTES);
	__atomic_store_n(&image_count, image_count + 1, __ATOMIC_RELEASE);
	return &entry->map;
}

static const struct trace_map *image_map(struct probe_image *image)
{
	const struct trace_map *map =
		(void *)__atomic_load_n(&image->state, __ATOMIC_ACQUIRE);
	enum untraced why;
	uint32_t error = 0;

	if (map)
		return map;
	if (!become_opener())
		return &no_map;
	map = enter_image(image, &why, &error);
	__atomic_store_n(&image->state, (uint64_t)map, __ATOMIC_RELEASE);
	__atomic_store_n(&opener, 0, __ATOMIC_RELEASE);
	if (why != TRACED)
		say_untraced(image, why, error);
	return map;
}

static void record(const struct trace_map *map, uint32_t index, uint32_t rva)
{
	struct trace_record *r;
	LARGE_INTEGER ticks;
	uint32_t n;

	if (__atomic_exchange_n(&map->claims[index], 1, __ATOMIC_ACQ_REL))
		return;
	n = __atomic_fetch_add(&map->header->next, 1, __ATOMIC_ACQ_REL);
	if (n >= map->header->capacity)
		return; /* someone else has written into the file */
	r = &map->records[n];
	r->seq = __atomic_add_fetch(&last_seq, 1, __ATOMIC_ACQ_REL);
	QueryPerformanceCounter(&ticks);
	r->ticks = (uint64_t)ticks.QuadPart;
	r->thread = GetCurrentThreadId();
	__atomic_store_n(&r->rva, rva, __ATOMIC_RELEASE);
}

void probe_touch(struct probe_image *image, uint64_t return_address)
{
	uint64_t index =
		(return_address - PROBE_RETURN_OFFSET - image->units) / PROBE_UNIT_BYTES;
	uint32_t error = last_error();
	const struct trace_map *map;
	uint64_t *slots;
	uint32_t rva;

	/* A stub that we do not understand can't be led on to its function. */
	if (image->magic != PROBE_MAGIC || image->version != PROBE_VERSION ||
	    index >= image->count)
		__builtin_trap();
	slots = (uint64_t *)image->slots;
	rva = ((const uint32_t *)image->functions)[index];
	map = image_map(image);
	if (map->header)
		record(map, (uint32_t)index, rva);
	__atomic_store_n(&slots[index], image->base + rva, __ATOMIC_RELEASE);
	last_error_restore(error);
}

/* The loader's entry.  Pinned, since slots and maps refer to the agent as long as
 * the process lives, and an image that comes again must find its trace. */
BOOL WINAPI agent_main(HINSTANCE self, DWORD reason, void *reserved);
BOOL WINAPI agent_main(HINSTANCE self, DWORD reason, void *reserved)
{
	HMODULE pinned;

	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH) {
		DisableThreadLibraryCalls(self);
		GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN |
					   GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
				   (LPCWSTR)(void *)agent_main, &pinned);
	}
	return TRUE;
}
