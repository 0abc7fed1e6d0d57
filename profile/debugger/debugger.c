/* appulse-debugger: runs a program and logs which code of an image it touches.
 *
 *     appulse-debugger pages --image NAME... --log FILE -- PROGRAM ARGUMENT...
 *     appulse-debugger breakpoints {--image NAME --starts FILE}... --log FILE -- ...
 *     appulse-debugger working-set --image NAME... --log FILE -- PROGRAM ARGUMENT...
 *
 * A Windows program, because only a Windows debugger hears of an image before
 * its first instruction runs and may guard or patch it, and because Wine gives
 * the same interface.  It does as little as it can, so that the program runs as
 * without it: what is not a guard or a breakpoint of ours is passed on, the
 * standard handles are handed through, the exit code is the program's.  (That it
 * is debugged cannot be hidden: Wine reports exceptions only of processes that
 * say so in their PEB.)  All that
 * needs a database or knows files is done by appulse-profile, which reads the
 * log.
 *
 * Child processes are debugged as well, and waited for.  Not followed are the
 * processes by which Wine implements Windows: a program's first window starts
 * one of them, and it stays for as long as any program runs, us included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "command_tail.h"
#include "debuggee.h"
#include "event_log.h"
#include "page_guards.h"
#include "software_exception.h"
#include "start_breakpoints.h"
#include "working_set.h"

/* mingw-w64's start-up code would expand * and ? in our arguments. */
int _dowildcard = 0;

