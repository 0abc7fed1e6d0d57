/* Drives the agent with probed images made in memory.
 *
 *     agent_probes MODE
 *
 * prints what it did, for the caller to compare with the trace files: "touched RVA
 * RVA ..." in the order of the calls, per thread as "thread ID: RVA ...", the agent's
 * words on the debug output as "debug: ...", and "done" at its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winternl.h>

#include "agent_hook.h"
#include "agent_register_check.h"
#include "probed_image.h"

enum { PROBES = 3000, THREADS = 8 };

static HMODULE agent;
static void *agent_entry;
static struct probed_image first;

static void make(struct probed_image *p, const char *name, uint8_t identity)
{
	probed_image_make(p, name, identity, PROBES, BODY_GIVES_INDEX, agent_entry);
}

static void call(const struct probed_image *p, uint32_t i)
{
	uint32_t got = probed_thunk(p, i)();

	if (got != i) {
		printf("function %u gave %u\n", i, got);
		exit(1);
	}
}

/* Calls and says so. */
static void touch(const struct probed_image *p, uint32_t i)
{
	call(p, i);
	printf(" %u", probed_rva(p, i));
}

static void fill_order(uint32_t *order, uint32_t seed)
{
	uint64_t state = seed;

	for (uint32_t i = 0; i < PROBES; i++)
		order[i] = i;
	for (uint32_t i = PROBES - 1; i > 0; i--) {
		uint32_t j, swap = order[i];

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		j = (uint32_t)(state >> 33) % (i + 1);
		order[i] = order[j];
		order[j] = swap;
	}
}

static void mode_order(void)
{
	static uint32_t order[PROBES];

	make(&first, "order.dll", 1);
	fill_order(order, 1);
	printf("touched");
	for (uint32_t i = 0; i < PROBES / 2; i++)
		touch(&first, order[i]);
	printf("\n");
	for (uint32_t i = 0; i < PROBES / 2; i++)
		call(&first, order[i]);
	printf("capacity %u\n", PROBES);
}

static void mode_registers(void)
{
	probed_image_make(&first, "registers.dll", 1, 16, BODY_ONLY_RETURNS, agent_entry);
	agent_register_check(&first);
}

static struct racer {
	HANDLE handle;
	DWORD id;
	uint32_t order[PROBES];
} racers[THREADS];
static HANDLE start_signal;

static DWORD WINAPI race(void *data)
{
	const struct racer *racer = data;

	WaitForSingleObject(start_signal, INFINITE);
	for (uint32_t i = 0; i < PROBES; i++)
		call(&first, racer->order[i]);
	return 0;
}

/* Half of the threads run in one order and so race for every function. */
static void mode_threads(void)
{
	start_signal = CreateEventA(NULL, TRUE, FALSE, NULL);
	make(&first, "threads.dll", 1);
	for (uint32_t i = 0; i < THREADS; i++) {
		fill_order(racers[i].order, i < THREADS / 2 ? 1 : i);
		racers[i].handle =
			CreateThread(NULL, 0, race, &racers[i], 0, &racers[i].id);
	}
	SetEvent(start_signal);
	for (uint32_t i = 0; i < THREADS; i++) {
		WaitForSingleObject(racers[i].handle, INFINITE);
		printf("thread %lu:", racers[i].id);
		for (uint32_t j = 0; j < PROBES; j++)
			printf(" %u", probed_rva(&first, racers[i].order[j]));
		printf("\n");
	}
}

/* An image that is unloaded and loaded again goes on in the same trace. */
static void mode_reload(void)
{
	printf("touched");
	for (uint32_t round = 0; round < 3; round++) {
		make(&first, "reload.dll", 1);
		for (uint32_t i = 0; i < 100; i++)
			if (round == 0 || i >= 50)
				touch(&first, 50 * round + i);
			else
				call(&first, 50 * round + i);
		probed_image_free(&first);
	}
	printf("\n");
}

/* Touches of two images in turn have numbers of one sequence. */
static void mode_two_images(void)
{
	struct probed_image second;

	make(&first, "one.dll", 1);
	make(&second, "two.dll", 2);
	for (uint32_t i = 0; i < 200; i++)
		call(i % 3 ? &first : &second, i);
}

/* Two images of one name, as two versions of a DLL are. */
static void mode_namesakes(void)
{
	struct probed_image second;

	make(&first, "same.dll", 1);
	make(&second, "same.dll", 2);
	call(&first, 1);
	call(&second, 2);
}

