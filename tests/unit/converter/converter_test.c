/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/stats.h"
#include "converter/converter.h"
#include "proto/pprof_encode.h"
#include "tests/support/profile_dump.h"
#include "tests/support/record_maker.h"

enum { N_EVENTS = 3 };

struct fixture {
	struct perf_event_info events[N_EVENTS];
	struct perf_source_info source;
	struct record_maker maker;
	struct symcache *cache;
	struct converter *converter;
	struct converter_config config;
	struct buf text;
};

static void set_event(struct fixture *f, uint32_t i, char *name, uint32_t type, uint64_t config)
{
	struct perf_event_info *event = &f->events[i];
	event->name = name;
	event->attr.type = type;
	event->attr.config = config;
	event->attr.sample_period = 100;
	event->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				  PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
				  PERF_SAMPLE_IDENTIFIER;
	perf_attr_set(&event->attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&event->attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	event->layout = sample_layout_of(&event->attr);
}

static void open_converter(struct fixture *f)
{
	converter_free(f->converter);
	f->converter = converter_new(&f->config, &f->source, f->cache);
}

static void fixture_init(struct fixture *f, uint32_t n_events, bool is_swapped)
{
	*f = (struct fixture){.config = {.labels = CONVERTER_LABEL_DEFAULT}};
	set_event(f, 0, "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	set_event(f, 1, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	set_event(f, 2, "dummy:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	f->source = (struct perf_source_info){
		.events = f->events, .n_events = n_events, .is_swapped = is_swapped};
	record_maker_init(&f->maker, is_swapped);
	f->maker.trailer = &f->events[0].attr;
	buf_init(&f->text, (size_t)1 << 28);
	const struct symcache_config config = {.no_symbols = true, .sysroot = "/nonexistent"};
	f->cache = symcache_new(&config);
	open_converter(f);
}

static void fixture_fini(struct fixture *f)
{
	converter_free(f->converter);
	symcache_free(f->cache);
	record_maker_fini(&f->maker);
	buf_fini(&f->text);
}

static void sample_of(struct fixture *f, uint32_t event, uint32_t pid, uint32_t tid,
		      uint64_t period, const uint64_t *chain, size_t n)
{
	f->maker.event_index = event;
	const struct record_maker_sample sample = {
		.ip = n ? chain[n - 1] : 0x400000,
		.pid = pid,
		.tid = tid,
		.period = period,
		.chain = chain,
		.n_chain = n,
	};
	record_maker_sample(&f->maker, PERF_RECORD_MISC_USER, &f->events[event].attr, &sample);
}

static void user_sample(struct fixture *f, uint32_t event, uint32_t pid, uint64_t period,
			uint64_t address)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, address};
	sample_of(f, event, pid, pid, period, chain, 2);
}

static void feed_in_batches(struct fixture *f, size_t batch)
{
	for (size_t i = 0; i < f->maker.n; i += batch) {
		size_t n = f->maker.n - i < batch ? f->maker.n - i : batch;
		assert_null(converter_feed(f->converter, f->maker.records + i, n));
	}
}

static struct profile *finish(struct fixture *f)
{
	struct profile *profile = NULL;
	assert_null(converter_finish(f->converter, NULL, NULL, &profile));
	const struct converter_totals *t = converter_get_totals(f->converter);
	assert_int_equal(t->taken, t->written + t->malformed + t->no_event + t->filtered);
	return profile;
}

static struct profile *convert(struct fixture *f)
{
	feed_in_batches(f, f->maker.n + 1);
	return finish(f);
}

static int64_t sum_column(const struct profile *profile, uint32_t column)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		sum += profile_value(profile, i, column);
	return sum;
}

static bool has_comment(const struct profile *profile, const char *text)
{
	for (uint32_t i = 0; i < profile->comments.n; i++) {
		if (strstr(profile_text(profile, profile->comments.items[i]), text))
			return true;
	}
	return false;
}

