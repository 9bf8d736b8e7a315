/* SPDX-License-Identifier: Apache-2.0 */
/* Request headers of a call. */
#include "forwarder/request_headers.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

void request_headers_put_timeout(uint64_t timeout_ns, char out[REQUEST_TIMEOUT_BYTES])
{
	static const struct {
		uint64_t ns;
		char unit;
	} units[] = {{1, 'n'},		{1000, 'u'},	    {1000000, 'm'},
		     {1000000000, 'S'}, {60000000000, 'M'}, {3600000000000, 'H'}};
	if (timeout_ns == 0)
		timeout_ns = 1;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		uint64_t value = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
		if (value <= 99999999) {
			snprintf(out, REQUEST_TIMEOUT_BYTES, "%u%c", (unsigned)value,
				 units[i].unit);
			return;
		}
	}
}

static void add(struct request_header *list, size_t *n, const char *name, const char *value)
{
	list[(*n)++] = (struct request_header){
		.name = name, .value = value, .n_name = strlen(name), .n_value = strlen(value)};
}

size_t request_headers_list(const struct request_headers_options *options,
			    struct request_headers *texts, struct request_header *list)
{
	size_t n = 0;
	request_headers_put_timeout(options->timeout_ns, texts->timeout);
	add(list, &n, ":method", "POST");
	add(list, &n, ":scheme", options->is_plaintext ? "http" : "https");
	add(list, &n, ":path", options->path);
	add(list, &n, ":authority", options->authority);
	add(list, &n, "grpc-timeout", texts->timeout);
	list[n - 1].is_unindexed = true;
	add(list, &n, "te", "trailers");
	add(list, &n, "content-type", "application/grpc");
	if (options->is_gzip)
		add(list, &n, "grpc-encoding", "gzip");
	add(list, &n, "grpc-accept-encoding", "gzip");
	add(list, &n, "user-agent", options->user_agent);
	if (options->n_previous_attempts) {
		snprintf(texts->attempts, sizeof(texts->attempts), "%u",
			 options->n_previous_attempts);
		add(list, &n, "grpc-previous-rpc-attempts", texts->attempts);
	}
	const struct credentials *credentials = options->credentials;
	for (size_t i = 0; i < credentials->n; i++)
		list[n++] = credentials->headers[i];
	return n;
}