/* Names that would leave the folder, or spoil a terminal, if they were believed. */
static void mode_names(void)
{
	static const char *const names[] = {
		"..\\..\\up.dll", "C:\\x:stream", "\x1b[2Jred\xc2\x9b.dll",
		"bad \xff\xfe utf", "", "na\xc3\xafve \xe2\x82\xac.dll",
		"a-name-that-is-as-long-as-a-name-can-be-which-is-63-bytes-xx.dll",
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make(&first, names[i], (uint8_t)i);
		call(&first, i);
	}
}

/* The agent stays when the last image that imports it goes. */
static void mode_unload(void)
{
	make(&first, "unload.dll", 1);
	call(&first, 0);
	FreeLibrary(agent);
	printf("%s\n", GetModuleHandleA(PROBE_AGENT_DLL) == agent ? "stayed" : "gone");
	fflush(stdout);
	call(&first, 1);
}

static void mode_wait(void)
{
	make(&first, "wait.dll", 1);
	printf("touched");
	for (uint32_t i = 0; i < 1000; i++)
		touch(&first, i);
	printf("\nwaiting\n");
	fflush(stdout);
	Sleep(INFINITE);
}

/* Hooks on the first and the middle of the calls that make a trace file. */
static NTSTATUS(NTAPI *real_query)(HANDLE, PROCESSINFOCLASS, void *, ULONG, ULONG *);
static BOOL(WINAPI *real_write)(HANDLE, const void *, DWORD, DWORD *, OVERLAPPED *);
static HANDLE in_query, go_on;

static NTSTATUS NTAPI query_waits(HANDLE process, PROCESSINFOCLASS class, void *to,
				  ULONG size, ULONG *ret_size)
{
	SetEvent(in_query);
	WaitForSingleObject(go_on, INFINITE);
	return real_query(process, class, to, size, ret_size);
}

static NTSTATUS NTAPI query_touches(HANDLE process, PROCESSINFOCLASS class, void *to,
				    ULONG size, ULONG *ret_size)
{
	call(&first, 1);
	return real_query(process, class, to, size, ret_size);
}

static BOOL WINAPI write_fails(HANDLE file, const void *data, DWORD size, DWORD *ret_done,
			       OVERLAPPED *overlapped)
{
	(void)file, (void)data, (void)size, (void)ret_done, (void)overlapped;
	SetLastError(ERROR_DISK_FULL);
	return FALSE;
}

static DWORD WINAPI touch_one(void *index)
{
	call(&first, (uint32_t)(uintptr_t)index);
	return 0;
}

static HANDLE start_touch(uint32_t i)
{
	DWORD id;

	return CreateThread(NULL, 0, touch_one, (void *)(uintptr_t)i, 0, &id);
}

static void hook_query_waits(void)
{
	in_query = CreateEventA(NULL, TRUE, FALSE, NULL);
	go_on = CreateEventA(NULL, TRUE, FALSE, NULL);
	real_query = agent_hook(agent, "NtQueryInformationProcess", (void *)query_waits);
}

/* One thread makes the file; another, which holds the loader lock, waits for it. */
static void mode_loader_lock(void)
{
	NTSTATUS(NTAPI *lock)(ULONG, ULONG *, ULONG_PTR *) =
		(void *)GetProcAddress(GetModuleHandleA("ntdll"), "LdrLockLoaderLock");
	NTSTATUS(NTAPI *unlock)(ULONG, ULONG_PTR) =
		(void *)GetProcAddress(GetModuleHandleA("ntdll"), "LdrUnlockLoaderLock");
	HANDLE maker;
	ULONG state;
	ULONG_PTR cookie;

	make(&first, "loader_lock.dll", 1);
	hook_query_waits();
	maker = start_touch(3);
	WaitForSingleObject(in_query, INFINITE);
	lock(0, &state, &cookie);
	SetEvent(go_on);
	call(&first, 4);
	unlock(0, cookie);
	WaitForSingleObject(maker, INFINITE);
}

/* The thread that makes the file is ended in the middle of it. */
static void mode_maker_dies(void)
{
	HANDLE maker;

	make(&first, "maker_dies.dll", 1);
	hook_query_waits();
	maker = start_touch(3);
	WaitForSingleObject(in_query, INFINITE);
	TerminateThread(maker, 0);
	SetEvent(go_on);
	call(&first, 4);
	call(&first, 3);
}

