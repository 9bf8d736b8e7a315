/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's local HTTP server, on a thread of its own, which asks the others for what it shows
 * (agent_query.h) and takes no action:
 *
 *   /metrics                            Prometheus
 *   /-/healthy, /-/ready                the threads answer; samples are taken
 *   /status, /status?format=text        JSON, or text for people
 *   /debug/pprof/profile?seconds=N      what the host does in the next N seconds, as Go's
 *   /debug/pprof/ cmdline, symbol       net/http/pprof has it
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/wake_box.h"

#define STATUS_SERVER_DEFAULT_ADDRESS "127.0.0.1:9917"

struct status_server;

/* Whether it is "HOST:PORT" in numbers, an IPv6 address in brackets. */
bool status_server_is_address(const char *text);
/*
 * queries is where the collect thread is asked; it outlives the server. Number 405 when it cannot
 * listen there.
 */
struct error *status_server_open(const char *address, struct wake_box *queries,
				 struct status_server **out) MUST_USE;
/* Nobody answers any more. Requests that still wait get an error. */
void status_server_close(struct status_server *server);
