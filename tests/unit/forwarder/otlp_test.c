/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Export is sent. The request is unpacked by the code that protoc-c made of the schema,
 * checked against the rules of receivers, and written out as lines; the profile that went in is
 * written out by itself, and both have to say the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <proto/otlp_collector_profiles.pb-c.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "forwarder/otlp.h"
#include "proto/otlp_encode.h"
#include "proto/otlp_read.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "tests/unit/forwarder/collected_requests.h"

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
	request_message;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary dictionary_message;
typedef Opentelemetry__Proto__Profiles__V1development__Profile profile_message;
typedef Opentelemetry__Proto__Common__V1__AnyValue any_message;
#define ANY(kind) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##kind

static struct collected_requests all;
static const struct key_value plain_labels[] = {
	{"service_name", "gitaly"}, {"node", "host-1"}, {"env", "prod"}};

static void encode(const struct exporter_config *config, const struct profile *profile)
{
	const struct outgoing_profile outgoing = {
		.profile = profile, .name = "process_cpu", .labels = plain_labels, .n_labels = 3};
	collected_requests_fini(&all);
	assert_null(backend_otlp.encode(config, &outgoing, collect_request, &all));
}

static request_message *unpack(size_t i)
{
	request_message *request =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
			NULL, all.items[i].n, all.items[i].message);
	assert_non_null(request);
	return request;
}

static void release(request_message *request)
{
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
		request, NULL);
}

/* Lines, to be sorted and compared. */
struct lines {
	char *items[65536];
	size_t n;
};

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void compare(struct lines *got, struct lines *want)
{
	qsort(got->items, got->n, sizeof(char *), compare_lines);
	qsort(want->items, want->n, sizeof(char *), compare_lines);
	assert_int_equal(got->n, want->n);
	for (size_t i = 0; i < got->n; i++) {
		assert_string_equal(got->items[i], want->items[i]);
		mem_free(got->items[i]);
		mem_free(want->items[i]);
	}
	got->n = want->n = 0;
}

static const char *string(const dictionary_message *d, int32_t index)
{
	assert_in_range(index, 0, d->n_string_table - 1);
	return d->string_table[index];
}

/* " key=value[unit]" */
static void put_attribute(const dictionary_message *d, int32_t index, struct buf *out)
{
	assert_in_range(index, 1, d->n_attribute_table - 1);
	const any_message *value = d->attribute_table[index]->value;
	const char *key = string(d, d->attribute_table[index]->key_strindex);
	const char *unit = string(d, d->attribute_table[index]->unit_strindex);
	assert_non_null(value);
	if (value->value_case == ANY(STRING_VALUE))
		assert_null(buf_printf(out, " %s=%s", key, value->string_value));
	else if (value->value_case == ANY(INT_VALUE))
		assert_null(buf_printf(out, " %s=#%" PRId64 "%s", key, value->int_value, unit));
	else if (value->value_case == ANY(BOOL_VALUE))
		assert_null(buf_printf(out, " %s=%s", key, value->bool_value ? "yes" : "no"));
	else if (value->value_case == ANY(ARRAY_VALUE))
		assert_null(buf_printf(out, " %s=[%zu]", key, value->array_value->n_values));
	else
		fail();
}

static void put_location(const dictionary_message *d, int32_t index, struct buf *out)
{
	assert_in_range(index, 1, d->n_location_table - 1);
	const Opentelemetry__Proto__Profiles__V1development__Location *location =
		d->location_table[index];
	assert_in_range(location->mapping_index, 0, d->n_mapping_table - 1);
	const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping =
		d->mapping_table[location->mapping_index];
	assert_null(buf_printf(out, ";0x%" PRIx64 "@%s(%" PRIx64 "-%" PRIx64 "+%" PRIx64,
			       location->address, string(d, mapping->filename_strindex),
			       mapping->memory_start, mapping->memory_limit, mapping->file_offset));
	for (size_t i = 0; i < mapping->n_attribute_indices; i++)
		put_attribute(d, mapping->attribute_indices[i], out);
	assert_null(buf_printf(out, ")"));
	for (size_t i = 0; i < location->n_lines; i++) {
		assert_in_range(location->lines[i]->function_index, 1, d->n_function_table - 1);
		const Opentelemetry__Proto__Profiles__V1development__Function *function =
			d->function_table[location->lines[i]->function_index];
		assert_null(buf_printf(out, ",%s/%s/%s:%" PRId64 ":%" PRId64 ":%" PRId64,
				       string(d, function->name_strindex),
				       string(d, function->system_name_strindex),
				       string(d, function->filename_strindex), function->start_line,
				       location->lines[i]->line, location->lines[i]->column));
	}
	for (size_t i = 0; i < location->n_attribute_indices; i++)
		put_attribute(d, location->attribute_indices[i], out);
}