static void converter_without_records_gives_an_empty_profile(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < N_EVENTS; n++) {
		struct fixture f;
		fixture_init(&f, n, false);
		struct profile *profile = convert(&f);
		assert_int_equal(profile->samples.n, 0);
		assert_true(profile->sample_types.n > 0);
		profile_free(profile);
		fixture_fini(&f);
	}
	converter_free(NULL);
}

/* FR-79: each sample weighs its period, each event has its columns. */
static void converter_adds_periods_per_event(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 3, false);
	for (uint64_t i = 0; i < 5; i++)
		user_sample(&f, 1, 10, i == 4 ? 74 : 1, 0x400100);
	for (uint64_t i = 0; i < 100; i++)
		user_sample(&f, 0, 10, 2004008, 0x400100);
	user_sample(&f, 2, 10, 1, 0x400100); /* of the dummy */
	struct profile *profile = convert(&f);
	static const int64_t want[] = {100, 200400800, 5, 78};
	for (uint32_t column = 0; column < 4; column++)
		assert_int_equal(sum_column(profile, column), want[column]);
	assert_int_equal(converter_get_totals(f.converter)->filtered, 1);
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_keeps_one_event_when_asked(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 3, false);
	f.config.event = "page-faults";
	open_converter(&f);
	user_sample(&f, 0, 10, 1000, 0x400100);
	user_sample(&f, 1, 10, 7, 0x400100);
	user_sample(&f, 1, 10, 8, 0x400200);
	struct profile *profile = convert(&f);
	assert_int_equal(profile->sample_types.n, 2);
	assert_int_equal(sum_column(profile, 0), 2);
	assert_int_equal(sum_column(profile, 1), 15);
	assert_int_equal(converter_get_totals(f.converter)->filtered, 1);
	assert_true(has_comment(profile, "left_out: 1"));
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_names_the_events_there_are_when_asked_for_another(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 3, false);
	f.config.event = "instructions";
	open_converter(&f);
	user_sample(&f, 0, 10, 1000, 0x400100);
	feed_in_batches(&f, 1);
	struct profile *profile = NULL;
	struct error *err = converter_finish(f.converter, NULL, NULL, &profile);
	assert_non_null(err);
	assert_null(profile);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	assert_int_equal(error_get_number(err), 612);
	assert_non_null(strstr(error_text(err), "instructions"));
	assert_non_null(strstr(error_text(err), "cpu-clock, page-faults"));
	error_free(err);
	fixture_fini(&f);
}

static void group_sample(struct fixture *f, uint64_t clock_ns, uint64_t faults)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x400100};
	const struct record_maker_sample sample = {
		.ip = 0x400100,
		.pid = 10,
		.tid = 10,
		.period = 4711,
		.n_values = 3,
		.values = {clock_ns, faults, 1},
		.value_ids = {1, 2, 99},
		.chain = chain,
		.n_chain = 2,
	};
	f->maker.event_index = 0;
	record_maker_sample(&f->maker, PERF_RECORD_MISC_USER, &f->events[0].attr, &sample);
}

static void converter_adds_what_members_counted_to_the_sample_of_their_group(void **state)
{
	(void)state;
	uint64_t clock_id = 1, faults_id = 2;
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture f;
		fixture_init(&f, 2, is_swapped);
		f.events[0].attr.sample_type |= PERF_SAMPLE_READ;
		f.events[0].attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		f.events[0].ids = &clock_id;
		f.events[1].ids = &faults_id;
		f.events[0].n_ids = f.events[1].n_ids = 1;
		f.events[1].attr.sample_period = 0;
		group_sample(&f, 1000, 5);
		group_sample(&f, 2100, 5);
		group_sample(&f, 3300, 9);
		struct profile *profile = convert(&f);
		assert_int_equal(sum_column(profile, 0), 3);
		assert_int_equal(sum_column(profile, 1), 3 * 4711);
		assert_int_equal(sum_column(profile, 2), 0);
		assert_int_equal(sum_column(profile, 3), 9);
		const struct converter_totals *t = converter_get_totals(f.converter);
		assert_int_equal(t->taken, 3);
		assert_int_equal(t->written, 3);
		profile_free(profile);
		fixture_fini(&f);
	}
}

