/* The whole user-visible state of the processor, to be loaded, run with, and taken
 * again. */
#ifndef APPULSE_CPU_STATE_H
#define APPULSE_CPU_STATE_H

#include <stdint.h>

enum { CPU_AREA_BYTES = 4096, CPU_STACK_WORDS = 8 };

/* Offsets are known to cpu_state.S. */
struct cpu_state {
	uint64_t general[16];            /* by number: rax, rcx, rdx, rbx, rsp, ... r15 */
	uint64_t flags;
	uint64_t stack[CPU_STACK_WORDS]; /* what the stack holds at the call, without the
					  * return address */
	uint64_t padding[7];
	uint8_t area[CPU_AREA_BYTES];    /* of XSAVE, standard format */
};

/* Loads `in` (but for rsp, which it notes there), calls `function`, and takes the
 * state into `out`, whose area's header must be zero.  `components` for XSAVE. */
void cpu_state_run(struct cpu_state *in, struct cpu_state *out, void *function,
		   uint64_t components);

/* Changes all that cpu_state_run can see a change of, but rsp and rbp. */
void cpu_state_spoil(void);

#endif