static void put_line(struct lines *lines, struct buf *text)
{
	assert_true(lines->n < ARRAY_LEN(lines->items));
	lines->items[lines->n++] = mem_copy_string(buf_string(text));
	buf_clear(text);
}

/* A line for each sample: type value labels stack. */
static void list_samples(const dictionary_message *d, const profile_message *profile,
			 struct lines *out)
{
	CLEANUP(buf_fini) struct buf text;
	buf_init(&text, 1 << 20);
	assert_true(profile->n_samples > 0);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const Opentelemetry__Proto__Profiles__V1development__Sample *sample =
			profile->samples[i];
		assert_int_equal(sample->n_values, 1);
		assert_int_equal(sample->n_timestamps_unix_nano, 0);
		assert_int_equal(sample->link_index, 0);
		assert_null(buf_printf(
			&text, "%s/%s %" PRId64, string(d, profile->sample_type->type_strindex),
			string(d, profile->sample_type->unit_strindex), sample->values[0]));
		for (size_t k = 0; k < sample->n_attribute_indices; k++)
			put_attribute(d, sample->attribute_indices[k], &text);
		assert_in_range(sample->stack_index, 0, d->n_stack_table - 1);
		const Opentelemetry__Proto__Profiles__V1development__Stack *stack =
			d->stack_table[sample->stack_index];
		for (size_t k = 0; k < stack->n_location_indices; k++)
			put_location(d, stack->location_indices[k], &text);
		put_line(out, &text);
	}
}

/* The rules of wire formats' receivers: zero values first, all of it used, nothing twice. */
static void check_dictionary(const dictionary_message *d)
{
	assert_true(d->n_mapping_table && d->n_location_table && d->n_function_table);
	assert_true(d->n_link_table && d->n_string_table && d->n_attribute_table);
	assert_true(d->n_stack_table);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->mapping_table[0]->base), 0);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->location_table[0]->base), 0);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->function_table[0]->base), 0);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->link_table[0]->base), 0);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->attribute_table[0]->base), 0);
	assert_int_equal(protobuf_c_message_get_packed_size(&d->stack_table[0]->base), 0);
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(d->n_link_table, 1);
}

static const struct {
	const char *key, *name;
} translated[] = {{"pid", "process.pid"}, {"cpu", "cpu.logical_number"}};

