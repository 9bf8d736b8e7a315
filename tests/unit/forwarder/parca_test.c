/* SPDX-License-Identifier: Apache-2.0 */
/* What WriteRaw is sent, read by the code that protoc-c made of the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <proto/parca_profilestore.pb-c.h>
#include <stdlib.h>

#include "forwarder/parca.h"
#include "forwarder/series.h"
#include "proto/gunzip.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "tests/unit/forwarder/collected_requests.h"

typedef Parca__Profilestore__V1alpha1__WriteRawRequest request_message;
typedef Parca__Profilestore__V1alpha1__RawProfileSeries series_message;

static struct collected_requests all;

static request_message *unpack(size_t i)
{
	request_message *request = parca__profilestore__v1alpha1__write_raw_request__unpack(
		NULL, all.items[i].n, all.items[i].message);
	assert_non_null(request);
	return request;
}

static void release(request_message *request)
{
	parca__profilestore__v1alpha1__write_raw_request__free_unpacked(request, NULL);
}

/* "name=value name=value …" */
static const char *labels_text(const series_message *series)
{
	static char text[8192];
	size_t used = 0;
	assert_non_null(series->labels);
	text[0] = 0;
	for (size_t i = 0; i < series->labels->n_labels; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s", i ? " " : "",
					 series->labels->labels[i]->name,
					 series->labels->labels[i]->value);
	return text;
}

static struct profile *payload(const series_message *series)
{
	assert_int_equal(series->n_samples, 1);
	struct profile *profile;
	assert_null(pprof_read(series->samples[0]->raw_profile.data,
			       series->samples[0]->raw_profile.len, NULL, &profile, NULL));
	return profile;
}

static int64_t total(const struct profile *profile, uint32_t column)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		sum += profile_value(profile, i, column);
	return sum;
}

static const struct key_value plain_labels[] = {{"service_name", "gitaly"}, {"node", "host-1"}};

static struct error *encode(const struct exporter_config *config, const struct profile *profile,
			    const char *name, const struct key_value *labels, size_t n)
{
	const struct outgoing_profile outgoing = {
		.profile = profile, .name = name, .labels = labels, .n_labels = n};
	collected_requests_fini(&all);
	return backend_parca.encode(config, &outgoing, collect_request, &all);
}

static void parca_sends_a_series_for_each_label_set(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {.kind = EXPORTER_PARCA, .remote = {.gzip = true}};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	assert_int_equal(all.n, 1);
	assert_int_equal(all.items[0].summary.n_profiles, 4);
	assert_int_equal(all.items[0].summary.n_samples, 10);
	assert_int_equal(all.items[0].summary.first_time_ns, 1700000000000000000);
	assert_int_equal(all.items[0].summary.last_time_ns, 1700000000000000000);
	request_message *request = unpack(0);
	assert_string_equal(request->tenant, "");
	assert_int_equal(request->n_series, 4);
	static const struct {
		const char *labels;
		int64_t samples;
	} want[] = {
		{"__name__=process_cpu comm=app node=host-1 pid=0 service_name=gitaly", 5},
		{"__name__=process_cpu comm=app node=host-1 pid=100 service_name=gitaly", 2},
		{"__name__=process_cpu comm=other node=host-1 pid=200 service_name=gitaly", 2},
		{"__name__=process_cpu node=host-1 service_name=gitaly", 1},
	};
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(labels_text(request->series[i]), want[i].labels);
		const ProtobufCBinaryData *raw = &request->series[i]->samples[0]->raw_profile;
		assert_true(gunzip_is_gzip(raw->data, raw->len));
		struct profile *part = payload(request->series[i]);
		assert_int_equal(total(part, 0), want[i].samples);
		assert_int_equal(total(part, 1), want[i].samples * 10000000);
		assert_string_equal(profile_text(part, part->sample_types.items[0].type),
				    "samples");
		assert_string_equal(profile_text(part, part->sample_types.items[1].unit),
				    "nanoseconds");
		assert_string_equal(profile_text(part, part->period_type.type), "cpu");
		assert_int_equal(part->period, 10000000);
		assert_int_equal(part->duration_nanos, 2000000000);
		assert_int_equal(part->labels.n, 0);
		profile_free(part);
	}
	release(request);
	profile_free(profile);
}

