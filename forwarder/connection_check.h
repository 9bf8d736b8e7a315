/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a server can be reached as an exporter would: name, connection, TLS, credentials, and one
 * call of grpc.health.v1.Health/Check, which stores nothing.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/exporter_config.h"

enum connection_health {
	CONNECTION_SERVING,
	CONNECTION_NOT_SERVING,
	CONNECTION_HEALTH_UNKNOWN, /* it answers, but has no health service */
};

/*
 * Runs a loop of its own until there is an answer, at most timeout_ns. Errors carry a number: 301
 * TLS, 302 credentials, 304 not gRPC, 305 everything else. config is borrowed.
 */
struct error *connection_check(const struct remote_config *config, uint64_t timeout_ns,
			       enum connection_health *out) MUST_USE;
