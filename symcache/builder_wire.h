/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the agent, the builder process and its workers. Both ends are one program, so
 * they are structs as they lie in memory; but what comes out of a worker is hostile all the same:
 * texts are closed on receipt and descriptors from there are never taken.
 *
 *   agent ── builder_order_message + descriptors ──> builder process
 *   agent <─────── builder_end_message ───────────── builder process, once a worker is gone
 *   agent <─────── builder_worker_message ────────── worker (its own socket)
 *   agent ────── builder_answer_message + fd ──────> worker, to each wish
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"

enum { BUILDER_WIRE_TEXT_BYTES = 4096, BUILDER_WIRE_MAX_FDS = 4 };

struct builder_order_message {
	uint32_t number;
	uint32_t deadline_s;
	struct build_id id;
	bool is_stop;	/* kill the worker of that number; no descriptors */
	bool has_debug; /* descriptors: socket, binary, output, debug */
	bool no_dwarf;
};

struct builder_end_message {
	uint32_t number;
	int32_t status; /* as of wait(2) */
};

enum builder_message_kind { BUILDER_MESSAGE_WISH = 1, BUILDER_MESSAGE_DONE };

struct builder_worker_message {
	uint32_t kind;
	uint32_t code; /* DONE: 0, or enum error_code; WISH: enum builder_wish_kind */
	struct build_id id;
	char folder[BUILDER_WIRE_TEXT_BYTES];
	char name[BUILDER_WIRE_TEXT_BYTES]; /* DONE: the error's text */
};

struct builder_answer_message {
	bool is_found; /* with a descriptor */
};

/*
 * False when the other end is gone; errno tells. Blocks. The agent, which nobody may hold up, says
 * may_wait false: then it is EAGAIN when the other end does not read.
 */
bool builder_wire_send(int socket, const void *message, size_t n, const int *fds, size_t n_fds,
		       bool may_wait);
/*
 * True when a message of exactly n bytes came. n_fds_out NULL: descriptors are not taken. Otherwise
 * what came is put into fds and is the caller's, also when false is returned.
 */
bool builder_wire_receive(int socket, void *message, size_t n, int *fds, size_t *n_fds_out);
