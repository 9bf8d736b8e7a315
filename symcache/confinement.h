/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all helper processes give up, whatever else each is kept from: descriptors, user,
 * capabilities, the right to gain any, core files, and their place when memory runs out.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* Limits on address space do not fit programs with shadow memory. */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINEMENT_IS_INSTRUMENTED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define CONFINEMENT_IS_INSTRUMENTED true
#endif
#endif
#ifndef CONFINEMENT_IS_INSTRUMENTED
#define CONFINEMENT_IS_INSTRUMENTED false
#endif

/* nobody: who helpers run as when perfpipe was started as root. */
enum { CONFINEMENT_USER = 65534 };

/* All descriptors but keep go; 0 to 2 lead to /dev/null. */
void confinement_close_descriptors(int keep);
/* For good, and for all children. */
struct error *confinement_drop_rights(void) MUST_USE;
/*
 * Signals of a process that forks workers and ends with its socket: those of the terminal are for
 * the agent and ignored here. SIGCHLD is blocked but with the mask given for ppoll, so that
 * children are noticed while waiting and at no other time.
 */
void confinement_set_signals(sigset_t *waiting_out);
/* RLIMIT_…, lowered only. */
struct error *confinement_set_limit(int which, uint64_t value) MUST_USE;
