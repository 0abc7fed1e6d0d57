/* The contract between an instrumented image and the agent DLL.
 *
 * This header is compiled for the host and for Windows and includes nothing but
 * stdint.h.  All fields are little-endian.
 *
 * In the image.  Every probed function i has one unit of 16 bytes:
 *
 *     unit i + 0:   jmp   [slots + 8 * i]     ff 25 disp32    the thunk
 *     unit i + 6:   call  common              e8 rel32        the stub
 *     unit i + 11:  jmp   unit i              eb f3
 *
 * Every reference to the function's start leads to its thunk, which is aligned as
 * Control Flow Guard likes its targets (Microsoft Learn, "PE Metadata": precise for
 * multiples of 16 only).  Slot i holds at first the address of the stub, and after
 * the first touch the address of the function.  Once in the image:
 *
 *     common:       push  rax                 50
 *                   lea   rax, [probe_image]  48 8d 05 disp32
 *                   call  [appulse_probe2]    ff 15 disp32    through the import table
 *                   pop   rax                 58
 *                   ret                       c3
 *
 * So the stub goes on to its own thunk, and the slot leads to the function.  Every
 * call has its return, so a shadow stack (Intel SDM volume 1, chapter 17, "Control-flow
 * Enforcement Technology") never differs from the stack.
 *
 * In the agent.  appulse_probe2 is entered with
 *
 *     rax         -> struct probe_image
 *     [rsp]       return address into common
 *     [rsp + 8]   the caller's rax
 *     [rsp + 16]  return address into the stub, unit i + 11: this says i
 *     [rsp + 24]  what the stack held when the function was called
 *
 * and returns with every register, the flags and the whole vector state as it
 * found them (callers inside one image need not follow the calling convention:
 * GCC's -fipa-ra keeps values in volatile registers), after it has recorded the
 * touch and made slot i lead to the function.  It may run in any thread, under
 * the loader lock, in many threads at once for the same probe, and before any
 * DllMain.  It takes some 3 KB of stack, and for an image's first touch what the
 * system needs to make a file.
 *
 * A stack walk may meet a unit at any place: nothing of it lies on the stack when
 * one of its instructions is next, so it needs no unwind data, as a leaf does.
 *
 * An agent that meets an image with another magic or version can't lead its slots
 * anywhere and ends the program.  So whoever changes this contract also changes
 * PROBE_ENTRY: then the loader says what does not fit, before anything runs.
 */
#ifndef APPULSE_TRACE_PROBE_H
#define APPULSE_TRACE_PROBE_H

#include <stdint.h>

#define PROBE_MAGIC 0x31455355504c5041ull /* "APLPUSE1" as bytes 41 50 4c 50 55 53 45 31 */

enum {
	PROBE_VERSION = 2,
	PROBE_UNIT_BYTES = 16, /* a unit's stride and alignment */
	PROBE_STUB_OFFSET = 6,  /* of the stub in its unit */
	PROBE_RETURN_OFFSET = 11, /* of where the agent returns to */
	PROBE_NAME_BYTES = 64,
	PROBE_HASH_BYTES = 32,
};

/* The name under which the agent exports its entry. */
#define PROBE_ENTRY "appulse_probe2"

/* The agent's file name unless --agent-name says otherwise. */
#define PROBE_AGENT_DLL "appulse-agent.dll"

/* The environment variable that may name the agent's file for the tools. */
#define PROBE_AGENT_VARIABLE "APPULSE_AGENT"

/* The environment variable that names the folder for trace files. */
#define PROBE_TRACE_FOLDER "APPULSE_TRACE_DIR"

/* The section that an instrumented image is known by; it holds struct
 * probe_image at its start, then the slots. */
#define PROBE_DATA_SECTION ".apdata"
#define PROBE_CODE_SECTION ".apcode"
#define PROBE_META_SECTION ".apmeta"

/* One for each instrumented image, in its writable data. */
struct probe_image {
	uint64_t magic;     /* PROBE_MAGIC */
	uint32_t version;   /* PROBE_VERSION */
	uint32_t count;     /* probes, from 1; up to TRACE_MAX_PROBES are traced */
	uint64_t base;      /* VA of the image's base, relocated */
	uint64_t slots;     /* VA of uint64_t[count], relocated; aligned to 8 */
	uint64_t functions; /* VA of uint32_t[count], relocated: each function's RVA, the
			     * same in the original and in the instrumented image */
	uint8_t hash[PROBE_HASH_BYTES]; /* SHA-256 of the original file */
	char name[PROBE_NAME_BYTES];    /* the original's file name, UTF-8, NUL-terminated,
					 * cut between characters when too long */
	uint64_t state;     /* the agent's own; 0 when the image is loaded */
	uint64_t units;     /* VA of the units, relocated */
};

#endif