/* The same from the profile: labels sorted by their names as sent. */
static void list_profile(const struct profile *profile, struct lines *out)
{
	CLEANUP(buf_fini) struct buf text;
	buf_init(&text, 1 << 20);
	for (uint32_t column = 0; column < profile->sample_types.n; column++) {
		for (uint32_t i = 0; i < profile->samples.n; i++) {
			const struct profile_value_type *type =
				&profile->sample_types.items[column];
			if (!profile_value(profile, i, column))
				continue;
			assert_null(buf_printf(&text, "%s/%s %" PRId64,
					       profile_text(profile, type->type),
					       profile_text(profile, type->unit),
					       profile_value(profile, i, column)));
			struct profile_label_set set =
				profile->label_sets.items[profile->samples.items[i].label_set];
			for (uint32_t k = 0; k < set.n; k++) {
				const struct profile_label label =
					profile_label_at(profile, set.first + k);
				const char *key = profile_text(profile, label.key);
				for (size_t t = 0; t < ARRAY_LEN(translated); t++) {
					if (!strcmp(key, translated[t].key))
						key = translated[t].name;
				}
				if (label.is_number)
					assert_null(buf_printf(
						&text, " %s=#%" PRId64 "%s", key, label.num,
						label.unit == label.key
							? ""
							: profile_text(profile, label.unit)));
				else
					assert_null(buf_printf(&text, " %s=%s", key,
							       profile_text(profile, label.str)));
			}
			for (uint32_t node = profile->samples.items[i].stack; node;
			     node = profile->stacks.items[node].parent) {
				const struct profile_location *location =
					&profile->locations
						 .items[profile->stacks.items[node].location];
				const struct profile_mapping *mapping =
					&profile->mappings.items[location->mapping];
				const struct {
					bool is_set;
					const char *name;
				} flags[] = {
					{mapping->has_functions, "functions"},
					{mapping->has_filenames, "filenames"},
					{mapping->has_line_numbers, "line_numbers"},
					{mapping->has_inline_frames, "inline_frames"},
				};
				assert_null(buf_printf(
					&text, ";0x%" PRIx64 "@%s(%" PRIx64 "-%" PRIx64 "+%" PRIx64,
					location->address, profile_text(profile, mapping->filename),
					mapping->memory_start, mapping->memory_limit,
					mapping->file_offset));
				if (mapping->build_id)
					assert_null(buf_printf(
						&text, " process.executable.build_id.gnu=%s",
						profile_text(profile, mapping->build_id)));
				for (size_t f = 0; f < 4; f++) {
					if (flags[f].is_set)
						assert_null(buf_printf(&text,
								       " pprof.mapping.has_%s=yes",
								       flags[f].name));
				}
				assert_null(buf_printf(&text, ")"));
				for (uint32_t k = 0; k < location->n_lines; k++) {
					const struct profile_line *line =
						&profile->lines.items[location->first_line + k];
					const struct profile_function *function =
						&profile->functions.items[line->function];
					assert_null(buf_printf(
						&text, ",%s/%s/%s:%" PRId64 ":%" PRId64 ":%" PRIu32,
						profile_text(profile, function->name),
						profile_text(profile, function->system_name),
						profile_text(profile, function->filename),
						function->start_line, line->line, line->column));
				}
				if (location->is_folded)
					assert_null(
						buf_printf(&text, " pprof.location.is_folded=yes"));
				if (mapping->build_id)
					assert_null(
						buf_printf(&text, " profile.frame.type=native"));
			}
			put_line(out, &text);
		}
	}
}

static struct lines got, want;

static void otlp_sends_what_the_profile_says(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	/* A sample that one column does not count, and a number with a unit of its own. */
	struct profile_label size = made_up_number_label(profile, "size", 64);
	size.unit = profile_string(profile, "bytes");
	const int64_t values[] = {0, 77};
	(void)profile_add_sample(profile, profile->samples.items[0].stack,
				 profile_label_set(profile, &size, 1), values);
	struct exporter_config config = {0};
	encode(&config, profile);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.n_samples, 10);
	assert_int_equal(all.n_profiles, 1);
	request_message *request = unpack(0);
	check_dictionary(request->dictionary);
	assert_int_equal(request->n_resource_profiles, 1);
	const Opentelemetry__Proto__Profiles__V1development__ResourceProfiles *resource =
		request->resource_profiles[0];
	static const struct key_value attributes[] = {
		{"service.name", "gitaly"}, {"host.name", "host-1"}, {"env", "prod"}};
	assert_int_equal(resource->resource->n_attributes, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(resource->resource->attributes[i]->key, attributes[i].key);
		assert_string_equal(resource->resource->attributes[i]->value->string_value,
				    attributes[i].value);
	}
	assert_int_equal(resource->n_scope_profiles, 1);
	assert_string_equal(resource->scope_profiles[0]->scope->name, "process_cpu");
	assert_int_equal(resource->scope_profiles[0]->scope->n_attributes, 2);
	assert_int_equal(resource->scope_profiles[0]->n_profiles, 2);
	for (size_t i = 0; i < 2; i++) {
		const profile_message *column = resource->scope_profiles[0]->profiles[i];
		assert_int_equal(column->time_unix_nano, 1700000000000000000);
		assert_int_equal(column->duration_nano, 2000000000);
		assert_int_equal(column->period, 10000000);
		assert_string_equal(string(request->dictionary, column->period_type->type_strindex),
				    "cpu");
		assert_int_equal(column->n_attribute_indices, 2); /* comments, doc_url */
		list_samples(request->dictionary, column, &got);
	}
	list_profile(profile, &want);
	compare(&got, &want);
	/* Our bytes are those of the referee, packed again: nothing twice, nothing in vain. */
	assert_int_equal(protobuf_c_message_get_packed_size(&request->base), all.items[0].n);
	release(request);
	profile_free(profile);
}

