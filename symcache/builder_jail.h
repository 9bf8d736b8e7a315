/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the builder process and its workers may not do. Both: no capabilities, none to gain
 * (no_new_privs), another user when started as root, no core files, first to go when memory runs
 * out, and only the system calls of a list. A worker has less of everything: it may read, write and
 * map what it was given, take memory up to a limit, and talk over its socket. It cannot open, start
 * or signal anything; doing so ends it (SIGSYS).
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct builder_limits {
	uint64_t memory_bytes; /* of writable memory; 0 = none */
	uint32_t cpu_s;
	uint32_t wall_s;
	uint64_t file_bytes; /* written */
};

/* Half of this machine's memory, within bounds. */
uint64_t builder_jail_memory_bytes(void);
/* The process of the builder. */
struct error *builder_jail_enter(void) MUST_USE;
/* A worker, forked from there; the limits of time begin now. */
struct error *builder_jail_enter_worker(const struct builder_limits *limits) MUST_USE;
