/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's forward thread: takes finished windows out of a bounded mailbox, gives their profiles
 * to the forwarder, whose loop it runs, and at the end delivers what can be delivered in time.
 *
 *   convert thread                              forward thread
 *   delivery_put ──windows──► mailbox ──wakes──► forwarder_put, _commit ──► spool ──► exporters
 *
 * When the forward thread falls behind (a disk that hangs, a spool that blocks), windows are
 * dropped and counted (STAT_WINDOWS_DROPPED, STAT_WINDOW_SAMPLES_DROPPED).
 *
 * Order of calls: delivery_open; delivery_put; delivery_finish; delivery_get_counts;
 * delivery_close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/forwarder.h"
#include "pipeline/agent_query.h"
#include "pipeline/delivery_counts.h"
#include "pipeline/finished_window.h"

struct delivery;

struct delivery_config {
	const struct exporter_config *exporters;
	size_t n_exporters;
	const char *spool_directory;
	struct spool_limits spool;
	const struct key_value *labels; /* of each series, beside its service_name */
	size_t n_labels;
	size_t max_windows; /* in the mailbox, 0 = 8 */
};

/* config and what it points to are borrowed until delivery_close. Starts the thread. */
struct error *delivery_open(const struct delivery_config *config, struct delivery **out) MUST_USE;
/* Takes window. Never waits. By one thread at a time. */
void delivery_put(struct delivery *delivery, struct finished_window *window);
/* Credentials and certificates are read again, by new connections. */
void delivery_refresh(struct delivery *delivery);
/* Takes query: the forward thread adds its part of the state and answers it. */
void delivery_query(struct delivery *delivery, struct agent_query *query);
/* What waits and goes on is told to the log. */
void delivery_log_state(struct delivery *delivery);
/*
 * No more windows: what came is put into the spools, and delivered as far as it goes until the
 * deadline (monotonic) and while servers answer. Returns when the thread has ended.
 */
void delivery_finish(struct delivery *delivery, uint64_t deadline_ns);
/* After delivery_finish. Freed by delivery_counts_fini. */
void delivery_get_counts(struct delivery *delivery, struct delivery_counts *out);
void delivery_close(struct delivery *delivery);