static void converter_states_what_was_lost_and_never_adds_it_up(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	record_maker_lost(&f.maker, 40);
	record_maker_lost(&f.maker, 2);
	record_maker_lost_samples(&f.maker, 7);
	record_maker_begin(&f.maker, PERF_RECORD_THROTTLE, 0);
	for (int i = 0; i < 3; i++)
		record_maker_u64(&f.maker, 1);
	record_maker_end(&f.maker);
	struct profile *profile = convert(&f);
	const struct converter_totals *t = converter_get_totals(f.converter);
	assert_int_equal(t->lost_events, 42);
	assert_int_equal(t->lost_samples, 7);
	assert_int_equal(t->throttled, 1);
	assert_true(has_comment(profile, "lost_events: 42"));
	assert_true(has_comment(profile, "lost_samples: 7"));
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_counts_what_it_cannot_read_or_does_not_know(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	user_sample(&f, 0, 10, 1, 0x400100);
	f.maker.records[0].size -= 8; /* a sample cut short */
	user_sample(&f, 0, 10, 1, 0x400100);
	f.maker.records[1].event_index = PERF_EVENT_INDEX_NONE;
	record_maker_comm(&f.maker, 1, 1, "x", false);
	f.maker.records[2].size = 12;
	for (uint32_t type = 40; type < 43; type++) {
		record_maker_begin(&f.maker, type, 0);
		record_maker_end(&f.maker);
	}
	record_maker_begin(&f.maker, PERF_RECORD_FINISHED_ROUND, 0); /* known, and nothing to us */
	record_maker_end(&f.maker);
	record_maker_begin(&f.maker, 200, 0);
	record_maker_end(&f.maker);
	struct profile *profile = convert(&f);
	const struct converter_totals *t = converter_get_totals(f.converter);
	assert_int_equal(t->taken, 2);
	assert_int_equal(t->malformed, 1);
	assert_int_equal(t->no_event, 1);
	assert_int_equal(t->malformed_records, 1);
	assert_int_equal(t->unknown_records, 4);
	assert_int_equal(profile->samples.n, 0);
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_windows_do_not_share_samples(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	const struct record_maker_file file = {.path = "/bin/app"};
	record_maker_comm(&f.maker, 10, 10, "app", true);
	record_maker_mmap2(&f.maker, 10, 0x400000, 0x10000, 0, &file);
	f.maker.time_ns = 1000;
	user_sample(&f, 0, 10, 5, 0x400100);
	f.maker.time_ns = 4000;
	user_sample(&f, 0, 10, 5, 0x400200);
	struct profile *first = convert(&f);
	assert_int_equal(first->samples.n, 2);
	assert_int_equal(first->duration_nanos, 3000);
	record_maker_clear(&f.maker);
	f.maker.time_ns = 9000;
	user_sample(&f, 0, 10, 7, 0x400200);
	struct profile *second = convert(&f);
	assert_int_equal(second->samples.n, 1);
	assert_int_equal(second->locations.n, 1);
	assert_int_equal(sum_column(second, 1), 7);
	assert_int_equal(second->duration_nanos, 0);
	profile_dump(second, &f.text);
	assert_non_null(strstr(buf_string(&f.text), "comm=\"app\" pid=10 | /bin/app+0x200"));
	profile_free(first);
	profile_free(second);
	fixture_fini(&f);
}

/* FR-85: real time where the recording ties its clock to it, else near the file's time. */
static void converter_dates_the_profile(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	f.source.has_clock_pair = true;
	f.source.clock_pair_wall_ns = 1700000000000000000;
	f.source.clock_pair_event_ns = 5000000;
	f.maker.time_ns = 6000000;
	user_sample(&f, 0, 10, 1, 0x400100);
	f.maker.time_ns = 8000000;
	user_sample(&f, 0, 10, 1, 0x400100);
	struct profile *profile = convert(&f);
	assert_int_equal(profile->time_nanos, 1700000000001000000);
	assert_int_equal(profile->duration_nanos, 2000000);
	assert_false(has_comment(profile, "approximate"));
	profile_free(profile);

	f.source.has_clock_pair = false;
	f.source.recorded_at_ns = 1700000000000000000;
	profile = convert(&f);
	assert_int_equal(profile->time_nanos, 1699999999998000000);
	assert_true(has_comment(profile, "approximate"));
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_joins_deferred_user_chains(void **state)
{
	(void)state;
	static const uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010,
					  PERF_CONTEXT_USER_DEFERRED, 42};
	static const uint64_t user[] = {PERF_CONTEXT_USER, 0x400100, 0x400200};
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture f;
		fixture_init(&f, 1, is_swapped);
		const struct record_maker_file file = {.path = "/bin/app"};
		record_maker_mmap2(&f.maker, 10, 0x400000, 0x10000, 0, &file);
		sample_of(&f, 0, 10, 11, 1, kernel, 4);
		sample_of(&f, 0, 10, 11, 1, kernel, 4);
		sample_of(&f, 0, 10, 12, 1, kernel, 4); /* another thread: its part never comes */
		record_maker_deferred(&f.maker, 11, 42, user, 3);
		struct profile *profile = convert(&f);
		profile_dump(profile, &f.text);
		const char *text = buf_string(&f.text);
		assert_int_equal(sum_column(profile, 0), 3);
		assert_non_null(strstr(text,
				       "sample 2 2 comm=\":11\" pid=10 | /bin/app+0x1ff;"
				       "/bin/app+0x100;[kernel.kallsyms]+0xffffffff81000010"));
		assert_non_null(strstr(text, "sample 1 1 comm=\":12\" pid=10 | "
					     "[kernel.kallsyms]+0xffffffff81000010"));
		profile_free(profile);
		fixture_fini(&f);
	}
}

/* A sample waits for its user part while its event loses its column. */
static void converter_drops_a_deferred_sample_whose_event_went(void **state)
{
	(void)state;
	static const uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010,
					  PERF_CONTEXT_USER_DEFERRED, 42};
	struct fixture f;
	fixture_init(&f, 1, false);
	set_event(&f, 0, "dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	open_converter(&f);
	sample_of(&f, 0, 10, 11, 1, kernel, 4);
	feed_in_batches(&f, 1);
	f.source.n_events = 2;
	struct profile *profile = finish(&f);
	assert_int_equal(converter_get_totals(f.converter)->filtered, 1);
	assert_int_equal(profile->samples.n, 0);
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_exec_record_gives_the_command_line(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	f.config.labels = CONVERTER_LABEL_CMDLINE | CONVERTER_LABEL_CGROUP;
	open_converter(&f);
	for (int i = 0; i < 2; i++) { /* of the second program nothing was seen */
		const struct perf_record_perfpipe_exec head = {
			.pid = 10, .tid = 10, .argv_bytes = i ? 0 : 10};
		record_maker_begin(&f.maker, PERF_RECORD_PERFPIPE_EXEC, 0);
		record_maker_bytes(&f.maker, (const char *)&head + sizeof(struct perf_event_header),
				   sizeof(head) - sizeof(struct perf_event_header));
		record_maker_bytes(&f.maker, "cc\0-c\0x.c", head.argv_bytes);
		record_maker_text(&f.maker, i ? "" : "/build");
		record_maker_text(&f.maker, "");
		record_maker_end(&f.maker);
		user_sample(&f, 0, 10, 1, 0x400100);
	}
	struct profile *profile = convert(&f);
	profile_dump(profile, &f.text);
	assert_int_equal(profile->samples.n, 2);
	assert_non_null(
		strstr(buf_string(&f.text), "sample 1 1 cgroup=\"/build\" cmdline=\"cc -c x.c\""));
	assert_non_null(strstr(buf_string(&f.text), "sample 1 1 cgroup=\"/build\" |"));
	profile_free(profile);
	fixture_fini(&f);
}

static void converter_refuses_mappings_that_wrap(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	record_maker_mmap(&f.maker, 10, 0x400000, UINT64_MAX, 0, "/bin/app");
	record_maker_mmap(&f.maker, 10, 0x400000, 0x10000, UINT64_MAX - 0x100, "/bin/app");
	user_sample(&f, 0, 10, 1, 0x400100);
	struct profile *profile = convert(&f);
	assert_int_equal(converter_get_totals(f.converter)->malformed_records, 2);
	profile_dump(profile, &f.text);
	assert_non_null(strstr(buf_string(&f.text), "| [unmapped]\n"));
	profile_free(profile);
	fixture_fini(&f);
}

static void note_progress(void *context, uint64_t done, uint64_t total)
{
	uint64_t *calls = context;
	assert_true(done <= total);
	++*calls;
}

static void converter_tells_of_its_progress(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 1, false);
	const struct record_maker_file file = {.path = "/bin/app"};
	record_maker_mmap2(&f.maker, 10, 0x400000, 0x10000, 0, &file);
	for (uint64_t i = 0; i < 5000; i++)
		user_sample(&f, 0, 10, 1, 0x400000 + i);
	feed_in_batches(&f, 100);
	struct profile *profile = NULL;
	uint64_t calls = 0;
	assert_null(converter_finish(f.converter, note_progress, &calls, &profile));
	assert_true(calls >= 5);
	assert_int_equal(converter_get_totals(f.converter)->n_locations, 5000);
	profile_free(profile);
	fixture_fini(&f);
}

/* --- random streams --- */

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(next_random(seed) % n);
}

