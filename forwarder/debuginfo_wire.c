/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/debuginfo_wire.h"

#include "forwarder/http_put.h"

static struct grpc_call *start_call(void *context, const struct grpc_request *request)
{
	const struct debuginfo_wire *wire = context;
	return grpc_channel_call(wire->channel, request);
}

static struct error *start_put(void *context, const struct debuginfo_put *put, void **handle_out)
{
	const struct debuginfo_wire *wire = context;
	const struct http_put_request request = {.url = put->url,
						 .n_bytes = put->n_bytes,
						 .read = put->read,
						 .done = put->done,
						 .context = put->context,
						 .tls = &wire->remote->tls,
						 .proxy = wire->remote->proxy};
	struct http_put *handle;
	struct error *err = http_put_start(wire->loop, &request, &handle);
	if (!err)
		*handle_out = handle;
	return err;
}

static void cancel_put(void *handle)
{
	http_put_cancel(handle);
}

struct debuginfo_transport debuginfo_wire_transport(struct debuginfo_wire *wire)
{
	return (struct debuginfo_transport){.call = start_call,
					    .cancel = grpc_call_cancel,
					    .put = start_put,
					    .cancel_put = cancel_put,
					    .context = wire};
}
