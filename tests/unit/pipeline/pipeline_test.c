/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <semaphore.h>

#include "base/mem.h"
#include "base/stats.h"
#include "pipeline/pipeline.h"
#include "pipeline/record_block.h"

/* A record whose bytes hold its serial number behind the header. */
struct item {
	struct perf_event_header header;
	uint64_t serial;
};

struct collector_of_serials {
	uint64_t *serials;
	size_t n, capacity;
	size_t n_samples;
	sem_t *gate;	       /* waited for once per batch, NULL = open */
	struct error *failure; /* given at the first batch */
};

static struct error *collect(void *context, const struct perf_record *records, size_t n)
{
	struct collector_of_serials *sink = context;
	if (sink->gate)
		sem_wait(sink->gate);
	for (size_t i = 0; i < n; i++) {
		struct item item;
		assert_int_equal(records[i].size, sizeof(item));
		memcpy(&item, records[i].bytes, sizeof(item));
		if (sink->n == sink->capacity) {
			sink->capacity = sink->capacity ? 2 * sink->capacity : 1024;
			sink->serials =
				mem_realloc(sink->serials, sink->capacity, sizeof(uint64_t));
		}
		sink->serials[sink->n++] = item.serial;
		sink->n_samples += records[i].type == PERF_RECORD_SAMPLE;
	}
	struct error *failure = sink->failure;
	sink->failure = NULL;
	return failure;
}

static struct error *feed_one(struct pipeline *pipeline, uint32_t type, uint64_t serial)
{
	/* Memory that is reused at once, as a ring's is. */
	struct item item = {.header = {.type = type, .size = sizeof(item)}, .serial = serial};
	struct perf_record record = {
		.bytes = (const uint8_t *)&item, .type = type, .size = sizeof(item)};
	struct error *err = pipeline_feed(pipeline, &record, 1);
	memset(&item, 0xff, sizeof(item));
	return err;
}

static void pipeline_keeps_order_and_bytes_on_its_thread(void **state)
{
	(void)state;
	struct collector_of_serials sink = {0};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	enum { N = 20000 };
	for (uint64_t i = 0; i < N; i++) {
		assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, i));
		if (i % 1000 == 0)
			pipeline_flush(pipeline);
	}
	assert_null(pipeline_finish(pipeline));
	struct pipeline_losses losses = pipeline_get_losses(pipeline);
	assert_int_equal(sink.n + losses.samples, N);
	for (size_t i = 1; i < sink.n; i++)
		assert_true(sink.serials[i] > sink.serials[i - 1]);
	pipeline_close(pipeline);
	mem_free(sink.serials);
}

static void pipeline_without_thread_passes_straight_on(void **state)
{
	(void)state;
	struct collector_of_serials one = {0}, two = {0};
	struct pipeline_config config = {.sinks = {{collect, &one}, {collect, &two}}, .n_sinks = 2};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	assert_null(feed_one(pipeline, PERF_RECORD_COMM, 7));
	assert_int_equal(one.n, 1);
	assert_int_equal(two.n, 1);
	assert_int_equal(pipeline_failure_fd(pipeline), -1);
	assert_null(pipeline_finish(pipeline));
	pipeline_close(pipeline);
	mem_free(one.serials);
	mem_free(two.serials);
}

/* A sink that stands still: the feeding side goes on, and says what it dropped. */
static void pipeline_drops_samples_before_side_band_and_counts(void **state)
{
	(void)state;
	sem_t gate;
	sem_init(&gate, 0, 0);
	struct collector_of_serials sink = {.gate = &gate};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true, .max_blocks = 2};
	struct pipeline *pipeline;
	stats_reset();
	assert_null(pipeline_open(&config, &pipeline));
	enum { N = 50000, EVERY = 50 };
	size_t n_side_band = 0;
	for (uint64_t i = 0; i < N; i++) {
		bool is_side_band = i % EVERY == 0;
		n_side_band += is_side_band;
		assert_null(feed_one(pipeline,
				     is_side_band ? PERF_RECORD_MMAP2 : PERF_RECORD_SAMPLE, i));
	}
	for (size_t i = 0; i < N; i++)
		sem_post(&gate);
	assert_null(pipeline_finish(pipeline));
	struct pipeline_losses losses = pipeline_get_losses(pipeline);
	assert_true(losses.samples > 0);
	assert_int_equal(losses.others, 0);
	assert_int_equal(sink.n - sink.n_samples, n_side_band);
	assert_int_equal(sink.n + losses.samples, N);
	assert_int_equal(stats_get(STAT_MAILBOX_DROPPED), losses.samples);
	for (size_t i = 1; i < sink.n; i++)
		assert_true(sink.serials[i] > sink.serials[i - 1]);
	pipeline_close(pipeline);
	mem_free(sink.serials);
	sem_destroy(&gate);
}

static void pipeline_bounds_side_band_too(void **state)
{
	(void)state;
	sem_t gate;
	sem_init(&gate, 0, 0);
	struct collector_of_serials sink = {.gate = &gate};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true, .max_blocks = 1};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	enum { N = 100 * RECORD_BLOCK_RECORDS };
	for (uint64_t i = 0; i < N; i++)
		assert_null(feed_one(pipeline, PERF_RECORD_MMAP2, i));
	for (size_t i = 0; i < N; i++)
		sem_post(&gate);
	assert_null(pipeline_finish(pipeline));
	struct pipeline_losses losses = pipeline_get_losses(pipeline);
	assert_true(losses.others > 0);
	assert_int_equal(sink.n + losses.others, N);
	pipeline_close(pipeline);
	mem_free(sink.serials);
	sem_destroy(&gate);
}