static void random_sample(struct fixture *f, uint64_t *seed)
{
	static const uint64_t markers[] = {PERF_CONTEXT_USER, PERF_CONTEXT_KERNEL,
					   PERF_CONTEXT_GUEST_USER, PERF_CONTEXT_USER_DEFERRED,
					   (uint64_t)-7};
	uint64_t chain[40];
	size_t n = below(seed, 4) ? below(seed, 12) : below(seed, 40);
	for (size_t i = 0; i < n; i++) {
		uint32_t kind = below(seed, 10);
		chain[i] = kind == 0  ? markers[below(seed, ARRAY_LEN(markers))]
			   : kind < 8 ? 0x400000 + below(seed, 0x8000)
				      : 0xffffffff81000000 + below(seed, 0x1000);
	}
	if (n >= 2 && below(seed, 8) == 0) {
		chain[n - 2] = PERF_CONTEXT_USER_DEFERRED;
		chain[n - 1] = below(seed, 4);
	}
	uint32_t pid = below(seed, 12);
	sample_of(f, below(seed, N_EVENTS), pid, pid + below(seed, 3), below(seed, 1000), chain, n);
	struct perf_record *record = &f->maker.records[f->maker.n - 1];
	if (below(seed, 30) == 0)
		record->size -= below(seed, record->size - 8);
	if (below(seed, 30) == 0)
		record->event_index = below(seed, 9);
}