static void parca_keeps_every_label_under_a_valid_name(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile->period_type = profile->sample_types.items[0];
	struct profile_label labels[] = {
		made_up_text_label(profile, "9lives and-more", "cat"),
		made_up_text_label(profile, "service_name", "of the sample"),
		made_up_text_label(profile, "node", "host-1"), /* says what the series says */
		made_up_text_label(profile, "__meta_secret", "stays here"),
		made_up_text_label(profile, "key", "first"),
		made_up_text_label(profile, "key", "second"),
		made_up_text_label(profile, "key", "second"),
		made_up_text_label(profile, "key", "third"),
		made_up_text_label(profile, "empty", ""),
		made_up_text_label(profile, "", "no name"),
		made_up_number_label(profile, "bytes", -5),
		made_up_text_label(profile, "caf\xc3\xa9", "\xf0\x9f\x90\xb1"),
	};
	const int64_t one = 1;
	(void)profile_add_sample(profile, 0, profile_label_set(profile, labels, 12), &one);
	const struct key_value own[] = {
		{"service_name", "bad \xff byte"}, {"node", "host-1"}, {"node", "again"},
		{"__address__", "hidden"},	   {"nothing", ""},    {"k8s.io/app", "x"},
	};
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "1 strange-name:x", own, 6));
	request_message *request = unpack(0);
	assert_int_equal(request->n_series, 1);
	assert_string_equal(
		labels_text(request->series[0]),
		"_=no name _9lives_and_more=cat __name__=_1_strange_name_x bytes=-5 "
		"caf__=\xf0\x9f\x90\xb1 exported_key=second exported_key_2=third "
		"exported_service_name=of the sample k8s_io_app=x key=first node=host-1 "
		"service_name=bad \xef\xbf\xbd byte");
	release(request);
	profile_free(profile);
}

static void parca_takes_one_label_set_in_two_orders_for_one_series(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct profile_label labels[] = {made_up_number_label(profile, "pid", 100),
					 made_up_text_label(profile, "comm", "app")};
	const int64_t values[] = {4, 40000000};
	(void)profile_add_sample(profile, 0, profile_label_set(profile, labels, 2), values);
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	request_message *request = unpack(0);
	assert_int_equal(request->n_series, 4);
	struct profile *part = payload(request->series[1]);
	assert_int_equal(total(part, 0), 6);
	profile_free(part);
	release(request);
	profile_free(profile);
}

static void parca_adds_up_samples_without_dropped_labels(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static const char *const dropped[] = {"pid"};
	struct exporter_config config = {.drop_labels = dropped, .n_drop_labels = 1};
	assert_null(encode(&config, profile, "process_cpu", NULL, 0));
	request_message *request = unpack(0);
	assert_int_equal(request->n_series, 3);
	assert_string_equal(labels_text(request->series[0]), "__name__=process_cpu comm=app");
	struct profile *part = payload(request->series[0]);
	assert_int_equal(total(part, 0), 7);
	profile_free(part);
	release(request);
	profile_free(profile);
}

static void parca_makes_types_valid_and_different(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "cpu-clock:u", "count");
	profile_add_sample_type(profile, "cpu clock.u", "count");
	profile_add_sample_type(profile, "Sched/switch", "Nano Seconds");
	profile->default_sample_type = profile_string(profile, "cpu clock.u");
	const int64_t values[] = {1, 2, 3};
	(void)profile_add_sample(profile, 0, 0, values);
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "x", NULL, 0));
	request_message *request = unpack(0);
	struct profile *part = payload(request->series[0]);
	const struct profile_value_type *types = part->sample_types.items;
	assert_string_equal(profile_text(part, types[0].type), "cpu_clock_u");
	assert_string_equal(profile_text(part, types[1].type), "cpu_clock_u_2");
	assert_string_equal(profile_text(part, types[2].type), "sched_switch");
	assert_string_equal(profile_text(part, types[2].unit), "nano_seconds");
	/* The default column stands for the period type that was missing. */
	assert_string_equal(profile_text(part, part->default_sample_type), "cpu_clock_u_2");
	assert_string_equal(profile_text(part, part->period_type.type), "cpu_clock_u_2");
	assert_string_equal(profile_text(part, part->period_type.unit), "count");
	profile_free(part);
	release(request);
	profile_free(profile);
}

