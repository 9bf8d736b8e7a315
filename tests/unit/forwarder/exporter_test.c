/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "forwarder/exporter.h"
#include "tests/support/temp_dir.h"

#define S_NS  ((uint64_t)1000000000)
#define MS_NS ((uint64_t)1000000)
enum { CALLS_MAX = 64 };

/* The other side: keeps calls until a test answers them. */
struct fixture {
	struct temp_dir dir;
	struct clock_fake time;
	struct clock clock;
	struct exporter_config config;
	struct exporter *exporter;
	struct grpc_request calls[CALLS_MAX];
	uint32_t n_calls, n_cancelled;
	uint64_t n_delivered, n_samples, n_rejected, n_retries, n_splits, n_parts;
	uint64_t n_lost, lost_sequence;
	uint64_t last_delay_ns;
	char last_reason[512];
};

static struct grpc_call *start(void *context, const struct grpc_request *request)
{
	struct fixture *f = context;
	assert_true(f->n_calls < CALLS_MAX);
	f->calls[f->n_calls++] = *request;
	return (struct grpc_call *)request->context;
}

static void cancel(void *context, struct grpc_call *call)
{
	struct fixture *f = context;
	(void)call;
	f->n_cancelled++;
}

static void happened(void *context, const struct exporter_event *event)
{
	struct fixture *f = context;
	assert_string_equal(event->exporter, "parca/a");
	switch (event->kind) {
	case EXPORTER_DELIVERED:
		f->n_delivered++;
		f->n_samples += event->summary.n_samples;
		break;
	case EXPORTER_RETRYING:
		f->n_retries++;
		f->last_delay_ns = event->delay_ns;
		break;
	case EXPORTER_SPLIT:
		f->n_splits++;
		f->n_parts += event->n_parts;
		break;
	case EXPORTER_REJECTED:
		f->n_rejected++;
		snprintf(f->last_reason, sizeof(f->last_reason), "%s", event->result->message);
		break;
	case EXPORTER_LOST:
		f->n_lost += event->n_lost;
		f->lost_sequence = event->sequence;
		assert_null(event->result);
		snprintf(f->last_reason, sizeof(f->last_reason), "%s", event->text);
		break;
	}
}

static void open_exporter(struct fixture *f)
{
	exporter_free(f->exporter);
	f->exporter = NULL;
	f->n_calls = 0;
	const struct exporter_options options = {
		.config = &f->config,
		.spool_directory = f->dir.path,
		.spool = {.min_free_bytes = 1},
		.clock = &f->clock,
		.link = {start, cancel, f},
		.on_event = happened,
		.context = f,
	};
	struct error *err = exporter_new(&options, &f->exporter);
	if (err)
		fail_msg("%s", error_text(err));
}

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	log_set_level(LOG_LEVEL_ERROR);
	temp_dir_init(&f->dir);
	f->time = (struct clock_fake){.now_monotonic_ns = S_NS, .now_wall_ns = 1000 * S_NS};
	f->clock = clock_from_fake(&f->time);
	f->config = (struct exporter_config){.name = "parca/a", .kind = EXPORTER_PARCA};
	open_exporter(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	exporter_free(f->exporter);
	temp_dir_fini(&f->dir);
	mem_free(f);
	return 0;
}

static void pass(struct fixture *f, uint64_t ns)
{
	f->time.now_monotonic_ns += ns;
	f->time.now_wall_ns += ns;
}

/* A window of one profile with n rows, each counting 3. */
static void put_rows(struct fixture *f, uint32_t n)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile->period_type = profile->sample_types.items[0];
	profile->time_nanos = (int64_t)f->time.now_wall_ns;
	const struct profile_mapping mapping = {.memory_limit = 1 << 20};
	uint32_t map = profile_add_mapping(profile, &mapping);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t location = profile_add_location(profile, map, 0x1000 + i);
		const int64_t value = 3;
		profile_add_sample(profile, profile_stack(profile, &location, 1), 0, &value);
	}
	const struct outgoing_profile outgoing = {.profile = profile, .name = "process_cpu"};
	exporter_put(f->exporter, &outgoing);
	assert_null(exporter_commit(f->exporter));
	profile_free(profile);
}

static void answer(struct fixture *f, uint32_t call, struct grpc_result result)
{
	if (!result.message)
		result.message = "";
	struct grpc_request request = f->calls[call];
	memmove(&f->calls[call], &f->calls[call + 1],
		(f->n_calls - call - 1) * sizeof(f->calls[0]));
	f->n_calls--;
	request.done(request.context, &result);
}
#define ANSWER(f, call, ...) answer(f, call, (struct grpc_result){__VA_ARGS__})

