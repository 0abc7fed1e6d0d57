/* A breakpoint on every function start.
 *
 * This is how order files are traced without instrumentation: the debugger
 * writes int3 over the first byte of each function and puts the byte back when it
 * is hit.  It costs a round trip through the debugger for each function and is
 * here as an oracle for the probes.
 *
 * A byte written into the middle of an instruction breaks the program, so an
 * image is left alone unless it is the very build that the list was made for:
 * its headers agree, and so does the first byte of every function.  Functions
 * that begin with int3 of their own cannot be told apart and are left out.
 *
 * All threads of a process stand still while the debugger handles one's
 * exception, so taking the breakpoint away is atomic.  A thread that ran into it
 * before that reports later, at a byte that is restored already: it is put back
 * to the start as well.
 *
 * A program that reads its own code sees the breakpoints.
 */
#include "start_breakpoints.h"

#include <stdio.h>
#include <stdlib.h>

/* States of a start. */
enum { START_LEFT_OUT, START_ARMED, START_HIT };

enum { INT3 = 0xcc, STARTS_VERSION = 1, MAGIC_PE32_PLUS = 0x20b };

bool start_list_load(struct start_list *list, const wchar_t *path)
{
	FILE *file = _wfopen(path, L"rb");
	unsigned version = 0, rva, byte;
	uint32_t capacity = 0;
	bool ok;

	*list = (struct start_list){0};
	if (!file)
		return false;
	ok = fscanf(file, "appulse-starts %u %x %x %x", &version, &list->size,
		    &list->time_stamp, &list->checksum) == 4 &&
	     version == STARTS_VERSION;
	while (ok && fscanf(file, "%x %x", &rva, &byte) == 2) {
		if (list->count == capacity) {
			struct start *grown;

			capacity = capacity ? 2 * capacity : 1024;
			grown = realloc(list->starts, capacity * sizeof(*grown));
			if (!grown)
				break;
			list->starts = grown;
		}
		if (byte > 0xff || rva >= list->size ||
		    (list->count > 0 && rva <= list->starts[list->count - 1].rva))
			break;
		list->starts[list->count++] = (struct start){rva, (uint8_t)byte};
	}
	ok = ok && feof(file) && list->count > 0;
	fclose(file);
	if (!ok)
		start_list_release(list);
	return ok;
}

void start_list_release(struct start_list *list)
{
	free(list->starts);
	*list = (struct start_list){0};
}

/* One page of code in the process, read and written at once: a system call for
 * each function would take seconds in big images. */
struct page_copy {
	uint64_t address;
	BYTE bytes[IMAGE_PAGE_BYTES];
};

static bool page_read(struct debuggee *debuggee, struct page_copy *page, uint64_t address)
{
	SIZE_T got;

	page->address = address;
	return ReadProcessMemory(debuggee->process, (void *)(uintptr_t)address, page->bytes,
				 sizeof(page->bytes), &got) &&
	       got == sizeof(page->bytes);
}

static bool page_write(struct debuggee *debuggee, const struct page_copy *page)
{
	void *address = (void *)(uintptr_t)page->address;
	SIZE_T put;

	return WriteProcessMemory(debuggee->process, address, page->bytes,
				  sizeof(page->bytes), &put) &&
	       FlushInstructionCache(debuggee->process, address, sizeof(page->bytes));
}

/* The index of the first start at or behind `rva`. */
static uint32_t start_lower_bound(const struct start_list *list, uint32_t rva)
{
	uint32_t low = 0, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->starts[middle].rva < rva)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What to do with each page that holds starts, the `count` ones at `first`. */
typedef bool (*page_action)(struct debuggee *debuggee, struct module *module,
			    struct page_copy *page, uint32_t first, uint32_t count);

static bool for_each_page(struct debuggee *debuggee, struct module *module,
			  page_action action)
{
	const struct start_list *list = module->wanted->starts;
	struct page_copy page;

	for (uint32_t i = 0, n; i < list->count; i += n) {
		uint32_t page_rva = list->starts[i].rva & ~(uint32_t)(IMAGE_PAGE_BYTES - 1);

		for (n = 1; i + n < list->count &&
			    list->starts[i + n].rva - page_rva < IMAGE_PAGE_BYTES;)
			n++;
		if (!page_read(debuggee, &page, module->base + page_rva) ||
		    !action(debuggee, module, &page, i, n))
			return false;
	}
	return true;
}