static void parca_sends_nothing_of_an_empty_profile(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "x", plain_labels, 2));
	assert_int_equal(all.n, 0);
	profile_free(profile);
}

static void parca_hands_up_what_emit_says(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	const struct outgoing_profile outgoing = {.profile = profile, .name = "x"};
	struct exporter_config config = {0};
	all.is_refusing = true;
	struct error *err = backend_parca.encode(&config, &outgoing, collect_request, &all);
	assert_int_equal(error_get_code(err), ERROR_IO);
	error_free(err);
	all.is_refusing = false;
	profile_free(profile);
}

/* Sum over all requests; checks that each keeps to the limit, with pprof unpacked. */
static int64_t total_within(uint64_t limit, size_t *n_series_out)
{
	int64_t sum = 0;
	*n_series_out = 0;
	for (size_t i = 0; i < all.n; i++) {
		request_message *request = unpack(i);
		uint64_t bytes = 0;
		for (size_t k = 0; k < request->n_series; k++) {
			const ProtobufCBinaryData *raw =
				&request->series[k]->samples[0]->raw_profile;
			struct profile *part = payload(request->series[k]);
			bytes += pprof_encode_count_bytes(part);
			if (!gunzip_is_gzip(raw->data, raw->len))
				assert_int_equal(raw->len, pprof_encode_count_bytes(part));
			sum += total(part, 0);
			profile_free(part);
		}
		assert_true(all.items[i].n <= limit);
		assert_true(bytes <= limit);
		*n_series_out += request->n_series;
		assert_int_equal(all.items[i].summary.n_profiles, request->n_series);
		release(request);
	}
	return sum;
}

static void parca_keeps_to_the_limit_after_decompression(void **state)
{
	(void)state;
	enum { LIMIT = 256 << 10 };
	struct profile *profile = collected_large_profile(20000, 0);
	for (int gzip = 0; gzip < 2; gzip++) {
		struct exporter_config config = {.limits = {.max_message_bytes = LIMIT},
						 .remote = {.gzip = gzip}};
		assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
		size_t n_series;
		assert_int_equal(total_within(LIMIT, &n_series), 20010);
		assert_true(all.n >= pprof_encode_count_bytes(profile) / LIMIT);
		assert_int_equal(all.n_samples, 20010);
	}
	profile_free(profile);
}

static void parca_puts_many_series_into_a_request(void **state)
{
	(void)state;
	enum { LIMIT = 256 << 10 };
	struct profile *profile = collected_large_profile(4000, 400);
	struct exporter_config config = {.limits = {.max_message_bytes = LIMIT}};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	size_t n_series;
	assert_int_equal(total_within(LIMIT, &n_series), 4010);
	assert_int_equal(n_series, 404);
	assert_true(all.n > 1 && all.n < 100);
	profile_free(profile);
}

static void parca_splits_between_series_first(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	size_t n = all.items[0].n;
	uint8_t *message = mem_copy(all.items[0].message, n);
	collected_requests_fini(&all);
	assert_null(backend_parca.split(&config, message, n, collect_request, &all));
	assert_int_equal(all.n, 2);
	assert_int_equal(all.n_samples, 10);
	assert_int_equal(all.n_profiles, 4);
	assert_int_equal(all.items[1].summary.first_time_ns, 1700000000000000000);
	assert_int_equal(all.items[0].n + all.items[1].n, n);
	/* The series are the same bytes in the same order. */
	assert_memory_equal(all.items[0].message, message, all.items[0].n);
	assert_memory_equal(all.items[1].message, message + all.items[0].n, all.items[1].n);
	mem_free(message);
	profile_free(profile);
}

