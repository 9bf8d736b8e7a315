/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means. Sources: PROTOCOL-HTTP2.md, http-grpc-status-mapping.md, gRFC A6. */
#include "forwarder/grpc_response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "forwarder/base64.h"
#include "forwarder/text_escape.h"

/* In the table of explained errors. */
enum {
	REFUSED_IDENTITY_NUMBER = 302,
	NOT_GRPC_NUMBER = 304,
};

void grpc_response_init(struct grpc_response *response, size_t max_bytes)
{
	*response = (struct grpc_response){.code = GRPC_UNKNOWN};
	grpc_frame_reader_init(&response->reader, max_bytes);
	buf_init(&response->body, max_bytes);
}

void grpc_response_fini(struct grpc_response *response)
{
	grpc_frame_reader_fini(&response->reader);
	buf_fini(&response->body);
	mem_free(response->details);
	response->details = NULL;
}

void grpc_response_reset(struct grpc_response *response)
{
	size_t max_bytes = response->reader.max_bytes;
	grpc_response_fini(response);
	grpc_response_init(response, max_bytes);
}

static bool is_name(const char *name, size_t n, const char *wanted)
{
	return n == strlen(wanted) && memcmp(name, wanted, n) == 0;
}

static bool is_grpc_type(const char *value, size_t n)
{
	static const char type[] = "application/grpc";
	size_t n_type = sizeof(type) - 1;
	return n >= n_type && strncasecmp(value, type, n_type) == 0 &&
	       (n == n_type || value[n_type] == '+' || value[n_type] == ';');
}

static void read_http_status(struct grpc_response *response, const char *value, size_t n)
{
	int status = 0;
	for (size_t i = 0; i < n && i < 4; i++)
		status = status * 10 + (value[i] - '0');
	response->block_status = status;
}

static void read_message(struct grpc_response *response, const char *value, size_t n)
{
	char *decoded = mem_alloc(n + 1);
	size_t n_decoded = grpc_status_percent_decode(value, n, decoded);
	text_escape(decoded, n_decoded, response->message, sizeof(response->message));
	mem_free(decoded);
}

/* Several values are joined by commas; the first that can be read counts. */
static void read_details(struct grpc_response *response, const char *value, size_t n)
{
	const char *comma = memchr(value, ',', n);
	if (comma)
		n = (size_t)(comma - value);
	if (response->details || n > GRPC_RESPONSE_DETAILS_BYTES)
		return;
	uint8_t *details = mem_alloc(n / 4 * 3 + 3);
	size_t n_details;
	if (!base64_decode(value, n, details, &n_details)) {
		mem_free(details);
		return;
	}
	response->details = details;
	response->n_details = n_details;
	if (!response->has_push_back &&
	    grpc_status_retry_info(details, n_details, &response->retry_delay_ns))
		response->has_retry_info = true;
}

/* Milliseconds; all else forbids another try (gRFC A6). It outdoes the other hints. */
static void read_push_back(struct grpc_response *response, const char *value, size_t n)
{
	uint64_t ms = 0;
	bool is_number = n > 0 && n < 10;
	for (size_t i = 0; i < n && is_number; i++) {
		is_number = value[i] >= '0' && value[i] <= '9';
		ms = ms * 10 + (uint64_t)(value[i] - '0');
	}
	response->has_push_back = true;
	response->must_not_retry = !is_number;
	response->has_retry_info = is_number;
	response->retry_delay_ns = is_number ? ms * 1000000 : 0;
}

void grpc_response_header(struct grpc_response *response, const char *name, size_t n_name,
			  const char *value, size_t n_value, const struct clock *clock)
{
	if (response->is_ended)
		return;
	if (is_name(name, n_name, ":status")) {
		read_http_status(response, value, n_value);
		response->is_interim =
			response->block_status >= 100 && response->block_status < 200;
		return;
	}
	if (response->is_interim && !response->has_headers)
		return;
	if (is_name(name, n_name, "content-type") && !response->has_headers) {
		text_escape(value, n_value, response->content_type, sizeof(response->content_type));
		response->is_grpc = is_grpc_type(value, n_value);
	} else if (is_name(name, n_name, "grpc-status")) {
		response->has_grpc_status = true;
		if (!grpc_status_parse(value, n_value, &response->code) && !response->message[0]) {
			char shown[32];
			text_escape(value, n_value, shown, sizeof(shown));
			snprintf(response->message, sizeof(response->message),
				 "unknown grpc-status \"%s\"", shown);
		}
	} else if (is_name(name, n_name, "grpc-message")) {
		read_message(response, value, n_value);
	} else if (is_name(name, n_name, "grpc-status-details-bin")) {
		read_details(response, value, n_value);
	} else if (is_name(name, n_name, "grpc-retry-pushback-ms")) {
		read_push_back(response, value, n_value);
	} else if (is_name(name, n_name, "retry-after")) {
		if (!response->has_retry_info && !response->has_push_back)
			response->has_retry_info = grpc_status_retry_after(
				value, n_value, clock->wall_ns(clock->context),
				&response->retry_delay_ns);
	} else if (is_name(name, n_name, "grpc-encoding")) {
		response->reader.is_gzip = is_name(value, n_value, "gzip");
		response->is_encoding_unknown =
			!response->reader.is_gzip && !is_name(value, n_value, "identity");
		text_escape(value, n_value, response->encoding, sizeof(response->encoding));
	}
}

void grpc_response_headers_end(struct grpc_response *response)
{
	if (!response->has_headers && response->is_interim) {
		response->is_interim = false;
		return;
	}
	if (response->has_headers) {
		response->has_trailers = true;
		return;
	}
	response->has_headers = true;
	response->http_status = response->block_status;
}

