/* SPDX-License-Identifier: Apache-2.0 */
/* What Push is sent, read by the code that protoc-c made of the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <proto/pyroscope_push.pb-c.h>

#include "forwarder/pyroscope.h"
#include "forwarder/series.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "tests/unit/forwarder/collected_requests.h"

static struct collected_requests all;
static const struct key_value plain_labels[] = {{"node", "host-1"}, {"service_name", "gitaly"}};

static void encode(const struct exporter_config *config, const struct profile *profile,
		   const struct key_value *labels, size_t n)
{
	const struct outgoing_profile outgoing = {
		.profile = profile, .name = "process_cpu", .labels = labels, .n_labels = n};
	collected_requests_fini(&all);
	assert_null(backend_pyroscope.encode(config, &outgoing, collect_request, &all));
}

/* The labels of request i as text, and its profile. */
static struct profile *unpack(size_t i, char *text, size_t n)
{
	Push__V1__PushRequest *request =
		push__v1__push_request__unpack(NULL, all.items[i].n, all.items[i].message);
	assert_non_null(request);
	assert_int_equal(request->n_series, 1);
	const Push__V1__RawProfileSeries *series = request->series[0];
	assert_int_equal(series->n_samples, 1);
	size_t used = 0;
	for (size_t k = 0; k < series->n_labels; k++)
		used += (size_t)snprintf(text + used, n - used, "%s%s=%s", k ? " " : "",
					 series->labels[k]->name, series->labels[k]->value);
	struct profile *profile;
	assert_null(pprof_read(series->samples[0]->raw_profile.data,
			       series->samples[0]->raw_profile.len, NULL, &profile, NULL));
	push__v1__push_request__free_unpacked(request, NULL);
	return profile;
}

static int64_t total(const struct profile *profile, uint32_t column)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		sum += profile_value(profile, i, column);
	return sum;
}

/* "key=text" or "key=#number" of all labels of a sample. */
static const char *sample_labels(const struct profile *profile, uint32_t sample)
{
	static char text[8192];
	size_t used = 0;
	struct profile_label_set set =
		profile->label_sets.items[profile->samples.items[sample].label_set];
	text[0] = 0;
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(profile, set.first + i);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s%s",
					 i ? " " : "", profile_text(profile, label.key),
					 label.is_number ? "#" : "",
					 profile_text(profile, label.str));
	}
	return text;
}

static void pyroscope_sends_one_series_with_labelled_samples(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {.remote = {.gzip = true}};
	encode(&config, profile, plain_labels, 2);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.n_samples, 10);
	assert_int_equal(all.n_profiles, 1);
	char labels[1024];
	struct profile *sent = unpack(0, labels, sizeof(labels));
	assert_string_equal(labels, "__name__=process_cpu node=host-1 service_name=gitaly");
	assert_int_equal(total(sent, 0), 10);
	assert_int_equal(total(sent, 1), 100000000);
	/* Without pid, which is never a label of a series, {app,0} and {app,100} differ by stack.
	 */
	assert_string_equal(sample_labels(sent, 0), "comm=app");
	assert_string_equal(sample_labels(sent, 3), "comm=other");
	assert_string_equal(sample_labels(sent, 4), "");
	profile_free(sent);
	profile_free(profile);
}

static void pyroscope_always_has_a_service_name(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {0};
	char labels[1024];
	encode(&config, profile, plain_labels, 1);
	profile_free(unpack(0, labels, sizeof(labels)));
	assert_string_equal(labels,
			    "__name__=process_cpu node=host-1 service_name=unknown_service");
	const struct key_value empty = {"service_name", ""};
	encode(&config, profile, &empty, 1);
	profile_free(unpack(0, labels, sizeof(labels)));
	assert_string_equal(labels, "__name__=process_cpu service_name=unknown_service");
	profile_free(profile);
}