static struct exporter_counts counts(struct fixture *f)
{
	struct exporter_counts counts;
	exporter_get_counts(f->exporter, &counts);
	return counts;
}

static void exporter_sends_what_waits_several_at_a_time(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 10; i++)
		put_rows(f, 2);
	assert_int_equal(f->n_calls, 0);
	stats_reset();
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 8);
	assert_string_equal(f->calls[0].path,
			    "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw");
	assert_int_equal(f->calls[0].timeout_ns, 10 * S_NS);
	pass(f, 30 * MS_NS);
	ANSWER(f, 2, .code = GRPC_OK);
	assert_int_equal(f->n_calls, 8);
	while (f->n_calls)
		ANSWER(f, 0, .code = GRPC_OK);
	assert_true(exporter_is_idle(f->exporter));
	assert_int_equal(f->n_delivered, 10);
	assert_int_equal(f->n_samples, 60);
	struct exporter_counts c = counts(f);
	assert_int_equal(c.sent_profiles, 10);
	assert_int_equal(c.sent_samples, 60);
	assert_int_equal(c.requests[GRPC_OK], 10);
	assert_int_equal(c.queue.requests, 0);
	assert_int_equal(c.last_success_ns, 1000 * S_NS + 30 * MS_NS);
	/* Eight took 30 ms, two none. */
	assert_int_equal(c.durations[0], 2);
	assert_int_equal(c.durations[3], 10);
	assert_int_equal(c.sum_durations_ns, 8 * 30 * MS_NS);
	/* The same for all exporters together. */
	assert_int_equal(stats_get(STAT_EXPORTER_SENT_PROFILES), 10);
	assert_int_equal(stats_get(STAT_EXPORTER_SENT_SAMPLES), 60);
	assert_int_equal(stats_get(STAT_EXPORTER_SENT_BYTES), c.sent_bytes);
	assert_true(c.sent_bytes > 0);
	assert_int_equal(stats_get(STAT_EXPORTER_REQUESTS), 10);
	assert_int_equal(stats_get(STAT_EXPORTER_REQUEST_NS), 8 * 30 * MS_NS);
	for (int i = STAT_EXPORTER_UNENCODABLE; i <= STAT_QUEUE_DROPPED_REMOVED; i++)
		assert_int_equal(stats_get((enum stats_counter)i), 0);
}

static void exporter_probes_with_one_request_after_a_failure(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 4; i++)
		put_rows(f, 1);
	exporter_run(f->exporter);
	/* Four that fail together are one failure. */
	for (int i = 0; i < 4; i++)
		ANSWER(f, 0, .code = GRPC_UNAVAILABLE, .failure = GRPC_FAILURE_CONNECT);
	assert_int_equal(f->n_retries, 4);
	assert_in_range(f->last_delay_ns, 4 * S_NS, 6 * S_NS);
	assert_int_equal(f->n_calls, 0);
	uint64_t wake = exporter_wake_ns(f->exporter);
	assert_in_range(wake, S_NS + 4 * S_NS, S_NS + 6 * S_NS);
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 0);
	pass(f, 6 * S_NS);
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 1);
	ANSWER(f, 0, .code = GRPC_UNAVAILABLE, .failure = GRPC_FAILURE_CONNECT);
	assert_in_range(f->last_delay_ns, 64 * S_NS / 10, 96 * S_NS / 10);
	pass(f, 10 * S_NS);
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 1);
	ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_calls, 3);
	while (f->n_calls)
		ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 4);
	assert_int_equal(counts(f).failed_profiles[BACKEND_REASON_UNAVAILABLE], 5);
	assert_false(counts(f).is_failing);
}

static void exporter_waits_as_long_as_the_server_asks(void **state)
{
	struct fixture *f = *state;
	put_rows(f, 1);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_UNAVAILABLE, .has_retry_info = true,
	       .retry_delay_ns = 100 * S_NS);
	assert_int_equal(f->last_delay_ns, 100 * S_NS);
	pass(f, 99 * S_NS);
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 0);
	pass(f, S_NS);
	exporter_run(f->exporter);
	assert_int_equal(f->n_calls, 1);
}

static void exporter_gives_people_time_to_replace_a_token(void **state)
{
	struct fixture *f = *state;
	put_rows(f, 1);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_UNAUTHENTICATED, .message = "who are you?");
	assert_in_range(f->last_delay_ns, 4 * S_NS, 6 * S_NS);
	pass(f, 6 * S_NS);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_PERMISSION_DENIED);
	assert_int_equal(f->last_delay_ns, 300 * S_NS);
	pass(f, 300 * S_NS);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 1);
	assert_int_equal(counts(f).failed_profiles[BACKEND_REASON_AUTH], 2);
	assert_int_equal(f->n_rejected, 0);
}

