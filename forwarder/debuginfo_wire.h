/* SPDX-License-Identifier: Apache-2.0 */
/* The uploader's transport for real: a gRPC channel, and PUTs beside it with the same trust. */
#pragma once

#include <uv.h>

#include "forwarder/debuginfo_upload.h"
#include "forwarder/exporter_config.h"
#include "forwarder/grpc_channel.h"

/* All borrowed while the transport is in use. */
struct debuginfo_wire {
	uv_loop_t *loop;
	struct grpc_channel *channel;
	const struct remote_config *remote; /* whose TLS settings and proxy the PUTs use */
};

/* wire is the transport's context: borrowed likewise. */
struct debuginfo_transport debuginfo_wire_transport(struct debuginfo_wire *wire);