static void pyroscope_turns_numbers_that_name_into_text(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "cpu-clock", "count");
	profile->period_type = profile->sample_types.items[0];
	struct profile_label size = made_up_number_label(profile, "bytes", 4096);
	size.unit = profile_string(profile, "bytes");
	struct profile_label labels[] = {
		made_up_number_label(profile, "cpu", 3),
		made_up_number_label(profile, "tid", 7),
		made_up_text_label(profile, "cgroup", "repos-1"),
		made_up_text_label(profile, "correlation_id", "01H"),
		made_up_text_label(profile, "span id", "x"),
		made_up_text_label(profile, "node", "other"),
		size,
	};
	const int64_t one = 1;
	(void)profile_add_sample(profile, 0, profile_label_set(profile, labels, 7), &one);
	labels[2] = made_up_text_label(profile, "cgroup", "repos-2");
	(void)profile_add_sample(profile, 0, profile_label_set(profile, labels, 7), &one);
	struct exporter_config config = {0};
	char text[1024];
	encode(&config, profile, plain_labels, 2);
	struct profile *sent = unpack(0, text, sizeof(text));
	assert_int_equal(sent->samples.n, 1); /* cgroup is folded unless asked for */
	assert_int_equal(total(sent, 0), 2);
	assert_string_equal(sample_labels(sent, 0), "cpu=3 exported_node=other span_id=x");
	assert_string_equal(profile_text(sent, sent->sample_types.items[0].type), "cpu_clock");
	profile_free(sent);
	/* Asked for: an own list that does not name it. */
	static const char *const dropped[] = {"cpu"};
	config.drop_labels = dropped;
	config.n_drop_labels = 1;
	encode(&config, profile, plain_labels, 2);
	sent = unpack(0, text, sizeof(text));
	assert_int_equal(sent->samples.n, 2);
	assert_string_equal(sample_labels(sent, 1), "cgroup=repos-2 exported_node=other span_id=x");
	profile_free(sent);
	profile_free(profile);
}

static void pyroscope_keeps_to_thirty_labels_of_their_lengths(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	static char names[40][24];
	static char value[5001];
	memset(value, 'v', sizeof(value) - 1);
	memcpy(value + 2044, "\xc3\xa9", 2); /* across the limit */
	struct key_value labels[24];
	struct profile_label sample[16];
	for (int i = 0; i < 40; i++)
		snprintf(names[i], sizeof(names[i]), "label_%02d", i);
	for (int i = 0; i < 23; i++)
		labels[i] = (struct key_value){names[i], i ? "x" : value};
	labels[23] = (struct key_value){"service_name", "last"};
	for (int i = 0; i < 16; i++)
		sample[i] = made_up_text_label(profile, names[24 + i], i ? "y" : value);
	const int64_t one = 1;
	(void)profile_add_sample(profile, 0, profile_label_set(profile, sample, 16), &one);
	struct exporter_config config = {0};
	static char text[16384];
	encode(&config, profile, labels, 24);
	struct profile *sent = unpack(0, text, sizeof(text));
	unsigned n_series = 1;
	for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' '))
		n_series++;
	assert_int_equal(n_series, 25); /* service_name, 23, __name__ */
	assert_non_null(strstr(text, "service_name=last"));
	struct profile_label_set set = sent->label_sets.items[sent->samples.items[0].label_set];
	assert_int_equal(set.n + n_series, 30);
	const char *cut = profile_text(sent, profile_label_at(sent, set.first).str);
	assert_int_equal(strlen(cut), 2047); /* the character that would be cut goes */
	assert_string_equal(cut + 2044, "...");
	profile_free(sent);
	/* Labels of the series alone can be too many. */
	static struct key_value many[41];
	for (int i = 0; i < 40; i++)
		many[i] = (struct key_value){names[i], "x"};
	many[40] = (struct key_value){"service_name", "last"};
	encode(&config, profile, many, 41);
	sent = unpack(0, text, sizeof(text));
	assert_non_null(strstr(text, "service_name=last"));
	assert_null(strstr(text, "label_28"));
	assert_non_null(strstr(text, "label_27"));
	assert_string_equal(sample_labels(sent, 0), "");
	profile_free(sent);
	profile_free(profile);
}