static void otlp_leaves_out_columns_without_samples(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, "faults", "count");
	profile_add_sample_type(profile, "cpu", "nanoseconds");
	const int64_t values[] = {1, 0, 5};
	(void)profile_add_sample(profile, 0, 0, values);
	struct exporter_config config = {0};
	encode(&config, profile);
	request_message *request = unpack(0);
	check_dictionary(request->dictionary);
	const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
		request->resource_profiles[0]->scope_profiles[0];
	assert_int_equal(scope->n_profiles, 2);
	assert_non_null(scope->profiles[0]->period_type);
	const Opentelemetry__Proto__Common__V1__KeyValue *order =
		scope->scope->attributes[scope->scope->n_attributes - 1];
	assert_string_equal(order->key, "pprof.scope.sample_type_order");
	assert_int_equal(order->value->array_value->n_values, 2);
	assert_int_equal(order->value->array_value->values[0]->value_case, ANY(INT_VALUE));
	assert_int_equal(order->value->array_value->values[0]->int_value, 0);
	assert_int_equal(order->value->array_value->values[1]->int_value, 2);
	release(request);
	/* Zeros only: receivers refuse profiles without samples. */
	profile_values(profile, 0)[0] = 0;
	profile_values(profile, 0)[2] = 0;
	encode(&config, profile);
	assert_int_equal(all.n, 0);
	profile_free(profile);
}

static void otlp_marks_kernel_frames_and_mends_ranges(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	struct profile_mapping kernel = {.memory_start = 0xffffffff81000000,
					 .memory_limit = 0xffffffff82000000,
					 .filename =
						 profile_string(profile, "[kernel.kallsyms]_text"),
					 .build_id = profile_string(profile, "aa")};
	struct profile_mapping odd = {.memory_start = 5,
				      .memory_limit = 5,
				      .filename = profile_string(profile, "/bin/odd")};
	uint32_t kernel_at = profile_add_location(profile, profile_add_mapping(profile, &kernel),
						  0xffffffff81000010);
	uint32_t odd_at = profile_add_location(profile, profile_add_mapping(profile, &odd), 7);
	const uint32_t path[] = {odd_at, kernel_at, profile_add_location(profile, PROFILE_NONE, 9)};
	const int64_t one = 1;
	(void)profile_add_sample(profile, profile_stack_path(profile, path, 3), 0, &one);
	struct exporter_config config = {0};
	encode(&config, profile);
	request_message *request = unpack(0);
	list_samples(request->dictionary,
		     request->resource_profiles[0]->scope_profiles[0]->profiles[0], &got);
	assert_string_equal(got.items[0],
			    "samples/count 1;0x9@(0-0+0);0xffffffff81000010@"
			    "[kernel.kallsyms]_text(ffffffff81000000-ffffffff82000000+0 "
			    "process.executable.build_id.gnu=aa) profile.frame.type=kernel;"
			    "0x7@/bin/odd(0-0+0)");
	mem_free(got.items[0]);
	got.n = 0;
	release(request);
	profile_free(profile);
}

static void otlp_splits_by_encoded_size(void **state)
{
	(void)state;
	enum { LIMIT = 128 << 10 };
	struct profile *profile = collected_large_profile(9000, 50);
	struct exporter_config config = {.limits = {.max_message_bytes = LIMIT}};
	encode(&config, profile);
	assert_true(all.n > 4);
	assert_int_equal(all.n_samples, 9010);
	for (size_t i = 0; i < all.n; i++) {
		assert_true(all.items[i].n <= LIMIT);
		request_message *request = unpack(i);
		check_dictionary(request->dictionary);
		for (size_t k = 0; k < 2; k++)
			list_samples(request->dictionary,
				     request->resource_profiles[0]->scope_profiles[0]->profiles[k],
				     &got);
		release(request);
	}
	list_profile(profile, &want);
	/* Flags of a mapping are those of the whole. */
	compare(&got, &want);
	config.limits = (struct request_limits){.max_samples = 1000};
	encode(&config, profile);
	assert_int_equal(all.n, (profile->samples.n + 999) / 1000);
	profile_free(profile);
}