static void random_record(struct fixture *f, uint64_t *seed)
{
	static const char *const paths[] = {"/bin/a", "/bin/b", "//anon", "[vdso]", "/lib/c.so"};
	static const char *const comms[] = {"one", "two", "three", "four \xff"};
	const struct record_maker_file file = {.path = paths[below(seed, 5)]};
	uint32_t pid = below(seed, 12);
	f->maker.is_synthetic = below(seed, 5) == 0;
	f->maker.time_ns++;
	switch (below(seed, 24)) {
	case 0:
		record_maker_mmap2(&f->maker, pid, 0x400000 + below(seed, 7) * 0x1000,
				   below(seed, 3) * 0x1000, below(seed, 7) * 0x1000, &file);
		break;
	case 1:
		record_maker_comm(&f->maker, pid, pid + below(seed, 3), comms[below(seed, 4)],
				  below(seed, 2));
		break;
	case 2:
		record_maker_task(&f->maker, PERF_RECORD_FORK, pid, below(seed, 12),
				  pid + below(seed, 2), below(seed, 12));
		break;
	case 3:
		record_maker_task(&f->maker, PERF_RECORD_EXIT, pid, 1, pid, 1);
		break;
	case 4:
		record_maker_ksymbol(&f->maker, 0xffffffff81000000 + below(seed, 8) * 0x100, 0x200,
				     comms[below(seed, 4)], below(seed, 2));
		break;
	case 5: {
		const uint64_t entries[] = {PERF_CONTEXT_USER, 0x400000 + below(seed, 0x8000)};
		record_maker_deferred(&f->maker, pid, below(seed, 4), entries, 2);
		break;
	}
	default:
		random_sample(f, seed);
	}
	f->maker.is_synthetic = false;
}