static void pyroscope_splits_at_16000_samples_and_4_mib(void **state)
{
	(void)state;
	struct profile *profile = collected_large_profile(40000, 0);
	struct exporter_config config = {.remote = {.gzip = true}};
	char text[1024];
	encode(&config, profile, plain_labels, 2);
	assert_true(all.n >= 3);
	assert_int_equal(all.n_samples, 40010);
	int64_t sum = 0;
	for (size_t i = 0; i < all.n; i++) {
		struct profile *sent = unpack(i, text, sizeof(text));
		assert_true(sent->samples.n <= 16000);
		assert_true(pprof_encode_count_bytes(sent) <= 4 << 20);
		sum += total(sent, 0);
		profile_free(sent);
	}
	assert_int_equal(sum, 40010);
	/* Long names fill the bytes before the samples. */
	struct profile *wide = profile_new();
	profile_add_sample_type(wide, "samples", "count");
	static char name[4001];
	for (uint32_t i = 0; i < 3000; i++) {
		memset(name, 'n', sizeof(name) - 1);
		name[snprintf(name, sizeof(name), "%u", i)] = '_';
		uint32_t location = made_up_location(wide, PROFILE_NONE, i + 1, name, 1);
		const int64_t one = 1;
		(void)profile_add_sample(wide, profile_stack(wide, &location, 1), 0, &one);
	}
	encode(&config, wide, plain_labels, 2);
	assert_true(all.n >= 3 && all.n <= 8);
	for (size_t i = 0; i < all.n; i++) {
		struct profile *sent = unpack(i, text, sizeof(text));
		assert_true(pprof_encode_count_bytes(sent) <= 4 << 20);
		profile_free(sent);
	}
	assert_int_equal(all.n_samples, 3000);
	profile_free(wide);
	profile_free(profile);
}

static void pyroscope_marks_what_it_cuts_from_deep_stacks(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	static uint32_t path[1500];
	char name[16];
	for (uint32_t i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		path[i] = made_up_location(profile, PROFILE_NONE, i + 1, name, 1);
	}
	const int64_t one = 1;
	/* Root first; the second lacks the frame f700, which is cut from the first. */
	(void)profile_add_sample(profile, profile_stack_path(profile, path, 1500), 0, &one);
	memmove(path + 700, path + 701, (1499 - 700) * sizeof(*path));
	(void)profile_add_sample(profile, profile_stack_path(profile, path, 1499), 0, &one);
	(void)profile_add_sample(profile, profile_stack_path(profile, path, 1000), 0, &one);
	struct exporter_config config = {0};
	char text[1024];
	encode(&config, profile, plain_labels, 2);
	struct profile *sent = unpack(0, text, sizeof(text));
	assert_int_equal(sent->samples.n, 2); /* the two are one now */
	assert_int_equal(total(sent, 0), 3);
	uint32_t depth = 0;
	const char *names[1001];
	for (uint32_t node = sent->samples.items[0].stack; node;
	     node = sent->stacks.items[node].parent) {
		const struct profile_location *location =
			&sent->locations.items[sent->stacks.items[node].location];
		assert_true(depth < 1000);
		names[depth++] = profile_text(
			sent,
			sent->functions.items[sent->lines.items[location->first_line].function]
				.name);
	}
	assert_int_equal(depth, 1000);
	assert_string_equal(names[0], "f1499");
	assert_string_equal(names[499], "f1000");
	assert_string_equal(names[500], SERIES_TRUNCATED);
	assert_string_equal(names[501], "f498");
	assert_string_equal(names[999], "f0");
	profile_free(sent);
	profile_free(profile);
}

static void pyroscope_gives_every_frame_a_place(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	static char name[70001];
	memset(name, 'x', sizeof(name) - 1);
	struct profile_mapping app = {.memory_start = 0x1000,
				      .memory_limit = 0x9000,
				      .filename = profile_string(profile, "/bin/app"),
				      /* A lie: one location of it has no name. */
				      .has_functions = true};
	uint32_t mapping = profile_add_mapping(profile, &app);
	const uint32_t path[] = {
		made_up_location(profile, mapping, 0x1234, name, 3),
		profile_add_location(profile, mapping, 0x2345),
		made_up_location(profile, PROFILE_NONE, 0, "no mapping", 1),
		profile_add_location(profile, mapping, 0),
	};
	const int64_t one = 1;
	(void)profile_add_sample(profile, profile_stack_path(profile, path, 4), 0, &one);
	struct exporter_config config = {0};
	char text[1024];
	encode(&config, profile, plain_labels, 2);
	struct profile *sent = unpack(0, text, sizeof(text));
	assert_int_equal(sent->locations.n, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_location *location = &sent->locations.items[i];
		assert_true(location->mapping < sent->mappings.n);
		assert_true(location->address || location->n_lines);
	}
	assert_int_equal(sent->mappings.n, 2);
	assert_false(sent->mappings.items[0].has_functions);
	/* The longest name is cut and says so. */
	const char *cut = profile_text(sent, sent->functions.items[0].name);
	assert_int_equal(strlen(cut), 65535);
	assert_string_equal(cut + 65532, "...");
	for (uint32_t i = 0; i < sent->strings.n; i++)
		assert_true(sent->strings.entries[i].size <= 65535);
	profile_free(sent);
	profile_free(profile);
}

