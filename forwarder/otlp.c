/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/otlp.h"

#include <proto/otlp_collector_profiles.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/backend_judge.h"
#include "forwarder/series.h"
#include "proto/otlp_encode.h"
#include "proto/otlp_read.h"
#include "proto/pprof_encode.h"
#include "proto/profile_split.h"

enum {
	DEFAULT_PORT = 4317,
	/* gRPC servers take 4 MiB by default, after decompression; this leaves room for them to
	 * count a little more than we do. */
	MAX_MESSAGE_BYTES = (4 << 20) - (64 << 10),
	ENCODED_MAX_BYTES = 1 << 30,
};

static const char *translate(const char *name)
{
	static const struct key_value names[] = {
		{"service_name", "service.name"},
		{"node", "host.name"},
		{"executable_name", "process.executable.name"},
		{"executable_path", "process.executable.path"},
		{"container_id", "container.id"},
		{"container", "k8s.container.name"},
		{"pod", "k8s.pod.name"},
		{"namespace", "k8s.namespace.name"},
		{"pid", "process.pid"},
		{"tid", "thread.id"},
		{"thread_name", "thread.name"},
		{"cpu", "cpu.logical_number"},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(name, names[i].key))
			return names[i].value;
	}
	return name;
}

struct otlp_sender {
	struct otlp_encode_options options;
	uint64_t max_bytes;
	uint32_t max_samples;
	backend_emit_fn emit;
	void *context;
};

static struct error *send_within(struct otlp_sender *sender, const struct profile *profile);

static struct error *send_part(void *context, struct profile *taken, const char *const *values)
{
	(void)values;
	CLEANUP(cleanup_profile) struct profile *part = taken;
	return send_within(context, part);
}

/* As many parts as the size asks for, in equal shares. */
static struct error *send_shares(struct otlp_sender *sender, const struct profile *profile,
				 uint64_t n_bytes)
{
	uint64_t n_parts = n_bytes / sender->max_bytes + 1;
	uint64_t share = (profile->samples.n + n_parts - 1) / n_parts;
	/* At least halves, so that this ends. */
	uint64_t half = ((uint64_t)profile->samples.n + 1) / 2;
	const struct profile_split_limits limits = {
		.max_samples = (uint32_t)(share < half ? share : half)};
	return profile_split_by_limits(profile, &limits, send_part, sender);
}

/* What is in the encoding is known only when it is there: stacks and strings are shared. */
static struct error *send_within(struct otlp_sender *sender, const struct profile *profile)
{
	CLEANUP(buf_fini) struct buf message;
	buf_init(&message, ENCODED_MAX_BYTES);
	uint32_t n_columns;
	struct error *err = otlp_encode(profile, &sender->options, &message, &n_columns);
	if (err || !n_columns)
		return err;
	if (message.size > sender->max_bytes && profile->samples.n > 1) {
		uint64_t n_bytes = message.size;
		buf_fini(&message);
		return send_shares(sender, profile, n_bytes);
	}
	struct request_summary summary = {0};
	series_add_to_summary(&summary, profile);
	return sender->emit(sender->context, message.data, message.size, &summary);
}

/* The options borrow labels, which have the layout of attributes. */
static struct otlp_attribute *make_resource(const struct series *series)
{
	struct otlp_attribute *resource = mem_zalloc(series->n_labels, sizeof(*resource));
	for (size_t i = 0; i < series->n_labels; i++)
		resource[i] =
			(struct otlp_attribute){series->labels[i].key, series->labels[i].value};
	return resource;
}

static struct error *encode(const struct exporter_config *config,
			    const struct outgoing_profile *outgoing, backend_emit_fn emit,
			    void *context)
{
	struct series_rules rules = series_rules_make(config, NULL, 0);
	rules.translate = translate;
	CLEANUP(series_fini) struct series series;
	series_init(&series, &rules, outgoing);
	CLEANUP(cleanup_mem) struct otlp_attribute *resource = make_resource(&series);
	uint64_t max_bytes = config->limits.max_message_bytes;
	struct otlp_sender sender = {
		.options = {.scope_name = series.name,
			    .resource = resource,
			    .n_resource = series.n_labels},
		.max_bytes = max_bytes ? max_bytes : MAX_MESSAGE_BYTES,
		.emit = emit,
		.context = context,
	};
	if (!config->limits.max_samples)
		return send_within(&sender, series.profile);
	const struct profile_split_limits limits = {.max_samples = config->limits.max_samples};
	return profile_split_by_limits(series.profile, &limits, send_part, &sender);
}

