/* Exceptions that the program raises itself, under Wine.
 *
 * A debugger passes an exception on, and the system then enters the program's
 * ntdll at KiUserExceptionDispatcher with the exception and the thread's context on
 * the stack.  For an exception of RaiseException, which C++ exceptions are, Wine 8
 * enters it with the right context but with wrong rbp, rsi and rdi; and its
 * dispatcher builds the frame through which handlers unwind from the registers.  So
 * any handler in a function with a frame pointer unwinds to nowhere, and the program
 * dies (observed: Wine 8.0, only under a debugger; without one these exceptions do
 * not pass the system at all).
 *
 * What the system should do is done here instead: the context and the exception are
 * written below the thread's stack pointer, in the layout that the dispatcher has
 * on Windows as well, and the thread continues there with all registers of its
 * context.  Patching the dispatcher was rejected: it would change the program's
 * code.  It is done only where the dispatcher is seen to store rbp.
 */
#include "software_exception.h"

#include <stddef.h>
#include <string.h>

/* What the dispatcher finds at its stack pointer. */
struct dispatcher_frame {
	CONTEXT context;
	BYTE context_ex[0x20];
	EXCEPTION_RECORD record;
	ULONG64 padding;
	ULONG64 rip, cs, eflags, rsp, ss; /* as after an interrupt */
};

_Static_assert(offsetof(struct dispatcher_frame, record) == 0x4f0, "ABI of ntdll");
_Static_assert(offsetof(struct dispatcher_frame, rip) == 0x590, "ABI of ntdll");

/* The room left alone below the stack pointer of the context: the function that
 * raises the exception for the program has its own copy of the context there, which
 * Wine writes to once more before the thread goes on. */
enum { ROOM_BYTES = 4096, CODE_SEGMENT_64 = 0x33, DISPATCHER_BYTES = 0x60 };

/* The dispatcher in the program, or 0 when it does its work right. */
static uint64_t faulty_dispatcher(const struct debuggee *debuggee)
{
	static const BYTE store_rbp[] = {0x48, 0x89, 0x69, 0xf0}; /* mov %rbp,-0x10(%rcx) */
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	const BYTE *code = (BYTE *)(void *)GetProcAddress(ntdll, "KiUserExceptionDispatcher");

	if (!GetProcAddress(ntdll, "wine_get_version") || !code || !debuggee->ntdll)
		return 0;
	for (size_t i = 0; i + sizeof(store_rbp) <= DISPATCHER_BYTES; i++)
		if (memcmp(code + i, store_rbp, sizeof(store_rbp)) == 0)
			return debuggee->ntdll + (uint64_t)(code - (BYTE *)ntdll);
	return 0;
}

/* Whether the processor raises exceptions of that code: those come another way. */
static bool is_of_the_processor(DWORD code)
{
	switch (code) {
	case EXCEPTION_ACCESS_VIOLATION:
	case EXCEPTION_ARRAY_BOUNDS_EXCEEDED:
	case EXCEPTION_BREAKPOINT:
	case EXCEPTION_DATATYPE_MISALIGNMENT:
	case EXCEPTION_FLT_DENORMAL_OPERAND:
	case EXCEPTION_FLT_DIVIDE_BY_ZERO:
	case EXCEPTION_FLT_INEXACT_RESULT:
	case EXCEPTION_FLT_INVALID_OPERATION:
	case EXCEPTION_FLT_OVERFLOW:
	case EXCEPTION_FLT_STACK_CHECK:
	case EXCEPTION_FLT_UNDERFLOW:
	case EXCEPTION_GUARD_PAGE:
	case EXCEPTION_ILLEGAL_INSTRUCTION:
	case EXCEPTION_IN_PAGE_ERROR:
	case EXCEPTION_INT_DIVIDE_BY_ZERO:
	case EXCEPTION_INT_OVERFLOW:
	case EXCEPTION_PRIV_INSTRUCTION:
	case EXCEPTION_SINGLE_STEP:
	case EXCEPTION_STACK_OVERFLOW:
		return true;
	default:
		return false;
	}
}

/* Whether the stack reaches down to `address` already. */
static bool is_stack(const struct debuggee *debuggee, uint64_t address)
{
	MEMORY_BASIC_INFORMATION region;

	return VirtualQueryEx(debuggee->process, (void *)(uintptr_t)address, &region,
			      sizeof(region)) &&
	       region.State == MEM_COMMIT && region.Protect == PAGE_READWRITE;
}

/* Writes the frame and lets the thread stand at `dispatcher`. */
static bool enter(const struct debuggee *debuggee, HANDLE thread, uint64_t dispatcher,
		  const EXCEPTION_RECORD *record)
{
	struct dispatcher_frame frame = {.record = *record};
	CONTEXT context = {.ContextFlags = CONTEXT_FULL | CONTEXT_SEGMENTS};
	uint64_t place;
	SIZE_T put;

	if (!GetThreadContext(thread, &context) || context.SegCs != CODE_SEGMENT_64)
		return false;
	frame.context = context;
	frame.rip = context.Rip;
	frame.cs = context.SegCs;
	frame.eflags = context.EFlags;
	frame.rsp = context.Rsp;
	frame.ss = context.SegSs;
	place = (context.Rsp - ROOM_BYTES - sizeof(frame)) & ~(uint64_t)15;
	if (!is_stack(debuggee, place) ||
	    !WriteProcessMemory(debuggee->process, (void *)(uintptr_t)place, &frame,
				sizeof(frame), &put) ||
	    put != sizeof(frame))
		return false;
	context.Rip = dispatcher;
	context.Rsp = place;
	return SetThreadContext(thread, &context);
}

bool software_exception_deliver(const struct debuggee *debuggee, DWORD thread,
				const EXCEPTION_DEBUG_INFO *info)
{
	uint64_t dispatcher = faulty_dispatcher(debuggee);
	HANDLE handle;
	bool ok;

	if (!dispatcher || !info->dwFirstChance ||
	    is_of_the_processor(info->ExceptionRecord.ExceptionCode))
		return false;
	handle = OpenThread(THREAD_GET_CONTEXT | THREAD_SET_CONTEXT, FALSE, thread);
	if (!handle)
		return false;
	ok = enter(debuggee, handle, dispatcher, &info->ExceptionRecord);
	CloseHandle(handle);
	return ok;
}
