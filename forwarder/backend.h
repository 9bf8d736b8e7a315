/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one kind of server wants: how a profile becomes requests, how a request that was too large
 * becomes two, and what an answer means. Pure: bytes in, bytes out; sending is upload's, waiting
 * is the spool's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/exporter_config.h"
#include "forwarder/grpc_status.h"
#include "proto/profile.h"

/* One profile of one series, as it leaves the converter. Borrowed. */
struct outgoing_profile {
	const struct profile *profile;
	const char *name;		/* "process_cpu": __name__ where a backend has it */
	const struct key_value *labels; /* of the series: service_name, node, … */
	size_t n_labels;
};

/* What a request carries, kept beside its bytes in the spool. */
struct request_summary {
	uint64_t n_samples; /* sum of the first column (samples/count), else of rows */
	uint32_t n_profiles;
	uint64_t first_time_ns, last_time_ns; /* wall clock, of the profiles within */
};

/* Borrows the message. An error ends the encoding and is returned. */
typedef struct error *(*backend_emit_fn)(void *context, const uint8_t *message, size_t n,
					 const struct request_summary *summary);

typedef struct error *(*backend_profile_fn)(void *context, const char *series, const uint8_t *pprof,
					    size_t n_pprof);

/* What to do after an answer. */
enum backend_verdict {
	BACKEND_DELIVERED,
	BACKEND_RETRY,	    /* wait and try again */
	BACKEND_RETRY_AUTH, /* refused for who we are: try again, slowly, with credentials re-read
			     */
	BACKEND_SPLIT,	    /* too large: send halves; when it cannot be split, reject */
	/* One of its series is bad and nothing was stored: when summary.n_profiles is above 1, send
	 * what split gives (which divides between series while there are several), else reject. */
	BACKEND_SPLIT_SERIES,
	BACKEND_REJECT, /* final: to rejected/, with the server's reason */
};

/* Why, for the counters (exporter_send_failed_profiles_total{reason=…}). */
enum backend_reason {
	BACKEND_REASON_NONE,
	BACKEND_REASON_TIMEOUT,
	BACKEND_REASON_UNAVAILABLE,
	BACKEND_REASON_TLS,
	BACKEND_REASON_AUTH,
	BACKEND_REASON_REJECTED,
	BACKEND_REASON_TOO_OLD,
	BACKEND_REASON_TOO_LARGE,
	BACKEND_REASON_RATE_LIMITED,
	BACKEND_REASON_N,
};
const char *backend_reason_name(enum backend_reason reason);

struct backend_answer {
	enum backend_verdict verdict;
	enum backend_reason reason;
	uint64_t n_refused; /* profiles that a partial success says it refused */
	/* For people, e.g. of a partial success; "" = none. */
	char text[256];
};

struct backend {
	const char *kind;    /* "parca" */
	const char *path;    /* gRPC method */
	const char *content; /* what a request is, for `spool cat`: "parca WriteRawRequest" */
	uint16_t default_port;
	uint64_t default_max_message_bytes;
	uint32_t default_max_samples; /* 0 = no limit */
	uint64_t default_max_age_ns;  /* by the times of the profiles within; 0 = any age */
	/* What is large in a message is gzip already when exporter_config's remote.gzip is set: the
	 * channel need not compress it again. */
	bool is_compressed;
	/* Splits by label set and size as the server wants it, makes names and labels valid. A
	 * profile without samples gives no request. */
	struct error *(*encode)(const struct exporter_config *config,
				const struct outgoing_profile *outgoing, backend_emit_fn emit,
				void *context);
	/* Two or more requests out of one. ERROR_LIMIT: it holds one sample, or cannot be split. */
	struct error *(*split)(const struct exporter_config *config, const uint8_t *message,
			       size_t n, backend_emit_fn emit, void *context);
	/* The profiles in a request as pprof, gzip or not, for `spool cat`; series is
	 * 'process_cpu{node="a",…}'. */
	struct error *(*profiles)(const uint8_t *message, size_t n, backend_profile_fn emit,
				  void *context);
	void (*judge)(const struct grpc_result *result, struct backend_answer *out);
};

/* NULL for EXPORTER_FILE, which sends nothing. */
const struct backend *backend_of_kind(enum exporter_kind kind);