static void pyroscope_splits_a_request_in_halves(void **state)
{
	(void)state;
	struct profile *profile = collected_large_profile(500, 10);
	struct exporter_config config = {.remote = {.gzip = true}};
	encode(&config, profile, plain_labels, 2);
	assert_int_equal(all.n, 1);
	size_t n = all.items[0].n;
	uint8_t *message = mem_copy(all.items[0].message, n);
	collected_requests_fini(&all);
	assert_null(backend_pyroscope.split(&config, message, n, collect_request, &all));
	assert_int_equal(all.n, 2);
	assert_int_equal(all.n_samples, 510);
	char text[1024];
	int64_t sum = 0;
	for (size_t i = 0; i < 2; i++) {
		struct profile *sent = unpack(i, text, sizeof(text));
		assert_string_equal(text, "__name__=process_cpu node=host-1 service_name=gitaly");
		sum += total(sent, 0);
		profile_free(sent);
	}
	assert_int_equal(sum, 510);
	mem_free(message);
	profile_free(profile);
}

static void pyroscope_judges_as_its_table_says(void **state)
{
	(void)state;
	static const struct {
		enum grpc_code code;
		const char *message;
		enum backend_verdict verdict;
		enum backend_reason reason;
	} cases[] = {
		{GRPC_OK, "", BACKEND_DELIVERED, BACKEND_REASON_NONE},
		{GRPC_UNKNOWN, "", BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_INVALID_ARGUMENT, "bad label", BACKEND_REJECT, BACKEND_REASON_REJECTED},
		{GRPC_INVALID_ARGUMENT,
		 "profile with labels '{}' is outside of ingestion window (profile timestamp: x)",
		 BACKEND_REJECT, BACKEND_REASON_TOO_OLD},
		{GRPC_INVALID_ARGUMENT,
		 "the profile with labels '{}' exceeds the size limit (max_profile_size_byte)",
		 BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE},
		{GRPC_INVALID_ARGUMENT,
		 "the profile with labels '{}' exceeds the samples count limit", BACKEND_SPLIT,
		 BACKEND_REASON_TOO_LARGE},
		{GRPC_RESOURCE_EXHAUSTED,
		 "push rate limit (4 MB) exceeded: the request is too large", BACKEND_RETRY,
		 BACKEND_REASON_RATE_LIMITED},
		{GRPC_RESOURCE_EXHAUSTED, "message size 5 is larger than configured max 4",
		 BACKEND_SPLIT, BACKEND_REASON_TOO_LARGE},
		{GRPC_UNAUTHENTICATED, "no org id", BACKEND_RETRY_AUTH, BACKEND_REASON_AUTH},
		{GRPC_UNIMPLEMENTED, "", BACKEND_REJECT, BACKEND_REASON_REJECTED},
		{GRPC_INTERNAL, "", BACKEND_RETRY, BACKEND_REASON_UNAVAILABLE},
		{GRPC_DEADLINE_EXCEEDED, "", BACKEND_RETRY, BACKEND_REASON_TIMEOUT},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct backend_answer answer = collected_answer(
			&backend_pyroscope, collected_result(cases[i].code, cases[i].message));
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
		cmocka_unit_test(pyroscope_sends_one_series_with_labelled_samples),
		cmocka_unit_test(pyroscope_always_has_a_service_name),
		cmocka_unit_test(pyroscope_turns_numbers_that_name_into_text),
		cmocka_unit_test(pyroscope_keeps_to_thirty_labels_of_their_lengths),
		cmocka_unit_test(pyroscope_splits_at_16000_samples_and_4_mib),
		cmocka_unit_test(pyroscope_marks_what_it_cuts_from_deep_stacks),
		cmocka_unit_test(pyroscope_gives_every_frame_a_place),
		cmocka_unit_test(pyroscope_splits_a_request_in_halves),
		cmocka_unit_test(pyroscope_judges_as_its_table_says),
	};
	return cmocka_run_group_tests(tests, NULL, finish);
}