static bool check_page(struct debuggee *debuggee, struct module *module,
		       struct page_copy *page, uint32_t first, uint32_t count)
{
	const struct start *starts = module->wanted->starts->starts;

	(void)debuggee;
	for (uint32_t i = first; i < first + count; i++)
		if (page->bytes[starts[i].rva % IMAGE_PAGE_BYTES] != starts[i].byte)
			return false;
	return true;
}

static bool plant_page(struct debuggee *debuggee, struct module *module,
		       struct page_copy *page, uint32_t first, uint32_t count)
{
	const struct start *starts = module->wanted->starts->starts;

	for (uint32_t i = first; i < first + count; i++) {
		if (starts[i].byte == INT3)
			continue;
		page->bytes[starts[i].rva % IMAGE_PAGE_BYTES] = INT3;
		module->state[i] = START_ARMED;
	}
	return page_write(debuggee, page);
}

static bool same_build(struct debuggee *debuggee, struct module *module)
{
	const struct start_list *list = module->wanted->starts;

	return module->magic == MAGIC_PE32_PLUS && module->size == list->size &&
	       module->time_stamp == list->time_stamp &&
	       module->checksum == list->checksum &&
	       for_each_page(debuggee, module, check_page);
}

void start_breakpoints_set(struct debuggee *debuggee, struct module *module,
			   struct event_log *log)
{
	const struct start_list *list = module->wanted->starts;
	uint32_t armed = 0;

	if (!same_build(debuggee, module)) {
		event_log_line(log, NULL, "other\t%u", module->id);
		return;
	}
	module->state = calloc(list->count, 1);
	if (!module->state || !for_each_page(debuggee, module, plant_page))
		log->failed = true;
	for (uint32_t i = 0; module->state && i < list->count; i++)
		armed += module->state[i] == START_ARMED;
	event_log_line(log, NULL, "planted\t%u\t%u\t%u", module->id, list->count, armed);
}

/* Puts the thread back to `address`, behind which the processor has left it. */
static bool set_back(DWORD thread, uint64_t address)
{
	HANDLE handle = OpenThread(THREAD_GET_CONTEXT | THREAD_SET_CONTEXT, FALSE, thread);
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
	bool ok;

	if (!handle)
		return false;
	ok = GetThreadContext(handle, &context);
	context.Rip = address;
	ok = ok && SetThreadContext(handle, &context);
	CloseHandle(handle);
	return ok;
}

/* Takes the breakpoint away and logs the touch. */
static void hit(struct debuggee *debuggee, struct module *module, uint32_t i, DWORD thread,
		struct event_log *log)
{
	const struct start *start = &module->wanted->starts->starts[i];
	void *address = (void *)(uintptr_t)(module->base + start->rva);
	SIZE_T put;

	if (!WriteProcessMemory(debuggee->process, address, &start->byte, 1, &put))
		log->failed = true;
	FlushInstructionCache(debuggee->process, address, 1);
	module->state[i] = START_HIT;
	event_log_line(log, NULL, "start\t%llu\t%u\t%x\t%lu\t%llu",
		       (unsigned long long)log->next++, module->id, start->rva, thread,
		       (unsigned long long)event_log_now());
}

/* Whether the program has put an int3 of its own over a start that was hit. */
static bool foreign_int3(struct debuggee *debuggee, uint64_t address)
{
	BYTE byte;
	SIZE_T got;

	return !ReadProcessMemory(debuggee->process, (void *)(uintptr_t)address, &byte, 1,
				  &got) ||
	       byte == INT3;
}

bool start_breakpoints_take(struct debuggee *debuggee, DWORD thread,
			    const EXCEPTION_RECORD *exception, struct event_log *log)
{
	uint64_t address = (uint64_t)(uintptr_t)exception->ExceptionAddress;
	struct module *module;
	const struct start_list *list;
	uint32_t rva, i;

	if (exception->ExceptionCode != (DWORD)STATUS_BREAKPOINT)
		return false;
	module = module_at(debuggee, address);
	if (!module || !module->state)
		return false;
	list = module->wanted->starts;
	rva = (uint32_t)(address - module->base);
	i = start_lower_bound(list, rva);
	if (i == list->count || list->starts[i].rva != rva ||
	    module->state[i] == START_LEFT_OUT)
		return false;
	if (module->state[i] == START_ARMED)
		hit(debuggee, module, i, thread, log);
	else if (foreign_int3(debuggee, address))
		return false;
	return set_back(thread, address);
}
