/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/pyroscope.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "forwarder/backend_judge.h"
#include "forwarder/raw_request.h"
#include "forwarder/series.h"

/* The server's limits, as they are by default. */
enum {
	DEFAULT_PORT = 4040,
	MAX_PROFILE_BYTES = 4 << 20, /* uncompressed; ours counts labels too */
	MAX_SAMPLES = 16000,
	MAX_LABELS = 30, /* of a series, __name__ among them */
	MAX_LABEL_VALUE_BYTES = 2048,
	MAX_DEPTH = 1000,
	MAX_STRING_BYTES = 65535,
	MAX_AGE_MINUTES = 55, /* of an hour, so that there is time to arrive */
};

static const char *const dropped_by_default[] = {"cgroup"};
/* Never labels of a series (each value would be one). */
static const char *const withheld[] = {"pid",	     "tid",	 "cmdline", "correlation_id",
				       "profile_id", "trace_id", "span_id", NULL};

/* The service first, so that the limit does not reach it; the server's own word when there is none.
 * The caller frees the labels. */
static struct outgoing_profile name_service(const struct outgoing_profile *outgoing)
{
	struct key_value *labels = mem_zalloc(outgoing->n_labels + 1, sizeof(*labels));
	size_t n = 1;
	bool has_service = false;
	labels[0] = (struct key_value){"service_name", "unknown_service"};
	for (size_t i = 0; i < outgoing->n_labels; i++) {
		const struct key_value *label = &outgoing->labels[i];
		if (strcmp(label->key, "service_name") != 0) {
			labels[n++] = *label;
		} else if (*label->value && !has_service) {
			labels[0] = *label;
			has_service = true;
		}
	}
	return (struct outgoing_profile){.profile = outgoing->profile,
					 .name = outgoing->name,
					 .labels = labels,
					 .n_labels = n};
}

static struct error *encode(const struct exporter_config *config,
			    const struct outgoing_profile *outgoing, backend_emit_fn emit,
			    void *context)
{
	struct series_rules rules =
		series_rules_make(config, dropped_by_default, ARRAY_LEN(dropped_by_default));
	rules.withheld = withheld;
	rules.is_flat = true;
	rules.drops_measures = true;
	rules.max_labels = MAX_LABELS - 1; /* and __name__ */
	rules.max_value_bytes = MAX_LABEL_VALUE_BYTES;
	rules.max_depth = MAX_DEPTH;
	rules.max_string_bytes = MAX_STRING_BYTES;
	rules.needs_places = true;

	struct outgoing_profile named = name_service(outgoing);
	CLEANUP(series_fini) struct series series;
	series_init(&series, &rules, &named);
	mem_free((void *)named.labels);
	CLEANUP(cleanup_mem)
	struct key_value *all = mem_zalloc(series.n_labels + 1, sizeof(*all));
	all[0] = (struct key_value){"__name__", series.name};
	memcpy(all + 1, series.labels, series.n_labels * sizeof(*all));
	CLEANUP(raw_request_fini) struct raw_request request;
	raw_request_init(&request, &raw_request_pyroscope, config, &backend_pyroscope, emit,
			 context);
	struct error *err = raw_request_add(&request, series.profile, all, series.n_labels + 1);
	return err ? err : raw_request_end(&request);
}

static struct error *split(const struct exporter_config *config, const uint8_t *message, size_t n,
			   backend_emit_fn emit, void *context)
{
	return raw_request_split(&raw_request_pyroscope, config, message, n, emit, context);
}

static struct error *list_profiles(const uint8_t *message, size_t n, backend_profile_fn emit,
				   void *context)
{
	return raw_request_profiles(&raw_request_pyroscope, message, n, emit, context);
}

static void judge(const struct grpc_result *result, struct backend_answer *out)
{
	static const struct judge_rules rules = {
		.retried = JUDGE_CODE(GRPC_CANCELLED) | JUDGE_CODE(GRPC_UNKNOWN) |
			   JUDGE_CODE(GRPC_DEADLINE_EXCEEDED) | JUDGE_CODE(GRPC_ABORTED) |
			   JUDGE_CODE(GRPC_INTERNAL) | JUDGE_CODE(GRPC_UNAVAILABLE) |
			   JUDGE_CODE(GRPC_DATA_LOSS),
	};
	backend_judge(&rules, result, out);
}

const struct backend backend_pyroscope = {
	.kind = "pyroscope",
	.path = "/push.v1.PusherService/Push",
	.content = "pyroscope PushRequest",
	.default_port = DEFAULT_PORT,
	.default_max_message_bytes = MAX_PROFILE_BYTES,
	.default_max_samples = MAX_SAMPLES,
	.default_max_age_ns = (uint64_t)MAX_AGE_MINUTES * 60 * 1000000000,
	.is_compressed = true,
	.encode = encode,
	.split = split,
	.profiles = list_profiles,
	.judge = judge,
};