static void parca_splits_a_series_by_its_samples(void **state)
{
	(void)state;
	struct profile *profile = collected_large_profile(1000, 0);
	static const char *const dropped[] = {"pid", "comm"};
	struct exporter_config config = {
		.drop_labels = dropped, .n_drop_labels = 2, .remote = {.gzip = true}};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	assert_int_equal(all.n, 1);
	size_t n = all.items[0].n;
	uint8_t *message = mem_copy(all.items[0].message, n);
	collected_requests_fini(&all);
	assert_null(backend_parca.split(&config, message, n, collect_request, &all));
	assert_int_equal(all.n, 2);
	assert_int_equal(all.n_samples, 1010);
	for (size_t i = 0; i < 2; i++) {
		request_message *request = unpack(i);
		assert_string_equal(labels_text(request->series[0]),
				    "__name__=process_cpu node=host-1 service_name=gitaly");
		assert_true(all.items[i].n < n);
		release(request);
	}
	size_t n_series;
	assert_int_equal(total_within(UINT64_MAX, &n_series), 1010);
	mem_free(message);
	profile_free(profile);
}

static void parca_cannot_split_one_sample(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	const int64_t one = 1;
	(void)profile_add_sample(profile, 0, 0, &one);
	struct exporter_config config = {0};
	assert_null(encode(&config, profile, "x", NULL, 0));
	struct error *err = backend_parca.split(&config, all.items[0].message, all.items[0].n,
						collect_request, &all);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	assert_int_equal(all.n, 1);
	static const uint8_t garbage[] = {0x12, 0x7f, 0x01};
	err = backend_parca.split(&config, garbage, sizeof(garbage), collect_request, &all);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	err = backend_parca.split(&config, NULL, 0, collect_request, &all);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	profile_free(profile);
}

static char listed[4][128];
static size_t n_listed;

static struct error *note_profile(void *context, const char *series, const uint8_t *pprof, size_t n)
{
	(void)context;
	struct profile *profile;
	assert_null(pprof_read(pprof, n, NULL, &profile, NULL));
	snprintf(listed[n_listed++], sizeof(listed[0]), "%s %d", series, (int)total(profile, 0));
	profile_free(profile);
	return NULL;
}

static void parca_lists_the_profiles_of_a_request(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {.remote = {.gzip = true}};
	assert_null(encode(&config, profile, "process_cpu", plain_labels, 2));
	n_listed = 0;
	assert_null(
		backend_parca.profiles(all.items[0].message, all.items[0].n, note_profile, NULL));
	assert_int_equal(n_listed, 4);
	assert_string_equal(listed[1], "process_cpu{comm=\"app\",node=\"host-1\",pid=\"100\","
				       "service_name=\"gitaly\"} 2");
	assert_string_equal(listed[3], "process_cpu{node=\"host-1\",service_name=\"gitaly\"} 1");
	profile_free(profile);
}

static void parca_judges_as_its_table_says(void **state)
{
	(void)state;
	static const enum backend_verdict verdicts[GRPC_CODE_N] = {
		[GRPC_OK] = BACKEND_DELIVERED,
		[GRPC_CANCELLED] = BACKEND_RETRY,
		[GRPC_UNKNOWN] = BACKEND_REJECT,
		[GRPC_INVALID_ARGUMENT] = BACKEND_SPLIT_SERIES,
		[GRPC_DEADLINE_EXCEEDED] = BACKEND_RETRY,
		[GRPC_NOT_FOUND] = BACKEND_REJECT,
		[GRPC_ALREADY_EXISTS] = BACKEND_REJECT,
		[GRPC_PERMISSION_DENIED] = BACKEND_RETRY_AUTH,
		[GRPC_RESOURCE_EXHAUSTED] = BACKEND_RETRY,
		[GRPC_FAILED_PRECONDITION] = BACKEND_REJECT,
		[GRPC_ABORTED] = BACKEND_RETRY,
		[GRPC_OUT_OF_RANGE] = BACKEND_REJECT,
		[GRPC_UNIMPLEMENTED] = BACKEND_REJECT,
		[GRPC_INTERNAL] = BACKEND_RETRY,
		[GRPC_UNAVAILABLE] = BACKEND_RETRY,
		[GRPC_DATA_LOSS] = BACKEND_RETRY,
		[GRPC_UNAUTHENTICATED] = BACKEND_RETRY_AUTH,
	};
	for (int code = 0; code < GRPC_CODE_N; code++) {
		struct backend_answer answer = collected_answer(
			&backend_parca, collected_result((enum grpc_code)code, "words"));
		assert_int_equal(answer.verdict, verdicts[code]);
		if (code)
			assert_string_equal(answer.text, "words");
	}
	struct backend_answer answer = collected_answer(
		&backend_parca,
		collected_result(GRPC_RESOURCE_EXHAUSTED,
				 "grpc: received message larger than max (5000000 vs. 4194304)"));
	assert_int_equal(answer.verdict, BACKEND_SPLIT);
	assert_int_equal(answer.reason, BACKEND_REASON_TOO_LARGE);
	answer = collected_answer(&backend_parca,
				  collected_result(GRPC_RESOURCE_EXHAUSTED, "try later"));
	assert_int_equal(answer.reason, BACKEND_REASON_RATE_LIMITED);
	/* Push-back of less than nothing: not again. */
	struct grpc_result result = collected_result(GRPC_UNAVAILABLE, "no");
	result.must_not_retry = true;
	assert_int_equal(collected_answer(&backend_parca, result).verdict, BACKEND_REJECT);
}

