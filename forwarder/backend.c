/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer means. A status of the server itself is judged by the backend's table; what went
 * wrong on the way to it says nothing about the request, so that is tried again.
 */
#include "forwarder/backend.h"

#include <stdio.h>
#include <string.h>

#include "forwarder/backend_judge.h"
#include "forwarder/otlp.h"
#include "forwarder/parca.h"
#include "forwarder/pyroscope.h"

const char *backend_reason_name(enum backend_reason reason)
{
	static const char *const names[BACKEND_REASON_N] = {
		[BACKEND_REASON_NONE] = "none",
		[BACKEND_REASON_TIMEOUT] = "timeout",
		[BACKEND_REASON_UNAVAILABLE] = "unavailable",
		[BACKEND_REASON_TLS] = "tls",
		[BACKEND_REASON_AUTH] = "auth",
		[BACKEND_REASON_REJECTED] = "rejected",
		[BACKEND_REASON_TOO_OLD] = "too_old",
		[BACKEND_REASON_TOO_LARGE] = "too_large",
		[BACKEND_REASON_RATE_LIMITED] = "rate_limited",
	};
	return reason >= 0 && reason < BACKEND_REASON_N ? names[reason] : "none";
}

const struct backend *backend_of_kind(enum exporter_kind kind)
{
	switch (kind) {
	case EXPORTER_PARCA:
		return &backend_parca;
	case EXPORTER_PYROSCOPE:
		return &backend_pyroscope;
	case EXPORTER_OTLP:
		return &backend_otlp;
	case EXPORTER_FILE:
	case EXPORTER_KIND_N:
		break;
	}
	return NULL;
}

static bool says(const char *message, const char *const *phrases)
{
	for (size_t i = 0; phrases[i]; i++) {
		if (strcasestr(message, phrases[i]))
			return true;
	}
	return false;
}

static bool says_too_fast(const char *message)
{
	static const char *const phrases[] = {"rate limit", "too many requests", "too fast", NULL};
	return says(message, phrases);
}

/*
 * In the words of grpc-go and gRPC core, Java, tonic, connect-go, and Pyroscope's profile_size and
 * profile_stacktrace_samples limits.
 */
static bool says_too_large(const char *message)
{
	static const char *const phrases[] = {
		"larger than max",
		"larger than configured max",
		"exceeds maximum size",
		"too large",
		"exceeds the size limit",
		"exceeds the samples count limit",
		NULL,
	};
	return says(message, phrases) && !says_too_fast(message);
}

static bool says_too_old(const char *message)
{
	static const char *const phrases[] = {"ingestion window", "too old", NULL};
	return says(message, phrases);
}

static void decide(struct backend_answer *out, enum backend_verdict verdict,
		   enum backend_reason reason)
{
	out->verdict = verdict;
	out->reason = reason;
}

/* Something that is not a gRPC server answered: a proxy, a load balancer, another program. */
static void judge_http(const struct grpc_result *result, struct backend_answer *out)
{
	switch (result->http_status) {
	case 401:
	case 403:
	case 407:
		decide(out, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH);
		return;
	case 408:
		decide(out, BACKEND_RETRY, BACKEND_REASON_TIMEOUT);
		return;
	case 413:
		decide(out, BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE);
		return;
	case 429:
		decide(out, BACKEND_RETRY, BACKEND_REASON_RATE_LIMITED);
		return;
	default:
		if (result->http_status >= 400 && result->http_status < 500)
			decide(out, BACKEND_REJECT, BACKEND_REASON_REJECTED);
		else
			decide(out, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE);
	}
}

static void judge_failure(const struct grpc_result *result, struct backend_answer *out)
{
	switch (result->failure) {
	case GRPC_FAILURE_NOT_GRPC:
		judge_http(result, out);
		return;
	case GRPC_FAILURE_TLS:
		decide(out, BACKEND_RETRY, BACKEND_REASON_TLS);
		return;
	case GRPC_FAILURE_CREDENTIALS:
		decide(out, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH);
		return;
	case GRPC_FAILURE_PROXY:
		if (result->http_status == 407)
			decide(out, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH);
		else
			decide(out, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE);
		return;
	case GRPC_FAILURE_DEADLINE:
		decide(out, BACKEND_RETRY, BACKEND_REASON_TIMEOUT);
		return;
	case GRPC_FAILURE_NONE:
	case GRPC_FAILURE_RESOLVE:
	case GRPC_FAILURE_CONNECT:
	case GRPC_FAILURE_PROTOCOL:
	case GRPC_FAILURE_LOST:
	case GRPC_FAILURE_CANCELLED:
		decide(out, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE);
		return;
	}
}

static void judge_exhausted(const struct judge_rules *rules, const struct grpc_result *result,
			    struct backend_answer *out)
{
	if (says_too_large(result->message) || result->http_status == 413)
		decide(out, BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE);
	else if (rules->needs_retry_info && !result->has_retry_info)
		decide(out, BACKEND_REJECT, BACKEND_REASON_RATE_LIMITED);
	else
		decide(out, BACKEND_RETRY, BACKEND_REASON_RATE_LIMITED);
}

static void judge_invalid(const struct judge_rules *rules, const struct grpc_result *result,
			  struct backend_answer *out)
{
	if (says_too_large(result->message))
		decide(out, BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE);
	else if (says_too_old(result->message))
		decide(out, BACKEND_REJECT, BACKEND_REASON_TOO_OLD);
	else
		decide(out, rules->has_series_apart ? BACKEND_SPLIT_SERIES : BACKEND_REJECT,
		       BACKEND_REASON_REJECTED);
}

static void judge_status(const struct judge_rules *rules, const struct grpc_result *result,
			 struct backend_answer *out)
{
	switch (result->code) {
	case GRPC_UNAUTHENTICATED:
	case GRPC_PERMISSION_DENIED:
		decide(out, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH);
		return;
	case GRPC_RESOURCE_EXHAUSTED:
		judge_exhausted(rules, result, out);
		return;
	case GRPC_INVALID_ARGUMENT:
		judge_invalid(rules, result, out);
		return;
	case GRPC_OUT_OF_RANGE: /* tonic's word for a message over its limit */
		if (says_too_large(result->message)) {
			decide(out, BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE);
			return;
		}
		break;
	default:
		break;
	}
	bool is_known = result->code >= 0 && result->code < GRPC_CODE_N;
	if (!(rules->retried & JUDGE_CODE(is_known ? result->code : GRPC_UNKNOWN)))
		decide(out, BACKEND_REJECT, BACKEND_REASON_REJECTED);
	else if (result->code == GRPC_DEADLINE_EXCEEDED)
		decide(out, BACKEND_RETRY, BACKEND_REASON_TIMEOUT);
	else
		decide(out, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE);
}

void backend_judge(const struct judge_rules *rules, const struct grpc_result *result,
		   struct backend_answer *out)
{
	*out = (struct backend_answer){.verdict = BACKEND_DELIVERED};
	if (result->code == GRPC_OK)
		return;
	snprintf(out->text, sizeof(out->text), "%s", result->message);
	if (result->failure != GRPC_FAILURE_NONE)
		judge_failure(result, out);
	else
		judge_status(rules, result, out);
	bool waits = out->verdict == BACKEND_RETRY || out->verdict == BACKEND_RETRY_AUTH;
	if (waits && result->must_not_retry && result->failure == GRPC_FAILURE_NONE)
		out->verdict = BACKEND_REJECT;
}
