/* void cpu_state_run(in, out, function, components); see cpu_state.h */
	.intel_syntax noprefix

	.set	FLAGS, 16*8
	.set	STACK, 17*8
	.set	AREA, 32*8

	.lcomm	in, 8
	.lcomm	out, 8
	.lcomm	function, 8
	.lcomm	components, 8
	.lcomm	scratch, 8
	.lcomm	own_state, 544

	.text
	.globl	cpu_state_run
	.globl	cpu_state_spoil
cpu_state_run:
	.irp	reg, rbx, rbp, rsi, rdi, r12, r13, r14, r15
	push	\reg
	.endr
	sub	rsp, 9*8		/* eight words of stack; aligned for a call */
	mov	[rip + in], rcx
	mov	[rip + out], rdx
	mov	[rip + function], r8
	mov	[rip + components], r9
	lea	rax, [rip + own_state + 16]
	and	rax, -16
	fxsave64 [rax]
	mov	[rcx + 4*8], rsp
	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	mov	rax, [rcx + STACK + 8*\i]
	mov	[rsp + 8*\i], rax
	.endr
	mov	rax, r9
	xor	edx, edx
	xrstor64 [rcx + AREA]
	mov	r15, rcx
	push	qword ptr [r15 + FLAGS]
	popfq
	mov	rax, [r15]
	mov	rcx, [r15 + 1*8]
	mov	rdx, [r15 + 2*8]
	mov	rbx, [r15 + 3*8]
	mov	rbp, [r15 + 5*8]
	mov	rsi, [r15 + 6*8]
	mov	rdi, [r15 + 7*8]
	mov	r8, [r15 + 8*8]
	mov	r9, [r15 + 9*8]
	mov	r10, [r15 + 10*8]
	mov	r11, [r15 + 11*8]
	mov	r12, [r15 + 12*8]
	mov	r13, [r15 + 13*8]
	mov	r14, [r15 + 14*8]
	mov	r15, [r15 + 15*8]
	call	[rip + function]
	mov	[rip + scratch], r15
	mov	r15, [rip + out]
	mov	[r15], rax
	mov	[r15 + 1*8], rcx
	mov	[r15 + 2*8], rdx
	mov	[r15 + 3*8], rbx
	mov	[r15 + 4*8], rsp
	mov	[r15 + 5*8], rbp
	mov	[r15 + 6*8], rsi
	mov	[r15 + 7*8], rdi
	mov	[r15 + 8*8], r8
	mov	[r15 + 9*8], r9
	mov	[r15 + 10*8], r10
	mov	[r15 + 11*8], r11
	mov	[r15 + 12*8], r12
	mov	[r15 + 13*8], r13
	mov	[r15 + 14*8], r14
	pushfq
	pop	qword ptr [r15 + FLAGS]
	cld
	mov	rax, [rip + scratch]
	mov	[r15 + 15*8], rax
	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	mov	rax, [rsp + 8*\i]
	mov	[r15 + STACK + 8*\i], rax
	.endr
	mov	rax, [rip + components]
	xor	edx, edx
	xsave64	[r15 + AREA]
	lea	rax, [rip + own_state + 16]
	and	rax, -16
	fxrstor64 [rax]
	add	rsp, 9*8
	.irp	reg, r15, r14, r13, r12, rdi, rsi, rbp, rbx
	pop	\reg
	.endr
	ret

cpu_state_spoil:
	.irp	reg, rax, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	not	\reg
	.endr
	mov	qword ptr [rsp + 8], 1
	fninit
	.rept	8
	fldz
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	pxor	xmm\n, xmm\n
	.endr
	test	byte ptr [rip + components], 4
	jz	1f
	vzeroall
1:
	test	byte ptr [rip + components], 0x80
	jz	2f
	kxorw	k1, k1, k1
	vpxorq	zmm16, zmm16, zmm16
2:
	push	0x1f80
	ldmxcsr	[rsp]
	mov	qword ptr [rsp], 0x202
	popfq
	ret