static void parca_tries_again_what_failed_on_the_way(void **state)
{
	(void)state;
	static const struct {
		enum grpc_failure failure;
		int http_status;
		enum backend_verdict verdict;
		enum backend_reason reason;
	} cases[] = {
		{GRPC_FAILURE_RESOLVE, 0, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_CONNECT, 0, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_PROXY, 502, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_PROXY, 407, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH},
		{GRPC_FAILURE_TLS, 0, BACKEND_RETRY, BACKEND_REASON_TLS},
		{GRPC_FAILURE_CREDENTIALS, 0, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH},
		{GRPC_FAILURE_PROTOCOL, 200, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_LOST, 0, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_DEADLINE, 0, BACKEND_RETRY, BACKEND_REASON_TIMEOUT},
		{GRPC_FAILURE_NOT_GRPC, 200, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_NOT_GRPC, 302, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_FAILURE_NOT_GRPC, 400, BACKEND_REJECT, BACKEND_REASON_REJECTED},
		{GRPC_FAILURE_NOT_GRPC, 401, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH},
		{GRPC_FAILURE_NOT_GRPC, 403, BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH},
		{GRPC_FAILURE_NOT_GRPC, 404, BACKEND_REJECT, BACKEND_REASON_REJECTED},
		{GRPC_FAILURE_NOT_GRPC, 408, BACKEND_RETRY, BACKEND_REASON_TIMEOUT},
		{GRPC_FAILURE_NOT_GRPC, 413, BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE},
		{GRPC_FAILURE_NOT_GRPC, 429, BACKEND_RETRY, BACKEND_REASON_RATE_LIMITED},
		{GRPC_FAILURE_NOT_GRPC, 503, BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct grpc_result result = collected_result(GRPC_UNAVAILABLE, "");
		result.failure = cases[i].failure;
		result.http_status = cases[i].http_status;
		struct backend_answer answer = collected_answer(&backend_parca, result);
		assert_int_equal(answer.verdict, cases[i].verdict);
		assert_int_equal(answer.reason, cases[i].reason);
	}
}

static int finish(void **state)
{
	(void)state;
	collected_requests_fini(&all);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parca_sends_a_series_for_each_label_set),
		cmocka_unit_test(parca_keeps_every_label_under_a_valid_name),
		cmocka_unit_test(parca_takes_one_label_set_in_two_orders_for_one_series),
		cmocka_unit_test(parca_adds_up_samples_without_dropped_labels),
		cmocka_unit_test(parca_makes_types_valid_and_different),
		cmocka_unit_test(parca_sends_nothing_of_an_empty_profile),
		cmocka_unit_test(parca_hands_up_what_emit_says),
		cmocka_unit_test(parca_keeps_to_the_limit_after_decompression),
		cmocka_unit_test(parca_puts_many_series_into_a_request),
		cmocka_unit_test(parca_splits_between_series_first),
		cmocka_unit_test(parca_splits_a_series_by_its_samples),
		cmocka_unit_test(parca_cannot_split_one_sample),
		cmocka_unit_test(parca_lists_the_profiles_of_a_request),
		cmocka_unit_test(parca_judges_as_its_table_says),
		cmocka_unit_test(parca_tries_again_what_failed_on_the_way),
	};
	return cmocka_run_group_tests(tests, NULL, finish);
}
