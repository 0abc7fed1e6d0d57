/* Guarded code pages.
 *
 * The first access to a page with PAGE_GUARD raises an exception, and the system
 * takes the guard away: so each page speaks once, and runs at full speed from
 * then on.  The set is exact and ordered, on Windows and on Wine.
 *
 * Only code is guarded: the system's own accesses do not raise the exception but
 * fail, so a buffer in a guarded data page breaks the call that it is passed to.
 * Sections that are both code and writable count as data.
 *
 * Wine 8 loses a race: of two threads that touch one guarded page at once, the
 * second finds the guard gone while it is handling its fault, and makes an access
 * violation of it.  When the page allows the access by the time that the
 * debugger sees the exception, the access is simply made again.  A true access
 * violation does not allow it, but for one that the program itself has mended
 * meanwhile, and that is well served by another try too.
 *
 * A guard on a page of ours is taken for ours even when the page has spoken
 * before: programs that patch code save and restore the protection, and so carry
 * a guard from page to page.
 */
#include "page_guards.h"

#include <stdlib.h>

/* States of a page. */
enum { PAGE_NOT_CODE, PAGE_GUARDED, PAGE_TOUCHED };

/* Indices and values in EXCEPTION_RECORD.ExceptionInformation. */
enum { INFO_KIND = 0, INFO_ADDRESS = 1, KIND_READ = 0, KIND_WRITE = 1, KIND_EXECUTE = 8 };

/* An access that fails that often in one place, though it is allowed, is no race. */
enum { RETRY_MAX = 64 };

enum {
	CAN_EXECUTE = PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE |
		      PAGE_EXECUTE_WRITECOPY,
	CAN_WRITE = PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE |
		    PAGE_EXECUTE_WRITECOPY,
	CAN_READ = CAN_WRITE | PAGE_READONLY | PAGE_EXECUTE_READ,
};

/* Guards one range, region by region: each keeps its own protection. */
static uint32_t guard_range(struct debuggee *debuggee, struct module *module,
			    const struct code_range *range)
{
	uint64_t p = module->base + range->rva, end = p + range->size;
	uint32_t count = 0;

	while (p < end) {
		MEMORY_BASIC_INFORMATION region;
		uint64_t stop;
		DWORD old;

		if (!VirtualQueryEx(debuggee->process, (void *)(uintptr_t)p, &region,
				    sizeof(region)))
			break;
		stop = (uint64_t)(uintptr_t)region.BaseAddress + region.RegionSize;
		if (stop > end)
			stop = end;
		if (region.State == MEM_COMMIT && (region.Protect & CAN_EXECUTE) &&
		    VirtualProtectEx(debuggee->process, (void *)(uintptr_t)p, stop - p,
				     region.Protect | PAGE_GUARD, &old))
			for (; p < stop; p += IMAGE_PAGE_BYTES, count++)
				module->state[(p - module->base) / IMAGE_PAGE_BYTES] =
					PAGE_GUARDED;
		p = stop;
	}
	return count;
}

void page_guards_set(struct debuggee *debuggee, struct module *module,
		     struct event_log *log)
{
	module->state = calloc(module->size / IMAGE_PAGE_BYTES + 1, 1);
	if (!module->state) {
		log->failed = true;
		return;
	}
	for (uint32_t i = 0; i < module->code_count; i++) {
		const struct code_range *range = &module->code[i];
		uint32_t count = guard_range(debuggee, module, range);

		event_log_line(log, NULL, "code\t%u\t%x\t%u\t%u", module->id, range->rva,
			       range->size / IMAGE_PAGE_BYTES, count);
	}
}

/* Whether the page at `address` allows an access of that kind now. */
static bool access_allowed(struct debuggee *debuggee, uint64_t address, uint64_t kind)
{
	MEMORY_BASIC_INFORMATION region;

	if (!VirtualQueryEx(debuggee->process, (void *)(uintptr_t)address, &region,
			    sizeof(region)) ||
	    region.State != MEM_COMMIT || (region.Protect & PAGE_GUARD))
		return false;
	return region.Protect & (kind == KIND_EXECUTE ? CAN_EXECUTE
				 : kind == KIND_WRITE ? CAN_WRITE
						      : CAN_READ);
}

/* Whether to try again after an access violation of that thread. */
static bool lost_race(struct debuggee *debuggee, DWORD thread, uint64_t address,
		      uint64_t kind)
{
	if (!access_allowed(debuggee, address, kind))
		return false;
	if (debuggee->retry_thread != thread || debuggee->retry_address != address)
		debuggee->retry_count = 0;
	debuggee->retry_thread = thread;
	debuggee->retry_address = address;
	return ++debuggee->retry_count <= RETRY_MAX;
}

bool page_guards_take(struct debuggee *debuggee, DWORD thread,
		      const EXCEPTION_RECORD *exception, struct event_log *log)
{
	bool guard = exception->ExceptionCode == (DWORD)STATUS_GUARD_PAGE_VIOLATION;
	uint64_t kind, address;
	struct module *module;
	uint32_t page;

	if ((!guard && exception->ExceptionCode != (DWORD)STATUS_ACCESS_VIOLATION) ||
	    exception->NumberParameters < 2)
		return false;
	kind = exception->ExceptionInformation[INFO_KIND];
	address = exception->ExceptionInformation[INFO_ADDRESS];
	module = module_at(debuggee, address);
	if (!module || !module->state)
		return false;
	page = (uint32_t)((address - module->base) / IMAGE_PAGE_BYTES);
	if (module->state[page] == PAGE_NOT_CODE)
		return false;
	if (!guard)
		return lost_race(debuggee, thread, address, kind);
	if (module->state[page] == PAGE_GUARDED)
		event_log_line(log, NULL, "page\t%llu\t%u\t%x\t%lu\t%c\t%llu",
			       (unsigned long long)log->next++, module->id,
			       page * IMAGE_PAGE_BYTES, thread,
			       kind == KIND_EXECUTE ? 'x'
			       : kind == KIND_WRITE ? 'w'
						    : 'r',
			       (unsigned long long)event_log_now());
	module->state[page] = PAGE_TOUCHED;
	return true;
}