enum { WANTED_MAX = 256, PATH_CHARS = 32768, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* 100 ns from 1601, where FILETIME begins, to 1970. */
#define EPOCH_1970 116444736000000000ull

enum mode { MODE_PAGES, MODE_BREAKPOINTS, MODE_WORKING_SET, MODE_COUNT };

static const wchar_t *const mode_words[] = {L"pages", L"breakpoints", L"working-set"};

struct debugger {
	enum mode mode;
	struct wanted wanted[WANTED_MAX];
	struct start_list starts[WANTED_MAX];
	uint32_t wanted_count;
	const wchar_t *log_path;
	struct event_log log;
	struct debuggee *debuggees;
	uint32_t module_count; /* ids given out */
	DWORD root;            /* process id of the program */
	DWORD exit_code;       /* the program's */
	wchar_t path[PATH_CHARS];
};

static int complain(const char *what, const wchar_t *subject)
{
	fprintf(stderr, "appulse-debugger: %s '%ls'\n", what, subject);
	return EXIT_FAILED;
}

/* ---- options ---- */

/* The function starts of the image that was named last. */
static bool parse_starts(struct debugger *d, const wchar_t *file)
{
	uint32_t last = d->wanted_count - 1;
	wchar_t *path;

	if (d->mode != MODE_BREAKPOINTS || d->wanted_count == 0 || d->wanted[last].starts)
		return false;
	path = path_to_windows(file);
	if (!path || !start_list_load(&d->starts[last], path)) {
		complain("cannot read", file);
		exit(EXIT_FAILED);
	}
	free(path);
	d->wanted[last].starts = &d->starts[last];
	return true;
}

/* False when the options are wrong. */
static bool parse_options(struct debugger *d, int argc, wchar_t **argv)
{
	int i = 2;

	while (argc > 1 && d->mode < MODE_COUNT && wcscmp(argv[1], mode_words[d->mode]) != 0)
		d->mode++;
	if (argc < 2 || d->mode == MODE_COUNT)
		return false;
	for (; i + 1 < argc && wcscmp(argv[i], L"--") != 0; i += 2) {
		if (!wcscmp(argv[i], L"--image") && d->wanted_count < WANTED_MAX)
			d->wanted[d->wanted_count++].name = argv[i + 1];
		else if (!wcscmp(argv[i], L"--log"))
			d->log_path = argv[i + 1];
		else if (wcscmp(argv[i], L"--starts") || !parse_starts(d, argv[i + 1]))
			return false;
	}
	for (uint32_t k = 0; d->mode == MODE_BREAKPOINTS && k < d->wanted_count; k++)
		if (!d->wanted[k].starts)
			return false;
	return i + 1 < argc && d->wanted_count && d->log_path;
}

/* ---- the program ---- */

/* Ctrl-C is for the program, which is in the same console. */
static BOOL WINAPI leave_to_program(DWORD event)
{
	return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

/* The program inherits our start-up information, whose reserved part carries
 * open files of the C runtime. */
static bool start_program(struct debugger *d, const struct command_tail *tail)
{
	STARTUPINFOW startup;
	PROCESS_INFORMATION info;

	GetStartupInfoW(&startup);
	startup.dwFlags |= STARTF_USESTDHANDLES;
	startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
	startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
	startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
	if (!CreateProcessW(tail->program, tail->line, NULL, NULL, TRUE, DEBUG_PROCESS, NULL,
			    NULL, &startup, &info))
		return false;
	d->root = info.dwProcessId;
	CloseHandle(info.hThread);
	CloseHandle(info.hProcess);
	SetConsoleCtrlHandler(leave_to_program, TRUE);
	return true;
}

/* ---- events ---- */

/* The Windows path of a file that an event handed over, into d->path; false
 * when the system does not tell. */
static bool path_of_file(struct debugger *d, HANDLE file)
{
	DWORD n = file ? GetFinalPathNameByHandleW(file, d->path, PATH_CHARS, 0) : 0;

	if (n == 0 || n >= PATH_CHARS)
		return false;
	if (wcsncmp(d->path, L"\\\\?\\", 4) == 0 && d->path[5] == L':')
		wmemmove(d->path, d->path + 4, n - 4 + 1);
	return true;
}

static const wchar_t *base_name(const wchar_t *path)
{
	const wchar_t *base = path;

	for (; *path; path++)
		if (*path == L'\\' || *path == L'/')
			base = path + 1;
	return base;
}

/* Whether the process is one of Wine's own.  The name that it was started by tells,
 * which is in the Windows folder; its file may be elsewhere. */
static bool is_wine_service(struct debugger *d, HANDLE process)
{
	static const wchar_t *const names[] = {
		L"explorer.exe", L"services.exe", L"winedevice.exe", L"plugplay.exe",
		L"svchost.exe", L"rpcss.exe", L"conhost.exe", L"spoolsv.exe", L"tabtip.exe",
		L"winedbg.exe",
	};
	wchar_t windows[MAX_PATH];
	UINT n = GetWindowsDirectoryW(windows, MAX_PATH);
	DWORD size = PATH_CHARS;

	if (!QueryFullProcessImageNameW(process, 0, d->path, &size) || n == 0 || n >= MAX_PATH || _wcsnicmp(d->path, windows, n) != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (_wcsicmp(base_name(d->path), names[i]) == 0)
			return true;
	return false;
}

/* An image was mapped at `base`; d->path is its file. */
static void image_loaded(struct debugger *d, struct debuggee *debuggee, uint64_t base)
{
	struct module *module;
	wchar_t *path;
	uint32_t i = 0;

	while (i < d->wanted_count && _wcsicmp(base_name(d->path), d->wanted[i].name) != 0)
		i++;
	if (i == d->wanted_count)
		return;
	module = module_add(debuggee, &d->wanted[i], base);
	if (!module)
		return;
	module->id = ++d->module_count;
	path = path_to_host(d->path);
	event_log_line(&d->log, path ? path : d->path, "image\t%u\t%lu\t%llx\t%x\t%x\t%x\t%llu",
		       module->id, debuggee->pid, (unsigned long long)base, module->size,
		       module->time_stamp, module->checksum,
		       (unsigned long long)event_log_now());
	free(path);
	if (d->mode == MODE_BREAKPOINTS)
		start_breakpoints_set(debuggee, module, &d->log);
	else if (d->mode == MODE_PAGES)
		page_guards_set(debuggee, module, &d->log);
	else
		working_set_part_pages(debuggee, module);
}

/* Nanoseconds since 1970 at which the process started. */
static unsigned long long process_started(HANDLE process)
{
	FILETIME created, unused;
	unsigned long long t;

	if (!GetProcessTimes(process, &created, &unused, &unused, &unused))
		return 0;
	t = (unsigned long long)created.dwHighDateTime << 32 | created.dwLowDateTime;
	return t < EPOCH_1970 ? 0 : (t - EPOCH_1970) * 100;
}

static void process_created(struct debugger *d, DWORD pid,
			    const CREATE_PROCESS_DEBUG_INFO *info)
{
	bool service = is_wine_service(d, info->hProcess);
	struct debuggee *debuggee;
	DWORD size = PATH_CHARS;
	wchar_t *path;

	if (!path_of_file(d, info->hFile) &&
	    !QueryFullProcessImageNameW(info->hProcess, 0, d->path, &size))
		d->path[0] = 0;
	if (info->hFile)
		CloseHandle(info->hFile);
	if (service) {
		DebugActiveProcessStop(pid);
		return;
	}
	path = path_to_host(d->path);
	event_log_line(&d->log, path ? path : d->path, "process\t%lu\t%llu\t%llu", pid,
		       process_started(info->hProcess), (unsigned long long)event_log_now());
	free(path);
	debuggee = debuggee_add(&d->debuggees, pid, info->hProcess);
	if (!debuggee) {
		d->log.failed = true;
		return;
	}
	image_loaded(d, debuggee, (uint64_t)(uintptr_t)info->lpBaseOfImage);
}

static void dll_loaded(struct debugger *d, struct debuggee *debuggee,
		       const LOAD_DLL_DEBUG_INFO *info)
{
	bool known = path_of_file(d, info->hFile);

	if (info->hFile)
		CloseHandle(info->hFile);
	if (!known || !debuggee)
		return;
	if (debuggee->ntdll == 0 && _wcsicmp(base_name(d->path), L"ntdll.dll") == 0) {
		debuggee->ntdll = (uint64_t)(uintptr_t)info->lpBaseOfDll;
		if (d->mode == MODE_WORKING_SET)
			working_set_watch(debuggee);
	}
	image_loaded(d, debuggee, (uint64_t)(uintptr_t)info->lpBaseOfDll);
}

static void dll_unloaded(struct debugger *d, struct debuggee *debuggee,
			 const UNLOAD_DLL_DEBUG_INFO *info)
{
	uint64_t base = (uint64_t)(uintptr_t)info->lpBaseOfDll;
	struct module *module = debuggee ? module_at(debuggee, base) : NULL;

	if (!module || module->base != base)
		return;
	event_log_line(&d->log, NULL, "unload\t%u\t%llu", module->id,
		       (unsigned long long)event_log_now());
	module_remove(debuggee, base);
}

static void process_ended(struct debugger *d, DWORD pid, DWORD code)
{
	event_log_line(&d->log, NULL, "exit\t%lu\t%lx\t%llu", pid, code,
		       (unsigned long long)event_log_now());
	if (pid == d->root)
		d->exit_code = code;
	debuggee_remove(&d->debuggees, pid);
}

/* Whether it is the breakpoint by which the system tells a debugger that a
 * process is ready. */
static bool initial_breakpoint(struct debuggee *debuggee, const EXCEPTION_RECORD *exception)
{
	bool first = exception->ExceptionCode == (DWORD)STATUS_BREAKPOINT &&
		     !debuggee->greeted;

	debuggee->greeted |= first;
	return first;
}

static DWORD exception_raised(struct debugger *d, struct debuggee *debuggee, DWORD thread,
			      const EXCEPTION_DEBUG_INFO *info)
{
	const EXCEPTION_RECORD *exception = &info->ExceptionRecord;
	static bool (*const takes[])(struct debuggee *, DWORD, const EXCEPTION_RECORD *,
				     struct event_log *) = {
		[MODE_PAGES] = page_guards_take,
		[MODE_BREAKPOINTS] = start_breakpoints_take,
		[MODE_WORKING_SET] = working_set_take,
	};

	if (!debuggee)
		return DBG_EXCEPTION_NOT_HANDLED;
	if (takes[d->mode](debuggee, thread, exception, &d->log) ||
	    initial_breakpoint(debuggee, exception) ||
	    software_exception_deliver(debuggee, thread, info))
		return DBG_CONTINUE;
	return DBG_EXCEPTION_NOT_HANDLED;
}

/* What to continue the thread with. */
static DWORD handle_event(struct debugger *d, const DEBUG_EVENT *event)
{
	struct debuggee *debuggee = debuggee_find(d->debuggees, event->dwProcessId);

	switch (event->dwDebugEventCode) {
	case CREATE_PROCESS_DEBUG_EVENT:
		process_created(d, event->dwProcessId, &event->u.CreateProcessInfo);
		return DBG_CONTINUE;
	case LOAD_DLL_DEBUG_EVENT:
		dll_loaded(d, debuggee, &event->u.LoadDll);
		return DBG_CONTINUE;
	case UNLOAD_DLL_DEBUG_EVENT:
		dll_unloaded(d, debuggee, &event->u.UnloadDll);
		return DBG_CONTINUE;
	case EXIT_THREAD_DEBUG_EVENT:
		if (debuggee)
			working_set_thread_ended(debuggee, event->dwThreadId);
		return DBG_CONTINUE;
	case EXIT_PROCESS_DEBUG_EVENT:
		if (debuggee)
			process_ended(d, event->dwProcessId, event->u.ExitProcess.dwExitCode);
		return DBG_CONTINUE;
	case EXCEPTION_DEBUG_EVENT:
		return exception_raised(d, debuggee, event->dwThreadId, &event->u.Exception);
	case OUTPUT_DEBUG_STRING_EVENT:
		/* The program's own handlers see it, as without a debugger. */
		return DBG_EXCEPTION_NOT_HANDLED;
	default:
		return DBG_CONTINUE;
	}
}

/* Until the last process has ended. */
static bool debug(struct debugger *d)
{
	DEBUG_EVENT event;

	do {
		DWORD how;

		if (!WaitForDebugEvent(&event, INFINITE))
			return false;
		how = handle_event(d, &event);
		ContinueDebugEvent(event.dwProcessId, event.dwThreadId, how);
	} while (d->debuggees);
	return true;
}

/* The program's exit code, or ours when it could not be run. */
static int run(struct debugger *d, const wchar_t *log_path, const struct command_tail *tail)
{
	if (!event_log_open(&d->log, log_path, mode_words[d->mode]))
		return complain("cannot write", log_path);
	if (!start_program(d, tail)) {
		event_log_line(&d->log, NULL, "failed\t%lu", GetLastError());
		return complain("cannot start", tail->line);
	}
	if (!debug(d))
		return complain("cannot debug", tail->line);
	event_log_line(&d->log, NULL, "end\t%lx", d->exit_code);
	if (d->log.failed)
		return complain("lost events of", tail->line);
	return (int)d->exit_code;
}

int wmain(int argc, wchar_t **argv); /* mingw-w64 declares it nowhere */

int wmain(int argc, wchar_t **argv)
{
	struct debugger *d = calloc(1, sizeof(*d));
	struct command_tail tail = {0};
	wchar_t *log_path = NULL;
	int code = EXIT_FAILED;

	if (!d)
		return EXIT_FAILED;
	d->log.file = INVALID_HANDLE_VALUE;
	if (!parse_options(d, argc, argv) || !command_tail_init(&tail, GetCommandLineW())) {
		fprintf(stderr, "usage: appulse-debugger pages|breakpoints|working-set "
				"--image NAME [--starts FILE] ... --log FILE -- PROGRAM [ARGUMENT ...]\n");
		code = EXIT_USAGE;
	} else if ((log_path = path_to_windows(d->log_path))) {
		code = run(d, log_path, &tail);
	}
	event_log_close(&d->log);
	command_tail_release(&tail);
	free(log_path);
	for (uint32_t i = 0; i < d->wanted_count; i++)
		start_list_release(&d->starts[i]);
	free(d);
	return code;
}
