/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information that compilers write seldom or never, for unwind_referee_test. */
	.text
	.globl	plain
plain:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	.cfi_remember_state
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
	.cfi_remember_state
	.cfi_remember_state
	nop
	.cfi_restore_state
	.cfi_restore_state
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc

	.globl	realigned
realigned:
	.cfi_startproc
	lea	8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	and	$-32, %rsp
	push	-8(%r10)
	push	%rbp
	.cfi_escape 0x10, 6, 2, 0x76, 0
	mov	%rsp, %rbp
	push	%r10
	.cfi_escape 0x0f, 3, 0x76, 0x78, 6
	nop
	pop	%r10
	.cfi_def_cfa %r10, 0
	pop	%rbp
	lea	-8(%r10), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc

	.globl	kept_in_rbx
kept_in_rbx:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	sub	$4096, %rsp
	nop
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc

	.globl	odd_places
odd_places:
	.cfi_startproc
	nop
	.cfi_undefined %rbp
	nop
	.cfi_same_value %rbp
	nop
	.cfi_register %rbp, %r9
	nop
	.cfi_escape 0x14, 6, 3
	nop
	.cfi_escape 0x16, 6, 2, 0x77, 16
	nop
	.cfi_register %rip, %rdi
	nop
	.cfi_offset %rip, -32
	nop
	.cfi_undefined %rip
	nop
	.cfi_escape 0x2e, 16
	nop
	.cfi_escape 0x2f, 6, 3
	nop
	.cfi_def_cfa_offset 0x7ffff8
	nop
	.cfi_def_cfa_offset 12
	.cfi_endproc

	.globl	signal_frame
signal_frame:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6
	.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
	.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
	nop
	nop
	.cfi_endproc

	.globl	outermost
outermost:
	.cfi_startproc
	.cfi_undefined %rip
	xor	%ebp, %ebp
	call	never_returns@PLT
	.cfi_endproc

	.globl	never_returns
never_returns:
	.cfi_startproc
	.cfi_personality 0x9b, personality_place
	.cfi_lsda 0x1b, language_data
	sub	$24, %rsp
	.cfi_def_cfa_offset 32
	ud2
	.skip	70000, 0x90
	.cfi_def_cfa_offset 40
	nop
	.cfi_endproc

	.globl	other_column
other_column:
	.cfi_startproc
	.cfi_return_column %rdi
	.cfi_register %rdi, %rsi
	nop
	.cfi_offset %rdi, -8
	nop
	.cfi_endproc

	.data
	.globl	personality_place
	.hidden	personality_place
personality_place:
	.quad	0
language_data:
	.quad	0
	.section .note.GNU-stack, "", @progbits
