/* appulse_probe2: the entry that the stubs of an instrumented image call.
 *
 * Problem: the caller is compiled code in the middle of a call, and inside one
 * image a compiler may rely on a callee's leaving even volatile registers alone
 * (GCC's -fipa-ra).  So everything is given back: general registers, flags, x87
 * and MMX, and all vector state including masks and the upper halves, which the
 * C code below and the system calls it makes would change.
 *
 * Way taken: the volatile general registers and the flags go on the stack, the
 * rest into an XSAVE area, in the standard format since its offsets do not depend
 * on what is in use (Intel SDM volume 1, chapter 13).  Callee-saved registers are
 * kept by the C code.  The area is aligned by hand, so a frame pointer carries the
 * unwind data: any fault or stack walk from within finds its way out.  The epilogue
 * is one that the unwinder knows (Microsoft Learn, "x64 prolog and epilog"): lea
 * and pop change no flags, so they are restored before it.
 *
 * Cost: some 2,700 bytes of stack with AVX-512, and below 1,000 without; one XSAVE
 * and one XRSTOR, for each function once.
 *
 * On entry (trace/probe.h): rax -> struct probe_image, [rsp + 16] tells the probe.
 */
	.intel_syntax noprefix

	/* From rbp, once the prologue is done. */
	.set	FLAGS, 0
	.set	IMAGE, 8
	.set	SAVED, 16		/* r11, r10, r9, r8, rdx, rcx, rbp */
	.set	RETURN, SAVED + 7*8 + 16	/* into the stub */

	.set	XSAVE_HEADER, 512	/* of 64 bytes, behind the legacy area */

	.text
	.globl	appulse_probe2
	.def	appulse_probe2; .scl 2; .type 32; .endef
	.p2align 4
	.seh_proc appulse_probe2
appulse_probe2:
	push	rbp
	.seh_pushreg rbp
	push	rcx
	.seh_pushreg rcx
	push	rdx
	.seh_pushreg rdx
	push	r8
	.seh_pushreg r8
	push	r9
	.seh_pushreg r9
	push	r10
	.seh_pushreg r10
	push	r11
	.seh_pushreg r11
	push	rax
	.seh_stackalloc 8
	pushfq
	.seh_stackalloc 8
	mov	rbp, rsp
	.seh_setframe rbp, 0
	.seh_endprologue
	cld

	mov	rax, [rip + vector_area]
	test	rax, rax
	jnz	1f
	/* Uses general registers only. */
	and	rsp, -16
	sub	rsp, 32
	call	vector_area_find
1:
	mov	rcx, rax
	shr	rcx, 32			/* bytes of the area */
	sub	rsp, rcx
	and	rsp, -64
	test	eax, eax		/* components */
	jz	2f
	/* XRSTOR faults unless the header's other bytes are 0. */
	xor	edx, edx
	.irp	offset, 0, 8, 16, 24, 32, 40, 48, 56
	mov	[rsp + XSAVE_HEADER + \offset], rdx
	.endr
	xsave64	[rsp]
	jmp	3f
2:
	fxsave64 [rsp]
3:
	mov	rcx, [rbp + IMAGE]
	mov	rdx, [rbp + RETURN]
	sub	rsp, 32
	call	probe_touch
	add	rsp, 32

	mov	rax, [rip + vector_area]
	xor	edx, edx
	test	eax, eax
	jz	4f
	xrstor64 [rsp]
	jmp	5f
4:
	fxrstor64 [rsp]
5:
	mov	rax, [rbp + IMAGE]
	push	qword ptr [rbp + FLAGS]
	popfq
	lea	rsp, [rbp + SAVED]
	pop	r11
	pop	r10
	pop	r9
	pop	r8
	pop	rdx
	pop	rcx
	pop	rbp
	ret
	.seh_endproc

	.section .drectve
	.ascii	" -export:\"appulse_probe2\""
