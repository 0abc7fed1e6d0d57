/* Which pages of the wanted images are in a process's working set when it ends.
 *
 * A program ends in the system call NtTerminateProcess on itself; each way out of a
 * process but a kill from outside and a crash leads there, behind the last code of its
 * DLLs.  A breakpoint on that call stops the process while it is still whole, and then
 * QueryWorkingSetEx is asked for every page of each wanted image.  An image that is
 * unloaded before is asked for at NtUnmapViewOfSection, likewise behind its last code.
 *
 * Asked from outside, as a debugger on Windows may.  Wine 8 answers for the asking
 * process alone, so there the stopped thread is made to ask itself: it is sent into
 * NtQueryVirtualMemory, which returns onto the first breakpoint.  Loading a DLL of ours into
 * the program was rejected: its other DLLs would be loaded elsewhere or later, and it
 * would be told of the end before others are.
 *
 * Wine takes its answer from /proc/self/pagemap: a page is Valid when the page table of
 * the process leads to it.  Linux maps up to 15 neighbours along with a page that is
 * touched when they are in memory, but none beyond its mapping (do_fault_around in
 * Linux's mm/memory.c).  So under Wine every second page of what cannot be written gets
 * copy-on-write protection, which makes a mapping of each page.  Pages that may be
 * written stay as they are.
 *
 * The call is left by carrying out its first instruction, mov %rcx,%r10, for the thread:
 * so the breakpoint can stay.  (Observed in Wine 8.0's ntdll; system calls of Windows
 * for x64 begin so as well.)
 */
#include "working_set.h"

#include <psapi.h>
#include <stdlib.h>
#include <string.h>

enum { INT3 = 0xcc, MEMORY_WORKING_SET_EX_INFORMATION = 4 };

/* On entry of a function on x64: the return address, room for four arguments in
 * registers, the fifth and the sixth. */
struct call_frame {
	uint64_t return_address, home[4], fifth, sixth;
};

/* Left alone below the stack pointer of the stopped thread. */
enum { ROOM_BYTES = 4096 };

static const BYTE mov_rcx_r10[] = {0x4c, 0x8b, 0xd1};

/* Where a function of ntdll is in the process; 0: nowhere. */
static uint64_t ntdll_function(const struct debuggee *debuggee, const char *name)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	const BYTE *here = (BYTE *)(void *)GetProcAddress(ntdll, name);

	return here ? debuggee->ntdll + (uint64_t)(here - (BYTE *)ntdll) : 0;
}

/* Plants a breakpoint at a system call; 0 when it does not begin as it must. */
static uint64_t plant(const struct debuggee *debuggee, const char *name)
{
	uint64_t place = ntdll_function(debuggee, name);
	void *address = (void *)(uintptr_t)place;
	BYTE code[sizeof(mov_rcx_r10)];
	const BYTE int3 = INT3;
	SIZE_T done;

	if (!place ||
	    !ReadProcessMemory(debuggee->process, address, code, sizeof(code), &done) ||
	    memcmp(code, mov_rcx_r10, sizeof(code)) != 0 ||
	    !WriteProcessMemory(debuggee->process, address, &int3, 1, &done))
		return 0;
	FlushInstructionCache(debuggee->process, address, 1);
	return place;
}

void working_set_watch(struct debuggee *debuggee)
{
	debuggee->end_call = plant(debuggee, "NtTerminateProcess");
	/* What asks there returns to the other. */
	if (debuggee->end_call)
		debuggee->unmap_call = plant(debuggee, "NtUnmapViewOfSection");
}

/* ---- pages apart ---- */

