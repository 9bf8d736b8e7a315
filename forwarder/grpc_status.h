/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC status: numbers, names, and what else a failed call says about when and whether to try
 * again. Sources: gRPC over HTTP/2 (PROTOCOL-HTTP2.md), statuscodes.md, google.rpc.Status and
 * google.rpc.RetryInfo.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
	GRPC_CODE_N,
};

/* "INVALID_ARGUMENT"; numbers outside the table give "UNKNOWN". */
const char *grpc_code_name(enum grpc_code code);

/* The value of grpc-status: decimal without a leading zero; false, and UNKNOWN, for all else. */
bool grpc_status_parse(const char *text, size_t n, enum grpc_code *out);
/* The code of an answer without grpc-status (doc/http-grpc-status-mapping.md). */
enum grpc_code grpc_status_of_http(int http_status);
/* The code of a stream that ended with RST_STREAM (PROTOCOL-HTTP2.md, "Errors"). */
enum grpc_code grpc_status_of_h2(uint32_t h2_error);
/* grpc-message: %XX and all else as it stands, never failing. out has room for n bytes. */
size_t grpc_status_percent_decode(const char *text, size_t n, char *out);
/*
 * The delay of a RetryInfo among the details of a google.rpc.Status; false when there is none that
 * can be read. A negative delay counts as 0.
 */
bool grpc_status_retry_info(const uint8_t *details, size_t n, uint64_t *delay_ns_out);
/* Retry-After: seconds, or the time of an HTTP date (RFC 9110 §10.2.3) after wall_ns. */
bool grpc_status_retry_after(const char *text, size_t n, uint64_t wall_ns, uint64_t *delay_ns_out);

/* Where a call that did not end with the server's own status went wrong. */
enum grpc_failure {
	GRPC_FAILURE_NONE,	  /* code and message are the server's */
	GRPC_FAILURE_RESOLVE,	  /* no address for the host name */
	GRPC_FAILURE_CONNECT,	  /* refused, unreachable, timed out */
	GRPC_FAILURE_PROXY,	  /* the HTTP CONNECT proxy said no */
	GRPC_FAILURE_TLS,	  /* handshake, certificate, host name, ALPN */
	GRPC_FAILURE_CREDENTIALS, /* token or certificate file cannot be used */
	GRPC_FAILURE_NOT_GRPC,	/* an answer that is not gRPC: status, content type and first bytes
				   are  in the message */
	GRPC_FAILURE_PROTOCOL,	/* broken HTTP/2 or gRPC framing, a limit against hostile peers */
	GRPC_FAILURE_LOST,	/* the connection ended under the call */
	GRPC_FAILURE_DEADLINE,	/* ours */
	GRPC_FAILURE_CANCELLED, /* by the caller */
};

/* How a call ended. Texts and bytes are borrowed for the callback. */
struct grpc_result {
	enum grpc_code code;
	enum grpc_failure failure;
	/* Printable UTF-8, capped; never NULL. */
	const char *message;
	/* Entry in the table of explained errors that fits (301 TLS, 302 auth, …), 0 = none. */
	int error_number;
	/* No byte of the request can have been acted upon: trying again duplicates nothing. */
	bool is_unprocessed;
	int http_status;	 /* 0 when there was no answer */
	uint64_t retry_delay_ns; /* RetryInfo, Retry-After or grpc-retry-pushback-ms; 0 = none */
	bool has_retry_info;	 /* of these three, one was there (its delay may be 0) */
	bool must_not_retry;	 /* push-back was negative or not a number */
	const uint8_t *details;	 /* grpc-status-details-bin, decoded; NULL = none */
	size_t n_details;
	const uint8_t *response; /* the one message of a unary answer when code is GRPC_OK */
	size_t n_response;
};