static struct error *split(const struct exporter_config *config, const uint8_t *message, size_t n,
			   backend_emit_fn emit, void *context)
{
	(void)config;
	CLEANUP(otlp_reading_fini) struct otlp_reading reading;
	struct error *err = otlp_read(message, n, &reading);
	if (err)
		return err;
	uint32_t n_samples = reading.profile->samples.n;
	if (n_samples < 2)
		return error_new(ERROR_LIMIT, "a request of one sample cannot be split");
	struct otlp_sender sender = {
		.options = {.scope_name = reading.scope_name,
			    .resource = reading.resource,
			    .n_resource = reading.n_resource},
		.max_bytes = UINT64_MAX,
		.emit = emit,
		.context = context,
	};
	const struct profile_split_limits limits = {.max_samples = n_samples / 2 + n_samples % 2};
	return profile_split_by_limits(reading.profile, &limits, send_part, &sender);
}

static struct error *list_profiles(const uint8_t *message, size_t n, backend_profile_fn emit,
				   void *context)
{
	CLEANUP(otlp_reading_fini) struct otlp_reading reading;
	struct error *err = otlp_read(message, n, &reading);
	if (err)
		return err;
	CLEANUP(cleanup_mem)
	struct key_value *labels = mem_zalloc(reading.n_resource, sizeof(*labels));
	for (size_t i = 0; i < reading.n_resource; i++)
		labels[i] = (struct key_value){reading.resource[i].key, reading.resource[i].value};
	CLEANUP(cleanup_mem)
	char *series = series_describe(reading.scope_name, labels, reading.n_resource);
	CLEANUP(buf_fini) struct buf pprof;
	buf_init(&pprof, ENCODED_MAX_BYTES);
	const struct pprof_encode_options options = {.gzip_level = 0};
	err = pprof_encode_buf(reading.profile, &options, &pprof);
	return err ? err : emit(context, series, pprof.data, pprof.size);
}

static void judge_response(const struct grpc_result *result, struct backend_answer *out)
{
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse *response =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack(
			NULL, result->n_response, result->response);
	if (!response)
		return; /* the server has the request all the same */
	const Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess
		*partial = response->partial_success;
	if (partial) {
		out->n_refused =
			partial->rejected_profiles > 0 ? (uint64_t)partial->rejected_profiles : 0;
		snprintf(out->text, sizeof(out->text), "%s", partial->error_message);
		if (out->n_refused)
			out->reason = BACKEND_REASON_REJECTED;
	}
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__free_unpacked(
		response, NULL);
}

static void judge(const struct grpc_result *result, struct backend_answer *out)
{
	static const struct judge_rules rules = {
		.retried = JUDGE_CODE(GRPC_CANCELLED) | JUDGE_CODE(GRPC_DEADLINE_EXCEEDED) |
			   JUDGE_CODE(GRPC_ABORTED) | JUDGE_CODE(GRPC_OUT_OF_RANGE) |
			   JUDGE_CODE(GRPC_UNAVAILABLE) | JUDGE_CODE(GRPC_DATA_LOSS),
		.needs_retry_info = true,
	};
	backend_judge(&rules, result, out);
	if (result->code == GRPC_OK && result->response)
		judge_response(result, out);
}

const struct backend backend_otlp = {
	.kind = "otlp",
	.path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.content = "otlp ExportProfilesServiceRequest",
	.default_port = DEFAULT_PORT,
	.default_max_message_bytes = MAX_MESSAGE_BYTES,
	.encode = encode,
	.split = split,
	.profiles = list_profiles,
	.judge = judge,
};