static bool is_wine(void)
{
	return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

/* Every second page of a region gets the protection. */
static void part_region(struct debuggee *debuggee, uint64_t start, uint64_t stop,
			DWORD protection)
{
	DWORD old;

	for (uint64_t p = start; p < stop; p += 2 * IMAGE_PAGE_BYTES)
		VirtualProtectEx(debuggee->process, (void *)(uintptr_t)p, IMAGE_PAGE_BYTES,
				 protection, &old);
}

void working_set_part_pages(struct debuggee *debuggee, struct module *module)
{
	uint64_t p = module->base, end = p + module->size, stop;
	MEMORY_BASIC_INFORMATION region;

	for (; is_wine() && p < end; p = stop) {
		if (!VirtualQueryEx(debuggee->process, (void *)(uintptr_t)p, &region,
				    sizeof(region)))
			return;
		stop = (uint64_t)(uintptr_t)region.BaseAddress + region.RegionSize;
		if (stop > end)
			stop = end;
		if (region.State == MEM_COMMIT && region.Protect == PAGE_EXECUTE_READ)
			part_region(debuggee, p, stop, PAGE_EXECUTE_WRITECOPY);
		if (region.State == MEM_COMMIT && region.Protect == PAGE_READONLY)
			part_region(debuggee, p, stop, PAGE_WRITECOPY);
	}
}

/* ---- asking ---- */

static uint32_t page_count(const struct module *module)
{
	return (module->size + IMAGE_PAGE_BYTES - 1) / IMAGE_PAGE_BYTES;
}

static PSAPI_WORKING_SET_EX_INFORMATION *make_question(const struct module *module)
{
	uint32_t count = page_count(module);
	PSAPI_WORKING_SET_EX_INFORMATION *pages = calloc(count, sizeof(*pages));

	for (uint32_t i = 0; pages && i < count; i++)
		pages[i].VirtualAddress =
			(void *)(uintptr_t)(module->base + (uint64_t)i * IMAGE_PAGE_BYTES);
	return pages;
}

static void log_answer(struct debuggee *debuggee, struct module *module,
		       const PSAPI_WORKING_SET_EX_INFORMATION *pages, const char *how,
		       struct event_log *log)
{
	PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof(memory)};
	uint32_t count = page_count(module);

	if (!GetProcessMemoryInfo(debuggee->process, &memory, sizeof(memory)))
		memory.PageFaultCount = 0;
	for (uint32_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && pages[i + n].VirtualAttributes.Valid ==
						     pages[i].VirtualAttributes.Valid;)
			n++;
		if (pages[i].VirtualAttributes.Valid)
			event_log_line(log, NULL, "resident\t%u\t%x\t%u", module->id,
				       i * IMAGE_PAGE_BYTES, n);
	}
	event_log_line(log, NULL, "answer\t%u\t%s\t%lu", module->id, how,
		       memory.PageFaultCount);
	module->answered = true;
}

static bool ask_outside(struct debuggee *debuggee, struct module *module,
			struct event_log *log)
{
	PSAPI_WORKING_SET_EX_INFORMATION *pages = make_question(module);
	DWORD bytes = page_count(module) * sizeof(*pages);
	bool ok = pages && QueryWorkingSetEx(debuggee->process, pages, bytes);

	if (ok)
		log_answer(debuggee, module, pages, "outside", log);
	free(pages);
	return ok;
}

static void forget_answer(struct debuggee *debuggee)
{
	if (debuggee->answer)
		VirtualFreeEx(debuggee->process, debuggee->answer, 0, MEM_RELEASE);
	debuggee->answer = NULL;
}