static void make_stream(struct fixture *f, uint64_t seed, int n)
{
	record_maker_kernel(&f->maker, 0xffffffff81000000, 0x1000, 0xffffffff81000000,
			    "[kernel.kallsyms]_text");
	for (int i = 0; i < n; i++)
		random_record(f, &seed);
}

/* What is read in one place must be found in the metrics: they add up as the totals do. */
static void converter_counts_go_to_the_metrics(void **state)
{
	(void)state;
	struct fixture f;
	stats_reset();
	fixture_init(&f, N_EVENTS, false);
	f.config.event = "page-faults"; /* the others are left out, and counted */
	open_converter(&f);
	make_stream(&f, 4711, 5000);
	feed_in_batches(&f, 100);
	profile_free(finish(&f));
	const struct converter_totals *t = converter_get_totals(f.converter);
	assert_int_equal(stats_get(STAT_SAMPLES_TAKEN), t->taken);
	assert_int_equal(stats_get(STAT_SAMPLES_TAKEN), stats_get(STAT_SAMPLES_WRITTEN) +
								stats_get(STAT_SAMPLES_MALFORMED) +
								stats_get(STAT_SAMPLES_NO_EVENT) +
								stats_get(STAT_SAMPLES_FILTERED));
	assert_int_equal(stats_get(STAT_SAMPLES_WRITTEN), t->written);
	assert_int_equal(stats_get(STAT_RECORDS_READ), f.maker.n);
	fixture_fini(&f);
}

static void converter_keeps_every_sample_of_a_random_stream(void **state)
{
	(void)state;
	for (uint64_t run = 1; run <= 40; run++) {
		struct fixture f;
		fixture_init(&f, N_EVENTS, run % 2);
		f.config.event = run % 5 == 0 ? "page-faults" : NULL;
		f.config.labels = run % 3 ? CONVERTER_LABEL_DEFAULT : 0xff;
		open_converter(&f);
		make_stream(&f, run * 7919, 5000);
		struct profile *profile = convert(&f);
		const struct converter_totals *t = converter_get_totals(f.converter);
		assert_true(t->written > 0);
		assert_true(t->malformed > 0);
		assert_true(t->no_event > 0);
		int64_t n = sum_column(profile, 0);
		if (profile->sample_types.n == 4)
			n += sum_column(profile, 2);
		assert_int_equal(n, t->written);
		profile_free(profile);
		fixture_fini(&f);
	}
}

static struct profile *convert_stream(struct fixture *f, uint64_t seed, size_t batch,
				      bool is_swapped)
{
	fixture_init(f, N_EVENTS, is_swapped);
	f->config.labels = 0xff;
	open_converter(f);
	make_stream(f, seed, 4000);
	feed_in_batches(f, batch);
	struct profile *profile = finish(f);
	profile_dump(profile, &f->text);
	return profile;
}

