/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/connection_check.h"

#include <uv.h>

#include "base/mem.h"
#include "forwarder/grpc_channel.h"

enum { CREDENTIALS_NUMBER = 302, UNREACHED_NUMBER = 305 };

struct check {
	struct grpc_channel *channel;
	struct error *err;
	enum connection_health health;
};

/* An empty HealthCheckRequest asks for the server as a whole. */
static bool next_message(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	(void)context;
	*bytes_out = (const uint8_t *)"";
	*n_out = 0;
	return index == 0;
}

/* HealthCheckResponse {status = 1: 1 SERVING}. */
static enum connection_health read_health(const struct grpc_result *result)
{
	bool is_serving = result->n_response == 2 && result->response[0] == 1 << 3 &&
			  result->response[1] == 1;
	return is_serving ? CONNECTION_SERVING : CONNECTION_NOT_SERVING;
}

static void done(void *context, const struct grpc_result *result)
{
	struct check *check = context;
	bool is_refused =
		result->code == GRPC_UNAUTHENTICATED || result->code == GRPC_PERMISSION_DENIED;
	int number = result->error_number ? result->error_number
		     : is_refused	  ? CREDENTIALS_NUMBER
					  : UNREACHED_NUMBER;
	/* What the server itself says of a method shows that it is there. */
	bool is_answer = result->failure == GRPC_FAILURE_NONE &&
			 (result->code == GRPC_UNIMPLEMENTED || result->code == GRPC_NOT_FOUND);
	if (result->code == GRPC_OK)
		check->health = read_health(result);
	else if (is_answer)
		check->health = CONNECTION_HEALTH_UNKNOWN;
	else
		check->err =
			error_number(error_new(ERROR_UNAVAILABLE, "%s",
					       result->message[0] ? result->message
								  : grpc_code_name(result->code)),
				     number);
	grpc_channel_close(check->channel);
}

struct error *connection_check(const struct remote_config *config, uint64_t timeout_ns,
			       enum connection_health *out)
{
	uv_loop_t loop;
	int status = uv_loop_init(&loop);
	if (status)
		return error_errno(-status, "no event loop");
	struct check check = {0};
	struct error *err = grpc_channel_new(&loop, NULL, config, &check.channel);
	if (!err) {
		const struct grpc_request request = {
			.path = "/grpc.health.v1.Health/Check",
			.next_message = next_message,
			.done = done,
			.context = &check,
			.timeout_ns = timeout_ns,
		};
		grpc_channel_call(check.channel, &request);
		uv_run(&loop, UV_RUN_DEFAULT);
		err = check.err;
	}
	uv_loop_close(&loop);
	if (err)
		return error_get_number(err) ? err : error_number(err, UNREACHED_NUMBER);
	*out = check.health;
	return NULL;
}