/* Threads that come while the file is made are recorded after. */
static void mode_latecomers(void)
{
	HANDLE threads[THREADS];

	make(&first, "latecomers.dll", 1);
	hook_query_waits();
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = start_touch(i);
	WaitForSingleObject(in_query, INFINITE);
	Sleep(100);
	SetEvent(go_on);
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

/* A system function that the agent calls is the program's own, and probed. */
static void mode_reentered(void)
{
	make(&first, "reentered.dll", 1);
	real_query = agent_hook(agent, "NtQueryInformationProcess", (void *)query_touches);
	call(&first, 0);
	call(&first, 1);
	call(&first, 2);
}

static void mode_disk_full(void)
{
	make(&first, "disk_full.dll", 1);
	real_write = agent_hook(agent, "WriteFile", (void *)write_fails);
	for (uint32_t i = 0; i < PROBES; i++)
		call(&first, i);
	agent_hook(agent, "WriteFile", (void *)real_write);
	make(&first, "later.dll", 2);
	call(&first, 0);
}

/* A fault inside the agent can be walked out of, to the frame that called it. */
static uint32_t *late_functions;
static const uint32_t *true_functions;
static uint64_t walked_to, walked_rsp, walked_rbx;

static LONG CALLBACK mend_fault(EXCEPTION_POINTERS *e)
{
	CONTEXT c = *e->ContextRecord;

	if (e->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
		return EXCEPTION_CONTINUE_SEARCH;
	for (unsigned depth = 0; depth < 10; depth++) {
		DWORD64 base, frame;
		void *data;
		RUNTIME_FUNCTION *f = RtlLookupFunctionEntry(c.Rip, &base, NULL);

		if (!f || (HMODULE)base != agent)
			break;
		RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, c.Rip, f, &c, &data, &frame,
				 NULL);
	}
	walked_to = c.Rip;
	walked_rsp = c.Rsp;
	walked_rbx = c.Rbx;
	VirtualAlloc(late_functions, 4 * PROBES, MEM_COMMIT, PAGE_READWRITE);
	memcpy(late_functions, true_functions, 4 * PROBES);
	return EXCEPTION_CONTINUE_EXECUTION;
}

static void mode_walk(void)
{
	uint64_t rsp, rbx = 0x123456789;
	uint32_t got;

	make(&first, "walk.dll", 1);
	true_functions = first.functions;
	late_functions = VirtualAlloc(NULL, 4 * PROBES, MEM_RESERVE, PAGE_READWRITE);
	first.image->functions = (uint64_t)late_functions;
	AddVectoredExceptionHandler(1, mend_fault);
	__asm__ volatile("sub $32, %%rsp; mov %%rsp, %1; call *%3; add $32, %%rsp"
			 : "=a"(got), "=&r"(rsp), "+b"(rbx)
			 : "r"(probed_thunk(&first, 5))
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");
	/* Below rsp: the function's return address, i, common's, the caller's rax. */
	printf("walk: function %u, common + %llu, rsp %lld, rbx %s\n", got,
	       walked_to - (uint64_t)first.common, (long long)(walked_rsp - rsp),
	       walked_rbx == 0x123456789 ? "kept" : "lost");
}

static void mode_quick(void)
{
	struct probed_image second;

	make(&first, "quick.dll", 1);
	make(&second, "quicker.dll", 2);
	for (uint32_t i = 0; i < 10; i++) {
		call(&first, i);
		call(&second, i);
	}
}

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"disk-full", mode_disk_full},
	{"latecomers", mode_latecomers},
	{"loader-lock", mode_loader_lock},
	{"maker-dies", mode_maker_dies},
	{"names", mode_names},
	{"namesakes", mode_namesakes},
	{"order", mode_order},
	{"quick", mode_quick},
	{"reentered", mode_reentered},
	{"registers", mode_registers},
	{"reload", mode_reload},
	{"threads", mode_threads},
	{"two-images", mode_two_images},
	{"unload", mode_unload},
	{"wait", mode_wait},
	{"walk", mode_walk},
};

static char debug_lines[4096];

static LONG CALLBACK hear_debug_output(EXCEPTION_POINTERS *e)
{
	const EXCEPTION_RECORD *r = e->ExceptionRecord;

	if (r->ExceptionCode == (DWORD)0x40010006 /* DBG_PRINTEXCEPTION_C */ &&
	    strlen(debug_lines) + r->ExceptionInformation[0] + 8 < sizeof(debug_lines)) {
		strcat(debug_lines, "debug: ");
		strcat(debug_lines, (const char *)r->ExceptionInformation[1]);
	}
	return EXCEPTION_CONTINUE_SEARCH;
}

int main(int argc, char **argv)
{
	agent = LoadLibraryA(PROBE_AGENT_DLL);
	agent_entry = agent ? (void *)GetProcAddress(agent, PROBE_ENTRY) : NULL;
	if (!agent_entry) {
		puts("no agent");
		return 1;
	}
	AddVectoredExceptionHandler(0, hear_debug_output);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc != 2 || strcmp(argv[1], modes[i].name) != 0)
			continue;
		modes[i].run();
		printf("%sdone\n", debug_lines);
		return 0;
	}
	puts("no such mode");
	return 1;
}
