/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon: samples, and delivers a window after the other until somebody asks for the end.
 *
 *   collect (this thread)        convert                     forward
 *   rings ──► pipeline ─────────► sampler ──finished windows──► delivery ──► spools ──► servers
 *   signals, window clock ──cut──►
 *
 * Signals: the first INT or TERM ends the window, delivers what can be delivered within 20 s, and
 * is the end; a second one ends at once, and what is in the spools stays there. HUP reads
 * credentials and certificates again. USR2 tells the state to the log. See interruption.h.
 *
 * A target that is not there yet, or that ends, is waited for. Samples are conserved: at the end
 * the log says what was taken, delivered, waits or was dropped, and how much is not accounted for.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/collector.h"
#include "pipeline/delivery.h"
#include "pipeline/sampler.h"
#include "symcache/symcache.h"

struct agent_options {
	struct collector_live_options live;
	struct symcache_config symbols;
	struct sampler_options sampler;
	struct delivery_config delivery;
	uint64_t window_ns;
	const char *http_address; /* see status_server.h; NULL = no server */
};

/*
 * Returns at the end. Errors: what keeps it from beginning (not permitted to sample, an event that
 * does not exist, a spool that another process holds); later trouble is logged and waited out.
 */
struct error *agent_run(const struct agent_options *options) MUST_USE;