static void fail(struct grpc_response *response, enum grpc_code code, const char *text)
{
	grpc_response_end_failure(response, code, GRPC_FAILURE_PROTOCOL, false, text);
}

static bool fail_with(struct grpc_response *response, struct error *err)
{
	char text[256];
	if (response->is_encoding_unknown && error_get_code(err) == ERROR_UNSUPPORTED)
		snprintf(text, sizeof(text), "the answer is compressed with \"%s\", not gzip",
			 response->encoding);
	else
		snprintf(text, sizeof(text), "the answer's %s", error_text(err));
	fail(response, error_get_code(err) == ERROR_LIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
	     text);
	error_free(err);
	return false;
}

static bool data_not_grpc(struct grpc_response *response, const uint8_t *bytes, size_t n)
{
	size_t room = sizeof(response->first) - response->n_first;
	size_t take = n < room ? n : room;
	memcpy(response->first + response->n_first, bytes, take);
	response->n_first += take;
	if (response->n_first < sizeof(response->first))
		return true;
	grpc_response_end(response);
	return false;
}

bool grpc_response_data(struct grpc_response *response, const uint8_t *bytes, size_t n)
{
	if (response->is_ended)
		return false;
	if (!response->is_grpc || response->http_status != 200)
		return n == 0 || data_not_grpc(response, bytes, n);
	while (n > 0) {
		const uint8_t *message;
		size_t n_message;
		size_t used;
		struct error *err =
			grpc_frame_read(&response->reader, bytes, n, &used, &message, &n_message);
		bytes += used;
		n -= used;
		if (!err && message) {
			if (response->n_messages++ > 0) {
				fail(response, GRPC_INTERNAL,
				     "the server sent more than one message for an answer");
				return false;
			}
			err = buf_append(&response->body, message, n_message);
		}
		if (err)
			return fail_with(response, err);
	}
	return true;
}

/* An end without grpc-status. */
static void end_not_grpc(struct grpc_response *response)
{
	enum grpc_code code = grpc_status_of_http(response->http_status);
	char text[GRPC_RESPONSE_MESSAGE_BYTES];
	if (response->is_grpc && response->http_status == 200) {
		fail(response, GRPC_UNKNOWN, "the answer ended without grpc-status");
		return;
	}
	char first[GRPC_RESPONSE_FIRST_BYTES + 8];
	text_escape(response->first, response->n_first, first, sizeof(first));
	snprintf(text, sizeof(text),
		 "the answer is not gRPC: HTTP status %d, content-type %s%s%s%s",
		 response->http_status, response->content_type[0] ? response->content_type : "none",
		 first[0] ? ", it begins \"" : "", first, first[0] ? "\"" : "");
	grpc_response_end_failure(response, code, GRPC_FAILURE_NOT_GRPC, false, text);
	response->error_number = NOT_GRPC_NUMBER;
	if (code == GRPC_UNAUTHENTICATED || code == GRPC_PERMISSION_DENIED)
		response->error_number = REFUSED_IDENTITY_NUMBER;
}

void grpc_response_end(struct grpc_response *response)
{
	if (response->is_ended)
		return;
	if (!response->has_grpc_status) {
		end_not_grpc(response);
		return;
	}
	if (response->code == GRPC_OK) {
		if (grpc_frame_is_partial(&response->reader)) {
			fail(response, GRPC_INTERNAL,
			     "the answer ended in the middle of a message");
			return;
		}
		if (response->n_messages == 0) {
			fail(response, GRPC_INTERNAL,
			     "the server answered OK without the one message of an answer");
			return;
		}
	}
	response->is_ended = true;
	if (response->code == GRPC_UNAUTHENTICATED || response->code == GRPC_PERMISSION_DENIED)
		response->error_number = REFUSED_IDENTITY_NUMBER;
}

void grpc_response_end_reset(struct grpc_response *response, uint32_t h2_error, const char *name)
{
	if (response->is_ended)
		return;
	/* Trailers came before: the server only stops reading what it does not need. */
	if (response->has_grpc_status && (response->has_trailers || !response->n_messages)) {
		grpc_response_end(response);
		return;
	}
	char text[128];
	snprintf(text, sizeof(text), "the server reset the stream with %s", name);
	bool is_refused = h2_error == 0x7;
	grpc_response_end_failure(response, grpc_status_of_h2(h2_error),
				  is_refused ? GRPC_FAILURE_LOST : GRPC_FAILURE_PROTOCOL,
				  is_refused, text);
}

void grpc_response_end_failure(struct grpc_response *response, enum grpc_code code,
			       enum grpc_failure failure, bool is_unprocessed, const char *text)
{
	if (response->is_ended)
		return;
	response->is_ended = true;
	response->code = code;
	response->failure = failure;
	response->is_unprocessed = is_unprocessed;
	text_escape(text, strlen(text), response->message, sizeof(response->message));
}

void grpc_response_result(const struct grpc_response *response, struct grpc_result *out)
{
	static const uint8_t nothing[1];
	bool is_ok = response->code == GRPC_OK;
	*out = (struct grpc_result){
		.code = response->code,
		.failure = response->failure,
		.message = response->message,
		.error_number = response->error_number,
		.is_unprocessed = response->is_unprocessed,
		.http_status = response->http_status,
		.retry_delay_ns = response->retry_delay_ns,
		.has_retry_info = response->has_retry_info,
		.must_not_retry = response->must_not_retry,
		.details = response->details,
		.n_details = response->n_details,
		.response = !is_ok		  ? NULL
			    : response->body.data ? response->body.data
						  : nothing,
		.n_response = is_ok ? response->body.size : 0,
	};
}