/* FR-97, and the product's counters: each failure has its reason. */
static void exporter_counts_failures_by_reason(void **state)
{
	static const struct {
		struct grpc_result result;
		enum backend_reason reason;
		enum stats_counter counter;
	} cases[] = {
		{{.code = GRPC_DEADLINE_EXCEEDED, .failure = GRPC_FAILURE_DEADLINE},
		 BACKEND_REASON_TIMEOUT,
		 STAT_EXPORTER_FAILED_TIMEOUT},
		{{.code = GRPC_UNAVAILABLE, .failure = GRPC_FAILURE_CONNECT},
		 BACKEND_REASON_UNAVAILABLE,
		 STAT_EXPORTER_FAILED_UNAVAILABLE},
		{{.code = GRPC_UNAVAILABLE, .failure = GRPC_FAILURE_TLS},
		 BACKEND_REASON_TLS,
		 STAT_EXPORTER_FAILED_TLS},
		{{.code = GRPC_UNAUTHENTICATED}, BACKEND_REASON_AUTH, STAT_EXPORTER_FAILED_AUTH},
		{{.code = GRPC_RESOURCE_EXHAUSTED, .message = "rate limit"},
		 BACKEND_REASON_RATE_LIMITED,
		 STAT_EXPORTER_FAILED_RATE_LIMITED},
		{{.code = GRPC_INVALID_ARGUMENT},
		 BACKEND_REASON_REJECTED,
		 STAT_EXPORTER_FAILED_REJECTED},
	};
	struct fixture *f = *state;
	put_rows(f, 1);
	stats_reset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pass(f, 301 * S_NS);
		exporter_run(f->exporter);
		assert_int_equal(f->n_calls, 1);
		answer(f, 0, cases[i].result);
		assert_int_equal(counts(f).failed_profiles[cases[i].reason], 1);
		assert_int_equal(stats_get(cases[i].counter), 1);
		assert_int_equal(stats_get(STAT_EXPORTER_REQUESTS), i + 1);
	}
	assert_int_equal(stats_get(STAT_QUEUE_DROPPED_REJECTED), 1);
	assert_int_equal(stats_get(STAT_EXPORTER_SENT_PROFILES), 0);
	assert_int_equal(f->n_rejected, 1);
}

/* Requests that are refused side by side are one refusal: the next try comes soon. */
static void exporter_takes_refusals_side_by_side_for_one(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 4; i++)
		put_rows(f, 1);
	exporter_run(f->exporter);
	for (int i = 0; i < 4; i++)
		ANSWER(f, 0, .code = GRPC_UNAUTHENTICATED);
	assert_int_equal(f->n_retries, 4);
	assert_in_range(f->last_delay_ns, 4 * S_NS, 6 * S_NS);
	pass(f, 6 * S_NS);
	exporter_run(f->exporter);
	while (f->n_calls)
		ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 4);
}

static void exporter_counts_what_a_partial_success_refused(void **state)
{
	/* partial_success {rejected_profiles: 1, error_message: "no"} */
	static const uint8_t response[] = {0x0a, 6, 0x08, 1, 0x12, 2, 'n', 'o'};
	struct fixture *f = *state;
	f->config.kind = EXPORTER_OTLP;
	open_exporter(f);
	put_rows(f, 2);
	put_rows(f, 1);
	stats_reset();
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_OK, .response = response, .n_response = sizeof(response));
	ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 2);
	struct exporter_counts c = counts(f);
	assert_int_equal(c.refused_profiles, 1);
	assert_int_equal(c.refused_samples, 6);
	assert_int_equal(c.sent_profiles, 1);
	assert_int_equal(c.sent_samples, 3);
	assert_int_equal(stats_get(STAT_EXPORTER_FAILED_REJECTED), 1);
	assert_int_equal(stats_get(STAT_EXPORTER_SENT_SAMPLES), 3);
}

static void exporter_tells_which_windows_it_lost(void **state)
{
	struct fixture *f = *state;
	put_rows(f, 1);
	uint64_t first = counts(f).last_sequence;
	assert_int_equal(counts(f).last_requests, 1);
	assert_false(counts(f).is_last_lost);
	stats_reset();
	pass(f, 20 * 3600 * S_NS);
	put_rows(f, 1);
	pass(f, 5 * 3600 * S_NS); /* kept for a day */
	exporter_run(f->exporter);
	assert_int_equal(f->n_lost, 1);
	assert_int_equal(f->lost_sequence, first);
	assert_string_equal(f->last_reason, "expired");
	assert_int_equal(stats_get(STAT_QUEUE_DROPPED_EXPIRED), 1);
	assert_int_equal(f->n_calls, 1);
	ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 1);
}

