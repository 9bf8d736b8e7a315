/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that a loop of live sampling waits for: its own ones first, at places that it
 * numbers from 0, and behind them those of the rings, which come and go with CPUs and tasks.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/collector.h"

struct live_poll {
	struct pollfd *fds;
	size_t n_fds;
	size_t n_own;
};

void live_poll_init(struct live_poll *set, size_t n_own);
void live_poll_fini(struct live_poll *set);
/* Waits for fd at that place from the next wait on; -1 = for none. */
void live_poll_set(struct live_poll *set, size_t place, int fd);
/* Waits for source's descriptors from the next wait on; NULL = there is none. */
void live_poll_set_source(struct live_poll *set, struct record_source *source);
/* Waits; false when the time is up or a signal came. */
bool live_poll_wait(struct live_poll *set, uint64_t timeout_ns);
/* After a wait that was true. */
bool live_poll_is_ready(const struct live_poll *set, size_t place);