static void otlp_splits_a_request_in_halves(void **state)
{
	(void)state;
	struct profile *profile = collected_large_profile(1001, 7);
	struct exporter_config config = {0};
	encode(&config, profile);
	assert_int_equal(all.n, 1);
	size_t n = all.items[0].n;
	uint8_t *message = mem_copy(all.items[0].message, n);
	collected_requests_fini(&all);
	assert_null(backend_otlp.split(&config, message, n, collect_request, &all));
	assert_int_equal(all.n, 2);
	assert_int_equal(all.n_samples, 1011);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(all.items[i].summary.first_time_ns, 1700000000000000000);
		request_message *request = unpack(i);
		check_dictionary(request->dictionary);
		assert_string_equal(
			request->resource_profiles[0]->resource->attributes[1]->value->string_value,
			"host-1");
		for (size_t k = 0; k < 2; k++)
			list_samples(request->dictionary,
				     request->resource_profiles[0]->scope_profiles[0]->profiles[k],
				     &got);
		release(request);
	}
	list_profile(profile, &want);
	compare(&got, &want);
	/* Down to one sample each, which cannot be split. */
	while (all.items[0].summary.n_samples > 1) {
		mem_free(message);
		n = all.items[0].n;
		message = mem_copy(all.items[0].message, n);
		collected_requests_fini(&all);
		struct error *err = backend_otlp.split(&config, message, n, collect_request, &all);
		if (err) {
			assert_int_equal(error_get_code(err), ERROR_LIMIT);
			error_free(err);
			break;
		}
	}
	static const uint8_t garbage[] = {0x0a, 0x05, 0x01};
	struct error *err =
		backend_otlp.split(&config, garbage, sizeof(garbage), collect_request, &all);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	mem_free(message);
	profile_free(profile);
}

static struct profile *listed;
static char listed_series[256];

static struct error *note_profile(void *context, const char *series, const uint8_t *pprof, size_t n)
{
	(void)context;
	snprintf(listed_series, sizeof(listed_series), "%s", series);
	return pprof_read(pprof, n, NULL, &listed, NULL);
}

static void otlp_lists_the_profile_of_a_request(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {0};
	encode(&config, profile);
	assert_null(
		backend_otlp.profiles(all.items[0].message, all.items[0].n, note_profile, NULL));
	assert_string_equal(
		listed_series,
		"process_cpu{service.name=\"gitaly\",host.name=\"host-1\",env=\"prod\"}");
	assert_int_equal(listed->samples.n, 5);
	assert_int_equal(listed->comments.n, 2);
	assert_string_equal(profile_text(listed, listed->default_sample_type), "cpu");
	assert_string_equal(profile_text(listed, listed->doc_url), "https://example.org/doc");
	list_profile(profile, &want);
	list_profile(listed, &got);
	compare(&got, &want);
	profile_free(listed);
	profile_free(profile);
}

static void otlp_refuses_indices_past_their_tables(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct exporter_config config = {0};
	encode(&config, profile);
	/* Every byte changed in turn: an error or a profile, never more. */
	uint8_t *message = mem_copy(all.items[0].message, all.items[0].n);
	unsigned n_refused = 0;
	for (size_t i = 0; i < all.items[0].n; i++) {
		uint8_t byte = message[i];
		message[i] ^= 0x7f;
		struct otlp_reading reading;
		struct error *err = otlp_read(message, all.items[0].n, &reading);
		n_refused += err != NULL;
		error_free(err);
		otlp_reading_fini(&reading);
		message[i] = byte;
	}
	assert_true(n_refused > all.items[0].n / 4);
	mem_free(message);
	profile_free(profile);
}

