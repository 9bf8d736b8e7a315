/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of forwarder: take a profile, report its fate.
 *
 * Order of calls: forwarder_new with the exporters; forwarder_put for each profile of a window and
 * forwarder_commit at its end (durable for every exporter once it returns without an error);
 * deliveries happen while the loop runs; forwarder_flush to hear when nothing waits any more;
 * forwarder_close. Everything belongs to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"
#include "forwarder/connection_check.h"
#include "forwarder/debuginfo_wire.h"
#include "forwarder/endpoint.h"
#include "forwarder/exporter.h"
#include "forwarder/exporter_config.h"
#include "forwarder/spool.h"
#include "forwarder/spool_list.h"

struct forwarder;

struct forwarder_config {
	const struct exporter_config *exporters;
	size_t n_exporters;
	const char *spool_directory;
	struct spool_limits spool; /* max_age comes from each exporter */
	const struct clock *clock; /* NULL = the system's */
	/* All texts and arrays above are borrowed until forwarder_close. */
	/* May be NULL. Must not call the forwarder. */
	exporter_event_fn on_event;
	void *context;
};

struct error *forwarder_new(uv_loop_t *loop, const struct forwarder_config *config,
			    struct forwarder **out) MUST_USE;
/*
 * Adds a profile to the window that is open, for every exporter. An exporter that fails does not
 * keep it from the others: it is counted there and told by forwarder_commit.
 */
void forwarder_put(struct forwarder *forwarder, const struct outgoing_profile *outgoing);
/* Ends the window. ERROR_AGAIN: a spool is full and blocks; the first error of several otherwise.
 */
struct error *forwarder_commit(struct forwarder *forwarder) MUST_USE;

/* Calls done once, when nothing waits or runs, or at the deadline; told whether all went out. */
void forwarder_flush(struct forwarder *forwarder, uint64_t timeout_ns,
		     void (*done)(void *context, bool is_empty), void *context);

/* Credentials and certificates are read again: new requests go over new connections. */
void forwarder_refresh(struct forwarder *forwarder);

/* For metrics and `status`. */
size_t forwarder_n_exporters(const struct forwarder *forwarder);
void forwarder_get_counts(const struct forwarder *forwarder, size_t exporter,
			  struct exporter_counts *out);

/* What waits stays in the spool. The memory goes once the loop has run the closing callbacks. */
void forwarder_close(struct forwarder *forwarder);
