// SPDX-License-Identifier: Apache-2.0
// Call frame information of arm64, for unwind_referee_test.
	.text
	.globl	signed_pair
signed_pair:
	.cfi_startproc
	paciasp
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset w29, -48
	.cfi_offset w30, -40
	mov	x29, sp
	.cfi_def_cfa_register w29
	.cfi_remember_state
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa wsp, 0
	.cfi_restore w29
	.cfi_restore w30
	autiasp
	.cfi_negate_ra_state
	ret
	.cfi_restore_state
	bl	leaf
	.cfi_endproc

	.globl	leaf
leaf:
	.cfi_startproc
	sub	sp, sp, #16
	.cfi_def_cfa_offset 16
	add	sp, sp, #16
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc

	.globl	link_alone
link_alone:
	.cfi_startproc
	str	x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset w30, -16
	sub	sp, sp, #8192
	.cfi_def_cfa_offset 8208
	stp	x29, x30, [sp]
	.cfi_offset w29, -8208
	.cfi_offset w30, -8200
	nop
	.cfi_undefined w30
	nop
	.cfi_endproc

	.globl	kept_in_x19
kept_in_x19:
	.cfi_startproc
	stp	x19, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset w19, -16
	.cfi_offset w30, -8
	mov	x19, sp
	.cfi_def_cfa_register w19
	nop
	.cfi_register w30, w9
	nop
	.cfi_endproc