static void converter_gives_the_same_bytes_for_the_same_input(void **state)
{
	(void)state;
	const struct pprof_encode_options options = {.gzip_level = 0};
	for (uint64_t run = 1; run <= 10; run++) {
		struct buf bytes[2];
		for (int i = 0; i < 2; i++) {
			struct fixture f;
			struct profile *profile = convert_stream(&f, run * 31337, 64, false);
			buf_init(&bytes[i], (size_t)1 << 28);
			assert_null(pprof_encode_buf(profile, &options, &bytes[i]));
			profile_free(profile);
			fixture_fini(&f);
		}
		assert_int_equal(bytes[0].size, bytes[1].size);
		assert_memory_equal(bytes[0].data, bytes[1].data, bytes[0].size);
		buf_fini(&bytes[0]);
		buf_fini(&bytes[1]);
	}
}

static void converter_result_depends_on_neither_batches_nor_byte_order(void **state)
{
	(void)state;
	static const size_t batches[] = {1, 7, 33, 1000, 100000};
	for (uint64_t run = 1; run <= 8; run++) {
		struct fixture base;
		profile_free(convert_stream(&base, run * 104729, 1, false));
		for (size_t b = 0; b < ARRAY_LEN(batches); b++) {
			struct fixture f;
			profile_free(convert_stream(&f, run * 104729, batches[b], b % 2));
			assert_string_equal(buf_string(&f.text), buf_string(&base.text));
			fixture_fini(&f);
		}
		fixture_fini(&base);
	}
}

static void assert_command_comment(char *cmdline, const char *want)
{
	struct fixture f;
	fixture_init(&f, 1, false);
	f.source.cmdline = cmdline;
	user_sample(&f, 0, 10, 1, 0x400100);
	struct profile *profile = convert(&f);
	bool is_there = false;
	for (uint32_t i = 0; i < profile->comments.n; i++)
		is_there |= strcmp(profile_text(profile, profile->comments.items[i]), want) == 0;
	if (!is_there)
		fail_msg("no comment \"%s\" for \"%s\"", want, cmdline);
	profile_free(profile);
	fixture_fini(&f);
}

/* Arguments of a recorded command may be anybody's tokens and paths. */
static void converter_keeps_arguments_of_the_recorded_command_out(void **state)
{
	(void)state;
	assert_command_comment("perf record -F 99 -a -- git clone https://token@host/x",
			       "command: perf record -F 99 -a -- git ...");
	assert_command_comment("perf record -g git clone secret -- x",
			       "command: perf record -g ...");
	assert_command_comment("perfpipe record -a -d 0.5", "command: perfpipe record -a -d 0.5");
	assert_command_comment("perf record -o /srv/repos/x.data -- git --token=t",
			       "command: perf record -o ...");
	assert_command_comment("perfpipe record --  git", "command: perfpipe record --  git");
	assert_command_comment("perf record --", "command: perf record --");
	assert_command_comment("perf", "command: perf");
	assert_command_comment("", "command: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(converter_without_records_gives_an_empty_profile),
		cmocka_unit_test(converter_adds_periods_per_event),
		cmocka_unit_test(converter_keeps_one_event_when_asked),
		cmocka_unit_test(converter_names_the_events_there_are_when_asked_for_another),
		cmocka_unit_test(converter_adds_what_members_counted_to_the_sample_of_their_group),
		cmocka_unit_test(converter_states_what_was_lost_and_never_adds_it_up),
		cmocka_unit_test(converter_counts_what_it_cannot_read_or_does_not_know),
		cmocka_unit_test(converter_windows_do_not_share_samples),
		cmocka_unit_test(converter_dates_the_profile),
		cmocka_unit_test(converter_joins_deferred_user_chains),
		cmocka_unit_test(converter_drops_a_deferred_sample_whose_event_went),
		cmocka_unit_test(converter_exec_record_gives_the_command_line),
		cmocka_unit_test(converter_refuses_mappings_that_wrap),
		cmocka_unit_test(converter_tells_of_its_progress),
		cmocka_unit_test(converter_counts_go_to_the_metrics),
		cmocka_unit_test(converter_keeps_every_sample_of_a_random_stream),
		cmocka_unit_test(converter_gives_the_same_bytes_for_the_same_input),
		cmocka_unit_test(converter_result_depends_on_neither_batches_nor_byte_order),
		cmocka_unit_test(converter_keeps_arguments_of_the_recorded_command_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