static void exporter_sets_aside_what_is_refused_and_goes_on(void **state)
{
	struct fixture *f = *state;
	f->config.max_concurrent = 1;
	open_exporter(f);
	put_rows(f, 2);
	put_rows(f, 1);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_INVALID_ARGUMENT, .message = "no such label");
	assert_int_equal(f->n_rejected, 1);
	assert_string_equal(f->last_reason, "no such label");
	assert_int_equal(f->n_calls, 1);
	ANSWER(f, 0, .code = GRPC_OK);
	struct exporter_counts c = counts(f);
	assert_int_equal(c.queue.lost_samples[SPOOL_LOSS_REJECTED], 6);
	assert_int_equal(c.sent_samples, 3);
	assert_string_equal(c.last_error, "INVALID_ARGUMENT: no such label");
	assert_true(exporter_is_idle(f->exporter));
}

static void exporter_halves_what_is_too_large_until_it_fits(void **state)
{
	struct fixture *f = *state;
	put_rows(f, 8);
	exporter_run(f->exporter);
	static const char too_large[] = "grpc: received message larger than max (5 vs. 4)";
	ANSWER(f, 0, .code = GRPC_RESOURCE_EXHAUSTED, .message = too_large);
	assert_int_equal(f->n_splits, 1);
	assert_int_equal(f->n_parts, 2);
	assert_int_equal(f->n_calls, 2);
	ANSWER(f, 0, .code = GRPC_RESOURCE_EXHAUSTED, .message = too_large);
	assert_int_equal(f->n_splits, 2);
	assert_int_equal(f->n_calls, 3);
	while (f->n_calls)
		ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 3);
	assert_int_equal(f->n_samples, 24);
	assert_true(exporter_is_idle(f->exporter));
	/* One sample cannot be halved. */
	put_rows(f, 1);
	exporter_run(f->exporter);
	ANSWER(f, 0, .code = GRPC_RESOURCE_EXHAUSTED, .message = too_large);
	assert_int_equal(f->n_rejected, 1);
	assert_true(exporter_is_idle(f->exporter));
	assert_int_equal(counts(f).queue.lost_samples[SPOOL_LOSS_REJECTED], 3);
}

/* An hour without the server, windows of ten seconds, restarts on the way: all arrive. */
static void exporter_delivers_all_of_a_long_outage(void **state)
{
	struct fixture *f = *state;
	uint64_t n_tries = 0;
	for (int i = 0; i < 360; i++) {
		put_rows(f, 1 + (uint32_t)i % 3);
		exporter_run(f->exporter);
		for (int s = 0; s < 10; s++) {
			pass(f, S_NS);
			exporter_run(f->exporter);
			while (f->n_calls) {
				n_tries++;
				ANSWER(f, 0, .code = GRPC_UNAVAILABLE,
				       .failure = GRPC_FAILURE_CONNECT);
			}
		}
		if (i % 100 == 99)
			open_exporter(f);
	}
	/* 30 s apart at most, 24 at least once the pauses have grown. */
	assert_in_range(n_tries, 100, 180);
	assert_int_equal(counts(f).queue.requests, 360);
	pass(f, 40 * S_NS);
	exporter_run(f->exporter);
	/* Answered out of order, with a crash between answer and its note. */
	while (f->n_calls && f->n_delivered < 200)
		ANSWER(f, f->n_calls - 1, .code = GRPC_OK);
	open_exporter(f);
	exporter_run(f->exporter);
	while (f->n_calls)
		ANSWER(f, 0, .code = GRPC_OK);
	assert_int_equal(f->n_delivered, 360);
	assert_int_equal(f->n_samples, 720 * 3);
	assert_true(exporter_is_idle(f->exporter));
}

static void exporter_leaves_in_the_spool_what_is_under_way_at_the_end(void **state)
{
	struct fixture *f = *state;
	put_rows(f, 1);
	exporter_run(f->exporter);
	open_exporter(f);
	assert_int_equal(f->n_cancelled, 1);
	assert_int_equal(counts(f).queue.requests, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(exporter_sends_what_waits_several_at_a_time),
		CASE(exporter_probes_with_one_request_after_a_failure),
		CASE(exporter_waits_as_long_as_the_server_asks),
		CASE(exporter_gives_people_time_to_replace_a_token),
		CASE(exporter_counts_failures_by_reason),
		CASE(exporter_takes_refusals_side_by_side_for_one),
		CASE(exporter_counts_what_a_partial_success_refused),
		CASE(exporter_tells_which_windows_it_lost),
		CASE(exporter_sets_aside_what_is_refused_and_goes_on),
		CASE(exporter_halves_what_is_too_large_until_it_fits),
		CASE(exporter_delivers_all_of_a_long_outage),
		CASE(exporter_leaves_in_the_spool_what_is_under_way_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