/* Sends the stopped thread into NtQueryVirtualMemory for a module. */
static bool ask_inside(struct debuggee *debuggee, HANDLE thread, struct module *module)
{
	PSAPI_WORKING_SET_EX_INFORMATION *pages = make_question(module);
	SIZE_T bytes = page_count(module) * sizeof(*pages), put;
	CONTEXT context = debuggee->call_context;
	struct call_frame frame = {.return_address = debuggee->end_call, .fifth = bytes};
	uint64_t query = ntdll_function(debuggee, "NtQueryVirtualMemory");
	bool ok;

	debuggee->answer = VirtualAllocEx(debuggee->process, NULL, bytes,
					  MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	context.Rip = query;
	context.Rsp = ((context.Rsp - ROOM_BYTES) & ~(uint64_t)15) - 8;
	context.Rcx = (uint64_t)-1; /* the process itself */
	context.Rdx = 0;
	context.R8 = MEMORY_WORKING_SET_EX_INFORMATION;
	context.R9 = (uint64_t)(uintptr_t)debuggee->answer;
	ok = pages && query && debuggee->answer &&
	     WriteProcessMemory(debuggee->process, debuggee->answer, pages, bytes, &put) &&
	     WriteProcessMemory(debuggee->process, (void *)(uintptr_t)context.Rsp, &frame,
				sizeof(frame), &put) &&
	     SetThreadContext(thread, &context);
	debuggee->asked = ok ? module : NULL;
	if (!ok)
		forget_answer(debuggee);
	free(pages);
	return ok;
}

/* The thread has come back from NtQueryVirtualMemory with `status`. */
static void take_answer(struct debuggee *debuggee, uint64_t status, struct event_log *log)
{
	struct module *module = debuggee->asked;
	SIZE_T bytes = page_count(module) * sizeof(PSAPI_WORKING_SET_EX_INFORMATION), got;
	PSAPI_WORKING_SET_EX_INFORMATION *pages = malloc(bytes);

	if ((uint32_t)status == 0 && pages &&
	    ReadProcessMemory(debuggee->process, debuggee->answer, pages, bytes, &got))
		log_answer(debuggee, module, pages, "inside", log);
	free(pages);
	forget_answer(debuggee);
}

void working_set_thread_ended(struct debuggee *debuggee, DWORD thread)
{
	if (thread != debuggee->asker)
		return;
	debuggee->asker = 0;
	debuggee->asked = NULL;
	forget_answer(debuggee);
}

/* Asks for `module`, and at the end for those behind it; when none is left, or the
 * process cannot be asked, lets the thread go on into its call. */
static void ask(struct debuggee *debuggee, HANDLE thread, struct module *module,
		struct event_log *log)
{
	for (; module; module = debuggee->asks_for_all ? module->next : NULL)
		if (!module->answered && !ask_outside(debuggee, module, log) &&
		    ask_inside(debuggee, thread, module))
			return;
	debuggee->asker = 0;
	SetThreadContext(thread, &debuggee->call_context);
}

/* A thread stands at one of the calls.  Is it about the process itself, as the handle in
 * rcx says (0 ends the other threads, for a start), there may be something to ask. */
static void at_call(struct debuggee *debuggee, DWORD id, HANDLE thread, CONTEXT *context,
		    uint64_t place, struct event_log *log)
{
	bool itself = context->Rcx == (uint64_t)-1, ends = place == debuggee->end_call;
	struct module *module = debuggee->modules;

	while (module && !ends && module->base != context->Rdx)
		module = module->next;
	if (itself && module && debuggee->asker) { /* it waits for the one that asks */
		context->Rip = place;
		SetThreadContext(thread, context);
		return;
	}
	context->R10 = context->Rcx;
	context->Rip = place + sizeof(mov_rcx_r10);
	SetThreadContext(thread, context);
	if (!itself || !module)
		return;
	debuggee->asker = id;
	debuggee->asks_for_all = ends;
	debuggee->call_context = *context;
	ask(debuggee, thread, module, log);
}

/* The thread that asks has its answer. */
static void at_return(struct debuggee *debuggee, HANDLE thread, const CONTEXT *context,
		      struct event_log *log)
{
	struct module *asked = debuggee->asked;

	if (asked)
		take_answer(debuggee, context->Rax, log);
	ask(debuggee, thread, asked && debuggee->asks_for_all ? asked->next : NULL, log);
}

bool working_set_take(struct debuggee *debuggee, DWORD thread,
		      const EXCEPTION_RECORD *exception, struct event_log *log)
{
	uint64_t place = (uint64_t)(uintptr_t)exception->ExceptionAddress;
	CONTEXT context = {.ContextFlags = CONTEXT_FULL};
	HANDLE handle;

	if (exception->ExceptionCode != (DWORD)STATUS_BREAKPOINT || !place ||
	    (place != debuggee->end_call && place != debuggee->unmap_call))
		return false;
	handle = OpenThread(THREAD_GET_CONTEXT | THREAD_SET_CONTEXT, FALSE, thread);
	if (!handle || !GetThreadContext(handle, &context))
		log->failed = true;
	else if (thread == debuggee->asker && place == debuggee->end_call)
		at_return(debuggee, handle, &context, log);
	else
		at_call(debuggee, thread, handle, &context, place, log);
	if (handle)
		CloseHandle(handle);
	return true;
}