static void pipeline_tells_of_a_sink_that_failed(void **state)
{
	(void)state;
	struct collector_of_serials sink = {.failure = error_new(ERROR_IO, "disk full")};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, 1));
	pipeline_flush(pipeline);
	struct pollfd fd = {.fd = pipeline_failure_fd(pipeline), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, 2));
	struct error *err = pipeline_finish(pipeline);
	assert_non_null(err);
	assert_string_equal(error_text(err), "disk full");
	error_free(err);
	assert_int_equal(sink.n, 1);
	pipeline_close(pipeline);
	mem_free(sink.serials);
}

/* Counts what its sink has when it runs, and can stand still meanwhile. */
struct call {
	const struct collector_of_serials *sink;
	size_t n_before;
	sem_t *gate;
	struct error *failure;
};

static struct error *note_sink(void *context)
{
	struct call *call = context;
	call->n_before = call->sink->n;
	if (call->gate)
		sem_wait(call->gate);
	return call->failure;
}

static void wait_for_call(struct pipeline *pipeline)
{
	struct pollfd fd = {.fd = pipeline_call_fd(pipeline), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_false(pipeline_is_calling(pipeline));
	assert_int_equal(poll(&fd, 1, 0), 0);
}

static void pipeline_calls_between_records_and_drops_none_meanwhile(void **state)
{
	(void)state;
	sem_t gate;
	sem_init(&gate, 0, 0);
	struct collector_of_serials sink = {0};
	struct call call = {.sink = &sink, .gate = &gate};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true, .max_blocks = 2};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	assert_false(pipeline_is_calling(pipeline));
	enum { N_BEFORE = 1500, N = 200 * RECORD_BLOCK_RECORDS };
	for (uint64_t i = 0; i < N; i++) {
		if (i == N_BEFORE)
			pipeline_call(pipeline, note_sink, &call);
		assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, i));
		if (i % 1000 == 0)
			pipeline_flush(pipeline);
	}
	assert_true(pipeline_is_calling(pipeline));
	sem_post(&gate);
	wait_for_call(pipeline);
	/* The thread catches up: still nothing is dropped. */
	for (uint64_t i = N; i < N + 10 * RECORD_BLOCK_RECORDS; i++)
		assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, i));
	/* And once more, with the end behind it. */
	sem_post(&gate);
	struct call last = {.sink = &sink, .gate = &gate};
	pipeline_call(pipeline, note_sink, &last);
	assert_null(pipeline_finish(pipeline));
	assert_false(pipeline_is_calling(pipeline));
	assert_int_equal(call.n_before, N_BEFORE);
	assert_int_equal(last.n_before, N + 10 * RECORD_BLOCK_RECORDS);
	assert_int_equal(sink.n, N + 10 * RECORD_BLOCK_RECORDS);
	for (size_t i = 0; i < sink.n; i++)
		assert_int_equal(sink.serials[i], i);
	assert_int_equal(pipeline_get_losses(pipeline).samples, 0);
	pipeline_close(pipeline);
	mem_free(sink.serials);
	sem_destroy(&gate);
}

static void pipeline_bounds_what_waits_for_a_call(void **state)
{
	(void)state;
	sem_t gate;
	sem_init(&gate, 0, 0);
	struct collector_of_serials sink = {0};
	struct call call = {.sink = &sink, .gate = &gate};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true, .max_blocks = 1};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	pipeline_call(pipeline, note_sink, &call);
	enum { N = 1100 * RECORD_BLOCK_RECORDS };
	for (uint64_t i = 0; i < N; i++)
		assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, i));
	sem_post(&gate);
	assert_null(pipeline_finish(pipeline));
	uint64_t n_lost = pipeline_get_losses(pipeline).samples;
	assert_true(n_lost > 0);
	assert_int_equal(sink.n + n_lost, N);
	pipeline_close(pipeline);
	mem_free(sink.serials);
	sem_destroy(&gate);
}

static void pipeline_takes_the_error_of_a_call_for_a_sinks(void **state)
{
	(void)state;
	struct collector_of_serials sink = {0};
	struct call call = {.sink = &sink, .failure = error_new(ERROR_IO, "disk full")};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	pipeline_call(pipeline, note_sink, &call);
	struct pollfd fd = {.fd = pipeline_failure_fd(pipeline), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 10000), 1);
	wait_for_call(pipeline);
	struct error *err = pipeline_finish(pipeline);
	assert_non_null(err);
	assert_string_equal(error_text(err), "disk full");
	error_free(err);
	pipeline_close(pipeline);
}

static void pipeline_closes_without_having_finished(void **state)
{
	(void)state;
	struct collector_of_serials sink = {0};
	struct pipeline_config config = {
		.sinks = {{collect, &sink}}, .n_sinks = 1, .is_threaded = true};
	struct pipeline *pipeline;
	assert_null(pipeline_open(&config, &pipeline));
	assert_null(feed_one(pipeline, PERF_RECORD_SAMPLE, 1));
	pipeline_close(pipeline);
	pipeline_close(NULL);
	mem_free(sink.serials);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline_keeps_order_and_bytes_on_its_thread),
		cmocka_unit_test(pipeline_without_thread_passes_straight_on),
		cmocka_unit_test(pipeline_drops_samples_before_side_band_and_counts),
		cmocka_unit_test(pipeline_bounds_side_band_too),
		cmocka_unit_test(pipeline_tells_of_a_sink_that_failed),
		cmocka_unit_test(pipeline_calls_between_records_and_drops_none_meanwhile),
		cmocka_unit_test(pipeline_bounds_what_waits_for_a_call),
		cmocka_unit_test(pipeline_takes_the_error_of_a_call_for_a_sinks),
		cmocka_unit_test(pipeline_closes_without_having_finished),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