static void otlp_judges_as_its_table_says(void **state)
{
	(void)state;
	static const enum backend_verdict verdicts[GRPC_CODE_N] = {
		[GRPC_OK] = BACKEND_DELIVERED,
		[GRPC_CANCELLED] = BACKEND_RETRY,
		[GRPC_UNKNOWN] = BACKEND_REJECT,
		[GRPC_INVALID_ARGUMENT] = BACKEND_REJECT,
		[GRPC_DEADLINE_EXCEEDED] = BACKEND_RETRY,
		[GRPC_NOT_FOUND] = BACKEND_REJECT,
		[GRPC_ALREADY_EXISTS] = BACKEND_REJECT,
		[GRPC_PERMISSION_DENIED] = BACKEND_RETRY_AUTH,
		[GRPC_RESOURCE_EXHAUSTED] = BACKEND_REJECT,
		[GRPC_FAILED_PRECONDITION] = BACKEND_REJECT,
		[GRPC_ABORTED] = BACKEND_RETRY,
		[GRPC_OUT_OF_RANGE] = BACKEND_RETRY,
		[GRPC_UNIMPLEMENTED] = BACKEND_REJECT,
		[GRPC_INTERNAL] = BACKEND_REJECT,
		[GRPC_UNAVAILABLE] = BACKEND_RETRY,
		[GRPC_DATA_LOSS] = BACKEND_RETRY,
		[GRPC_UNAUTHENTICATED] = BACKEND_RETRY_AUTH,
	};
	for (int code = 0; code < GRPC_CODE_N; code++)
		assert_int_equal(collected_answer(&backend_otlp,
						  collected_result((enum grpc_code)code, "words"))
					 .verdict,
				 verdicts[code]);
	struct grpc_result result = collected_result(GRPC_RESOURCE_EXHAUSTED, "busy");
	result.has_retry_info = true;
	assert_int_equal(collected_answer(&backend_otlp, result).verdict, BACKEND_RETRY);
	/* tonic */
	result = collected_result(GRPC_OUT_OF_RANGE,
				  "Error, decoded message length too large: found "
				  "5000000 bytes, the limit is: 4194304 bytes");
	assert_int_equal(collected_answer(&backend_otlp, result).verdict, BACKEND_SPLIT);
}

static void otlp_tells_of_a_partial_success(void **state)
{
	(void)state;
	/* partial_success { rejected_profiles: 3, error_message: "no room" } */
	static const uint8_t some[] = "\x0a\x0b\x08\x03\x12\x07no room";
	struct grpc_result result = collected_result(GRPC_OK, "");
	result.response = some;
	result.n_response = sizeof(some) - 1;
	struct backend_answer answer = collected_answer(&backend_otlp, result);
	assert_int_equal(answer.verdict, BACKEND_DELIVERED);
	assert_int_equal(answer.reason, BACKEND_REASON_REJECTED);
	assert_int_equal(answer.n_refused, 3);
	assert_string_equal(answer.text, "no room");
	/* A warning only. */
	static const uint8_t none[] = "\x0a\x06\x12\x04slow";
	result.response = none;
	result.n_response = sizeof(none) - 1;
	answer = collected_answer(&backend_otlp, result);
	assert_int_equal(answer.verdict, BACKEND_DELIVERED);
	assert_int_equal(answer.reason, BACKEND_REASON_NONE);
	assert_string_equal(answer.text, "slow");
	static const uint8_t garbage[] = {0x0a, 0x7f};
	result.response = garbage;
	result.n_response = sizeof(garbage);
	answer = collected_answer(&backend_otlp, result);
	assert_int_equal(answer.verdict, BACKEND_DELIVERED);
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
		cmocka_unit_test(otlp_sends_what_the_profile_says),
		cmocka_unit_test(otlp_leaves_out_columns_without_samples),
		cmocka_unit_test(otlp_marks_kernel_frames_and_mends_ranges),
		cmocka_unit_test(otlp_splits_by_encoded_size),
		cmocka_unit_test(otlp_splits_a_request_in_halves),
		cmocka_unit_test(otlp_lists_the_profile_of_a_request),
		cmocka_unit_test(otlp_refuses_indices_past_their_tables),
		cmocka_unit_test(otlp_judges_as_its_table_says),
		cmocka_unit_test(otlp_tells_of_a_partial_success),
	};
	return cmocka_run_group_tests(tests, NULL, finish);
}
